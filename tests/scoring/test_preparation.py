from __future__ import annotations

import hashlib
import os
import sys
import threading
from pathlib import Path

import pytest

from evalspec.artifacts.protocol import BatchRule, CheckpointIdentity, FileDigest
from evalspec.artifacts.work import WorkOrder
from evalspec.errors import ScoringError
from evalspec.scoring.preparation import Checkpoints, Meanwhile

PATIENCE = 60
SIZE = 1 << 22

counts_reading = pytest.mark.skipif(sys.platform != "linux", reason="Linux counts the bytes that a process reads")


def checkpoint(folder: Path) -> WorkOrder:
    """An order for a folder with four mebibytes of weights."""
    folder.mkdir()
    content = folder.name.encode() * (SIZE // len(folder.name))
    (folder / "model.safetensors").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    identity = CheckpointIdentity(
        files=(FileDigest(name="model.safetensors", sha256=digest, size=len(content)),),
        weights_sha256=digest,
        tokenizer_sha256=digest,
        architecture="any",
        parameters=1,
        stored_dtype="float32",
        origin="m",
    )
    return WorkOrder(model="m", folder=str(folder), precision="float32", identity=identity, batch_rule=BatchRule(), works=())


def bytes_read() -> int:
    return int(Path("/proc/self/io").read_text().split()[1])


def read_ahead(checkpoints: Checkpoints, order: WorkOrder) -> None:
    """Read ahead, and wait until that is over."""
    before = set(threading.enumerate())
    checkpoints.read_ahead(order)
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE)


@counts_reading
def test_what_was_read_ahead_is_not_read_again(tmp_path: Path) -> None:
    order, checkpoints = checkpoint(tmp_path / "one"), Checkpoints()
    read_ahead(checkpoints, order)
    before = bytes_read()
    checkpoints.verify(order)
    assert bytes_read() - before < SIZE / 2
    checkpoints.verify(checkpoint(tmp_path / "two"))
    assert bytes_read() - before > SIZE / 2


def test_a_file_that_changes_after_it_was_read_ahead_is_found_also_when_its_time_is_put_back(tmp_path: Path) -> None:
    order, checkpoints = checkpoint(tmp_path / "one"), Checkpoints()
    read_ahead(checkpoints, order)
    path = Path(order.folder) / "model.safetensors"
    stat = path.stat()
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(ScoringError, match=r"model\.safetensors is not the file that the protocol names"):
        checkpoints.verify(order)


def test_a_file_that_is_put_there_after_the_others_were_read_ahead_is_found(tmp_path: Path) -> None:
    order, checkpoints = checkpoint(tmp_path / "one"), Checkpoints()
    read_ahead(checkpoints, order)
    (Path(order.folder) / "another.safetensors").write_bytes(b"")
    with pytest.raises(ScoringError, match=r"another\.safetensors is not among the files"):
        checkpoints.verify(order)


def test_what_was_wrong_when_it_was_read_ahead_counts_only_if_it_still_is(tmp_path: Path) -> None:
    order, checkpoints = checkpoint(tmp_path / "one"), Checkpoints()
    path = Path(order.folder) / "model.safetensors"
    right = path.read_bytes()
    path.unlink()
    read_ahead(checkpoints, order)
    with pytest.raises(ScoringError, match="is not the file"):
        checkpoints.verify(order)
    path.write_bytes(right)
    checkpoints.verify(order)


def test_a_thread_hands_over_its_value_or_its_error() -> None:
    gate = threading.Event()
    value = Meanwhile(lambda: gate.wait(PATIENCE))
    assert value.under_way
    gate.set()
    assert value.result() is True
    assert not value.under_way
    failed = Meanwhile(lambda: 1 // 0)
    failed.wait()
    with pytest.raises(ZeroDivisionError):
        failed.result()
