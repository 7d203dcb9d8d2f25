"""Which questions are asked?  Samples that depend on the seed and on ids alone, and of which a larger one contains the smaller one.

Questions are ranked by HMAC-SHA-256 of their id under the seed and the benchmark's id, so the order of the file does not matter. A sample
takes the first of the ranking; a stratified one the first of each stratum, with seats given to strata one after another by a divisor method
(Webster, also called Sainte-Laguë, for proportional shares), so that growing a sample only ever adds seats.
"""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from evalspec.artifacts.base import canonical_json
from evalspec.artifacts.protocol import PlannedSize
from evalspec.artifacts.questions import Question, QuestionSet
from evalspec.artifacts.samples import Sample, SampleAll, SampleChosen, SampleIds, SampleSimple, SampleStratified, size_of
from evalspec.errors import Diagnostic, InputError

if TYPE_CHECKING:
    from evalspec.planning.selection import Chosen


@dataclass(frozen=True, slots=True)
class Stratum:
    """How many questions of a subject the source has and the sample takes."""

    subject: str
    available: int
    drawn: int


@dataclass(frozen=True, slots=True)
class Draw:
    """The drawn questions of one benchmark, sorted by id, with weights that average 1, and what each subject gives.

    `planned` says how the number of questions came about where it was to detect a difference, `looked_at` how many other models chose them.
    """

    benchmark: str
    questions: tuple[Question, ...]
    weights: tuple[float, ...]
    strata: tuple[Stratum, ...]
    planned: PlannedSize | None = None
    looked_at: int | None = None


def draw(sample: Sample, question_set: QuestionSet, *, seed: int, planned: PlannedSize | None = None, chosen: Chosen | None = None) -> Draw:
    """Draw the sample; raises InputError when the source cannot give it.

    Weights are 1 but for equal allocation, where a question weighs its stratum's share of the source over its share of the sample, and for
    `chosen` questions, which bring theirs.
    """
    available = question_set.strata()
    if chosen is not None:
        taken = Counter(question.subject for question in chosen.questions)
        strata = tuple(Stratum(subject, count, taken[subject]) for subject, count in available.items())
        return Draw(question_set.benchmark, chosen.questions, chosen.weights, strata, looked_at=chosen.models)
    questions = sorted(_chosen(sample, question_set, seed), key=lambda question: question.id)
    drawn = Counter(question.subject for question in questions)
    weights = [1.0] * len(questions)
    if isinstance(sample, SampleStratified) and sample.allocation == "equal":
        scale = Fraction(len(questions), len(question_set.questions))
        weights = [float(scale * Fraction(available[subject], drawn[subject])) for question in questions if (subject := question.subject) is not None]
    strata = tuple(Stratum(subject, count, drawn[subject]) for subject, count in available.items())
    return Draw(question_set.benchmark, tuple(questions), tuple(weights), strata, planned)


def _chosen(sample: Sample, question_set: QuestionSet, seed: int) -> Iterable[Question]:
    ranking = Ranking.of(seed, question_set.benchmark)
    match sample:
        case SampleAll():
            return question_set.questions
        case SampleSimple():
            _require_enough(size_of(sample), question_set)
            return ranking.ordered(question_set.questions)[: size_of(sample)]
        case SampleStratified():
            return _stratified(sample, question_set, ranking)
        case SampleIds():
            return _named(sample, question_set)
        case SampleChosen():
            raise ValueError("a sample of chosen questions needs the choice")


@dataclass(frozen=True, slots=True)
class Ranking:
    """An order of names that depends on the seed and the names alone."""

    key: bytes

    @classmethod
    def of(cls, seed: int, benchmark: str) -> Ranking:
        """Return the ranking of one benchmark under a seed."""
        return cls(canonical_json(["evalspec draw 1", seed, benchmark]))

    def place(self, kind: Literal["question", "stratum"], name: str) -> bytes:
        """Return where a name stands."""
        return hmac.digest(self.key, f"{kind}\0{name}".encode(), "sha256")

    def ordered(self, questions: Iterable[Question]) -> list[Question]:
        """Return the questions in the order of the ranking."""
        return sorted(questions, key=lambda question: self.place("question", question.id))


def _require_enough(size: int, question_set: QuestionSet) -> None:
    if size > len(question_set.questions):
        raise InputError(
            f"benchmark '{question_set.benchmark}': the sample asks for {size:,} questions and the source has {len(question_set.questions):,}",
            hint="ask for fewer, or for all of them with 'sample: {method: all}'",
        )


def _stratified(sample: SampleStratified, question_set: QuestionSet, ranking: Ranking) -> list[Question]:
    size = size_of(sample)
    _require_enough(size, question_set)
    members: dict[str, list[Question]] = {subject: [] for subject in question_set.strata()}
    for question in ranking.ordered(question_set.questions):
        if question.subject is not None:
            members[question.subject].append(question)
    without = len(question_set.questions) - sum(map(len, members.values()))
    if without:
        raise InputError(
            f"benchmark '{question_set.benchmark}': the sample is stratified by subject and {without:,} questions have none",
            hint="give every question a subject, or draw a simple sample",
        )
    if sample.allocation == "equal" and size < len(members):
        raise InputError(
            f"benchmark '{question_set.benchmark}': {size} questions cannot be shared among {len(members)} subjects equally",
            hint=f"ask for {len(members)} or more, or for a proportional sample",
        )
    seats = _seats(sample, {subject: len(questions) for subject, questions in members.items()}, ranking)
    return [question for subject, questions in members.items() for question in questions[: seats[subject]]]


def _seats(sample: SampleStratified, available: dict[str, int], ranking: Ranking) -> Counter[str]:
    """Return how many questions each stratum gives, never more than it has.

    Every question of a stratum stands for one seat with a priority: in equal allocation the k-th seat of each stratum comes before the
    (k+1)-th of any; in proportional allocation seat k of a stratum of N has the quotient N / (2k + 1) (Webster's divisors). The sample
    takes the seats of highest priority; ties are settled by the keyed ranking of the strata, so none is favoured by its name.

    References: Balinski and Young (1982), Fair Representation; divisor methods are house monotone.
    """
    priorities = []
    for subject, count in available.items():
        place = ranking.place("stratum", subject)
        for seat in range(count):
            priority = Fraction(seat) if sample.allocation == "equal" else Fraction(-count, 2 * seat + 1)
            priorities.append((priority, place, subject))
    return Counter(subject for _, _, subject in sorted(priorities)[: size_of(sample)])


def _named(sample: SampleIds, question_set: QuestionSet) -> list[Question]:
    known = question_set.by_id()
    faults = [f"question id '{identifier}' is not in the source" for identifier in sample.ids if identifier not in known]
    faults += [f"question id '{identifier}' is named {count} times" for identifier, count in Counter(sample.ids).items() if count > 1]
    if faults:
        raise InputError(Diagnostic(f"benchmark '{question_set.benchmark}': {fault}") for fault in faults)
    return [known[identifier] for identifier in sample.ids]
