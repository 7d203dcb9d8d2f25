"""Which rows of scores do the questions show, and how often?  All that drawing questions again needs to know about them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalspec.statistics.arguments import FloatArray, IntArray, as_floats

FINEST = 1 << 30
"""Scores that are no multiples of a simple fraction are rounded to this fraction of 1, so that sums stay exact and ties are real."""

_SIMPLE = 360
_MANY_VALUES = 5000


@dataclass(frozen=True, slots=True)
class ResponsePatterns:
    """Distinct rows of scores over M models, and how many questions show each.

    Attributes
    ----------
    patterns
        Shape (P, M): scores as whole multiples of ``1 / denominator``.
    counts
        Shape (P,): questions that show each pattern.
    strata
        Shape (P,): the stratum of each pattern, numbered from 0.
    shares
        Shape (G,): the weight of each stratum in a score; they sum to 1.
    denominator
        1 for right and wrong answers.
    """

    patterns: IntArray
    counts: IntArray
    strata: IntArray
    shares: FloatArray
    denominator: int

    @classmethod
    def from_scores(cls, scores: ArrayLike, *, strata: Sequence[str] | None = None, weights: ArrayLike | None = None) -> ResponsePatterns:
        """Collect the patterns of scores in [0, 1] of shape (M, Q).

        Raises
        ------
        ValueError
            When a score is missing (a missing answer must win nothing) or out of range, or weights differ within a stratum.

        Examples
        --------
        >>> ResponsePatterns.from_scores([[1, 0, 1], [0, 0, 0]]).counts
        array([1, 2])
        """
        values = as_floats("scores", scores)
        if values.ndim != 2 or not values.size:
            raise ValueError(f"scores must be (models, questions), neither 0; got shape {values.shape}")
        if values.min() < 0.0 or values.max() > 1.0:
            raise ValueError(f"scores must lie in [0, 1]; got {values.min()} to {values.max()}")
        places = np.zeros(values.shape[1], dtype=np.int64) if strata is None else np.unique(np.asarray(strata), return_inverse=True)[1]
        denominator = denominator_of(values)
        # Model by model: whole copies of a large matrix of scores would be the most memory that redraws need.
        marked = np.empty((values.shape[1], values.shape[0] + 1), dtype=np.int64)
        marked[:, 0] = places
        for model, row in enumerate(values, start=1):
            marked[:, model] = np.rint(row * denominator)
        rows, counts = _distinct(marked, np.ones(len(marked), dtype=np.int64))
        return cls(rows[:, 1:], counts, rows[:, 0], _shares(places, weights), denominator)

    @property
    def questions(self) -> int:
        """Number of questions."""
        return int(self.counts.sum())

    @property
    def sizes(self) -> IntArray:
        """Questions of each stratum, shape (G,)."""
        return np.bincount(self.strata, weights=self.counts).astype(np.int64)

    @property
    def scores(self) -> FloatArray:
        """Mean score of each model, strata by their weight, shape (M,)."""
        per_question = (self.shares / self.sizes)[self.strata] * self.counts
        return np.asarray(per_question @ self.patterns) / self.denominator

    def among(self, models: Sequence[int]) -> ResponsePatterns:
        """Return the patterns of some of the models, less what all of them share: differences stay what they are."""
        chosen = self.patterns[:, list(models)]
        rows = np.column_stack([self.strata, chosen - chosen.min(axis=1, keepdims=True)])
        distinct, counts = _distinct(rows, self.counts)
        return ResponsePatterns(distinct[:, 1:], counts, distinct[:, 0], self.shares, self.denominator)


def _distinct(rows: IntArray, times: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct rows of whole, non-negative numbers in ascending order, and how often each occurs."""
    codes = _codes(rows)
    order = np.lexsort(codes[::-1])
    ranked = codes[:, order]
    starts = np.append(0, 1 + np.flatnonzero(np.any(ranked[:, 1:] != ranked[:, :-1], axis=0)))
    return rows[order[starts]], np.add.reduceat(times[order], starts)


def _codes(rows: IntArray) -> IntArray:
    """Return few numbers per row, of shape (B, R), which together order as the rows do and are far quicker to sort."""
    radix = rows.max(axis=0) + 1
    blocks, room = [[0]], math.log2(radix[0])
    for column in range(1, radix.size):
        bits = math.log2(radix[column])
        if room + bits < 62.0:
            blocks[-1].append(column)
            room += bits
        else:
            blocks.append([column])
            room = bits
    return np.stack([rows[:, block] @ np.append(np.cumprod(radix[block][:0:-1])[::-1], 1) for block in blocks])


def denominator_of(scores: FloatArray) -> int:
    """Find the smallest whole number that makes every score whole, at most `FINEST`.

    Examples
    --------
    >>> denominator_of(np.array([0.5, 0.75, 1.0]))
    4
    """
    if np.all((scores == 0.0) | (scores == 1.0)):
        return 1
    values = np.unique(scores)
    if values.size <= _MANY_VALUES:
        multiples = values[:, None] * np.arange(1, _SIMPLE + 1)
        whole = np.flatnonzero(np.all(np.abs(multiples - np.rint(multiples)) < 1e-9, axis=0))
        if whole.size:
            return int(whole[0]) + 1
    return FINEST


def _shares(places: IntArray, weights: ArrayLike | None) -> FloatArray:
    each = np.ones(places.size) if weights is None else as_floats("weights", weights)
    if each.shape != places.shape or each.min() <= 0.0:
        raise ValueError(f"weights must be {places.size} positive numbers")
    sums, sizes = np.bincount(places, weights=each), np.bincount(places)
    if np.any(np.abs(each - (sums / sizes)[places]) > 1e-9 * each):
        raise ValueError("questions of one stratum must have one weight")
    return np.asarray(sums / sums.sum())
