"""Score what a jobs file asks for and write it to a journal: files in, a journal out, events as JSON lines on standard output.

`python -m evalspec.scoring.worker --jobs FILE --journal DIR`. With `--jobs -` the first line of standard input is the jobs file, which then
stays open: when it closes, whoever asked is gone, and the worker ends.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evalspec.artifacts.journal import BatchRecord, JobKey, JobRecord, SessionRecord
from evalspec.artifacts.work import AskedQuestion, BenchmarkWork, WorkerEvent, WorkOrder, WorkOrders
from evalspec.errors import EvalspecError, ScoringError
from evalspec.scoring.batching import Plan, one_by_one, plan_digest, plan_questions
from evalspec.scoring.checkpoint import verify_files
from evalspec.scoring.decisions import check_questions
from evalspec.scoring.journal import FileJournal, JobWriter
from evalspec.scoring.tokens import EncodedWork, encode_work

if TYPE_CHECKING:
    from evalspec.scoring.causal_lm import CausalLM, Reading

FAILED = 3
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "USE_HUB_KERNELS": "NO"}
SMALL_MODEL = 20_000_000
"""Parameters below which a second thread costs more than it gives."""

Tell = Callable[[WorkerEvent], None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a worker computes."""

    device: str
    threads: int | None


@dataclass(frozen=True, slots=True)
class _Job:
    """Some questions of one benchmark, ready to be scored."""

    work: BenchmarkWork
    questions: Sequence[AskedQuestion]
    encoded: EncodedWork
    plan: Plan


class ModelRun:
    """One work order; the checkpoint is verified and loaded when the first missing batch is met, and only then."""

    def __init__(self, order: WorkOrder, journal: FileJournal, place: Place, tell: Tell) -> None:
        self._order = order
        self._journal = journal
        self._place = place
        self._tell = tell
        self._encoded: dict[str, EncodedWork] = {}

    def run(self) -> None:
        """Score every benchmark of the order, each followed by its self-check."""
        for work in self._order.works:
            records = []
            for shard in self._order.shards(work):
                records.append(self._score(work, shard, self._order.key(work, shard)))
            again = check_questions(self._order, work, records)
            self._score(work, again, self._order.key(work, again, one_by_one=True))

    @cached_property
    def _model(self) -> CausalLM:
        order, folder = self._order, Path(self._order.folder)
        self._tell(WorkerEvent(kind="loading", model=order.model))
        try:
            from evalspec.scoring.arithmetic import settle_arithmetic  # noqa: PLC0415 - as below
            from evalspec.scoring.causal_lm import load  # noqa: PLC0415 - torch is loaded only when there is something to score
        except ModuleNotFoundError as error:
            raise ScoringError(f"scoring needs the library '{error.name}', which is not installed", hint="install the extra `score`") from error
        verify_files(folder, order.identity)
        settle_arithmetic(1 if order.identity.parameters < SMALL_MODEL else self._place.threads)
        return load(folder, model=order.model, precision=order.precision, device=self._place.device)

    def _score(self, work: BenchmarkWork, questions: Sequence[AskedQuestion], key: JobKey) -> JobRecord:
        """Return the record of one job, with every batch in it."""
        job = key.digest()
        recorded, answers = self._journal.read(job), [len(question.answers) for question in questions]
        if recorded.complete and recorded.fits(answers):
            return recorded
        with self._journal.writing(job, waiting=lambda: self._warn(work, "another run is scoring this; waiting for its results")) as writer:
            if not writer.record.fits(answers):
                writer.start_over()
            self._tell_done(work, writer.record.answered - recorded.answered)
            if not writer.record.complete:
                encoded = self._encode(work, questions)
                plan = one_by_one(len(questions)) if key.batches == "one_by_one" else self._plan(encoded)
                self._begin(work, writer, self._session(encoded, plan))
                self._score_missing(_Job(work, questions, encoded, plan), writer)
        return self._journal.read(job)

    def _encode(self, work: BenchmarkWork, questions: Sequence[AskedQuestion]) -> EncodedWork:
        """Return the ids of some questions; a benchmark is tokenised once."""
        if work.benchmark not in self._encoded:
            self._encoded[work.benchmark] = encode_work(work, self._model.vocabulary)
        whole = self._encoded[work.benchmark]
        by_digest = dict(zip((question.sha256 for question in work.questions), whole.questions, strict=True))
        return EncodedWork(tuple(by_digest[question.sha256] for question in questions), whole.letters)

    def _plan(self, encoded: EncodedWork) -> Plan:
        return plan_questions(encoded.questions, self._model.abilities, self._order.batch_rule)

    def _session(self, encoded: EncodedWork, plan: Plan) -> SessionRecord:
        from evalspec.scoring.arithmetic import threads_in_use  # noqa: PLC0415 - as above
        from evalspec.scoring.causal_lm import versions  # noqa: PLC0415 - as above

        return SessionRecord(
            questions=len(encoded.questions),
            batches=len(plan),
            plan_sha256=plan_digest(plan),
            prefix_tokens=max(len(batch.sharing.prefix) for batch in plan),
            branches=any(batch.sharing.branches for batch in plan),
            letters=encoded.letters,
            first_ids=encoded.first_ids,
            head=self._model.head,
            dtype=self._model.dtype,
            versions=versions(),
            device=self._place.device,
            threads=threads_in_use(),
        )

    def _begin(self, work: BenchmarkWork, writer: JobWriter, session: SessionRecord) -> None:
        """Open a session in the journal; what belongs to another plan is set aside, and whatever was set aside is told."""
        if writer.record.sessions and writer.record.sessions[0].plan_sha256 != session.plan_sha256:
            writer.start_over()
        if writer.set_aside is not None:
            self._warn(
                work, f"a journal file was altered, or made for other batches; it was put aside as {writer.set_aside.name} and is scored again"
            )
        writer.append(session)

    def _score_missing(self, job: _Job, writer: JobWriter) -> None:
        reading: Reading | None = None
        for index, batch in enumerate(job.plan):
            if index not in writer.record.batches:
                if reading is None or reading.sharing != batch.sharing:
                    reading = self._model.reading(batch.sharing)
                self._score_batch(job, index, reading, writer)

    def _score_batch(self, job: _Job, index: int, reading: Reading, writer: JobWriter) -> None:
        batch = job.plan[index]
        started = time.perf_counter()
        items = [job.encoded.questions[number] for number in batch.questions]
        asked = [job.questions[number] for number in batch.questions]
        values = self._model.logprobs(items, reading)
        _refuse_not_finite(self._order.model, asked, values)
        shapes = [batch.sharing.shape(item) for item in items]
        record = BatchRecord(
            index=index,
            questions=batch.questions,
            logprobs=tuple(values),
            token_counts=tuple(tuple(len(answer.ids) for answer in item.answers) for item in items),
            byte_counts=tuple(tuple(len(answer.encode()) for answer in question.answers) for question in asked),
            padded_tokens=sum(shape.rows for shape in shapes) * max(shape.longest for shape in shapes),
            real_tokens=sum(shape.tokens for shape in shapes),
            seconds=round(time.perf_counter() - started, 6),
        )
        writer.append(record)
        self._tell_done(job.work, len(items))

    def _tell_done(self, work: BenchmarkWork, questions: int) -> None:
        if questions > 0:
            self._tell(WorkerEvent(kind="batch", model=self._order.model, benchmark=work.benchmark, questions=questions))

    def _warn(self, work: BenchmarkWork, message: str) -> None:
        self._tell(WorkerEvent(kind="warning", model=self._order.model, benchmark=work.benchmark, message=message))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the worker; returns 0, or 3 when a model could not be scored. The other models are scored all the same."""
    parser = argparse.ArgumentParser(prog="python -m evalspec.scoring.worker", description=__doc__)
    parser.add_argument("--jobs", required=True, help="jobs file, or - for the first line of standard input")
    parser.add_argument("--journal", required=True, type=Path, help="journal folder")
    parser.add_argument("--device", default="cpu", help="torch device (default: cpu)")
    parser.add_argument("--threads", type=int, help="threads for models that can use them (default: all cores)")
    options = parser.parse_args(arguments)
    os.environ.update(OFFLINE)
    orders = WorkOrders.from_json(_jobs(options.jobs))
    place = Place(options.device, options.threads)
    failed = False
    for order in orders.orders:
        try:
            ModelRun(order, FileJournal(options.journal), place, _print_event).run()
        except EvalspecError as error:
            failed = True
            for diagnostic in error.diagnostics:
                _print_event(WorkerEvent(kind="failed", model=order.model, message=diagnostic.message, hint=diagnostic.hint))
        except OSError as error:
            failed = True
            message = f"scoring of '{order.model}' stopped: {error.filename or options.journal}: {error.strerror or error}"
            hint = "make room or mend the permissions; what was scored is kept, and the same command goes on from there"
            _print_event(WorkerEvent(kind="failed", model=order.model, message=message, hint=hint))
            if Path(error.filename or options.journal).is_relative_to(options.journal):
                break  # every other model would meet the same
    return FAILED if failed else 0


def _jobs(name: str) -> bytes:
    if name != "-":
        return Path(name).read_bytes()
    content = sys.stdin.buffer.readline()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    return content


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGKILL)


def _print_event(event: WorkerEvent) -> None:
    sys.stdout.write(event.model_dump_json(exclude_defaults=False) + "\n")
    sys.stdout.flush()


def _refuse_not_finite(model: str, asked: Sequence[AskedQuestion], values: Sequence[Sequence[float]]) -> None:
    for question, logprobs in zip(asked, values, strict=True):
        if not np.all(np.isfinite(logprobs)):
            raise ScoringError(
                f"model '{model}' gives no finite probability at question '{question.name}'",
                hint="its weights are damaged, or its precision overflows: try `precision: float32`",
            )


if __name__ == "__main__":
    sys.exit(main())
