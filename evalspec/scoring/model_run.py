"""How is a job scored?  What its record lacks, batch by batch, in the order of its plan, with a model that is loaded when it is first needed."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from evalspec.artifacts.journal import BatchRecord, JobRecord, SessionRecord
from evalspec.artifacts.work import Assignment, BenchmarkWork, WorkerEvent, WorkOrder, numbers_of
from evalspec.errors import ScoringError
from evalspec.scoring.batching import Plan, one_by_one, plan_digest, plan_questions, plan_texts
from evalspec.scoring.calibration import wanted
from evalspec.scoring.checkpoint import named_alone
from evalspec.scoring.generated import without_texts
from evalspec.scoring.parts import Item, Memory, Result, compute_in_parts, cut
from evalspec.scoring.preparation import Checkpoints, Meanwhile
from evalspec.scoring.sharing import Sharing
from evalspec.scoring.silence import Turn
from evalspec.scoring.tokens import EncodedWork, encode_work, refuse_not_finite

if TYPE_CHECKING:
    from evalspec.scoring.causal_lm import CausalLM, Reading

SMALL_MODEL = 20_000_000
"""Parameters below which a second thread costs more than it gives."""

Tell = Callable[[WorkerEvent], None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a worker computes: torch's name for it, or `auto` for all accelerators together; threads; and what the journal calls it.

    `packing`: whether rows are laid end to end by models that can; without a word, where that is worth while.
    """

    device: str
    threads: int | None
    name: str = ""
    packing: bool | None = None


class Writer(Protocol):
    """One job of a journal, open for appending; `record` is what was there at opening, `set_aside` what was put away and `why`."""

    record: JobRecord
    set_aside: Path | None
    why: str

    def append(self, record: SessionRecord | BatchRecord) -> None:
        """Keep one record."""

    def start_over(self) -> None:
        """Set aside what there is and begin anew."""


class WritableJournal(Protocol):
    """Where finished batches go."""

    def writing(self, job: str, *, waiting: Callable[[], None]) -> AbstractContextManager[Writer]:
        """Open a job alone; calls `waiting` when another process has it."""


@dataclass(frozen=True, slots=True)
class _Job:
    """The questions of an assignment, ready to be scored."""

    work: BenchmarkWork
    encoded: EncodedWork
    plan: Plan
    enough: int | None = None


class ModelRun:
    """One model on one device; its checkpoint is verified and loaded when the first missing batch is met, and only then."""

    def __init__(self, order: WorkOrder, place: Place, checkpoints: Checkpoints, tell: Tell) -> None:
        self._order = order.model_copy(update={"works": ()})
        self._place = place
        self._checkpoints = checkpoints
        self._tell = tell
        self._parts = 1
        self._took: tuple[float | None, float | None] = (None, None)
        self._next: tuple[BenchmarkWork, Meanwhile[EncodedWork]] | None = None

    def has(self, order: WorkOrder) -> bool:
        """Return whether an order is for this very model."""
        return order.model_copy(update={"works": ()}) == self._order

    def score(self, assignment: Assignment, journal: WritableJournal) -> None:
        """Bring one job to its end in the journal."""
        work, numbers = assignment.work, numbers_of(assignment.work.scoring, assignment.work.questions)
        turn = Turn(self._order.model, work.benchmark, self._tell)
        with journal.writing(assignment.key().digest(), waiting=turn.wait) as writer:
            turn.begin()
            if not writer.record.fits(numbers):
                writer.start_over()
            if not writer.record.complete:
                self._parts = max([self._parts, assignment.parts, *(batch.parts for batch in writer.record.batches.values())])
                encoded = self._encode(work)
                plan = one_by_one(len(work.questions)) if assignment.one_by_one else self._plan(work, encoded)
                self._begin(work, writer, self._session(work, encoded, plan))
                if assignment.too_few_parts >= max(len(batch.questions) for batch in plan):
                    raise self._too_large(work)
                self._prepare(assignment.ahead)
                self._score_missing(_Job(work, encoded, plan, assignment.enough), writer)

    def release(self) -> None:
        """Give back the memory of the model."""
        if "_model" in self.__dict__:
            from evalspec.scoring.arithmetic import free_memory  # noqa: PLC0415 - torch is loaded already

            del self._model
            gc.collect()
            free_memory()

    @cached_property
    def _model(self) -> CausalLM:
        order, first, began = self._order, "torch" not in sys.modules, time.perf_counter()
        self._tell(WorkerEvent(kind="loading", model=order.model))
        try:
            from evalspec.scoring.arithmetic import forget_peak, settle_arithmetic  # noqa: PLC0415 - as below
            from evalspec.scoring.causal_lm import load  # noqa: PLC0415 - torch is loaded only when there is something to score
        except ModuleNotFoundError as error:
            raise ScoringError(f"scoring needs the library '{error.name}', which is not installed", hint="install the extra `score`") from error
        imported = time.perf_counter()
        self._files = self._checkpoints.verify(order)
        forget_peak(self._place.device)
        settle_arithmetic(1 if order.identity.parameters < SMALL_MODEL else self._place.threads)
        try:
            with named_alone(order.checkpoint, order.identity) as place:
                loaded = load(place, model=order.model, precision=order.precision, device=self._place.device, packing=self._place.packing)
        except MemoryError as error:
            raise ScoringError(f"model '{order.model}' does not fit into the memory of this machine") from error
        self._files.refuse_changed()
        self._took = (imported - began if first else None, time.perf_counter() - imported)
        self._tell(WorkerEvent(kind="ready", model=order.model))
        return loaded

    def _encode(self, work: BenchmarkWork) -> EncodedWork:
        """Return the ids of the questions, which may have been got ready; a tokenizer must not be used by two threads at once."""
        prepared, self._next = self._next, None
        if prepared is not None:
            if prepared[0] == work:
                return prepared[1].result()
            prepared[1].wait()
        return encode_work(work, self._model.vocabulary)

    def _prepare(self, ahead: WorkOrder | None) -> None:
        """Get ready what is likely to come next: token ids for this model, or the files of another one."""
        if ahead is None:
            return
        if self.has(ahead):
            vocabulary = self._model.vocabulary
            self._next = (ahead.works[0], Meanwhile(lambda: encode_work(ahead.works[0], vocabulary)))
        else:
            self._checkpoints.read_ahead(ahead)

    def _plan(self, work: BenchmarkWork, encoded: EncodedWork) -> Plan:
        if work.scoring.method == "sampled":
            return plan_texts(encoded.questions, self._model.abilities, self._order.batch_rule, max_tokens=work.scoring.max_tokens)
        return plan_questions(encoded.questions, self._model.abilities, self._order.batch_rule)

    def _session(self, work: BenchmarkWork, encoded: EncodedWork, plan: Plan) -> SessionRecord:
        from evalspec.scoring.arithmetic import threads_in_use  # noqa: PLC0415 - as above
        from evalspec.scoring.causal_lm import versions  # noqa: PLC0415 - as above

        (start_seconds, load_seconds), self._took = self._took, (None, None)
        return SessionRecord(
            questions=len(encoded.questions),
            batches=len(plan),
            plan_sha256=plan_digest(plan),
            prefix_tokens=max(len(batch.sharing.prefix) for batch in plan),
            branches=any(batch.sharing.branches for batch in plan),
            letters=encoded.letters,
            first_ids=encoded.first_ids,
            attention=self._model.attention,
            packing=self._model.keeper if any(batch.sharing.packing for batch in plan) else None,
            head=self._model.head,
            dtype=self._model.dtype,
            versions=versions(),
            device=self._place.name or self._place.device,
            threads=threads_in_use(),
            start_seconds=start_seconds,
            load_seconds=load_seconds,
            ends=self._model.vocabulary.ends if work.scoring.method == "sampled" else (),
        )

    def _begin(self, work: BenchmarkWork, writer: Writer, session: SessionRecord) -> None:
        """Open a session in the journal; what belongs to another plan is set aside, and whatever was set aside is told."""
        if writer.record.sessions and writer.record.sessions[0].plan_sha256 != session.plan_sha256:
            writer.start_over()
        if writer.set_aside is not None:
            message = f"{writer.why}; the file was put aside as {writer.set_aside.name} and is scored again"
            self._tell(WorkerEvent(kind="warning", model=self._order.model, benchmark=work.benchmark, message=message))
        writer.append(session)

    def _score_missing(self, job: _Job, writer: Writer) -> None:
        reading: Reading | None = None
        for index in wanted(job.plan, writer.record.batches, job.enough):
            batch = job.plan[index]
            if reading is None or reading.sharing != batch.sharing:
                reading = self._read(job.work, batch.sharing)
            scored = self._write_batch if job.work.scoring.method == "sampled" else self._score_batch
            record = scored(job, index, reading)
            self._files.refuse_changed()
            writer.append(record)
            done, tokens = len(batch.questions), record.padded_tokens
            self._tell(WorkerEvent(kind="batch", model=self._order.model, benchmark=job.work.benchmark, questions=done, tokens=tokens))

    def _read(self, work: BenchmarkWork, sharing: Sharing) -> Reading:
        from evalspec.scoring.arithmetic import memory_ran_out  # noqa: PLC0415 - torch is loaded already

        try:
            return self._model.reading(sharing)
        except (RuntimeError, MemoryError) as error:
            if memory_ran_out(error):
                raise self._too_large(work) from error
            raise

    def _score_batch(self, job: _Job, index: int, reading: Reading) -> BatchRecord:
        from evalspec.scoring.arithmetic import peak_bytes  # noqa: PLC0415 - torch is loaded already

        batch = job.plan[index]
        started = time.perf_counter()
        items = [job.encoded.questions[number] for number in batch.questions]
        asked = [job.work.questions[number] for number in batch.questions]
        answer = partial(self._model.answer, reading=reading, distribution=job.work.distribution)
        answered, parts = self._in_parts(job.work, answer, items)
        values = [one.logprobs for one in answered]
        refuse_not_finite(self._order.model, asked, values)
        shapes = [batch.sharing.shape(item) for item in items]
        return BatchRecord(
            index=index,
            questions=batch.questions,
            logprobs=tuple(values),
            token_counts=tuple(tuple(len(answer.ids) for answer in item.answers) for item in items),
            byte_counts=tuple(tuple(len(answer.encode()) for answer in question.answers) for question in asked),
            distributions=tuple(one.distribution for one in answered if one.distribution is not None),
            padded_tokens=sum(batch.sharing.computed(some) for some in cut(shapes, parts)),
            real_tokens=sum(shape.tokens for shape in shapes),
            packed=batch.sharing.packing,
            seconds=round(time.perf_counter() - started, 6),
            peak_bytes=peak_bytes(self._place.device),
            parts=parts,
        )

    def _write_batch(self, job: _Job, index: int, reading: Reading) -> BatchRecord:
        from evalspec.scoring.arithmetic import peak_bytes  # noqa: PLC0415 - torch is loaded already
        from evalspec.scoring.generation import texts_of  # noqa: PLC0415 - as above

        batch = job.plan[index]
        started = time.perf_counter()
        prompts = tuple((job.work.questions[number], job.encoded.questions[number]) for number in batch.questions)
        write = partial(texts_of, self._model, work=job.work, weights=self._order.identity.weights_sha256, reading=reading)
        written, parts = self._in_parts(job.work, write, prompts)
        lengths = [len(encoded.rows[0]) - len(batch.sharing.prefix) for _, encoded in prompts]
        if job.work.scoring.method == "sampled" and job.work.secret:
            written = list(without_texts(written, [question for question, _ in prompts], job.work.scoring))
        return BatchRecord(
            index=index,
            questions=batch.questions,
            generated=tuple(written),
            padded_tokens=len(lengths) * (max(lengths) + max(one.tokens for one in written)),
            real_tokens=sum(lengths) + sum(one.tokens for one in written),
            seconds=round(time.perf_counter() - started, 6),
            peak_bytes=peak_bytes(self._place.device),
            parts=parts,
        )

    def _in_parts(
        self, work: BenchmarkWork, compute: Callable[[Sequence[Item]], Sequence[Result]], items: Sequence[Item]
    ) -> tuple[list[Result], int]:
        """Return what comes of a batch, and in how many parts it was computed."""
        from evalspec.scoring.arithmetic import free_memory, memory_ran_out  # noqa: PLC0415 - torch is loaded already

        def halved(parts: int) -> None:
            self._parts = parts
            message = f"memory ran out; batches are computed in {parts} parts from here on"
            self._tell(WorkerEvent(kind="warning", model=self._order.model, benchmark=work.benchmark, message=message, parts=parts))

        memory = Memory(memory_ran_out, free_memory)
        try:
            return compute_in_parts(compute, items, self._parts, memory=memory, halved=halved)
        except MemoryError as error:
            raise self._too_large(work) from error

    def _too_large(self, work: BenchmarkWork) -> ScoringError:
        return ScoringError(
            f"model '{self._order.model}' on benchmark '{work.benchmark}': memory runs out even with one question at a time",
            hint="give the model a device with more memory, or end what else uses this one",
        )
