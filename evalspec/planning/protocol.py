"""What can change a number of this study?  Study, draws and digests, put together into the Protocol; no hardware and no clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from evalspec.artifacts.base import sha256_hex
from evalspec.artifacts.prompts import answers_with, prompt_template, worked_examples
from evalspec.artifacts.protocol import (
    BatchRule,
    DrawnQuestion,
    EarlierIdentity,
    Example,
    Identity,
    Pool,
    Preamble,
    Protocol,
    ProtocolBenchmark,
    ProtocolModel,
)
from evalspec.artifacts.questions import Question, QuestionBank, QuestionSet
from evalspec.artifacts.samples import Sample, SampleIds
from evalspec.artifacts.study import Benchmark, Model, Study
from evalspec.errors import InputError
from evalspec.planning.examples import Shown
from evalspec.planning.sampling import Draw

Commit = Callable[[str, Question], str]
"""Gives the salted commitment to a question of a benchmark, in lower-case hexadecimal."""


@dataclass(frozen=True, slots=True)
class ListedQuestion:
    """A question beside the line that the protocol has about it."""

    question: Question
    drawn: DrawnQuestion


def build_protocol(
    study: Study,
    *,
    bank: QuestionBank,
    draws: Mapping[str, Draw],
    identities: Mapping[str, Identity],
    batch_rule: BatchRule,
    commit: Commit | None = None,
    shown: Mapping[str, tuple[Shown, ...]] | None = None,
) -> Protocol:
    """Return the study resolved to digests; `draws` and worked examples (`shown`) are by benchmark, `identities` by model.

    `commit` is needed where a benchmark has `disclosure: none`; raises ValueError when it is not given then.
    """
    models = tuple(_model(model, identities[model.id]) for model in study.models)
    benchmarks = []
    for benchmark in study.benchmarks:
        hide = commit if benchmark.disclosure == "none" else None
        resolved = _benchmark(benchmark, bank.benchmark(benchmark.id), draws[benchmark.id], hide)
        preambles = tuple(_preamble(benchmark, one, hide) for one in (shown or {}).get(benchmark.id, ()))
        benchmarks.append(resolved.model_copy(update={"preambles": preambles}))
    return Protocol(
        study_sha256=study.digest(),
        seed=study.seed,
        models=models,
        benchmarks=tuple(benchmarks),
        analyses=study.analyses,
        thresholds=study.thresholds,
        batch_rule=batch_rule,
    )


def list_questions(draw: Draw, commit: Commit | None = None) -> tuple[ListedQuestion, ...]:
    """Return the drawn questions in the protocol's order: by id; or, where they are committed to, by commitment, which tells nothing of ids."""
    listed = []
    for question, weight in zip(draw.questions, draw.weights, strict=True):
        commitment = commit(draw.benchmark, question) if commit else None
        drawn = DrawnQuestion(
            id=commitment or question.id,
            sha256=commitment or question.digest(),
            subject=question.subject,
            cluster=question.cluster,
            flags=question.flags,
            weight=weight,
        )
        listed.append(ListedQuestion(question, drawn))
    return tuple(sorted(listed, key=lambda entry: entry.drawn.id))


def _model(model: Model, identity: Identity) -> ProtocolModel:
    precision = identity.precision if isinstance(identity, EarlierIdentity) else model.precision
    return ProtocolModel(id=model.id, precision=precision, identity=identity)


def _benchmark(benchmark: Benchmark, question_set: QuestionSet, draw: Draw, commit: Commit | None) -> ProtocolBenchmark:
    if benchmark.disclosure == "none" and commit is None:
        raise ValueError(f"benchmark '{benchmark.id}' discloses nothing: its questions need a function that commits to them")
    questions = tuple(entry.drawn for entry in list_questions(draw, commit))
    return ProtocolBenchmark(
        id=benchmark.id,
        source=question_set.source,
        source_sha256=_digest_of_commitments(questions) if commit else question_set.source_sha256,
        source_size=len(question_set.questions),
        licence=question_set.licence,
        sample=_disclosed(benchmark.sample, questions) if commit else benchmark.sample,
        planned_size=draw.planned,
        looked_at=draw.looked_at,
        questions=questions,
        strata="subject" if benchmark.groups.subject == "strata" else None,
        clusters=clusters_of(benchmark),
        target=benchmark.target,
        pool=Pool(size=len(question_set.questions), subjects=question_set.strata()) if benchmark.target == "this_pool" else None,
        missing=benchmark.missing,
        score=benchmark.score,
        scoring=benchmark.scoring,
        prompt=prompt_template(benchmark.scoring),
        disclosure=benchmark.disclosure,
    )


def preamble_texts(benchmark: Benchmark, shown: Iterable[Shown]) -> dict[str | None, str]:
    """Return the worked examples as they stand before a prompt, by subject; raises InputError for a prompt that an example cannot fill."""
    template = prompt_template(benchmark.scoring)
    try:
        return {one.subject: worked_examples(template, answers_with(benchmark.scoring), one.examples) for one in shown}
    except ValueError as error:
        raise InputError(f"benchmark '{benchmark.id}', a worked example: {error}", hint="change the prompt, or the file of examples") from error


def _preamble(benchmark: Benchmark, shown: Shown, commit: Commit | None) -> Preamble:
    examples = tuple(
        Example(id=hidden or question.id, sha256=hidden or question.digest())
        for question in shown.examples
        for hidden in [commit(benchmark.id, question) if commit else None]
    )
    text = preamble_texts(benchmark, [shown])[shown.subject] if benchmark.disclosure == "full" else None
    return Preamble(subject=shown.subject, examples=examples, text=text)


def _digest_of_commitments(questions: tuple[DrawnQuestion, ...]) -> str:
    """Stand for the digest of a hidden source: the file's own would let guesses at a small file be tested."""
    return sha256_hex("\n".join(question.sha256 for question in questions).encode())


def clusters_of(benchmark: Benchmark) -> Literal["subject", "cluster"] | None:
    """Return by what the questions of a benchmark are clustered, if they are."""
    if benchmark.groups.cluster == "clusters":
        return "cluster"
    return "subject" if benchmark.groups.subject == "clusters" else None


def _disclosed(sample: Sample, questions: tuple[DrawnQuestion, ...]) -> Sample:
    """Replace ids that a sample names by the commitments to those questions."""
    return sample.model_copy(update={"ids": tuple(question.id for question in questions)}) if isinstance(sample, SampleIds) else sample
