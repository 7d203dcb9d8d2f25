"""What will the rest of a run take?  Told from a small part of it, which is scored in the run's own batches, so that nothing is done twice."""

from __future__ import annotations

import statistics
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evalspec.artifacts.journal import JobRecord
from evalspec.artifacts.work import AskedQuestion, BenchmarkWork, EncodedQuestion, WorkOrder
from evalspec.protocols import Executor, Journal, Progress, ProgressSink
from evalspec.scoring.batching import Plan, plan_digest, plan_questions
from evalspec.scoring.decisions import check_questions
from evalspec.scoring.sharing import PACKINGS, Abilities

SHARE = 0.02
"""How much of every job is scored to see how fast it goes, in whole batches: that of the longest rows at least, and that of most questions."""

FEW = 8
"""Batches of a job up to which its longest one does."""

PROBED = 4
"""How many questions are asked one at a time as well, as the self-check will ask."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What the journal tells of one model: seconds that each job still takes, by its id, the self-check within the last job of a benchmark.

    Also the most memory that was in use, by all of its answers or by a part of them so far, the seconds to start a worker and those to load the
    model; None where nothing was measured.
    """

    seconds: Mapping[str, float]
    peak_bytes: int | None = None
    part: bool = False
    start_seconds: float | None = None
    load_seconds: float | None = None


def measure(orders: Sequence[WorkOrder], executor: Executor, journal: Journal, progress: ProgressSink) -> None:
    """Score a share of every job on an executor that was made for it; raises ScoringError where that fails."""
    progress(Progress("calibration", 0, 1, "steps", "scoring a small part of every job"))
    if orders:
        executor.run(orders, journal, lambda event: _told(event.message, progress) if event.kind == "warning" else None)
    progress(Progress("calibration", 1, 1, "steps", "measured"))


def _told(warning: str, progress: ProgressSink) -> None:
    progress(Progress("calibration", 0, 1, "steps", warning=warning))


def probe(order: WorkOrder, work: BenchmarkWork) -> WorkOrder:
    """Return an order for the questions that are asked one at a time: a few, spread over the benchmark."""
    count = len(work.questions)
    return order.part(work, tuple(work.questions[place * count // PROBED] for place in range(min(PROBED, count))))


def telling(plan: Plan) -> tuple[int, ...]:
    """Return the batches in the order in which they tell most: the longest rows, the most questions, then from the middle on."""
    middle = len(plan) // 2
    spread = [index for step in range(len(plan)) for index in (middle - step, middle + step) if 0 <= index < len(plan)]
    most = max(range(len(plan)), key=lambda index: (len(plan[index].questions), index))
    return tuple(dict.fromkeys((0, most, *spread)))


def least(plan: Plan) -> frozenset[int]:
    """Return the batches without which the pace of a job and its memory are not known."""
    return frozenset(telling(plan)[: 1 if len(plan) <= FEW else 2])


def wanted(plan: Plan, done: Container[int], enough: int | None) -> Iterator[int]:
    """Yield the batches that are to be scored: what is not done, or so much of it as is enough, beginning with what tells most."""
    if enough is None:
        yield from (index for index in range(len(plan)) if index not in done)
        return
    answered, needed = 0, least(plan)
    for index in telling(plan):
        if answered >= enough and index not in needed:
            return
        answered += len(plan[index].questions)
        if index not in done:
            yield index


def observe(order: WorkOrder, encoded: Mapping[str, Sequence[EncodedQuestion]], journal: Journal, devices: Sequence[str]) -> Observed:
    """Return what the journal tells of a model on `devices`, by their names; `encoded` holds, by benchmark, the token ids of its questions."""
    seconds: dict[str, float] = {}
    records: list[JobRecord] = []
    part = False
    for work in order.works:
        shards, begin = order.shards(work), 0
        jobs = [order.key(work, shard).digest() for shard in shards]
        found, alone = [journal.read(job) for job in jobs], journal.read(_probe_id(order, work))
        records += [*found, alone]
        part |= not all(record.complete for record in found)
        for job, shard, record in zip(jobs, shards, found, strict=True):
            here = encoded.get(work.benchmark, ())[begin : begin + len(shard)]
            left = seconds_left(order, shard, here, record)
            if left is not None:
                seconds[job] = left + (_check_seconds((order, work), found, alone, journal) if job == jobs[-1] else 0.0)
            begin += len(shard)
    measured = [record for record in records if record.sessions and record.sessions[-1].device in devices]
    sessions = [record.sessions[-1] for record in measured]
    return Observed(
        seconds=seconds,
        peak_bytes=max((batch.peak_bytes for record in measured for batch in record.batches.values() if batch.peak_bytes), default=None),
        part=part,
        start_seconds=max((session.start_seconds for session in sessions if session.start_seconds), default=None),
        load_seconds=max((session.load_seconds for session in sessions if session.load_seconds), default=None),
    )


def seconds_left(order: WorkOrder, shard: Sequence[AskedQuestion], encoded: Sequence[EncodedQuestion], record: JobRecord) -> float | None:
    """Return how long what a job lacks will take at the pace of what it has; None where it has nothing.

    The pace is that of padded tokens where the batches that are left are known, else that of questions.
    """
    done = list(record.batches.values())
    spent = sum(batch.seconds for batch in done)
    if not done or not spent:
        return None
    plan = _plan_of(order, encoded, record)
    if plan is None:
        return spent * (len(shard) - record.answered) / record.answered
    left = sum(_padded(plan, index, encoded) for index in range(len(plan)) if index not in record.batches)
    return spent * left / sum(batch.padded_tokens for batch in done)


def _plan_of(order: WorkOrder, encoded: Sequence[EncodedQuestion], record: JobRecord) -> Plan | None:
    """Return the batches of a job as its worker made them; None where they cannot be told from here."""
    session = record.sessions[-1]
    if len(encoded) != session.questions:
        return None
    plan = plan_questions(
        encoded, Abilities(session.branches, session.prefix_tokens > 0, packing=PACKINGS.get(session.packing or "")), order.batch_rule
    )
    return plan if plan_digest(plan) == session.plan_sha256 else None


def _padded(plan: Plan, index: int, encoded: Sequence[EncodedQuestion]) -> int:
    sharing = plan[index].sharing
    return sharing.computed([sharing.shape(encoded[number]) for number in plan[index].questions])


def _check_seconds(of: tuple[WorkOrder, BenchmarkWork], shards: Sequence[JobRecord], alone: JobRecord, journal: Journal) -> float:
    """Return how long the self-check takes at the pace of the questions that were asked alone; what it has already is left out."""
    order, work = of
    each = [batch.seconds for batch in alone.batches.values()]
    answered = 0
    if all(record.complete for record in shards):
        answered = journal.read(order.key(work, check_questions(work, shards), one_by_one=True).digest()).answered
    return statistics.median(each) * (work.checked - answered) if each else 0.0


def _probe_id(order: WorkOrder, work: BenchmarkWork) -> str:
    (probed,) = probe(order, work).works
    return order.key(work, probed.questions, one_by_one=True).digest()
