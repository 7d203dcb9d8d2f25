"""How are many samples with replacement drawn from few response patterns, in time that hardly depends on their size?

Each sample of n questions from N is exactly multinomial. Two exact ways lead there. Small samples add up one question after the
other, for all samples at once, with the scores of several models side by side in one machine word. Large ones begin with Poisson
counts of every pattern, which are independent and so come from small tables, and are completed with single questions: given
their total, independent Poisson counts are multinomial, and single questions keep them so, whatever the total was.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from evalspec.statistics.arguments import FloatArray, IntArray
from evalspec.statistics.packed_scores import PackedScores, Totals, UniformNumbers, Urn

_SLACK = 1.0
"""Poisson counts are aimed this many standard deviations below the size; samples that come out too large are drawn again."""

_CELLS = 1 << 12
"""Cells of a table of Poisson counts; the probability that is left over beside whole cells is drawn exactly, in a second step."""

_LARGEST_MEAN = 2000.0
"""Poisson counts of larger means are drawn one by one."""

_ROWS = 1 << 15
"""Samples that are worked on together: enough that calls cost little, few enough for a processor's cache."""

_NUMBERS_AT_ONCE = 1 << 20


def draw_with_replacement(urn: Urn, size: int, rows: int, rng: np.random.Generator) -> Totals:
    """Sum the scores of ``size`` questions drawn with replacement, for ``rows`` samples: shape (M, rows).

    References
    ----------
    Johnson, Kotz and Balakrishnan (1997), Discrete Multivariate Distributions, chapter 35 (Poisson counts given their total).
    Marsaglia (1963), Commun. ACM 6, 37-38 (tables of discrete distributions).

    Examples
    --------
    >>> urn = Urn(np.array([[1, 0], [1, 1]]), np.array([3, 2]))
    >>> draw_with_replacement(urn, 7, 3, np.random.default_rng(1))[0].tolist()
    [7, 7, 7]
    """
    packed = PackedScores.of(urn)
    singly = size <= urn.counts.size + 2 * size**0.5 + 16
    totals: Totals = np.zeros((packed.models, rows), dtype=urn.total_type(size))
    for start in range(0, rows, _ROWS):
        part = totals[:, start : start + _ROWS]
        if singly:
            _add_singles(packed, np.full(size, part.shape[1]), part, rng)
        else:
            _complete(urn, packed, size, part, rng)
    return totals


def _add_singles(packed: PackedScores, reach: IntArray, totals: Totals, rng: np.random.Generator) -> None:
    """Add single questions to samples: the k-th question goes to the first ``reach[k]`` of them, a number that never grows."""
    taken = np.empty(totals.shape[1], dtype=np.uint64)
    places = UniformNumbers(packed.words.shape[1], totals.shape[1], rng)
    for start in range(0, reach.size, packed.most):
        lengths = reach[start : start + packed.most].tolist()
        sums = np.zeros((packed.words.shape[0], lengths[0]), dtype=np.uint64)
        for length in lengths:
            index, additions = places.next(length), taken[:length]
            for word, total in zip(packed.words, sums, strict=True):
                word.take(index, out=additions, mode="clip")  # never out of range; "clip" is the fast mode
                total[:length] += additions
        packed.add_unpacked(sums, totals)


def _complete(urn: Urn, packed: PackedScores, size: int, totals: Totals, rng: np.random.Generator) -> None:
    """Draw Poisson counts of patterns that stay below ``size`` in total, and complete each sample with single questions."""
    kind = np.float32 if size * max(1, int(urn.patterns.max())) < 1 << 24 else np.float64  # whole numbers that add up exactly
    weights = np.vstack([urn.patterns.T, np.ones(urn.counts.size)]).astype(kind)
    counts = _PoissonCounts(urn.counts * ((size - _SLACK * size**0.5) / urn.questions), rng)
    lacking, done = np.empty(totals.shape[1], dtype=np.int64), 0
    while done < totals.shape[1]:
        missing = totals.shape[1] - done
        # About a sixth of the samples comes out too large.
        sums = weights @ counts.next(missing + missing // 5 + 64).astype(kind, copy=False)
        fitting = sums[:, sums[-1] <= size][:, :missing]
        totals[:, done : done + fitting.shape[1]] = fitting[:-1]
        lacking[done : done + fitting.shape[1]] = size - fitting[-1]
        done += fitting.shape[1]
    order = np.argsort(lacking.astype(np.min_scalar_type(int(lacking.max()))), kind="stable")[::-1]
    totals[:] = totals.take(order, axis=1)
    _add_singles(packed, totals.shape[1] - np.cumsum(np.bincount(lacking))[:-1], totals, rng)


class _PoissonCounts:
    """An endless supply of independent Poisson counts of given means, (P, columns) at a time, handed out in one reused buffer.

    Each count is looked up in a table of its distribution by random cell. Cells hold whole parts of ``1 / _CELLS``; what is left of
    each probability makes up the remainder, to whose cells, marked -1, a second draw gives a count.
    """

    def __init__(self, means: FloatArray, rng: np.random.Generator) -> None:
        self._rng = rng
        self._means = means
        self._tabled = np.flatnonzero(means <= _LARGEST_MEAN)
        self._counts = np.empty((means.size, max(64, _NUMBERS_AT_ONCE // means.size)), dtype=np.float32)
        self._cells = UniformNumbers(_CELLS, self._counts.shape[1], rng)
        distinct, which = np.unique(means[self._tabled], return_inverse=True)
        self._table_of = np.zeros(means.size, dtype=np.int64)
        self._table_of[self._tabled] = which
        self._make_tables(distinct)

    def next(self, most: int) -> NDArray[np.float32]:
        """Return the next counts, up to ``most`` columns of them; the next call overwrites them."""
        counts = self._counts.ravel()[: self._means.size * min(most, self._counts.shape[1])].reshape(self._means.size, -1)
        for row, mean in enumerate(self._means.tolist()):
            if mean <= _LARGEST_MEAN:
                self._tables[self._table_of[row]].take(self._cells.next(counts.shape[1]), out=counts[row], mode="clip")
            else:
                counts[row] = self._rng.poisson(mean, counts.shape[1])
        holes = np.flatnonzero(counts.ravel() < 0)
        table = self._table_of[holes // counts.shape[1]]
        # Fractions of 2**32 stay exact beside the number of a table, so one search serves all tables.
        fraction = (self._rng.integers(0, 1 << 32, size=holes.size) + 0.5) / (1 << 32)
        place = np.searchsorted(self._remainders, table + fraction)
        counts.ravel()[holes] = self._values[place]
        return counts

    def _make_tables(self, means: FloatArray) -> None:
        """Tabulate ten standard deviations and more on either side of each mean, outside of which doubles see nothing."""
        reach = 10.0 * np.sqrt(means) + 30.0
        first = np.maximum(0.0, np.floor(means - reach))
        values = first[:, None] + np.arange(int(2.0 * reach.max(initial=0.0)) + 2)
        exact = _CELLS * np.exp(values * np.log(means[:, None]) - means[:, None] - gammaln(values + 1.0))
        whole = np.floor(exact).astype(np.int64)
        cells = np.column_stack([whole, _CELLS - whole.sum(axis=1)])
        marks = np.column_stack([values, np.full(means.size, -1.0)]).astype(np.float32)
        self._tables = np.repeat(marks.ravel(), cells.ravel()).reshape(means.size, _CELLS)
        left = np.cumsum(exact - whole, axis=1)
        self._remainders = (left / left[:, -1:] + np.arange(means.size)[:, None]).ravel()
        self._values = values.ravel()
