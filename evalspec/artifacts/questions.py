"""What was asked?  Questions with their choices and keys, per benchmark."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from evalspec.artifacts.base import canonical_json, sha256_hex

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class Question:
    """A multiple-choice question; `answer` is the index of the right choice.

    `cluster` names the group that it came in, such as a text that several questions are about; `flags` are known problems of it, such as a
    wrong key. Both are said about the question and are no part of its digest.
    """

    id: str
    stem: str
    choices: tuple[str, ...]
    answer: int
    subject: str | None = None
    cluster: str | None = None
    flags: tuple[str, ...] = ()

    @property
    def letter(self) -> str:
        """The letter of the right choice."""
        return LETTERS[self.answer]

    def digest(self) -> str:
        """Return the SHA-256 over everything that is asked and how it is keyed."""
        return sha256_hex(canonical_json([self.id, self.stem, list(self.choices), self.answer, self.subject]))


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """All questions of one benchmark's source, in file order."""

    benchmark: str
    questions: tuple[Question, ...]
    source: str
    source_sha256: str
    licence: str | None = None

    def by_id(self) -> dict[str, Question]:
        """Return the questions keyed by id."""
        return {question.id: question for question in self.questions}

    def strata(self) -> dict[str, int]:
        """Return how many questions each subject has, sorted by name; questions without subject are left out."""
        counts = Counter(question.subject for question in self.questions if question.subject is not None)
        return dict(sorted(counts.items()))


@dataclass(frozen=True, slots=True)
class QuestionBank:
    """The questions of every benchmark of a study."""

    sets: tuple[QuestionSet, ...]

    def benchmark(self, identifier: str) -> QuestionSet:
        """Return the questions of one benchmark; raises KeyError when there is none of that id."""
        for question_set in self.sets:
            if question_set.benchmark == identifier:
                return question_set
        raise KeyError(identifier)
