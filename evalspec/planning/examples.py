"""Which solved questions does a model see first?  Drawn by the seed and by ids alone, never from the questions that are asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evalspec.artifacts.questions import Question, QuestionSet
from evalspec.artifacts.study import Benchmark
from evalspec.errors import Diagnostic, InputError
from evalspec.planning.sampling import Draw, Ranking


@dataclass(frozen=True, slots=True)
class Shown:
    """The worked examples, in the order in which they are shown, that questions of a subject see; without a subject, all questions."""

    subject: str | None
    examples: tuple[Question, ...]


def draw_examples(benchmark: Benchmark, draw: Draw, pool: QuestionSet, *, seed: int) -> tuple[Shown, ...]:
    """Draw the worked examples of a benchmark from a pool; raises InputError when it does not have enough.

    A question that is asked is never shown: neither itself nor another with the same stem and choices.
    """
    shots = benchmark.scoring.shots
    if not shots:
        return ()
    asked = {question.id for question in draw.questions} if benchmark.scoring.examples.source is None else set()
    texts = {(question.stem, question.choices) for question in draw.questions}
    left = [question for question in pool.questions if question.id not in asked and (question.stem, question.choices) not in texts]
    ranked = Ranking.of(seed, f"{benchmark.id} examples").ordered(left)
    if benchmark.scoring.examples.by is None:
        _refuse(benchmark, [(None, len(ranked))])
        return (Shown(None, tuple(ranked[:shots])),)
    subjects = sorted({question.subject for question in draw.questions if question.subject is not None})
    of_subject = {subject: [question for question in ranked if question.subject == subject] for subject in subjects}
    _refuse(benchmark, [(subject, len(found)) for subject, found in of_subject.items()])
    return tuple(Shown(subject, tuple(found[:shots])) for subject, found in of_subject.items())


def _refuse(benchmark: Benchmark, found: Iterable[tuple[str | None, int]]) -> None:
    """Raise InputError naming every subject that has too few questions to show."""
    shots, faults = benchmark.scoring.shots, []
    for subject, count in found:
        if count < shots:
            of = f" of subject '{subject}'" if subject is not None else ""
            where = "its examples hold" if benchmark.scoring.examples.source is not None else "its sample leaves"
            message = f"benchmark '{benchmark.id}' shows {shots} worked examples, and {where} {count} question{'' if count == 1 else 's'}{of}"
            faults.append(
                Diagnostic(message, hint="show fewer (`shots`), draw a smaller sample, or name a file of examples: `examples: {source: {file: ...}}`")
            )
    if faults:
        raise InputError(faults)
