"""How often is each of two models the only one that is right, for many pairs at once?

Counts come from matrix products over blocks of questions, so that memory does not grow with the number of questions. Every statistic of
a pair depends on its counts alone, and many pairs share them: equal tables are found once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalspec.statistics.arguments import FloatArray, IntArray

_QUESTIONS_AT_ONCE = 1 << 12
"""Questions in one matrix product: counts stay far below 2**24, where single precision stops being exact."""

_LARGEST_MAP = 1 << 22
"""Different tables are found by marking every possible one where there are no more than this many, otherwise by sorting."""


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
    """Different comparisons, each turned so that the first model is not behind, of shape (D,), and which of them each one is, (K,).

    Turning a comparison round turns its interval round and leaves its p-values.
    """

    more: IntArray
    fewer: IntArray
    questions: IntArray
    place: NDArray[np.intp]

    @classmethod
    def of(cls, tables: PairedTables) -> DistinctTables:
        """Collect the different ones among the comparisons; raises ValueError when a comparison has no question."""
        more, fewer = np.maximum(tables.only_first, tables.only_second), np.minimum(tables.only_first, tables.only_second)
        questions = tables.questions
        if not more.size:
            return cls(more, fewer, questions, np.arange(0))
        if questions.min() < 1:
            raise ValueError("each comparison needs at least 1 question")
        least = int(questions.min())
        sizes = int(more.max()) + 1, int(fewer.max()) + 1, int(questions.max()) - least + 1
        most = sizes[0] * sizes[1] * sizes[2]
        if most >= 1 << 62:
            # The three numbers do not fit one 64-bit key.
            return cls(more, fewer, questions, np.arange(more.size))
        key = (more * sizes[1] + fewer) * sizes[2]
        key += questions - least
        chosen, place = _firsts(key, most)
        return cls(more[chosen], fewer[chosen], questions[chosen], place)


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
    models = correct.shape[0]
    both, right, shared = (np.zeros((models, models)) for _ in range(3))
    complete = bool(present.all())
    for start in range(0, correct.shape[1], _QUESTIONS_AT_ONCE):
        block = slice(start, start + _QUESTIONS_AT_ONCE)
        good = (correct[:, block] & present[:, block]).astype(np.float32)
        both += good @ good.T
        if not complete:
            there = present[:, block].astype(np.float32)
            right += good @ there.T
            shared += there @ there.T
    together = first * models + second
    a = _cells(both, together)
    if complete:
        # Every question counts for every pair: the margins are the models' own totals.
        totals = _cells(both, np.arange(models) * (models + 1))
        only_first, only_second = totals[first], totals[second]
        neither = np.full(a.shape, correct.shape[1])
    else:
        only_first, only_second = _cells(right, together), _cells(right, second * models + first)
        neither = _cells(shared, together)
    # In place: fresh memory for every difference would cost more than the differences.
    only_first -= a
    only_second -= a
    for cell in (a, only_first, only_second):
        neither -= cell
    return PairedTables(a, only_first, only_second, neither)


def _cells(counts: FloatArray, places: IntArray) -> IntArray:
    """Return whole numbers from a matrix of them by their flat places."""
    return counts.ravel()[places].astype(np.int64)


def _firsts(key: IntArray, most: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return where one of each different key stands, and which of these each key equals; keys are below ``most``."""
    if most > _LARGEST_MAP:
        _, chosen, place = np.unique(key, return_index=True, return_inverse=True)
        return chosen, place
    members = np.full(most, -1)
    members[key] = np.arange(key.size)
    chosen = members[members >= 0]
    members[key[chosen]] = np.arange(chosen.size)
    return chosen, members[key]
