"""How is scoring run on this machine?  A worker process per device, watched: events in, restart after a crash, ended with its parent."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from evalspec.artifacts.schedule import Device
from evalspec.artifacts.work import WorkerEvent, WorkOrder, WorkOrders
from evalspec.errors import Diagnostic, ScoringError

SECRETS = ("EVALSPEC_KEY_PASSPHRASE",)
"""Variables that are nothing to a worker."""

TRIES = 3
TAIL_LINES = 12
FAILED = 3


class LocalExecutor:
    """Runs work orders on the processors of this machine, in one worker that loads each model once.

    The orders travel through the worker's standard input, so that no question stands in a file; when this process ends, however it ends,
    that input closes and the worker ends too.
    """

    def __init__(self, *, threads: int | None = None) -> None:
        self._threads = threads

    def devices(self) -> tuple[Device, ...]:
        """Return the one device there is: this machine's processors."""
        return (Device(id="cpu", kind="cpu", memory_bytes=_memory_bytes(), name=_processor()),)

    def run(self, orders: Sequence[WorkOrder], journal: Path, tell: Callable[[WorkerEvent], None]) -> None:
        """Score what the journal lacks; raises ScoringError when a model cannot be scored or the worker keeps crashing."""
        failures: list[Diagnostic] = []

        def hear(event: WorkerEvent) -> None:
            if event.kind == "failed":
                failures.append(Diagnostic(event.message, hint=event.hint))
            tell(event)

        for attempt in range(1, TRIES + 1):
            failures.clear()
            code, tail = self._one_worker(orders, journal, hear)
            if code == 0:
                return
            if code == FAILED and failures:
                raise ScoringError(failures)
            if code > 0 or attempt == TRIES:
                raise _crash(code, tail)
            tell(
                WorkerEvent(
                    kind="warning", model=orders[0].model, message=f"the worker was ended by {_signal_name(code)}; it goes on from the journal"
                )
            )

    def _one_worker(self, orders: Sequence[WorkOrder], journal: Path, hear: Callable[[WorkerEvent], None]) -> tuple[int, str]:
        command = [sys.executable, "-m", "evalspec.scoring.worker", "--jobs", "-", "--journal", str(journal)]
        if self._threads is not None:
            command += ["--threads", str(self._threads)]
        with tempfile.TemporaryFile() as errors:
            # A session of its own: Ctrl-C reaches this process alone, which then ends the worker.
            environment = {name: value for name, value in os.environ.items() if name not in SECRETS}
            worker = subprocess.Popen(  # noqa: S603 - our own module
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True, env=environment
            )
            try:
                _hand_over(worker, orders)
                for line in worker.stdout or ():
                    hear(WorkerEvent.from_json(line))
                code = worker.wait()
            finally:
                worker.kill()
                worker.wait()
                for pipe in (worker.stdin, worker.stdout):
                    _close(pipe)
            errors.seek(0)
            return code, errors.read().decode(errors="replace")


def _hand_over(worker: subprocess.Popen[bytes], orders: Sequence[WorkOrder]) -> None:
    assert worker.stdin is not None
    try:
        worker.stdin.write(WorkOrders(orders=tuple(orders)).model_dump_json().encode() + b"\n")
        worker.stdin.flush()
    except BrokenPipeError:
        return  # the worker is gone already; its exit code and its last words say why


def _close(pipe: IO[bytes] | None) -> None:
    try:
        if pipe is not None:
            pipe.close()
    except BrokenPipeError:
        return  # what was not read has no reader any more


def _crash(code: int, tail: str) -> ScoringError:
    last = "\n".join(line for line in tail.splitlines()[-TAIL_LINES:] if line.strip())
    how = f"was ended by {_signal_name(code)} {TRIES} times" if code < 0 else f"ended with code {code}"
    hint = "SIGKILL mostly means that memory ran out; what was scored is kept, the same command goes on" if code == -signal.SIGKILL else None
    return ScoringError(f"the scoring worker {how}" + (f"; its last lines were:\n{last}" if last else ""), hint=hint)


def _signal_name(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"code {code}"


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
