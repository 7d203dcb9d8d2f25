from __future__ import annotations

import json
import subprocess
import sys

import pytest

from evalspec.artifacts.schedule import taken_together
from evalspec.errors import UsageError
from evalspec.scoring.executors.devices import local_devices, read_accelerators, threads_of

PRINTED = json.dumps([["Some GPU", 80 * 2**30], ["Some GPU", 70 * 2**30]]).encode()


def test_one_cpu_is_all_processors_and_several_share_the_memory_with_one_thread_each() -> None:
    (one,) = local_devices(("cpu",))
    several = local_devices(("cpu", "cpu"))
    assert (one.id, one.kind) == ("cpu", "cpu")
    assert [device.id for device in several] == ["cpu:0", "cpu:1"]
    assert one.memory_bytes is not None
    assert [device.memory_bytes for device in several] == [one.memory_bytes // 2] * 2
    assert several[0].name == f"{one.name}, 1 thread"
    assert (threads_of((one,), None), threads_of(several, None), threads_of(several, 4)) == (None, 1, 4)
    assert local_devices(("cpu", "cpu"), 2)[0].name == f"{one.name}, 2 threads"


def test_accelerators_are_numbered_and_have_their_free_memory() -> None:
    found = read_accelerators(PRINTED)
    assert [(device.id, device.kind, device.memory_bytes, device.name) for device in found] == [
        ("cuda:0", "cuda", 80 * 2**30, "Some GPU"),
        ("cuda:1", "cuda", 70 * 2**30, "Some GPU"),
    ]


def test_all_accelerators_together_are_one_device_and_processors_are_not() -> None:
    found = read_accelerators(PRINTED)
    together = taken_together(found)
    assert together is not None
    assert (together.id, together.memory_bytes) == ("cuda:0+cuda:1", 150 * 2**30)
    assert taken_together(found[:1]) is None
    assert taken_together(local_devices(("cpu", "cpu"))) is None


def test_the_process_that_asks_torch_prints_what_can_be_read() -> None:
    printed = subprocess.run([sys.executable, "-m", "evalspec.scoring.executors.devices"], capture_output=True, check=True).stdout
    assert len(read_accelerators(printed)) == len(json.loads(printed))


def test_an_accelerator_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"there is no device 'cuda:900'; accelerators that torch can use here: "):
        local_devices(("cuda:900",))


def test_without_accelerators_auto_is_the_processors() -> None:
    assert {device.kind for device in local_devices(("auto",))} <= {"cpu", "cuda"}
    assert len(local_devices(("auto",))) >= 1
