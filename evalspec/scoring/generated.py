"""What did generated texts answer?  The record of a text, the choices read off all of them, and which are written again as a self-check."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evalspec.artifacts.journal import BatchRecord, Generated
from evalspec.artifacts.responses import GeneratedFacts, Reason, TextCheck
from evalspec.artifacts.study import SampledScoring
from evalspec.artifacts.work import CHECKED_TEXTS, AskedQuestion
from evalspec.extraction import ReadAnswers, read_answers


def without_texts(written: Sequence[Generated], asked: Sequence[AskedQuestion], scoring: SampledScoring) -> tuple[Generated, ...]:
    """Return the records without their texts: with what was read off each instead."""
    answers = read_answers([one.text or "" for one in written], [question.answers for question in asked], scoring)
    return tuple(
        one.model_copy(update={"text": None, "choice": choice if choice >= 0 else None, "refused": reason == Reason.REFUSED})
        for one, choice, reason in zip(written, answers.choices.tolist(), answers.reasons.tolist(), strict=True)
    )


def written_answers(batches: Sequence[BatchRecord]) -> list[Generated]:
    """Return all generated answers in the order of the questions."""
    found = {place: one for batch in batches for place, one in zip(batch.questions, batch.generated, strict=True)}
    return [found[place] for place in range(len(found))]


def read_all(written: Sequence[Generated], asked: Sequence[AskedQuestion], scoring: SampledScoring) -> ReadAnswers:
    """Return what was answered: read off the texts, or as it was read before they were dropped."""
    if all(one.text is not None for one in written):
        return read_answers([one.text or "" for one in written], [question.answers for question in asked], scoring)
    reasons = [Reason.NONE if one.choice is not None else Reason.REFUSED if one.refused else Reason.UNPARSEABLE for one in written]
    return ReadAnswers(np.array([-1 if one.choice is None else one.choice for one in written], dtype=np.int16), np.array(reasons, dtype=np.int8))


def texts_of(written: Sequence[Generated]) -> NDArray[np.object_] | None:
    """Return the texts (N,); None where they were not kept."""
    if any(one.text is None for one in written):
        return None
    return np.array([one.text for one in written], dtype=object)


def facts(written: Sequence[Generated], reasons: NDArray[np.int8], ends: Sequence[int]) -> GeneratedFacts:
    """Return what became of a model's texts on one benchmark; `reasons` (N,) say why no choice was found."""
    ended = Counter(one.ended for one in written)
    return GeneratedFacts(
        texts=len(written),
        refused=int(np.sum(reasons == Reason.REFUSED)),
        unparseable=int(np.sum(reasons == Reason.UNPARSEABLE)),
        at_end=ended["end"],
        at_stop=ended["stop"],
        at_limit=ended["limit"],
        tokens=sum(one.tokens for one in written),
        ends=tuple(ends),
    )


def chosen_texts(asked: Sequence[AskedQuestion]) -> tuple[int, ...]:
    """Return the texts to write again one at a time, in order, drawn by a hash of their questions and repeats."""

    def key(place: int) -> bytes:
        return hashlib.sha256(f"self-check {asked[place].sha256} {asked[place].repeat}".encode()).digest()

    return tuple(sorted(sorted(range(len(asked)), key=key)[:CHECKED_TEXTS]))


def compare_texts(planned: Sequence[Generated], alone: Sequence[Generated], choices: tuple[Sequence[int], Sequence[int]]) -> TextCheck:
    """Return how texts that were written again one at a time differ from those of the run; `choices` are those of both, read off them."""
    before, after = choices
    return TextCheck(
        texts=len(alone),
        flips=sum(one != other for one, other in zip(before, after, strict=True)),
        rewritten=None
        if any(one.text is None for one in planned)
        else sum(one.text != other.text for one, other in zip(planned, alone, strict=True)),
    )
