"""How are many samples with replacement drawn from few response patterns, in time that does not depend on their size?

Each sample of n questions from N is exactly multinomial. Small samples add up one question after the other, for all samples at once,
with the scores of several models side by side in one machine word. Large ones begin with Poisson counts of every pattern, which are
independent of each other and so come from small tables: given their total they are multinomial, and keeping each sample with the
probability that turns its Poisson total into the binomial one leaves samples of exactly n questions. Where too few would be kept,
multinomial counts are drawn one by one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlog1py, xlogy

from evalspec.statistics.arguments import FloatArray
from evalspec.statistics.packed_scores import PackedScores, Totals, UniformNumbers, Urn

_CELLS = 1 << 12
"""Cells of a table of Poisson counts; the probability that is left over beside whole cells is drawn exactly, in a second step."""

_LARGEST_MEAN = 2000.0
"""Poisson counts of larger means are drawn one by one."""

_ROWS = 1 << 15
"""Samples that are worked on together: enough that calls cost little, few enough for a processor's cache."""

_NUMBERS_AT_ONCE = 1 << 20
_FEWEST_KEPT = 0.2


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
    totals: Totals = np.zeros((urn.patterns.shape[1], rows), dtype=urn.total_type(size))
    kept = (int(urn.counts.max()) / urn.questions) ** 0.5
    if urn.counts.size == 1:
        totals += size * urn.patterns.T.astype(totals.dtype)
    elif size * kept <= urn.counts.size:
        packed = PackedScores.of(urn)
        for start in range(0, rows, _ROWS):
            _add_singles(packed, size, totals[:, start : start + _ROWS], rng)
    elif kept >= _FEWEST_KEPT:
        _fill_by_rejection(urn, size, totals, rng)
    else:
        _fill_one_by_one(urn, size, totals, rng)
    return totals


def _add_singles(packed: PackedScores, size: int, totals: Totals, rng: np.random.Generator) -> None:
    """Add single questions to all samples until each has ``size`` of them."""
    rows = totals.shape[1]
    taken = np.empty(rows, dtype=np.uint64)
    places = UniformNumbers(packed.words.shape[1], rows, rng)
    for start in range(0, size, packed.most):
        sums = np.zeros((packed.words.shape[0], rows), dtype=np.uint64)
        for _ in range(min(packed.most, size - start)):
            index = places.next(rows)
            for word, total in zip(packed.words, sums, strict=True):
                word.take(index, out=taken, mode="clip")  # never out of range; "clip" is the fast mode
                np.add(total, taken, out=total)
        packed.add_unpacked(sums, totals)


def _fill_by_rejection(urn: Urn, size: int, totals: Totals, rng: np.random.Generator) -> None:
    """Draw Poisson counts of all patterns but the heaviest, which takes what they leave, and keep each sample with its probability."""
    heaviest = int(np.argmax(urn.counts))
    patterns, counts = np.delete(urn.patterns - urn.patterns[heaviest], heaviest, axis=0), np.delete(urn.counts, heaviest)
    kind = np.float32 if size * max(1, int(urn.patterns.max())) < 1 << 24 else np.float64  # whole numbers that add up exactly
    weights = np.vstack([patterns.T, np.ones(counts.size)]).astype(kind)
    accept = _Acceptance(size, int(counts.sum()) / urn.questions)
    supply = _PoissonCounts(counts.astype(np.float64) * (size / urn.questions), rng)
    done = 0
    while done < totals.shape[1]:
        missing = totals.shape[1] - done
        sums = weights @ supply.next(int(1.05 * missing / accept.rate) + 64).astype(kind, copy=False)
        fitting = sums[:-1, accept(sums[-1], rng)][:, :missing]
        totals[:, done : done + fitting.shape[1]] = fitting
        done += fitting.shape[1]
    totals += size * urn.patterns[heaviest][:, None].astype(totals.dtype)


class _Acceptance:
    """With which probability a Poisson total is kept, so that kept totals are binomial of the same mean; ``rate`` is how many are."""

    def __init__(self, size: int, share: float) -> None:
        mean = size * share
        reach = 12.0 * mean**0.5 + 30.0  # beyond it doubles see no probability
        self._first = max(0, int(mean - reach))
        total = np.arange(self._first, min(size, int(mean + reach)) + 1, dtype=np.float64)
        # log of the binomial over the Poisson probability, but for what does not depend on the total
        logs = -gammaln(size - total + 1.0) + xlog1py(size - total, -share) - total * np.log(size)
        self._probability = np.append(np.exp(logs - logs.max()), 0.0)
        poisson = np.exp(xlogy(total, mean) - mean - gammaln(total + 1.0))
        self.rate = float(poisson @ self._probability[:-1])

    def __call__(self, totals: FloatArray | NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.bool_]:
        """Decide on each total, shape (R,)."""
        place = totals.astype(np.intp) - self._first
        outside = (place < 0) | (place >= self._probability.size)
        return np.asarray(rng.random(totals.size) < self._probability[np.where(outside, -1, place)])


class _PoissonCounts:
    """An endless supply of independent Poisson counts of given means, (P, columns) at a time, handed out in one reused buffer.

    Each count is looked up in a table of its distribution by random cell. Cells hold whole parts of ``1 / _CELLS``; what is left of
    each probability makes up the remainder, to whose cells, marked -1, a second draw gives a count.
    """

    def __init__(self, means: FloatArray, rng: np.random.Generator) -> None:
        self._rng = rng
        self._means = means
        self._counts = np.empty((means.size, max(64, _NUMBERS_AT_ONCE // means.size)), dtype=np.float32)
        self._cells = UniformNumbers(_CELLS, self._counts.shape[1], rng)
        tabled = np.flatnonzero(means <= _LARGEST_MEAN)
        distinct, which = np.unique(means[tabled], return_inverse=True)
        self._table_of = np.zeros(means.size, dtype=np.int64)
        self._table_of[tabled] = which
        self._make_tables(distinct)

    def next(self, most: int) -> NDArray[np.float32]:
        """Return the next counts, up to ``most`` columns of them; the next call overwrites them."""
        columns = min(most, self._counts.shape[1])
        counts = self._counts.ravel()[: self._means.size * columns].reshape(self._means.size, columns)
        for row, (mean, table) in enumerate(zip(self._means.tolist(), self._table_of.tolist(), strict=True)):
            if mean <= _LARGEST_MEAN:
                self._tables[table].take(self._cells.next(columns), out=counts[row], mode="clip")
            else:
                counts[row] = self._rng.poisson(mean, columns)
        holes = np.flatnonzero(counts.ravel() < 0)
        # Fractions of 2**32 stay exact beside the number of a table, so one search serves all tables.
        fraction = (self._rng.integers(0, 1 << 32, size=holes.size) + 0.5) / (1 << 32)
        counts.ravel()[holes] = self._values[np.searchsorted(self._remainders, self._table_of[holes // columns] + fraction)]
        return counts

    def _make_tables(self, means: FloatArray) -> None:
        """Tabulate ten standard deviations and more on either side of each mean, outside of which doubles see nothing."""
        reach = 10.0 * np.sqrt(means) + 30.0
        first = np.maximum(0.0, np.floor(means - reach))
        values = first[:, None] + np.arange(int(2.0 * reach.max(initial=0.0)) + 2)
        exact = _CELLS * np.exp(xlogy(values, means[:, None]) - means[:, None] - gammaln(values + 1.0))
        whole = np.floor(exact).astype(np.int64)
        cells = np.column_stack([whole, _CELLS - whole.sum(axis=1)])
        marks = np.column_stack([values, np.full(means.size, -1.0)]).astype(np.float32)
        self._tables = np.repeat(marks.ravel(), cells.ravel()).reshape(means.size, _CELLS)
        left = np.cumsum(exact - whole, axis=1)
        self._remainders = (left / left[:, -1:] + np.arange(means.size)[:, None]).ravel()
        self._values = values.ravel()


def _fill_one_by_one(urn: Urn, size: int, totals: Totals, rng: np.random.Generator) -> None:
    step = max(1, _NUMBERS_AT_ONCE // urn.counts.size)
    for start in range(0, totals.shape[1], step):
        part = totals[:, start : start + step]
        counts = rng.multinomial(size, urn.counts / urn.questions, size=part.shape[1])
        part[:] = np.rint(urn.patterns.T.astype(np.float64) @ counts.T)
