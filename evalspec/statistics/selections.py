"""What may a sampler know about the questions it chooses from, and what does it hand on?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evalspec.statistics.arguments import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Questions that can be chosen, and what other models made of them; nothing about the models that are to be judged.

    Attributes
    ----------
    strata
        Shape (N,): the stratum of each question, numbered from 0.
    correct
        Shape (S, N): scores of the source models; no row where none may be looked at.
    confidence
        Shape (S, N): the probability that each source model gives to the right choice, ``None`` where it is not known.
    """

    strata: IntArray
    correct: FloatArray
    confidence: FloatArray | None = None

    @property
    def questions(self) -> int:
        """Number of questions."""
        return int(self.strata.size)

    @property
    def sizes(self) -> IntArray:
        """Questions of each stratum."""
        return np.bincount(self.strata)

    @property
    def trust(self) -> FloatArray:
        """What source models made of each question: their confidence, or their scores where that is not known."""
        return self.correct if self.confidence is None else self.confidence


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Chosen questions, and the weights whose sum over a model's scores on them estimates its score on all; ``of`` says which scores."""

    questions: IntArray
    weights: FloatArray
    of_confidence: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """What a sampler chose; ``published`` is the published form of choice and estimate where that differs."""

    own: Selection
    published: Selection | None = None


Chooser = Callable[[int], Choice]
"""Chooses as many questions as it is asked for."""

Sampler = Callable[[Candidates, np.random.Generator], Chooser]
"""Looks at the candidates once, and gives what chooses among them at every size."""


def evenly(questions: IntArray) -> Selection:
    """Let every chosen question count the same.

    Examples
    --------
    >>> evenly(np.array([4, 7])).weights.tolist()
    [0.5, 0.5]
    """
    return Selection(questions, np.full(questions.size, 1.0 / questions.size))


def by_shares(questions: IntArray, groups: IntArray) -> Selection:
    """Let every group of candidates count by its size, and its chosen questions share that; groups without a chosen question are passed over.

    Parameters
    ----------
    questions
        Chosen positions.
    groups
        Shape (N,): the group of each candidate, numbered from 0.

    References
    ----------
    Cochran (1977), Sampling Techniques, section 5.3 (the stratified mean).

    Examples
    --------
    >>> by_shares(np.array([0, 1, 3]), np.array([0, 0, 0, 1])).weights.tolist()
    [0.375, 0.375, 0.25]
    """
    taken = np.bincount(groups[questions], minlength=int(groups.max()) + 1)
    sizes = np.where(taken > 0, np.bincount(groups, minlength=taken.size), 0)
    return Selection(questions, (sizes / np.maximum(taken, 1) / sizes.sum())[groups[questions]])
