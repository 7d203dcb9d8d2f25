"""How are many samples with replacement drawn from few response patterns, in time that hardly depends on their size?

Each sample of n questions from N is exactly multinomial. Two exact ways lead there. Small samples add up one question after the
other, for all samples at once, with the scores of several models side by side in one machine word. Large ones begin with Poisson
counts of every pattern, which are independent and so come from small tables, and are completed with single questions: given
their total, independent Poisson counts are multinomial, and single questions keep them so, whatever the total was.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from evalspec.statistics.arguments import FloatArray, IntArray
from evalspec.statistics.packed_scores import PackedScores, Totals, UniformNumbers, Urn

_SLACK = 1.0
"""Poisson counts are aimed this many standard deviations below the size; samples that come out too large are drawn again."""

_CELLS = 1 << 12
"""Cells of a table of Poisson counts; the probability that is left over beside whole cells is drawn exactly, in a second step."""

_VALUES = 256
_LARGEST_MEAN = 100.0
_ROWS = 1 << 15
"""Samples that are worked on together: enough that calls cost little, few enough for a processor's cache."""

_FLOATS_AT_ONCE = 1 << 19


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
    lanes = PackedScores.of(urn)
    singly = size <= urn.counts.size + 2 * size**0.5 + 16
    totals = np.zeros((lanes.models, rows), dtype=urn.total_type(size))
    for start in range(0, rows, _ROWS):
        part = totals[:, start : start + _ROWS]
        if singly:
            _add_singles(lanes, np.full(size, part.shape[1]), part, rng)
        else:
            _complete(urn, lanes, size, part, rng)
    return totals


def _add_singles(lanes: PackedScores, reach: IntArray, totals: Totals, rng: np.random.Generator) -> None:
    """Add single questions to samples: the k-th question goes to the first ``reach[k]`` of them, a number that never grows."""
    taken = np.empty(totals.shape[1], dtype=np.uint64)
    places = UniformNumbers(lanes.words.shape[1], totals.shape[1], rng)
    for start in range(0, reach.size, lanes.most):
        lengths = reach[start : start + lanes.most].tolist()
        sums = np.zeros((lanes.words.shape[0], lengths[0]), dtype=np.uint64)
        for length in lengths:
            index, additions = places.next(length), taken[:length]
            for word, total in zip(lanes.words, sums, strict=True):
                word.take(index, out=additions, mode="clip")  # never out of range; "clip" is the fast mode
                total[:length] += additions
        lanes.add_unpacked(sums, totals)


def _complete(urn: Urn, lanes: PackedScores, size: int, totals: Totals, rng: np.random.Generator) -> None:
    """Draw Poisson counts of patterns that stay below ``size`` in total, and complete each sample with single questions."""
    rate = (size - _SLACK * size**0.5) / urn.questions
    kind = np.float32 if size * max(1, int(urn.patterns.max())) < 1 << 24 else np.float64  # whole numbers that add up exactly
    weights = np.vstack([urn.patterns.T, np.ones(urn.counts.size)]).astype(kind)
    parts, missing = [], totals.shape[1]
    while missing > 0:
        columns = min(int(missing * 1.2) + 64, max(1, _FLOATS_AT_ONCE // urn.counts.size))
        sums = weights @ _poisson(urn.counts * rate, columns, rng).astype(kind, copy=False)
        parts.append(sums[:, sums[-1] <= size][:, :missing])
        missing -= parts[-1].shape[1]
    sums = np.concatenate(parts, axis=1)
    lacking = size - sums[-1].astype(np.int64)
    order = np.argsort(lacking.astype(np.min_scalar_type(int(lacking.max()))), kind="stable")[::-1]
    totals[:] = sums[:-1].take(order, axis=1)
    reach = totals.shape[1] - np.cumsum(np.bincount(lacking))[:-1]
    _add_singles(lanes, reach, totals, rng)


def _poisson(means: FloatArray, columns: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Draw Poisson counts, shape (P, columns)."""
    drawn = np.empty((means.size, columns), dtype=np.float32)
    large = means > _LARGEST_MEAN
    for place in np.flatnonzero(large).tolist():
        drawn[place] = rng.poisson(means[place], columns)
    small = np.flatnonzero(~large)
    distinct, which = np.unique(means[small], return_inverse=True)
    tables = _poisson_tables(distinct)
    cells = UniformNumbers(_CELLS, columns, rng)
    for row, table in zip(small.tolist(), which.tolist(), strict=True):
        tables.cells[table].take(cells.next(columns), out=drawn[row], mode="clip")
    _fill_remainders(drawn, (small, which), tables, rng)
    return drawn


@dataclass(frozen=True, slots=True)
class _Tables:
    """Counts by cell, (T, cells), -1 in the cells of the remainder; and the remainder's cumulative probabilities, (T, values)."""

    cells: NDArray[np.float32]
    remainders: FloatArray


def _poisson_tables(means: FloatArray) -> _Tables:
    values = np.arange(_VALUES)
    exact = _CELLS * np.exp(values * np.log(means[:, None]) - means[:, None] - gammaln(values + 1.0))
    whole = np.floor(exact).astype(np.int64)
    cells = np.column_stack([whole, _CELLS - whole.sum(axis=1)])
    counts = np.tile(np.append(values, -1), means.size).astype(np.float32)
    remainders = np.cumsum(exact - whole, axis=1)
    return _Tables(np.repeat(counts, cells.ravel()).reshape(means.size, _CELLS), remainders / remainders[:, -1:])


def _fill_remainders(drawn: NDArray[np.float32], rows: tuple[NDArray[np.intp], NDArray[np.intp]], tables: _Tables, rng: np.random.Generator) -> None:
    """Replace every -1 by a count drawn from its table's remainder."""
    places, which = rows
    table_of = np.zeros(len(drawn), dtype=np.int64)
    table_of[places] = which
    holes = np.flatnonzero(drawn.ravel() < 0)
    table = table_of[holes // drawn.shape[1]]
    # Fractions of 2**32 stay exact beside the number of a table, so one search serves all tables.
    fraction = (rng.integers(0, 1 << 32, size=holes.size) + 0.5) / (1 << 32)
    stacked = (tables.remainders + np.arange(len(tables.remainders))[:, None]).ravel()
    drawn.ravel()[holes] = np.searchsorted(stacked, table + fraction) - table * _VALUES
