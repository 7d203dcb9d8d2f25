"""What is a scoring worker asked to do, and what does it say while it works?  Both are plain JSON, so that any executor can carry them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from evalspec.artifacts.base import Artifact, Digest, Identifier
from evalspec.artifacts.journal import JobKey
from evalspec.artifacts.prompts import render_prompt
from evalspec.artifacts.protocol import BatchRule, CheckpointIdentity, Protocol, ProtocolBenchmark
from evalspec.artifacts.questions import LETTERS, Question
from evalspec.artifacts.schedule import Job
from evalspec.artifacts.study import LetterScoring, OptionScoring


class AskedQuestion(Artifact):
    """One question as a model meets it: the filled prompt and the texts that may follow it; the right answer is not in it.

    `name` is the public id, fit for messages; `sha256` is the question's own digest.
    """

    name: str
    sha256: Digest
    prompt: str
    answers: tuple[str, ...]


class BenchmarkWork(Artifact):
    """The drawn questions of one benchmark, in the order of the protocol, and how they are scored."""

    benchmark: Identifier
    scoring: LetterScoring | OptionScoring
    prompt: str
    questions: tuple[AskedQuestion, ...]


class WorkOrder(Artifact):
    """One model and all that it is asked; the unit that keeps a model loaded."""

    model: Identifier
    folder: str
    precision: Literal["as_shipped", "float32"]
    identity: CheckpointIdentity
    batch_rule: BatchRule
    works: tuple[BenchmarkWork, ...]

    def key(self, work: BenchmarkWork, questions: tuple[AskedQuestion, ...], *, one_by_one: bool = False) -> JobKey:
        """Return what decides the results of `questions`; its digest is the id of the job in the journal."""
        return JobKey(
            weights_sha256=self.identity.weights_sha256,
            tokenizer_sha256=self.identity.tokenizer_sha256,
            precision=self.precision,
            method=work.scoring.method,
            prompt=work.prompt,
            batches="one_by_one" if one_by_one else self.batch_rule,
            questions=tuple(question.sha256 for question in questions),
        )

    def shards(self, work: BenchmarkWork) -> tuple[tuple[AskedQuestion, ...], ...]:
        """Return the questions cut into shards, in order, by the batch rule."""
        size = self.batch_rule.shard_questions
        return tuple(work.questions[start : start + size] for start in range(0, len(work.questions), size))


class WorkOrders(Artifact):
    """The content of a jobs file."""

    orders: tuple[WorkOrder, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """Where an answer's log-probability is read: `ids` are predicted in row `row` from position `start` on."""

    row: int
    start: int
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EncodedQuestion:
    """The rows that a model reads for one question; answers that need the same row share it."""

    rows: tuple[tuple[int, ...], ...]
    answers: tuple[Answer, ...]

    @property
    def longest(self) -> int:
        """The length of the longest row."""
        return max(map(len, self.rows))


class WorkerEvent(Artifact):
    """One line of a worker's output; `questions` counts what was done since the event before."""

    kind: Literal["loading", "batch", "warning", "failed"]
    model: Identifier
    benchmark: Identifier | None = None
    questions: int = 0
    message: str = ""
    hint: str | None = None


def orders_of(protocol: Protocol, questions: Mapping[str, Sequence[Question]], folders: Mapping[str, str]) -> tuple[WorkOrder, ...]:
    """Return one order per model that is scored from a checkpoint, in the protocol's order.

    `questions` holds, per benchmark, the true questions behind the drawn ones; `folders` the folder of each checkpoint by model id.
    Raises ValueError when a template asks for what a question does not have.
    """
    works = tuple(work_of(benchmark, questions[benchmark.id]) for benchmark in protocol.benchmarks)
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


def jobs_of(orders: Sequence[WorkOrder]) -> tuple[Job, ...]:
    """Return the jobs of the orders: model by model, benchmark by benchmark, shard by shard."""
    return tuple(
        Job(id=order.key(work, shard).digest(), model=order.model, benchmark=work.benchmark, shard=number, shards=len(shards), questions=len(shard))
        for order in orders
        for work in order.works
        for shards in (order.shards(work),)
        for number, shard in enumerate(shards)
    )


def work_of(benchmark: ProtocolBenchmark, questions: Sequence[Question]) -> BenchmarkWork:
    """Return a benchmark as models meet it; `questions` are the true ones behind the drawn ones, in the same order.

    Raises ValueError when the template asks for what a question does not have.
    """
    asked = []
    for drawn, question in zip(benchmark.questions, questions, strict=True):
        try:
            prompt = render_prompt(benchmark.prompt, question)
        except ValueError as error:
            raise ValueError(f"benchmark '{benchmark.id}', question '{drawn.id}': {error}") from error
        answers = tuple(LETTERS[: len(question.choices)]) if benchmark.scoring.method == "letter" else question.choices
        asked.append(AskedQuestion(name=drawn.id, sha256=question.digest(), prompt=prompt, answers=answers))
    return BenchmarkWork(benchmark=benchmark.id, scoring=benchmark.scoring, prompt=benchmark.prompt, questions=tuple(asked))
