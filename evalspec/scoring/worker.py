"""Score one assignment after another: each comes as a line on standard input, what happens goes as lines of JSON to standard output.

`python -m evalspec.scoring.worker --journal DIR --secret FILE`. With `--journal -` the journal is elsewhere: what is new is told, not written.
When standard input closes, whoever asked is gone, and the worker ends.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import BinaryIO

from evalspec.artifacts.work import Assignment, WorkerEvent
from evalspec.errors import EvalspecError
from evalspec.scoring.dispatch import FAILED
from evalspec.scoring.journal import FileJournal
from evalspec.scoring.model_run import ModelRun, Place, Tell, WritableJournal
from evalspec.scoring.preparation import Checkpoints
from evalspec.scoring.relay import RelayedJournal

ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "USE_HUB_KERNELS": "NO",
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",  # without it cuBLAS may give other bits from run to run, and torch refuses to compute
}
ELSEWHERE = "-"

PR_SET_PDEATHSIG = 1
"""prctl(2): the signal that a process gets when its parent ends."""


class Worker:
    """Scores assignments on one device; a model stays loaded until another one is asked for."""

    def __init__(self, journal: Callable[[Assignment], WritableJournal], place: Place, tell: Tell) -> None:
        self._journal = journal
        self._place = place
        self._tell = tell
        self._checkpoints = Checkpoints()
        self._run: ModelRun | None = None

    def score(self, assignment: Assignment) -> None:
        """Bring one job to its end in the journal; raises ScoringError when its model cannot be scored, OSError where a file fails."""
        if self._run is None or not self._run.has(assignment.order):
            if self._run is not None:
                self._run.release()
            self._run = ModelRun(assignment.order, self._place, self._checkpoints, self._tell)
        self._run.score(assignment, self._journal(assignment))
        self._tell(WorkerEvent(kind="done", model=assignment.order.model, benchmark=assignment.work.benchmark))


def main(arguments: Sequence[str] | None = None) -> int:
    """Score until there is nothing more to come; returns 3 where the journal cannot be written, which no further job would mend."""
    parser = argparse.ArgumentParser(prog="python -m evalspec.scoring.worker", description=__doc__)
    parser.add_argument("--journal", required=True, help="journal folder, or - for one that is elsewhere")
    parser.add_argument("--secret", type=Path, help="the file of the secret under which the journal is written; made where there is none")
    parser.add_argument("--device", default="cpu", help="torch device, or auto for all accelerators together (default: cpu)")
    parser.add_argument("--name", default="", help="what the journal calls the device (default: as torch does)")
    parser.add_argument("--threads", type=int, help="threads for models that can use them (default: all cores)")
    options = parser.parse_args(arguments)
    os.environ.update(ENVIRONMENT)
    _end_with_parent()
    tell = _teller(_events())
    here = None if options.journal == ELSEWHERE else FileJournal(Path(options.journal), options.secret)
    worker = Worker(lambda assignment: here or RelayedJournal(assignment, tell), Place(options.device, options.threads, options.name), tell)
    for line in _lines():
        if not _attempt(worker, Assignment.from_json(line), here, tell):
            return FAILED
    return 0


def _attempt(worker: Worker, assignment: Assignment, journal: FileJournal | None, tell: Tell) -> bool:
    """Score, or tell why not; returns whether another assignment may fare better."""
    model = assignment.order.model
    try:
        worker.score(assignment)
    except EvalspecError as error:
        for diagnostic in error.diagnostics:
            tell(WorkerEvent(kind="failed", model=model, message=diagnostic.message, hint=diagnostic.hint))
    except OSError as error:
        place = error.filename or (journal.folder if journal else assignment.order.folder)
        hint = "make room or mend the permissions; what was scored is kept, and the same command goes on from there"
        tell(WorkerEvent(kind="failed", model=model, message=f"scoring of '{model}' stopped: {place}: {error.strerror or error}", hint=hint))
        return journal is None or not Path(place).is_relative_to(journal.folder)
    return True


def _end_with_parent() -> None:
    """Let the system end this process with the one that asks, also while it is stopped and does not see its input close."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _events() -> BinaryIO:
    """Return the stream that events go to; whatever else is printed goes to standard error."""
    events = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    return events


def _teller(stream: BinaryIO) -> Tell:
    lock = threading.Lock()

    def tell(event: WorkerEvent) -> None:
        line = event.model_dump_json(exclude_none=True).encode() + b"\n"
        with lock:
            while line:
                line = line[stream.write(line) :]

    return tell


def _lines() -> Iterator[bytes]:
    """Give the lines of standard input; the process dies when it closes, also in the middle of a computation."""
    lines: SimpleQueue[bytes] = SimpleQueue()

    def read() -> None:
        for line in sys.stdin.buffer:
            lines.put(line)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=read, daemon=True).start()
    while True:
        yield lines.get()


if __name__ == "__main__":
    sys.exit(main())
