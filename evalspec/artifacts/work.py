"""What is a scoring worker asked to do, and what does it say while it works?  Both are plain JSON, so that any executor can carry them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal

from pydantic import Field

from evalspec.artifacts.base import Artifact, Digest, Identifier, Precision, canonical_json, sha256_hex
from evalspec.artifacts.journal import Count, JobKey, Length, Record, SampledKey
from evalspec.artifacts.prompts import render_prompt
from evalspec.artifacts.protocol import BatchRule, CheckpointIdentity, Protocol, ProtocolBenchmark
from evalspec.artifacts.questions import LETTERS, Question
from evalspec.artifacts.schedule import Job
from evalspec.artifacts.study import SampledScoring, Scoring

CHECKED = 64
"""How many questions of a benchmark a model is asked again, one at a time, as a self-check; all of them when there are fewer."""

CHECKED_TEXTS = 16
"""The same where texts are generated, which takes longer one at a time."""


class AskedQuestion(Artifact):
    """One question as a model meets it: the filled prompt and the texts that may follow it; which of them is right is not in it.

    `name` is the public id, fit for messages; `sha256` is the question's own digest. Where the study asks for answer distributions, `reference`
    is the text along which they are read: the right one, so that it is the same for every model. Where texts are generated, `answers` are the
    texts of the choices, among which the answer is looked for, and `repeat` counts how often the question was asked before.
    """

    name: str
    sha256: Digest
    prompt: str
    answers: tuple[str, ...]
    reference: int | None = None
    repeat: Count = 0


class BenchmarkWork(Artifact):
    """The drawn questions of one benchmark, in the order of the protocol, and how they are scored; repeat by repeat where there are several.

    `seed` is the study's, where something is drawn; with `secret` no generated text is kept.
    """

    benchmark: Identifier
    scoring: Scoring
    prompt: str
    preambles_sha256: Digest | None = Field(default=None, description="Of the worked examples, where there are any.")
    questions: tuple[AskedQuestion, ...]
    seed: Count = 0
    secret: bool = False

    @property
    def checked(self) -> int:
        """How many questions the self-check asks again."""
        return min(len(self.questions), checked_by(self.scoring))

    @property
    def most_written(self) -> int:
        """How many tokens the answer to one question may have, where it is generated."""
        return self.scoring.max_tokens if self.scoring.method == "sampled" else 0

    @property
    def distribution(self) -> int | None:
        """How many tokens of each answer distribution are kept; None where none is asked for."""
        return self.scoring.distribution if self.scoring.method == "option" else None


class Order(Artifact, ABC):
    """One model and all that it is asked, cut into shards by the batch rule."""

    model: Identifier
    batch_rule: BatchRule
    works: tuple[BenchmarkWork, ...]

    @abstractmethod
    def key(self, work: BenchmarkWork, questions: tuple[AskedQuestion, ...], *, one_by_one: bool = False) -> Artifact:
        """Return what decides the results of `questions`; its digest is the id of the job in the journal."""

    def shards(self, work: BenchmarkWork) -> tuple[tuple[AskedQuestion, ...], ...]:
        """Return the questions cut into shards, in order, by the batch rule; repeats stay apart, so that further ones change no earlier ones."""
        size = self.batch_rule.shard_questions
        repeats = [list(some) for _, some in groupby(work.questions, key=lambda question: question.repeat)]
        return tuple(tuple(some[start : start + size]) for some in repeats for start in range(0, len(some), size))


class WorkOrder(Order):
    """An order for a model that is scored from its checkpoint; the unit that keeps a model loaded."""

    folder: str
    precision: Precision
    identity: CheckpointIdentity

    @property
    def checkpoint(self) -> Path:
        """What the model is loaded from: the folder, or the GGUF file in it."""
        return Path(self.folder, self.identity.gguf or "")

    def key(self, work: BenchmarkWork, questions: tuple[AskedQuestion, ...], *, one_by_one: bool = False) -> JobKey | SampledKey:
        """Return what decides the results of `questions`; its digest is the id of the job in the journal."""
        if work.scoring.method == "sampled":
            return self._sampled_key(work, work.scoring, questions, one_by_one=one_by_one)
        return JobKey(
            weights_sha256=self.identity.weights_sha256,
            tokenizer_sha256=self.identity.tokenizer_sha256,
            precision=self.precision,
            method=work.scoring.method,
            prompt=work.prompt,
            preambles_sha256=work.preambles_sha256,
            chat=work.scoring.chat,
            distribution=work.distribution,
            batches="one_by_one" if one_by_one else self.batch_rule,
            questions=tuple(question.sha256 for question in questions),
        )

    def _sampled_key(self, work: BenchmarkWork, scoring: SampledScoring, questions: tuple[AskedQuestion, ...], *, one_by_one: bool) -> SampledKey:
        reading = [[rule.model_dump(mode="json") for rule in scoring.extract], list(scoring.refusals)]
        return SampledKey(
            weights_sha256=self.identity.weights_sha256,
            tokenizer_sha256=self.identity.tokenizer_sha256,
            precision=self.precision,
            seed=work.seed if scoring.temperature else 0,
            temperature=scoring.temperature,
            max_tokens=scoring.max_tokens,
            stop=scoring.stop,
            prompt=work.prompt,
            preambles_sha256=work.preambles_sha256,
            chat=scoring.chat,
            batches="one_by_one" if one_by_one else self.batch_rule,
            questions=tuple(question.sha256 for question in questions),
            repeats=tuple(question.repeat for question in questions),
            reading_sha256=sha256_hex(canonical_json(reading)) if work.secret else None,
        )

    def part(self, work: BenchmarkWork, questions: tuple[AskedQuestion, ...]) -> WorkOrder:
        """Return this order with nothing but some questions of one work."""
        return self.model_copy(update={"works": (work.model_copy(update={"questions": questions}),)})


class Assignment(Artifact):
    """What a worker is given at once: one job, and what it may prepare meanwhile.

    `order` holds one work, with the questions of the job alone. `parts` is into how many parts a batch is cut where memory ran out before;
    with `too_few_parts` an earlier worker was ended in this very job.
    With `enough` the job may end when so many questions are answered, and the batches that tell most of its pace come first.
    `recorded` is what the journal has of the job already, for a worker that cannot read the journal itself.
    """

    order: WorkOrder
    one_by_one: bool = False
    parts: Length = 1
    too_few_parts: Count = 0
    enough: Count | None = None
    recorded: tuple[Record, ...] = ()
    ahead: WorkOrder | None = None

    @property
    def work(self) -> BenchmarkWork:
        """The questions of the job, and how they are scored."""
        return self.order.works[0]

    def key(self) -> JobKey | SampledKey:
        """Return what decides the results of the job."""
        return self.order.key(self.work, self.work.questions, one_by_one=self.one_by_one)


@dataclass(frozen=True, slots=True)
class Answer:
    """Where an answer's log-probability is read: `ids` are predicted in row `row` from position `start` on."""

    row: int
    start: int
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EncodedQuestion:
    """The rows that a model reads for one question; answers that need the same row share it; `reference` is as in AskedQuestion."""

    rows: tuple[tuple[int, ...], ...]
    answers: tuple[Answer, ...]
    reference: int | None = None

    @property
    def longest(self) -> int:
        """The length of the longest row."""
        return max(map(len, self.rows))


class WorkerEvent(Artifact):
    """One line of a worker's output; `questions` counts what was done since the event before, `tokens` what was read and written for it.

    `waiting` says that another run has the job, `begun` that the wait is over; `ready` follows `loading`; `done` ends an assignment, as `failed`
    does. `parts` comes with a warning that memory ran out: into how many parts batches are cut from now on. `record` and `anew` come from a worker
    that cannot write the journal itself: a line for it, and that what it holds of the job is to be set aside.
    """

    kind: Literal["waiting", "begun", "loading", "ready", "batch", "warning", "failed", "done", "record", "anew"]
    model: Identifier
    benchmark: Identifier | None = None
    questions: int = 0
    tokens: Count = 0
    message: str = ""
    hint: str | None = None
    parts: Length = 1
    record: Record | None = None


Preambles = Mapping[str | None, str]
"""The worked examples that come before a prompt, by the subject of the question; under None, for every subject."""


def orders_of(
    protocol: Protocol, questions: Mapping[str, Sequence[Question]], folders: Mapping[str, str], preambles: Mapping[str, Preambles] | None = None
) -> tuple[WorkOrder, ...]:
    """Return one order per model that is scored from a checkpoint, in the protocol's order.

    `questions` holds, per benchmark, the true questions behind the drawn ones; `folders` the folder of each checkpoint by model id;
    `preambles`, per benchmark, the worked examples where there are any.
    Raises ValueError when a template asks for what a question does not have.
    """
    before = preambles or {}
    works = tuple(work_of(benchmark, questions[benchmark.id], before.get(benchmark.id, {}), seed=protocol.seed) for benchmark in protocol.benchmarks)
    return tuple(
        WorkOrder(
            model=model.id,
            folder=folders[model.id],
            precision=model.precision,
            identity=model.identity,
            batch_rule=protocol.batch_rule,
            works=works,
        )
        for model in protocol.models
        if isinstance(model.identity, CheckpointIdentity)
    )


def numbers_of(scoring: Scoring, questions: Sequence[AskedQuestion]) -> list[int]:
    """Return how many numbers the record of each question holds: one for each answer; none where texts are generated."""
    return [0 if scoring.method == "sampled" else len(question.answers) for question in questions]


def checked_by(scoring: Scoring) -> int:
    """Return how many questions the self-check of a scoring method asks again, where there are as many."""
    return CHECKED_TEXTS if scoring.method == "sampled" else CHECKED


def jobs_of(orders: Sequence[Order]) -> tuple[Job, ...]:
    """Return the jobs of the orders: model by model, benchmark by benchmark, shard by shard."""
    return tuple(
        Job(id=order.key(work, shard).digest(), model=order.model, benchmark=work.benchmark, shard=number, shards=len(shards), questions=len(shard))
        for order in orders
        for work in order.works
        for shards in (order.shards(work),)
        for number, shard in enumerate(shards)
    )


def work_of(benchmark: ProtocolBenchmark, questions: Sequence[Question], preambles: Preambles | None = None, *, seed: int = 0) -> BenchmarkWork:
    """Return a benchmark as models meet it; `questions` are the true ones behind the drawn ones, in the same order; `seed` is the study's.

    Raises ValueError when the template asks for what a question does not have.
    """
    asked, before = [], preambles or {}
    for drawn, question in zip(benchmark.questions, questions, strict=True):
        try:
            prompt = render_prompt(benchmark.prompt, question)
        except ValueError as error:
            raise ValueError(f"benchmark '{benchmark.id}', question '{drawn.id}': {error}") from error
        reference = question.answer if benchmark.scoring.method == "option" and benchmark.scoring.distribution else None
        first = before.get(question.subject) or before.get(None, "")
        answers = tuple(LETTERS[: len(question.choices)]) if benchmark.scoring.method == "letter" else question.choices
        asked.append(AskedQuestion(name=drawn.id, sha256=question.digest(), prompt=first + prompt, answers=answers, reference=reference))
    return BenchmarkWork(
        benchmark=benchmark.id,
        scoring=benchmark.scoring,
        prompt=benchmark.prompt,
        preambles_sha256=sha256_hex(canonical_json(sorted(before.items(), key=lambda item: item[0] or ""))) if before else None,
        questions=tuple(question.model_copy(update={"repeat": repeat}) for repeat in range(repeats_of(benchmark.scoring)) for question in asked),
        seed=seed,
        secret=benchmark.scoring.method == "sampled" and benchmark.disclosure == "none",
    )


def repeats_of(scoring: Scoring) -> int:
    """Return how often a scoring method asks each question."""
    return scoring.repeats if scoring.method == "sampled" else 1
