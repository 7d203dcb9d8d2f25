"""How do two runs keep out of each other's way?  By locks on folders and files, which the system lifts when a run ends, however it ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
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


@contextmanager
def locked(file: Path, *, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock for which a file stands, made where there is none; calls `waiting` where another process has it, and waits for that one.

    Raises OSError for a link in its place, which in a folder of somebody else's could lead to any file.
    """
    opened = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def _lock(opened: int, folder: Path) -> None:
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise StoreError(f"another run is writing into {folder}", hint="wait until it has ended, or name another folder with --out") from error
