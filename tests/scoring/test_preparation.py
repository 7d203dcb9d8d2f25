from __future__ import annotations

import hashlib
import os
import shutil
import sys
import threading
from collections.abc import Callable
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


def set_back(path: Path) -> None:
    """Write other content of the same size, and put the time of writing back."""
    stat = path.stat()
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def replace(path: Path) -> None:
    """Put another file of the same content and time in its place."""
    other = path.with_name("other")
    shutil.copy2(path, other)
    other.rename(path)


def dance(path: Path) -> None:
    """Put another file in its place for a while."""
    path.rename(path.with_name("away"))
    path.write_bytes(b"")
    path.with_name("away").rename(path)


@pytest.mark.parametrize("change", [set_back, replace, dance, Path.unlink])
@pytest.mark.parametrize("ahead", [False, True])
def test_a_file_that_is_touched_after_it_was_verified_is_named(tmp_path: Path, change: Callable[[Path], None], ahead: bool) -> None:
    order, checkpoints = checkpoint(tmp_path / "one"), Checkpoints()
    if ahead:
        read_ahead(checkpoints, order)
    verified = checkpoints.verify(order)
    (Path(order.folder) / "beside.safetensors").write_bytes(b"not read")
    verified.refuse_changed()
    change(Path(order.folder) / "model.safetensors")
    with pytest.raises(ScoringError, match=r"'one': model\.safetensors was changed or replaced after its digest was compared"):
        verified.refuse_changed()


def test_a_link_that_leads_elsewhere_for_a_while_is_named(tmp_path: Path) -> None:
    order = checkpoint(tmp_path / "one")
    link, blob = Path(order.folder) / "model.safetensors", tmp_path / "blob"
    link.rename(blob)
    link.symlink_to(blob)
    verified = Checkpoints().verify(order)
    for target in (tmp_path / "elsewhere", blob):
        link.unlink()
        link.symlink_to(target)
    with pytest.raises(ScoringError, match=r"model\.safetensors was changed or replaced"):
        verified.refuse_changed()


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
