"""How do models and questions become responses?  Run what the journal lacks, replay what was recorded, assemble in the protocol's order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evalspec.artifacts.journal import BatchRecord, JobRecord
from evalspec.artifacts.protocol import Protocol, RecordIdentity
from evalspec.artifacts.questions import Question
from evalspec.artifacts.report import LedgerEntry
from evalspec.artifacts.responses import Responses
from evalspec.artifacts.served import ServerUse
from evalspec.artifacts.served_work import ServedOrder, served_orders_of
from evalspec.artifacts.work import BenchmarkWork, Order, Preambles, WorkerEvent, WorkOrder, numbers_of, orders_of
from evalspec.errors import InputError, MissingLibrary, ScoringError, how_to_install
from evalspec.protocols import Executor, Journal, Progress, ProgressSink
from evalspec.scoring.access import Access
from evalspec.scoring.assemble import ModelRows, assemble, scored_rows
from evalspec.scoring.decisions import check_questions
from evalspec.scoring.replay import recorded_rows
from evalspec.scoring.served_records import replies_in
from evalspec.scoring.speeds import record_speed
from evalspec.scoring.tables import RecordedTable
from evalspec.tables.faults import strictest


@dataclass(frozen=True, slots=True)
class ScoringTask:
    """What is to be scored: the protocol, the true questions behind its drawn ones in the same order, and where each model is found.

    `preambles` are the worked examples that come before prompts, by benchmark; `accesses` say how each served model is reached; `earlier` are
    answers that are taken from earlier runs, by model and benchmark.
    """

    protocol: Protocol
    questions: Mapping[str, tuple[Question, ...]]
    folders: Mapping[str, Path]
    records: Mapping[str, Path]
    preambles: Mapping[str, Preambles] = field(default_factory=dict)
    accesses: Mapping[str, Access] = field(default_factory=dict)
    earlier: Mapping[tuple[str, str], ModelRows] = field(default_factory=dict)

    def orders(self) -> tuple[WorkOrder, ...]:
        """Return the work orders of all models that are scored here; raises InputError for a prompt that a question cannot fill."""
        try:
            return orders_of(self.protocol, self.questions, {model: str(folder) for model, folder in self.folders.items()}, self.preambles)
        except ValueError as error:
            raise InputError(str(error), hint="change the prompt of the benchmark") from error

    def served_orders(self) -> tuple[ServedOrder, ...]:
        """Return the orders of all models that a server answers for; raises InputError as `orders` does."""
        try:
            return served_orders_of(self.protocol, self.questions, self.preambles)
        except ValueError as error:
            raise InputError(str(error), hint="change the prompt of the benchmark") from error


@dataclass(frozen=True, slots=True)
class Scored:
    """The responses, and how each job ran."""

    responses: Responses
    jobs: tuple[LedgerEntry, ...]


@dataclass(frozen=True, slots=True)
class _BenchmarkRecord:
    """What the journal holds of one model on one benchmark: its shards, and its self-check once the shards are complete."""

    shards: tuple[JobRecord, ...]
    check: JobRecord | None

    @property
    def complete(self) -> bool:
        return self.check is not None and self.check.complete

    @property
    def answered(self) -> int:
        return sum(record.answered for record in self.shards) + (self.check.answered if self.check else 0)


def score(task: ScoringTask, executor: Executor, journal: Journal, progress: ProgressSink) -> Scored:
    """Return the responses of all models; the same bytes whatever was scored now and whatever came from the journal.

    Raises ScoringError when a model cannot be scored or answers are missing where the study allows none,
    InputError for a recorded table that does not fit.
    """
    here = task.orders()
    orders: tuple[WorkOrder | ServedOrder, ...] = (*here, *task.served_orders())
    shown = strictest(benchmark.disclosure for benchmark in task.protocol.benchmarks)
    tables = {path: RecordedTable.read(path, shown) for path in sorted(set(task.records.values()))}
    rows = {
        (model.id, benchmark.id): recorded_rows(tables[task.records[model.id]], model, benchmark, task.questions[benchmark.id])
        for model in task.protocol.models
        if isinstance(model.identity, RecordIdentity)
        for benchmark in task.protocol.benchmarks
    } | dict(task.earlier)
    before = _read_all(orders, journal)
    after = _read_all(orders, journal) if _run_missing((orders, before), executor, journal, task.accesses, progress) else before
    for order in orders:
        for work in order.works:
            rows[order.model, work.benchmark] = _rows(order, work, after[order.model, work.benchmark], task.questions[work.benchmark])
    _record_speeds(here, before, after, executor, journal)
    responses = assemble(task.protocol, task.questions, rows)
    for warning in _missing(responses):
        progress(Progress("scoring", 0, 0, "answers", warning=warning))
    return Scored(responses, tuple(_ledger(orders, before, after, task.accesses)))


def _missing(responses: Responses) -> Iterator[str]:
    """Say for each model how many of its scores are missing and what the study does with them."""
    rule = {"wrong": "counted as wrong", "complete_case": "left out", "error": "refused"}
    for benchmark in responses.benchmarks:
        worst = benchmark.score is not None and benchmark.missing == "wrong"
        counted = "counted as the worst score" if worst else rule[benchmark.missing]
        for model, reasons in benchmark.missing_counts().items():
            if reasons:
                listed = ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in reasons.items())
                yield f"{model} on {benchmark.benchmark}: {listed} of {benchmark.scores[0].size:,}; {counted}"


def _read_all(orders: Sequence[Order], journal: Journal) -> dict[tuple[str, str], _BenchmarkRecord]:
    return {(order.model, work.benchmark): _read(order, work, journal) for order in orders for work in order.works}


def _read(order: Order, work: BenchmarkWork, journal: Journal) -> _BenchmarkRecord:
    shards = tuple(_read_job(order.key(work, shard).digest(), numbers_of(work.scoring, shard), journal) for shard in order.shards(work))
    if not all(record.complete for record in shards):
        return _BenchmarkRecord(shards, None)
    again = check_questions(work, shards)
    return _BenchmarkRecord(shards, _read_job(order.key(work, again, one_by_one=True).digest(), numbers_of(work.scoring, again), journal))


def _read_job(job: str, numbers: Sequence[int], journal: Journal) -> JobRecord:
    """Return what the journal has of a job; nothing where it cannot be the results of questions with so many numbers each."""
    record = journal.read(job)
    return record if record.fits(numbers) else JobRecord(job)


def _run_missing(
    known: tuple[Sequence[WorkOrder | ServedOrder], Mapping[tuple[str, str], _BenchmarkRecord]],
    executor: Executor,
    journal: Journal,
    accesses: Mapping[str, Access],
    progress: ProgressSink,
) -> bool:
    """Score what the journal lacks, what is asked of servers first; returns whether anything was lacking."""
    orders, before = known
    pending = [order for order in orders if not all(before[order.model, work.benchmark].complete for work in order.works)]
    total = sum(len(work.questions) + work.checked for order in orders for work in order.works)
    done = sum(record.answered for record in before.values())
    progress(Progress("scoring", done, total, "answers", "already in the journal" if done else ""))
    if not pending:
        return False

    def tell(event: WorkerEvent) -> None:
        nonlocal done
        done += event.questions
        note = f"loading {event.model}" if event.kind == "loading" else f"{event.model} on {event.benchmark}"
        warning = event.message if event.kind == "warning" else ""
        if event.kind != "failed":  # raised at the end, with all others
            progress(Progress("scoring", done, total, "answers", note, warning))

    _ask_servers([order for order in pending if isinstance(order, ServedOrder)], accesses, journal, tell)
    here = [order for order in pending if isinstance(order, WorkOrder)]
    if here:
        executor.run(here, journal, tell)
    return True


def _ask_servers(orders: Sequence[ServedOrder], accesses: Mapping[str, Access], journal: Journal, tell: Callable[[WorkerEvent], None]) -> None:
    if not orders:
        return
    try:
        from evalspec.scoring.served import ask  # noqa: PLC0415 - a client for HTTP, for the few studies that ask servers
    except ModuleNotFoundError as error:
        raise MissingLibrary(f"asking a server needs the library '{error.name}', which is not installed", hint=how_to_install("server")) from error
    ask(orders, accesses, journal, tell)


def _rows(order: WorkOrder | ServedOrder, work: BenchmarkWork, record: _BenchmarkRecord, questions: Sequence[Question]) -> ModelRows:
    if record.check is None or not record.complete:
        raise ScoringError(
            f"model '{order.model}' on benchmark '{work.benchmark}': the journal is not complete after scoring",
            hint="run the same command again; it goes on from what is there",
        )
    return scored_rows(order, work, record.shards, record.check, questions)


def _record_speeds(
    orders: Sequence[WorkOrder],
    before: Mapping[tuple[str, str], _BenchmarkRecord],
    after: Mapping[tuple[str, str], _BenchmarkRecord],
    executor: Executor,
    journal: Journal,
) -> None:
    names = {device.id: device.name or device.kind for device in executor.devices()}
    for order in orders:
        for work in order.works:
            new: dict[str, list[BatchRecord]] = {}
            for was, now in zip(before[order.model, work.benchmark].shards, after[order.model, work.benchmark].shards, strict=True):
                device = now.sessions[-1].device
                batches = [batch for index, batch in now.batches.items() if index not in was.batches and batch.parts == 1 and not batch.generated]
                new.setdefault(names.get(device, device), []).extend(batches)
            for name, batches in new.items():
                record_speed(journal.folder, order, name, batches)


def _ledger(
    orders: Sequence[Order],
    before: Mapping[tuple[str, str], _BenchmarkRecord],
    after: Mapping[tuple[str, str], _BenchmarkRecord],
    accesses: Mapping[str, Access],
) -> Iterator[LedgerEntry]:
    for order in orders:
        for work in order.works:
            earlier, found = before[order.model, work.benchmark].shards, after[order.model, work.benchmark]
            for number, (was, now) in enumerate(zip(earlier, found.shards, strict=True)):
                batches = now.batches.values()
                counted = [now, *([found.check] if found.check is not None and now is found.shards[-1] else [])]
                yield LedgerEntry(
                    model=order.model,
                    benchmark=work.benchmark,
                    shard=number,
                    device=now.sessions[-1].device,
                    questions=now.answered,
                    tokens=sum(batch.real_tokens for batch in batches),
                    seconds=sum(batch.seconds for batch in batches),
                    reused=was.answered,
                    in_parts=sum(batch.parts > 1 for batch in batches),
                    packed=sum(batch.packed for batch in batches),
                    packing=" and ".join(sorted({session.packing for session in now.sessions if session.packing})) or None,
                    server=ServerUse.of(replies_in(counted), accesses[order.model].price) if order.model in accesses else None,
                )
