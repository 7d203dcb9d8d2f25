"""What can be got ready while a device computes?  The next model's files, read and verified once; the next job's token ids.

Verified files are looked at again whenever something rests on them: a library may leave weights in their file and read them from there later.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from evalspec.artifacts.work import WorkOrder
from evalspec.errors import ScoringError
from evalspec.scoring.checkpoint import verify_files

Value = TypeVar("Value")
Stamps = dict[str, tuple[int, ...]]


class Meanwhile(Generic[Value]):
    """A value that a thread computes; the thread dies with the process."""

    def __init__(self, compute: Callable[[], Value]) -> None:
        self._compute = compute
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._value: Value | None = None
        self._error: BaseException | None = None
        self._thread.start()

    @property
    def under_way(self) -> bool:
        """Whether the thread is still at it."""
        return self._thread.is_alive()

    def wait(self) -> None:
        """Wait until the thread has ended, whatever became of it."""
        self._thread.join()

    def result(self) -> Value:
        """Wait for the value; raises what its computation raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value] # set where there is no error

    def _run(self) -> None:
        try:
            self._value = self._compute()
        except BaseException as error:  # noqa: BLE001 - raised where the value is asked for
            self._error = error


@dataclass(frozen=True, slots=True)
class VerifiedFiles:
    """The files of a checkpoint as they were when they were compared with their digests."""

    order: WorkOrder
    stamps: Stamps

    def refuse_changed(self) -> None:
        """Raise ScoringError naming a file of the checkpoint that was touched since."""
        now = _stamps(self.order)
        for file in self.order.identity.files:
            if now.get(file.name) != self.stamps.get(file.name):
                raise ScoringError(
                    f"'{Path(self.order.folder).name}': {file.name} was changed or replaced after its digest was compared",
                    hint="leave a model's files alone while it is scored; what was scored before is kept, and the same command goes on from there",
                )


class Checkpoints:
    """Compares the files of checkpoints with their digests; what was compared while another model was scored is not read again.

    Comparing brings the files into the system's cache of pages, from where they are loaded.
    """

    def __init__(self) -> None:
        self._reading: tuple[WorkOrder, Meanwhile[Stamps]] | None = None

    def read_ahead(self, order: WorkOrder) -> None:
        """Begin to read and compare in a thread, unless it is busy."""
        if self._reading is None or not (self._reading[1].under_way or self._is(order)):
            self._reading = (order, Meanwhile(lambda: _compare(order)))

    def verify(self, order: WorkOrder) -> VerifiedFiles:
        """Return the files once each is known to be the one that the protocol names; raises ScoringError."""
        if self._reading is not None and self._is(order):
            try:
                if (stamps := self._reading[1].result()) == _stamps(order):
                    return VerifiedFiles(order, stamps)
            except (ScoringError, OSError):
                pass  # it may have been put right since then
        return VerifiedFiles(order, _compare(order))

    def _is(self, order: WorkOrder) -> bool:
        return self._reading is not None and (self._reading[0].folder, self._reading[0].identity) == (order.folder, order.identity)


def _compare(order: WorkOrder) -> Stamps:
    before = _stamps(order)
    verify_files(Path(order.folder), order.identity)
    return before


def _stamps(order: WorkOrder) -> Stamps:
    """Return what changes when a file, or the link in its place, is written to, replaced or put there."""
    folder = Path(order.folder)
    paths = {folder / file.name for file in order.identity.files} | set(folder.glob("*.safetensors"))
    both = {path.name: (path.lstat(), path.stat()) for path in sorted(paths) if path.exists()}
    return {name: tuple(number for stat in stats for number in _stamp(stat)) for name, stats in both.items()}


def _stamp(stat: os.stat_result) -> tuple[int, ...]:
    return stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns
