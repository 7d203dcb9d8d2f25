"""How is a worker process started, spoken to and ended?  Without ever waiting for it, so that one process can watch many."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from evalspec import children
from evalspec.artifacts.work import Assignment, WorkerEvent
from evalspec.scoring.dispatch import Ended
from evalspec.scoring.executors.devices import ONE_NUMBERING
from evalspec.scoring.silence import WAKING, Clock, Watch

SECRETS = ("EVALSPEC_KEY_PASSPHRASE", "_API_KEY")
"""Endings of the names of variables that are nothing to a worker: the key's passphrase, and keys for servers."""

CHUNK = 1 << 16

DYING = 10.0
"""Seconds that a killed process has to go; one that the system itself cannot end is left behind."""


class WorkerProcess:
    """A worker with these arguments: `ear` takes assignments, `voice` gives events, and both are ready when a selector says so.

    `watch` is told what passes between them, so that it knows when the worker is silent for too long.
    """

    def __init__(self, arguments: Sequence[str], watch: Watch | None = None) -> None:
        self.watch = watch or Watch()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the worker has ended
        self._kills = _kills_for_memory()
        self._outgoing = b""
        self._incoming = b""
        # A session of its own: Ctrl-C reaches this process alone, which then ends the worker.
        environment = {name: value for name, value in os.environ.items() if not name.endswith(SECRETS)} | children.python_path() | ONE_NUMBERING
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            children.command("evalspec.scoring.worker", *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
            env=environment,
            bufsize=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.ear: IO[bytes] = self._process.stdin
        self.voice: IO[bytes] = self._process.stdout
        for pipe in (self.ear, self.voice):
            os.set_blocking(pipe.fileno(), False)

    def send(self, assignment: Assignment) -> None:
        """Let the worker have an assignment as soon as it listens; `write` brings it there."""
        self._outgoing += assignment.model_dump_json().encode() + b"\n"
        self.watch.assigned(assignment)

    def write(self) -> bool:
        """Write what the pipe takes; returns whether nothing is left to write."""
        try:
            while self._outgoing:
                written = os.write(self.ear.fileno(), self._outgoing[:CHUNK])
                self._outgoing = self._outgoing[written:]
        except BlockingIOError:
            return False
        except BrokenPipeError:
            self._outgoing = b""  # the worker is gone; its exit code and its last words say why
        return True

    def read(self) -> list[WorkerEvent] | None:
        """Return what the worker has said since the last call; None when it will say nothing more."""
        try:
            said = os.read(self.voice.fileno(), CHUNK)
        except BlockingIOError:
            return []
        *lines, self._incoming = (self._incoming + said).split(b"\n")
        events = [WorkerEvent.from_json(line) for line in lines]
        for event in events:
            self.watch.heard(event)
        return events if said else None

    def converse(self, assignment: Assignment) -> Iterator[WorkerEvent | Ended]:
        """Send an assignment, and give what the worker says until it is done with it or has failed, or how it ended."""
        self.send(assignment)
        clock = Clock()
        while True:
            ears = [] if self.write() else [self.ear]
            select.select([self.voice], ears, [], WAKING)
            self.watch.passed(clock.step())
            events = self.read()
            if events is None or self.watch.overdue():
                yield self.end()
                return
            for event in events:
                yield event
                if event.kind in {"done", "failed"}:
                    return

    def end(self) -> Ended:
        """Wait for a worker that says nothing more, end one that has been silent for too long, and return how it ended."""
        silent = self.watch.silent if self.watch.overdue() else None
        code = self._process.wait() if silent is None else -signal.SIGKILL
        self._errors.seek(0)
        words = self._errors.read().decode(errors="replace")
        self.kill()
        killed = code == -signal.SIGKILL and silent is None
        return Ended(code, words, out_of_memory=killed and _kills_for_memory() > self._kills, silent=silent)

    def kill(self) -> None:
        """End the worker at once, whatever it does, also where it is stopped."""
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(DYING)
        for pipe in (self.ear, self.voice, self._errors):
            pipe.close()


def _kills_for_memory() -> int:
    """Return how many processes the system has killed because memory ran out: in this control group, else anywhere; 0 where it does not say."""
    try:
        group = next(line.rpartition(":")[2] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
        return _counted(Path(f"/sys/fs/cgroup{group}/memory.events"))
    except (OSError, StopIteration):
        pass
    try:
        return _counted(Path("/proc/vmstat"))
    except OSError:
        return 0


def _counted(file: Path) -> int:
    pairs = (line.split() for line in file.read_text().splitlines())
    return next((int(value) for name, value in pairs if name == "oom_kill"), 0)
