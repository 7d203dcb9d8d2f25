"""How are the questions of a study put to a server?  Several at once, each kept when it is answered, none twice, and no more than may be spent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from evalspec.artifacts.base import canonical_json, sha256_hex
from evalspec.artifacts.journal import JobRecord, SessionRecord
from evalspec.artifacts.served import ServerAbilities
from evalspec.artifacts.served_work import ServedOrder
from evalspec.artifacts.work import AskedQuestion, BenchmarkWork, WorkerEvent, numbers_of
from evalspec.errors import Diagnostic, ScoringError
from evalspec.protocols import Journal
from evalspec.scoring.access import Access, CostLimitError, Purse
from evalspec.scoring.asking import Inquiry
from evalspec.scoring.decisions import check_questions
from evalspec.scoring.journal import FileJournal, JobWriter
from evalspec.scoring.served_records import spent_on
from evalspec.scoring.server import Server, ServerError
from evalspec.scoring.trial import try_out

Tell = Callable[[WorkerEvent], None]
Way = tuple[str, bool]
"""How a benchmark is asked: its method, and whether in a chat."""

NOT_OBSERVED = "not observed"


def ask(orders: Sequence[ServedOrder], accesses: Mapping[str, Access], journal: Journal, tell: Tell) -> None:
    """Ask what the journal lacks, every server having been tried out first.

    Raises ScoringError with every server that does not give what is needed, before any question is sent; later, with why a model was given up.
    What was answered stays in the journal.
    """
    abilities, faults = dict[str, dict[Way, ServerAbilities]](), list[Diagnostic]()
    for order in orders:
        if accesses[order.model].key_needed and accesses[order.model].key is None:
            variable = accesses[order.model].key_variable
            faults.append(Diagnostic(f"model '{order.model}': there is no variable {variable} with the key for its server", hint=f"set {variable}"))
            continue
        tell(WorkerEvent(kind="loading", model=order.model))
        try:
            abilities[order.model] = asyncio.run(_try_out(order, accesses[order.model]))
        except ServerError as error:
            faults.append(_diagnostic(order, error, quoting=True))
    if faults:
        raise ScoringError(faults)
    for order in orders:
        _Asking(order, accesses[order.model], abilities[order.model], FileJournal(journal.folder, journal.secret_file), tell).finish()


async def _try_out(order: ServedOrder, access: Access) -> dict[Way, ServerAbilities]:
    works: dict[Way, list[BenchmarkWork]] = {}
    for work in order.works:
        works.setdefault(_way(work), []).append(work)
    async with Server(access) as server:
        return {way: await try_out(server, order.identity, some, counted=access.price is not None) for way, some in works.items()}


def _way(work: BenchmarkWork) -> Way:
    return work.scoring.method, work.scoring.chat


def _diagnostic(order: ServedOrder, error: ServerError, *, quoting: bool, about: str = "") -> Diagnostic:
    said = f"; it says: {error.said}" if error.said and quoting else ""
    return Diagnostic(f"model '{order.model}'{about}: the server {order.identity.host} fails: {error.problem}{said}", hint=error.hint)


@dataclass(frozen=True, slots=True)
class _Asking:
    """One model that is asked: job by job, then the questions of the self-check again."""

    order: ServedOrder
    access: Access
    abilities: Mapping[Way, ServerAbilities]
    journal: FileJournal
    tell: Tell

    def finish(self) -> None:
        """Bring every job to its end in the journal."""
        for work in self.order.works:
            records = [self._job(work, shard, again=False) for shard in self.order.shards(work)]
            self._job(work, check_questions(work, records), again=True)

    def _job(self, work: BenchmarkWork, questions: tuple[AskedQuestion, ...], *, again: bool) -> JobRecord:
        job = self.order.key(work, questions, one_by_one=again).digest()
        waiting = "another run is asking this; waiting for its results"
        with self.journal.writing(job, waiting=lambda: self._warn(work, waiting)) as writer:
            if not writer.record.fits(numbers_of(work.scoring, questions)):
                writer.start_over()
            if writer.set_aside is not None:
                self._warn(work, f"{writer.why}; the file was put aside as {writer.set_aside.name} and is asked again")
            if not writer.record.complete:
                writer.append(self._session(work, len(questions)))
                asyncio.run(self._ask(work, questions, writer))
        return self.journal.read(job)

    async def _ask(self, work: BenchmarkWork, questions: Sequence[AskedQuestion], writer: JobWriter) -> None:
        """Ask and keep what the record lacks; after a failure nothing new is sent, and what is under way is still kept."""
        waiting = iter([position for position in range(len(questions)) if position not in writer.record.batches])
        inquiry = Inquiry(self.order, work, self.access, self.abilities[_way(work)])
        purse, failures = Purse(self.access.max_cost, spent_on(self.order, self.access.price, self.journal)), dict[Diagnostic, None]()

        async def attend(server: Server) -> None:
            while not failures and (position := next(waiting, None)) is not None:
                try:
                    record = await inquiry.answer(server, purse, position, questions[position])
                    writer.append(record)
                    self.tell(WorkerEvent(kind="batch", model=self.order.model, benchmark=work.benchmark, questions=1))
                    inquiry.refuse_wild(questions[position], record.reply)
                except CostLimitError:
                    failures[self._too_costly(purse)] = None
                except ServerError as error:
                    about = f" on benchmark '{work.benchmark}', question '{questions[position].name}'"
                    failures[_diagnostic(self.order, error, quoting=self.order.quoting, about=about)] = None

        async with Server(self.access) as server:
            await asyncio.gather(*(attend(server) for _ in range(self.access.patience.at_once)))
        if failures:
            raise ScoringError(tuple(failures))

    def _session(self, work: BenchmarkWork, questions: int) -> SessionRecord:
        return SessionRecord(
            questions=questions,
            batches=questions,
            plan_sha256=sha256_hex(canonical_json(["each question alone", questions])),
            first_ids=(),
            attention=NOT_OBSERVED,
            head=NOT_OBSERVED,
            dtype=NOT_OBSERVED,
            versions={"httpx2": version("httpx2")},
            device=f"server {self.order.identity.host}",
            threads=0,
            server=self.abilities[_way(work)],
        )

    def _too_costly(self, purse: Purse) -> Diagnostic:
        price, limit = self.access.price, self.access.max_cost
        assert price is not None
        assert limit is not None
        return Diagnostic(
            f"model '{self.order.model}': what was asked has cost about {purse.spent:.4g} of the {limit:g} {price.currency} that the study allows, "
            "and the next question could cost more than is left",
            hint="what was answered is kept; raise max_cost, and the same command goes on from there",
        )

    def _warn(self, work: BenchmarkWork, message: str) -> None:
        self.tell(WorkerEvent(kind="warning", model=self.order.model, benchmark=work.benchmark, message=message))
