"""How often is each of two models the only one that is right, for many pairs at once?

Counts come from matrix products over blocks of questions, so that memory does not grow with the number of questions. Every statistic of
a pair depends on its counts alone, and many pairs share them: equal tables are found once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalspec.statistics.arguments import FloatArray, IntArray

_QUESTIONS_AT_ONCE = 1 << 12
"""Questions in one matrix product: counts stay far below 2**24, where single precision stops being exact."""

_MARKS_PER_TABLE, _LARGEST_MAP = 64, 1 << 22
"""Different tables are found by marking every possible one where these are so few, and few beside the tables at hand; otherwise by sorting."""


@dataclass(frozen=True, slots=True)
class PairedTables:
    """The four paired counts of many comparisons, each of shape (K,)."""

    both: IntArray
    only_first: IntArray
    only_second: IntArray
    neither: IntArray

    @property
    def questions(self) -> IntArray:
        """Questions of each comparison."""
        total = self.both + self.only_first
        total += self.only_second
        total += self.neither
        return total

    def chosen(self, which: NDArray[np.bool_]) -> PairedTables:
        """Return the comparisons that ``which``, of shape (K,), marks."""
        return PairedTables(self.both[which], self.only_first[which], self.only_second[which], self.neither[which])


@dataclass(frozen=True, slots=True)
class DistinctTables:
    """Different comparisons, each turned so that the first model is not behind, of shape (D,), and where each comparison is found.

    ``place``, (K,), counts the D different ones as they are, and then the same D turned round: that turns an interval round and leaves
    p-values as they are.
    """

    more: IntArray
    fewer: IntArray
    questions: IntArray
    place: NDArray[np.int64]

    @classmethod
    def of(cls, tables: PairedTables) -> DistinctTables:
        """Collect the different ones among the comparisons; raises ValueError when a comparison has no question."""
        questions = tables.questions
        if questions.min(initial=1) < 1:
            raise ValueError("each comparison needs at least 1 question")
        # First those that are equal as they stand, so that only the few that are left need be turned.
        (only_first, only_second, questions), as_given = distinct_combinations(tables.only_first, tables.only_second, questions)
        more, fewer = np.maximum(only_first, only_second), np.minimum(only_first, only_second)
        (more, fewer, questions), place = distinct_combinations(more, fewer, questions)
        place += more.size * (only_first < only_second)
        return cls(more, fewer, questions, place.take(as_given))


def paired_tables(correct: NDArray[np.bool_], present: NDArray[np.bool_], first: IntArray, second: IntArray) -> PairedTables:
    """Count the four cells of the named pairs, each on the questions that both of its models answered.

    Parameters
    ----------
    correct, present
        Whether each answer is right, and whether there is one, of shape (M, Q).
    first, second
        Positions of the models of each pair, of shape (K,).

    Raises
    ------
    ValueError
        When the two matrices differ in shape.

    Examples
    --------
    >>> right = np.array([[True, True, False], [False, True, True]])
    >>> paired_tables(right, np.ones_like(right), np.array([0]), np.array([1]))
    PairedTables(both=array([1]), only_first=array([1]), only_second=array([1]), neither=array([0]))
    """
    if correct.ndim != 2 or correct.shape != present.shape:
        raise ValueError(f"correct and present must be of one shape, (models, questions); got {correct.shape} and {present.shape}")
    complete = bool(present.all())
    good = correct if complete else correct & present
    both, together = _shared(good, good), first * len(good) + second
    a = both.take(together).astype(np.int64)
    if complete:
        # Every question counts for every pair: the margins are the models' own totals.
        totals = both.diagonal().astype(np.int64)
        only_first, only_second = totals.take(first), totals.take(second)
        neither = np.full(a.shape, good.shape[1])
    else:
        right = _shared(good, present)
        only_first, only_second = (right.take(places).astype(np.int64) for places in (together, second * len(good) + first))
        neither = _shared(present, present).take(together).astype(np.int64)
    # In place: fresh memory for every difference would cost more than the differences.
    only_first -= a
    only_second -= a
    for cell in (a, only_first, only_second):
        neither -= cell
    return PairedTables(a, only_first, only_second, neither)


def distinct_combinations(*numbers: IntArray) -> tuple[list[IntArray], IntArray]:
    """Return the different combinations among numbers of shape (K,) each, in ascending order, and which of these stands in each place.

    Combinations of too large a range are returned as they are.

    Examples
    --------
    >>> (first, second), place = distinct_combinations(np.array([7, 2, 7]), np.array([1, 1, 1]))
    >>> first, second, place
    (array([2, 7]), array([1, 1]), array([1, 0, 1]))
    """
    if not numbers[0].size:
        return list(numbers), np.arange(0)
    least = [int(entry.min()) for entry in numbers]
    sizes = [int(entry.max()) - low + 1 for entry, low in zip(numbers, least, strict=True)]
    if math.prod(sizes) >= 1 << 62:
        # The combination does not fit one 64-bit key.
        return list(numbers), np.arange(numbers[0].size)
    key = numbers[0] - least[0]
    for entry, low, size in zip(numbers[1:], least[1:], sizes[1:], strict=True):
        key *= size
        key += entry
        key -= low
    keys, place = _distinct(key, math.prod(sizes))
    parts = np.unravel_index(keys, sizes)
    return [part + low for part, low in zip(parts, least, strict=True)], place


def _shared(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> FloatArray | NDArray[np.float32]:
    """Count the questions that both matrices mark, for every two models, (M, M)."""
    kind = np.float32 if one.shape[1] < 1 << 24 else np.float64  # whole numbers that add up exactly
    counts = np.empty((len(one), len(other)), dtype=kind)
    for start in range(0, max(1, one.shape[1]), _QUESTIONS_AT_ONCE):
        block = slice(start, start + _QUESTIONS_AT_ONCE)
        rows = one[:, block].astype(np.float32)
        columns = rows if other is one else other[:, block].astype(np.float32)
        if start:
            counts += rows @ columns.T
        else:
            np.matmul(rows, columns.T, out=counts)
    return counts


def _distinct(key: IntArray, most: int) -> tuple[IntArray, IntArray]:
    """Return the different keys, all below ``most``, and which of these each key is."""
    if most > min(_LARGEST_MAP, _MARKS_PER_TABLE * key.size):
        keys, place = np.unique(key, return_inverse=True)
        return keys, place
    marked = np.zeros(most, dtype=np.bool_)
    marked[key] = True
    return np.flatnonzero(marked), (np.cumsum(marked) - 1).take(key)
