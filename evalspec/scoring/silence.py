"""How long may a worker say nothing?  Much longer than what it is at should take, by its own pace, or by size where it has shown none yet."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from evalspec.artifacts.work import Assignment, WorkerEvent

LEAST_SILENCE = 600.0
"""Seconds, unless the settings say otherwise."""

GENEROUS = 20.0
"""How many times as long as by the slowest pace seen so far a batch may take."""

STARTING = 300.0
"""Seconds to start a worker and import its libraries."""

BYTES_PER_SECOND = 2e7
"""What a slow disk or network gives of a model's files."""

OPERATIONS_PER_SECOND = {"cpu": 4e9, "accelerator": 1e12}
"""What a slow device computes."""

STEP_TOKENS = 256
"""A token that is generated takes as long as reading so many at once, because every weight is fetched for it."""

WAKING = 1.0
"""Seconds after which whoever watches looks again."""


class Watch:
    """Counts the seconds of a worker's silence, while it is busy; what it learns of a device's pace outlives a worker.

    Only finished work counts as a sign of life: a driver may hang while other threads of its process go on.
    """

    def __init__(self, least: float = LEAST_SILENCE, *, accelerated: bool = False) -> None:
        self.silent = 0.0
        self._least = least
        self._operations = OPERATIONS_PER_SECOND["accelerator" if accelerated else "cpu"]
        self._assignment: Assignment | None = None
        self._waiting = False
        self._starting = True
        self._pace: dict[tuple[str, str, bool], float] = {}
        self._largest: dict[tuple[str, str, bool], int] = {}

    def assigned(self, assignment: Assignment) -> None:
        """Take note that the worker is given something to do."""
        self._assignment, self._waiting, self.silent = assignment, False, 0.0
        self._starting = self._key(assignment) not in self._pace

    def heard(self, event: WorkerEvent) -> None:
        """Take note of what the worker says."""
        if event.kind == "batch" and event.tokens and self._assignment is not None:
            key = self._key(self._assignment)
            self._pace[key] = max(self._pace.get(key, 0.0), self.silent / event.tokens)
            self._largest[key] = max(self._largest.get(key, 0), event.tokens)
            self._starting = False
        elif event.kind == "loading":
            self._starting = True
        elif event.kind in {"done", "failed"}:
            self._assignment = None
        self._waiting, self.silent = event.kind == "waiting", 0.0

    def passed(self, seconds: float) -> None:
        """Take note that so much time went by; a worker that waits for another run, or for something to do, is not silent."""
        if self._assignment is not None and not self._waiting:
            self.silent += seconds

    def overdue(self) -> bool:
        """Return whether the worker has been silent for longer than can be explained."""
        return self._assignment is not None and self.silent > self.limit(self._assignment)

    def limit(self, assignment: Assignment) -> float:
        """Return how many seconds a worker at this may be silent now."""
        key, budget = self._key(assignment), assignment.order.batch_rule.token_budget
        if not self._starting:
            return max(self._least, GENEROUS * self._pace[key] * max(budget, self._largest[key]))
        identity = assignment.order.identity
        longest = max(len(question.prompt) * len(question.answers) for question in assignment.work.questions)
        tokens = max(budget, longest) + assignment.work.most_written * STEP_TOKENS
        loading = sum(file.size for file in identity.files) / BYTES_PER_SECOND
        return self._least + STARTING + loading + 2.0 * identity.parameters * tokens / self._operations

    def _key(self, assignment: Assignment) -> tuple[str, str, bool]:
        return assignment.order.model, assignment.work.benchmark, assignment.one_by_one


@dataclass(slots=True)
class Turn:
    """Tells that a job of another run must be waited for, which is no silence, and that the wait is over."""

    model: str
    benchmark: str
    tell: Callable[[WorkerEvent], None]
    waited: bool = False

    def wait(self) -> None:
        """Say that the wait begins."""
        self.waited = True
        message = "another run is scoring this; waiting for its results"
        self.tell(WorkerEvent(kind="waiting", model=self.model, benchmark=self.benchmark, message=message))

    def begin(self) -> None:
        """Say that it is over, if there was one."""
        if self.waited:
            self.tell(WorkerEvent(kind="begun", model=self.model, benchmark=self.benchmark))


class Clock:
    """Seconds that pass while this process runs: where it was itself stopped, or the machine asleep, its workers had no time either."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._last = now()

    def step(self) -> float:
        """Return the seconds since the last step, two times `WAKING` at most."""
        last, self._last = self._last, self._now()
        return min(self._last - last, 2.0 * WAKING)
