"""What do single questions and answers look like?  A few drawn at random per benchmark and the first that models failed, as far as disclosed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np

from evalspec.artifacts.questions import LETTERS, Question
from evalspec.artifacts.responses import BenchmarkResponses, Reason
from evalspec.artifacts.study import Disclosure
from evalspec.reporting.dossier import Dossier

__all__ = ["Excerpt", "SampleAnswer", "SampleChoice", "SampleQuestion", "Samples", "draw_samples"]

LONGEST_STEM = 3000
LONGEST_CHOICE = 600
LONGEST_TEXT = 400


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A text, or its beginning with the number of characters left out."""

    text: str
    omitted: int


@dataclass(frozen=True, slots=True)
class SampleChoice:
    """One choice of a question; `right` marks the key."""

    letter: str
    content: Excerpt
    right: bool


@dataclass(frozen=True, slots=True)
class SampleAnswer:
    """What one model answered: its letter where known, and `right`, `wrong`, `partly right`, its score or why it is missing.

    `text` is what it wrote, where it wrote one.
    """

    model: str
    letter: str | None
    outcome: str
    failed: bool
    text: Excerpt | None = None


@dataclass(frozen=True, slots=True)
class SampleQuestion:
    """One drawn question; `stem` and `choices` are empty where the text is not disclosed or not at hand."""

    id: str
    subject: str | None
    stem: Excerpt | None
    choices: tuple[SampleChoice, ...]
    answers: tuple[SampleAnswer, ...]


@dataclass(frozen=True, slots=True)
class Samples:
    """The questions drawn for one benchmark, of whose repeats the first is shown.

    `failures` are the first questions, by their ids, that a model failed: answered wrongly or not at all; each with the models that did.
    """

    benchmark: str
    disclosure: Disclosure
    has_texts: bool
    repeats: int
    questions: tuple[SampleQuestion, ...]
    failures: tuple[SampleQuestion, ...] = ()

    @property
    def drawn(self) -> frozenset[str]:
        """The ids of the questions drawn at random, whose texts need not be shown twice."""
        return frozenset(question.id for question in self.questions)


def draw_samples(dossier: Dossier) -> tuple[Samples, ...]:
    """Return the random question and answer pairs of every benchmark, in the study's order."""
    return tuple(_samples(dossier, entry) for entry in dossier.responses.benchmarks)


def _samples(dossier: Dossier, responses: BenchmarkResponses) -> Samples:
    disclosure, repeats = dossier.protocol.benchmark(responses.benchmark).disclosure, responses.scores.shape[2]
    if disclosure == "none":
        return Samples(responses.benchmark, disclosure, has_texts=False, repeats=repeats, questions=())
    texts: dict[str, Question] = {}
    if dossier.bank is not None and disclosure == "full":
        texts = {question.id: question for entry in dossier.bank.sets if entry.benchmark == responses.benchmark for question in entry.questions}
    drawn = _draw(dossier.study.seed, responses, dossier.study.report.samples)
    questions = tuple(_question(responses, index, texts) for index in drawn)
    has_texts = any(question.stem for question in questions)
    failures = tuple(_failed(_question(responses, index, texts)) for index in _failures(responses, dossier.study.report.samples))
    return Samples(responses.benchmark, disclosure, has_texts=has_texts, repeats=repeats, questions=questions, failures=failures)


def _failures(responses: BenchmarkResponses, size: int) -> list[int]:
    """Return the first questions, by id, that a model failed in the repeat that is shown."""
    scores = responses.scores[:, :, 0]  # (M, Q)
    failed = np.flatnonzero((np.isnan(scores) | (scores == responses.worst)).any(axis=0))
    return sorted(failed.tolist(), key=lambda index: responses.questions[index])[:size]


def _failed(question: SampleQuestion) -> SampleQuestion:
    """Return a question with the answers of the models that failed it."""
    return replace(question, answers=tuple(answer for answer in question.answers if answer.failed))


def _draw(seed: int, responses: BenchmarkResponses, size: int) -> list[int]:
    """Pick questions by keyed hashing, so that their order in the file does not matter."""

    def key(index: int) -> bytes:
        return hashlib.sha256(f"report samples\0{seed}\0{responses.benchmark}\0{responses.questions[index]}".encode()).digest()

    return sorted(range(len(responses.questions)), key=key)[:size]


def _question(responses: BenchmarkResponses, index: int, texts: dict[str, Question]) -> SampleQuestion:
    identifier = responses.questions[index]
    question = texts.get(identifier)
    return SampleQuestion(
        id=identifier,
        subject=responses.subjects[index],
        stem=_excerpt(question.stem, LONGEST_STEM) if question else None,
        choices=_choices(question, keyed=responses.score is None) if question else (),
        answers=tuple(_answer(responses, row, index, letters=question is not None) for row in range(len(responses.models))),
    )


def _choices(question: Question, *, keyed: bool) -> tuple[SampleChoice, ...]:
    return tuple(
        SampleChoice(LETTERS[place], _excerpt(text, LONGEST_CHOICE), right=keyed and place == question.answer)
        for place, text in enumerate(question.choices)
    )


def _answer(responses: BenchmarkResponses, row: int, index: int, *, letters: bool) -> SampleAnswer:
    """Describe the first repeat; a letter is shown only beside the question's text, since letter and outcome give the key away."""
    choice, reason = int(responses.choices[row, index, 0]), Reason(int(responses.reasons[row, index, 0]))
    score = float(responses.scores[row, index, 0])
    if reason is not Reason.NONE or np.isnan(score):
        outcome = reason.name.lower().replace("_", " ") if reason is not Reason.NONE else "missing"
    else:
        outcome = "right" if score == 1 else "wrong" if score == 0 else "partly right"
        outcome = outcome if responses.score is None else f"score {score:.3g}"
    failed = bool(np.isnan(score)) or score == responses.worst
    text = responses.texts[row, index, 0] if responses.texts is not None and letters else None
    excerpt = None if text is None else _excerpt(str(text), LONGEST_TEXT)
    return SampleAnswer(responses.models[row], LETTERS[choice] if letters and choice >= 0 else None, outcome, failed, excerpt)


def _excerpt(text: str, longest: int) -> Excerpt:
    return Excerpt(text[:longest], max(0, len(text) - longest))
