"""How are many independent counts of known laws drawn at once?  Each is looked up in a table of its law, at a random cell.

Cells hold whole parts of ``1 / _CELLS``; what is left of each probability makes up the remainder, to whose cells, marked -1, a second draw
gives a count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlog1py, xlogy

from evalspec.statistics.arguments import FloatArray, IntArray
from evalspec.statistics.packed_scores import uniform_numbers

_CELLS = 1 << 12

_NUMBERS_AT_ONCE = 1 << 18
"""Counts that are drawn together: enough that calls cost little, few enough for a processor's cache."""


@dataclass(frozen=True, slots=True)
class CountLaws:
    """Laws of D counts: ``values`` (D, V) and the probability of each, (D, V); beside these, doubles see no probability."""

    values: FloatArray
    masses: FloatArray

    @classmethod
    def poisson(cls, means: FloatArray) -> CountLaws:
        """Return the Poisson laws of means, (D,).

        Examples
        --------
        >>> laws = CountLaws.poisson(np.array([0.5]))
        >>> laws.values[0, :2], laws.masses[0, :2].round(4)
        (array([0., 1.]), array([0.6065, 0.3033]))
        """
        values = _around(means, means)
        return cls(values, np.exp(xlogy(values, means[:, None]) - means[:, None] - gammaln(values + 1.0)))

    @classmethod
    def binomial(cls, trials: int, share: float) -> CountLaws:
        """Return one law, that of successes among trials.

        Examples
        --------
        >>> CountLaws.binomial(2, 0.5).masses.round(12)
        array([[0.25, 0.5 , 0.25]])
        """
        mean = np.array([trials * share])
        values = _around(mean, mean * (1.0 - share))
        values = values[:, values[0] <= trials]
        choose = gammaln(trials + 1.0) - gammaln(values + 1.0) - gammaln(trials - values + 1.0)
        return cls(values, np.exp(choose + xlogy(values, share) + xlog1py(trials - values, -share)))


class TabledCounts:
    """An endless supply of independent counts, (P, columns) at a time, handed out in one reused buffer; ``most`` columns at once.

    ``law``, (P,), says which of the laws each row follows.
    """

    def __init__(self, laws: CountLaws, law: IntArray, rng: np.random.Generator) -> None:
        self.most = max(64, _NUMBERS_AT_ONCE // law.size)
        self._law = law
        self._rng = rng
        self._counts = np.empty(law.size * self.most, dtype=np.float32)
        exact = _CELLS * laws.masses
        whole = np.floor(exact)
        times = np.column_stack([whole, _CELLS - whole.sum(axis=1)]).astype(np.int64)
        marks = np.column_stack([laws.values, np.full(len(exact), -1.0)]).astype(np.float32)
        self._tables = np.repeat(marks.ravel(), times.ravel()).reshape(-1, _CELLS)
        left = np.cumsum(exact - whole, axis=1)
        # Fractions of 2**32 stay exact beside the number of a law, so that one search serves all of them.
        self._remainders = (left / np.maximum(left[:, -1:], 1e-300) + np.arange(len(exact))[:, None]).ravel()
        self._values = laws.values.ravel()

    def next(self, columns: int) -> NDArray[np.float32]:
        """Return the next counts, (P, columns), of at most ``most`` columns; the next call overwrites them."""
        size = self._law.size * columns
        cells = uniform_numbers(_CELLS, size, self._rng).reshape(-1, columns)
        counts = self._counts[:size].reshape(-1, columns)
        for law, row, found in zip(self._law.tolist(), cells, counts, strict=True):
            self._tables[law].take(row, out=found, mode="clip")  # never out of range; "clip" is the fast mode
        again = np.flatnonzero(counts.ravel() < 0)
        fraction = (self._rng.integers(0, 1 << 32, size=again.size) + 0.5) / (1 << 32)
        counts.ravel()[again] = self._values[np.searchsorted(self._remainders, self._law[again // columns] + fraction)]
        return counts


def _around(means: FloatArray, variances: FloatArray) -> FloatArray:
    """Return whole numbers from 0 on, ten standard deviations and more on either side of each mean, (D, V)."""
    reach = 10.0 * np.sqrt(variances) + 30.0
    first = np.maximum(0.0, np.floor(means - reach))
    return first[:, None] + np.arange(int(2.0 * reach.max(initial=0.0)) + 2)
