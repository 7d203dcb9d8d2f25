"""What becomes of a job whose worker speaks, fails or ends?  Tries, smaller parts, other devices; the same for every executor."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from evalspec.artifacts.work import Assignment, WorkerEvent
from evalspec.errors import Diagnostic, ScoringError
from evalspec.scoring.queue import Queue, Task

TRIES = 3
TAIL_LINES = 12
FAILED = 3
"""A worker's exit code when no further job would fare better, as when the journal cannot be written."""

Tell = Callable[[WorkerEvent], None]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a worker ended: its exit code, a signal being negative, its last words, and whether the system says that memory had run out.

    One that was ended for its silence has been silent for so many seconds.
    """

    code: int
    words: str = ""
    out_of_memory: bool = False
    silent: float | None = None


@dataclass(slots=True)
class _Course:
    """How a job fares: answers counted, failed tries since the last progress, where they were, and in how many parts memory did not do."""

    known: int
    tries: int = 0
    devices: tuple[str, ...] = ()
    too_few_parts: int = 0


class Dispatch:
    """Hands out the jobs of a queue and takes note of what workers say; `tell` hears what is progress.

    A job is tried three times, the last time on another device where there is one. A worker that the system killed for lack of memory, or that was
    killed twice while it computed, goes on with its batches cut in halves.
    """

    def __init__(self, queue: Queue, devices: Iterable[str], tell: Tell) -> None:
        self._queue = queue
        self._tell = tell
        self._devices = set(devices)
        self._failures: dict[Diagnostic, None] = {}
        self._courses: dict[str, _Course] = {}
        self._loaded: set[str] = set()
        self._parts: dict[str, int] = {}

    def idle(self, device: str) -> bool:
        """Return whether a device has nothing to do."""
        return self._queue.under_way(device) is None

    def assign(self, device: str) -> Assignment | None:
        """Give an idle device its next job, and what it may prepare meanwhile; None where there is nothing for it now."""
        task = self._queue.take(device, shun=self._shunned(device))
        if task is None:
            return None
        following = self._queue.ahead(device)
        ahead = following.order if following else None
        if ahead is not None and ahead.model != task.model:
            ahead = ahead.model_copy(update={"works": ()})  # of another model nothing but its files is wanted
        return Assignment(
            order=task.order,
            one_by_one=task.one_by_one,
            parts=self._parts.get(task.model, 1),
            too_few_parts=self._course(task).too_few_parts,
            enough=task.enough,
            ahead=ahead,
        )

    def heard(self, device: str, event: WorkerEvent) -> None:
        """Take note of what a worker said; after `done` and `failed` its device is idle."""
        task = self._queue.under_way(device)
        if task is None:
            return
        course = self._course(task)
        if event.kind == "ready":
            self._loaded.add(device)
        elif event.kind == "loading":
            self._loaded.discard(device)
        elif event.kind == "batch":
            course.known, course.tries, course.devices = course.known + event.questions, 0, ()
        elif event.kind == "warning":
            self._parts[task.model] = max(self._parts.get(task.model, 1), event.parts)
        elif event.kind == "failed":
            self._failures[Diagnostic(event.message, hint=event.hint)] = None
            self._queue.drop_model(device)
        elif event.kind == "done":
            self._count_unheard(task, course)
            self._queue.done(device)
        if event.kind in {"loading", "batch", "warning", "waiting"}:
            self._tell(event.model_copy(update={"kind": "warning"}) if event.kind == "waiting" else event)

    def ended(self, device: str, how: Ended) -> None:
        """Take note that a worker is gone, and of its job what it deserves: another try, smaller parts, or to be given up.

        Raises ScoringError where no job would fare better.
        """
        task, loaded = self._queue.under_way(device), device in self._loaded
        self._loaded.discard(device)
        if how.code == FAILED:
            self.conclude()  # the worker has said why
        if task is None:
            return
        course, parts = self._course(task), self._parts.get(task.model, 1)
        course.tries += 1
        course.devices = (*course.devices, device)
        killed = how.code == -signal.SIGKILL and how.silent is None and (course.tries > 1 or parts > 1)
        if loaded and (how.out_of_memory or killed):
            self._parts[task.model], course.too_few_parts, course.tries = 2 * parts, parts, 0
            self._again(device, task, f"the worker {_words(how)}, as when memory runs out; it goes on with smaller batches")
        elif course.tries < TRIES:
            self._again(device, task, f"the worker {_words(how)}; it goes on from the journal")
        else:
            self._failures[_crash(task, how)] = None
            self._queue.drop(device)

    def lost(self, device: str) -> None:
        """Take note that a device is gone for good; its job goes to another one."""
        self._devices.discard(device)
        task = self._queue.under_way(device)
        if task is not None:
            self._again(device, task, f"the device {device} is lost; the others go on from the journal")

    def conclude(self) -> None:
        """Raise ScoringError with every failure, each once; nothing where there was none."""
        if self._failures:
            raise ScoringError(tuple(self._failures))

    def give_up(self) -> None:
        """Take note that nothing is under way any more and no device takes what is left."""
        hint = "what was scored is kept; the same command goes on from there"
        for model in sorted({task.model for task in self._queue.waiting()}):
            self._failures[Diagnostic(f"no device is left that can score model '{model}'", hint=hint)] = None

    def _again(self, device: str, task: Task, message: str) -> None:
        self._queue.put_back(device)
        self._tell(WorkerEvent(kind="warning", model=task.model, benchmark=task.benchmark, message=message))

    def _shunned(self, device: str) -> list[str]:
        """Return the jobs whose last try belongs to another device, because this one has failed them."""
        tried = [(task, self._course(task)) for task in self._queue.waiting()]
        return [
            task.job
            for task, course in tried
            if course.tries == TRIES - 1
            and device in course.devices
            and any(self._queue.has_room(other, task.model) for other in self._devices - set(course.devices))
        ]

    def _course(self, task: Task) -> _Course:
        if task.job not in self._courses:
            self._courses[task.job] = _Course(task.answered)
        return self._courses[task.job]

    def _count_unheard(self, task: Task, course: _Course) -> None:
        """Tell of answers that came from another run, or whose event a crash swallowed."""
        unheard = task.wanted - course.known
        if unheard > 0:
            course.known += unheard
            self._tell(WorkerEvent(kind="batch", model=task.model, benchmark=task.benchmark, questions=unheard))


def _words(how: Ended) -> str:
    """Return in words how a worker ended; a negative exit code stands for a signal."""
    code = how.code
    if how.silent is not None:
        return f"finished nothing for {how.silent:,.0f} s and was ended"
    if code >= 0:
        return f"ended with code {code}"
    known = -code in signal.valid_signals()
    return f"was ended by {signal.Signals(-code).name if known else f'signal {-code}'}"


def _crash(task: Task, how: Ended) -> Diagnostic:
    last = "\n".join(line for line in how.words.splitlines()[-TAIL_LINES:] if line.strip())
    kept = "what was scored is kept, the same command goes on"
    hint = f"SIGKILL mostly means that memory ran out; {kept}" if how.code == -signal.SIGKILL else None
    if how.silent is not None:
        hint = f"see whether its device or its disk hangs; where it is only slow, give it longer with `worker_silence` in evalspec.toml; {kept}"
    message = f"model '{task.model}' on benchmark '{task.benchmark}': the scoring worker {_words(how)} {TRIES} times"
    return Diagnostic(message + (f"; its last lines were:\n{last}" if last else ""), hint=hint)
