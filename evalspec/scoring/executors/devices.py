"""Which devices does this machine have?  Processors always; accelerators are asked of torch, in a process of its own that prints what it finds."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from evalspec import children
from evalspec.artifacts.schedule import Device
from evalspec.devices import AUTO
from evalspec.errors import UsageError

DRIVERS = (Path("/dev/nvidiactl"), Path("/dev/kfd"), Path("/dev/dxg"))
"""What a machine has whose accelerators torch may be able to use; without any of them torch, which takes seconds to import, is not asked."""

ONE_NUMBERING = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
"""So that a number means the same accelerator to every process."""


def local_devices(asked: Sequence[str], threads: int | None = None) -> tuple[Device, ...]:
    """Return the devices that are asked for; raises UsageError when this machine does not have them.

    `auto` is every accelerator, else the processors together. Each of several `cpu` has one thread, unless `threads` says otherwise.
    """
    if set(asked) == {"cpu"}:
        return _processors(len(asked), threads)
    found = _accelerators()
    if tuple(asked) == (AUTO,):
        return found or _processors(1, threads)
    known = {device.id: device for device in found}
    absent = [name for name in asked if name not in known]
    if absent:
        there = ", ".join(known) or "none"
        raise UsageError(f"there is no device {absent[0]!r}; accelerators that torch can use here: {there}", hint="ask for `auto`, or for `cpu`")
    return tuple(known[name] for name in asked)


def threads_of(devices: Sequence[Device], threads: int | None) -> int | None:
    """Return with how many threads each of these devices computes; None where torch decides."""
    return 1 if threads is None and len(devices) > 1 and devices[0].kind == "cpu" else threads


def _processors(count: int, threads: int | None) -> tuple[Device, ...]:
    """Return all processors as one device, or as several that share the memory."""
    memory, name = _memory_bytes(), _processor()
    if count == 1:
        return (Device(id="cpu", kind="cpu", memory_bytes=memory, name=name),)
    each = threads or 1
    named = f"{name}, {each} thread{'' if each == 1 else 's'}"
    return tuple(Device(id=f"cpu:{number}", kind="cpu", memory_bytes=memory and memory // count, name=named) for number in range(count))


def _accelerators() -> tuple[Device, ...]:
    if not any(path.exists() for path in DRIVERS):
        return ()
    environment = {**os.environ, **children.python_path(), **ONE_NUMBERING}
    asked = subprocess.run(children.command(__name__), capture_output=True, check=False, env=environment)  # noqa: S603 - our own module
    return read_accelerators(asked.stdout) if asked.returncode == 0 else ()


def read_accelerators(printed: bytes) -> tuple[Device, ...]:
    """Return what the process that asks torch has printed: name and free memory of every accelerator."""
    found = json.loads(printed)
    return tuple(Device(id=f"cuda:{number}", kind="cuda", memory_bytes=free, name=name) for number, (name, free) in enumerate(found))


def print_accelerators() -> None:
    """Print name and free memory of every accelerator as JSON; nothing is there without torch."""
    try:
        import torch  # noqa: PLC0415 - this function is called in a process of its own
    except ModuleNotFoundError:
        found = []
    else:
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        found = [(torch.cuda.get_device_name(number), torch.cuda.mem_get_info(number)[0]) for number in range(count)]
    sys.stdout.write(json.dumps(found))


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor() or platform.machine())
    return f"{named}, {os.cpu_count()} logical cores"


if __name__ == "__main__":
    print_accelerators()
