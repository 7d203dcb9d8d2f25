"""Which job does a device score next?  Longest work first; a model stays where it is loaded; what is long is spread over idle devices.

What a job gives depends on its questions alone, so that this order changes no result.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from evalspec.artifacts.journal import JobRecord
from evalspec.artifacts.schedule import WORTH_SPREADING
from evalspec.artifacts.work import BenchmarkWork, WorkOrder, numbers_of
from evalspec.protocols import Journal
from evalspec.scoring.calibration import probe
from evalspec.scoring.decisions import check_questions


@dataclass(frozen=True, slots=True)
class Estimates:
    """What a plan expects: seconds of each job by id and of loading each model, and the devices that have room for a model.

    A model that is not named has room everywhere. With `share`, so much of every job is wanted and no more, and a few questions one at a time.
    """

    seconds: Mapping[str, float] = field(default_factory=dict)
    loading: Mapping[str, float] = field(default_factory=dict)
    room: Mapping[str, frozenset[str]] = field(default_factory=dict)
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """One job: an order with its questions alone, how long it may take, and how many of them the journal had answered at the start.

    With `enough` it may end when so many are answered.
    """

    job: str
    order: WorkOrder
    one_by_one: bool
    seconds: float
    answered: int = 0
    enough: int | None = None

    @property
    def wanted(self) -> int:
        """How many of the questions are to be answered."""
        return len(self.order.works[0].questions) if self.enough is None else self.enough

    @property
    def model(self) -> str:
        """The model that is asked."""
        return self.order.model

    @property
    def benchmark(self) -> str:
        """The benchmark whose questions they are."""
        return self.order.works[0].benchmark


class Queue:
    """All jobs that the journal lacks; the self-check of a benchmark joins once its shards are complete."""

    def __init__(self, orders: Sequence[WorkOrder], journal: Journal, estimates: Estimates) -> None:
        self._journal = journal
        self._estimates = estimates
        self._benchmarks = {(order.model, work.benchmark): (order, work) for order in orders for work in order.works}
        self._waiting: list[Task] = []
        self._under_way: dict[str, Task] = {}
        self._holds: dict[str, str] = {}
        for order, work in self._benchmarks.values():
            if estimates.share is not None:
                self._waiting += self._samples(order, work, estimates.share)
                continue
            checks = (replace(task, answered=self._record(task).answered) for task in self._missing_check(order, work))
            self._waiting += [*self._missing_shards(order, work), *checks]

    def waiting(self) -> tuple[Task, ...]:
        """Return what no device has taken."""
        return tuple(self._waiting)

    def under_way(self, device: str) -> Task | None:
        """Return what a device is scoring."""
        return self._under_way.get(device)

    def has_room(self, device: str, model: str) -> bool:
        """Return whether a model fits on a device, as far as that is known."""
        room = self._estimates.room.get(model)
        return not room or device in room

    def take(self, device: str, *, shun: Iterable[str] = ()) -> Task | None:
        """Give a device its next job, none of those in `shun`; None where there is nothing for it now."""
        task = self._next(device, set(shun))
        if task is not None:
            self._waiting.remove(task)
            self._under_way[device] = task
            self._holds[device] = task.model
        return task

    def ahead(self, device: str) -> Task | None:
        """Return what a device would be given next."""
        return self._next(device, set())

    def done(self, device: str) -> None:
        """Take note that a device has finished its job."""
        task = self._under_way.pop(device)
        order, work = self._benchmarks[task.model, task.benchmark]
        if self._estimates.share is not None or task.one_by_one:
            return
        if not any((other.model, other.benchmark) == (task.model, task.benchmark) for other in (*self._waiting, *self._under_way.values())):
            self._waiting += self._missing_check(order, work)

    def put_back(self, device: str) -> None:
        """Take note that a device has lost its job and its model."""
        self._waiting.insert(0, self._under_way.pop(device))
        self._holds.pop(device, None)

    def drop(self, device: str) -> None:
        """Give up the job of a device, which has lost its model."""
        self._under_way.pop(device)
        self._holds.pop(device, None)

    def drop_model(self, device: str) -> None:
        """Give up everything that waits of the model whose job a device has failed."""
        model = self._under_way.pop(device).model
        self._waiting = [task for task in self._waiting if task.model != model]

    def _next(self, device: str, shun: set[str]) -> Task | None:
        busy = {task.job for task in self._under_way.values()}
        possible = [task for task in self._waiting if task.job not in busy and task.job not in shun and self.has_room(device, task.model)]
        left: defaultdict[str, float] = defaultdict(float)
        for task in self._waiting:
            left[task.model] += task.seconds
        loaded = set(self._holds.values())
        own = [task for task in possible if task.model == self._holds.get(device)]
        fresh = [task for task in possible if task.model not in loaded]
        long = [task for task in possible if left[task.model] > WORTH_SPREADING * self._estimates.loading.get(task.model, 0.0)]
        chosen = own or fresh or long
        return max(chosen, key=lambda task: (left[task.model], task.seconds), default=None)

    def _samples(self, order: WorkOrder, work: BenchmarkWork, share: float) -> Iterator[Task]:
        """Yield what lacks to a share of every job, and a few questions one at a time."""
        for shard in order.shards(work):
            task = self._task(order.part(work, shard), one_by_one=False)
            enough, record = math.ceil(share * len(shard)), self._record(task)
            if record.answered < enough:
                yield replace(task, answered=record.answered, enough=enough)
        task = self._task(probe(order, work), one_by_one=True)
        if not self._record(task).complete:
            yield task

    def _missing_shards(self, order: WorkOrder, work: BenchmarkWork) -> Iterator[Task]:
        for shard in order.shards(work):
            task = self._task(order.part(work, shard), one_by_one=False)
            record = self._record(task)
            if not record.complete:
                yield replace(task, answered=record.answered)

    def _missing_check(self, order: WorkOrder, work: BenchmarkWork) -> Iterator[Task]:
        records = [self._record(self._task(order.part(work, shard), one_by_one=False)) for shard in order.shards(work)]
        if all(record.complete for record in records):
            again = check_questions(work, records)
            task = self._task(order.part(work, again), one_by_one=True)
            if not self._record(task).complete:
                yield task

    def _record(self, task: Task) -> JobRecord:
        """Return what the journal has of a job; nothing where it cannot be the results of these questions."""
        record, (work,) = self._journal.read(task.job), task.order.works
        return record if record.fits(numbers_of(work.scoring, work.questions)) else JobRecord(task.job)

    def _task(self, order: WorkOrder, *, one_by_one: bool) -> Task:
        (work,) = order.works
        job = order.key(work, work.questions, one_by_one=one_by_one).digest()
        return Task(job, order, one_by_one, self._estimates.seconds.get(job, 0.0 if one_by_one else float(len(work.questions))))
