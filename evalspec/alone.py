"""How do two runs keep out of each other's folder?  A run holds a lock on it, which the system lifts when the run ends, however it ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evalspec.errors import StoreError


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Let nobody else write into a folder that exists; raises StoreError at once where another run does."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        _lock(opened, folder)
        yield
    finally:
        os.close(opened)


def _lock(opened: int, folder: Path) -> None:
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise StoreError(f"another run is writing into {folder}", hint="wait until it has ended, or name another folder with --out") from error
