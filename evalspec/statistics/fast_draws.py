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

_SLACK = 1.0
"""Poisson counts are aimed this many standard deviations below the size; samples that come out too large are drawn again."""

_CELLS = 1 << 12
"""Cells of a table of Poisson counts; the probability that is left over beside whole cells is drawn exactly, in a second step."""

_VALUES = 256
_LARGEST_MEAN = 100.0
_ROWS = 1 << 15
"""Samples that are worked on together: enough that calls cost little, few enough for a processor's cache."""

_FLOATS_AT_ONCE = 1 << 22
_BITS_AT_ONCE = 1 << 17
_STEPS_AT_ONCE = 255


@dataclass(frozen=True, slots=True)
class Urn:
    """Questions to draw from: patterns (P, M) of whole, non-negative scores, and how many questions show each (P,)."""

    patterns: IntArray
    counts: IntArray

    @property
    def questions(self) -> int:
        """Number of questions."""
        return int(self.counts.sum())


def draw_with_replacement(urn: Urn, size: int, rows: int, rng: np.random.Generator) -> IntArray:
    """Sum the scores of ``size`` questions drawn with replacement, for ``rows`` samples: shape (M, rows).

    References
    ----------
    Steel (1953), Biometrika 40, 246-251, doi:10.1093/biomet/40.1-2.246 (multinomial counts as conditional Poisson counts).
    Marsaglia (1963), Commun. ACM 6, 37-38, doi:10.1145/366193.366228 (tables with a remainder).

    Examples
    --------
    >>> urn = Urn(np.array([[1, 0], [1, 1]]), np.array([3, 2]))
    >>> draw_with_replacement(urn, 7, 3, np.random.default_rng(1))[0]
    array([7, 7, 7])
    """
    lanes = _Lanes.of(urn)
    singly = size <= urn.counts.size + 2 * size**0.5 + 16
    parts = [
        _singles(lanes, np.full(size, count), rng) if singly else _completed(urn, lanes, size, count, rng)
        for count in (min(_ROWS, rows - start) for start in range(0, rows, _ROWS))
    ]
    return np.concatenate(parts, axis=1)


@dataclass(frozen=True, slots=True)
class _Lanes:
    """Scores of every question, several models of ``lane`` bits each in a machine word: ``words`` (W, N); ``most`` sums cannot overflow."""

    words: NDArray[np.uint64]
    lane: int
    models: int
    most: int

    @classmethod
    def of(cls, urn: Urn) -> _Lanes:
        largest = max(1, int(urn.patterns.max()))
        lane = next(bits for bits in (8, 16, 64) if (1 << bits) // largest > 10)
        questions, models = np.repeat(urn.patterns, urn.counts, axis=0), urn.patterns.shape[1]
        in_word = 64 // lane
        padded = np.zeros((len(questions), -(-models // in_word) * in_word), dtype=f"u{lane // 8}")
        padded[:, :models] = questions
        return cls(np.ascontiguousarray(padded.view(np.uint64).T), lane, models, min(_STEPS_AT_ONCE, ((1 << lane) - 1) // largest))

    def unpacked(self, sums: NDArray[np.uint64]) -> IntArray:
        """Return sums (W, R) as one number per model, (M, R)."""
        apart = np.ascontiguousarray(sums.T).view(f"u{self.lane // 8}")
        return np.asarray(apart.T[: self.models].astype(np.int64))


def _singles(lanes: _Lanes, reach: IntArray, rng: np.random.Generator) -> IntArray:
    """Add single questions to samples: the k-th question goes to the first ``reach[k]`` of them, a number that never grows."""
    rows = int(reach[0]) if reach.size else 0
    totals = np.zeros((lanes.models, rows), dtype=np.int64)
    taken = np.empty(rows, dtype=np.uint64)
    places = _Uniform(lanes.words.shape[1], rows, rng)
    for start in range(0, reach.size, lanes.most):
        lengths = reach[start : start + lanes.most].tolist()
        sums = np.zeros((lanes.words.shape[0], lengths[0]), dtype=np.uint64)
        for length in lengths:
            index, additions = places.next(length), taken[:length]
            for word, total in zip(lanes.words, sums, strict=True):
                word.take(index, out=additions, mode="clip")  # never out of range; "clip" is the fast mode
                total[:length] += additions
        totals[:, : lengths[0]] += lanes.unpacked(sums)
    return totals


class _Uniform:
    """An endless supply of whole numbers below a limit, each equally likely; made in large batches, handed out in one reused buffer."""

    def __init__(self, below: int, most: int, rng: np.random.Generator) -> None:
        self._kind = np.uint16 if below <= 1 << 16 else np.uint32
        width = np.iinfo(self._kind).bits
        self._shift = width - max(1, (below - 1).bit_length())
        self._limit = below << self._shift
        self._even = self._limit == 1 << width
        self._rng = rng
        self._bits = np.empty(0, dtype=self._kind)
        self._used = 0
        self._handed = np.empty(most, dtype=np.intp)

    def next(self, count: int) -> NDArray[np.intp]:
        """Return ``count`` numbers, at most as many as agreed; the next call overwrites them."""
        if self._used + count > self._bits.size:
            self._bits = self._drawn(max(count, _BITS_AT_ONCE))
            self._used = 0
        bits = self._bits[self._used : self._used + count]
        self._used += count
        handed = self._handed[:count]
        np.right_shift(bits, self._shift, out=handed, dtype=np.intp, casting="unsafe")
        return handed

    def _drawn(self, count: int) -> NDArray[np.unsignedinteger]:
        """Draw bits that lie where the limit fits evenly when they are shifted down."""
        bits = _random_bits(self._rng, self._kind, count)
        above = np.empty(0, dtype=np.intp) if self._even else np.flatnonzero(bits >= self._limit)
        while above.size:
            bits[above] = _random_bits(self._rng, self._kind, above.size)
            above = above[bits[above] >= self._limit]
        return bits


def _random_bits(rng: np.random.Generator, kind: type[np.unsignedinteger], size: int) -> NDArray[np.unsignedinteger]:
    words = rng.integers(0, 1 << 64, size=-(-size * np.iinfo(kind).bits // 64), dtype=np.uint64)
    return words.view(kind)[:size]


def _completed(urn: Urn, lanes: _Lanes, size: int, rows: int, rng: np.random.Generator) -> IntArray:
    """Draw Poisson counts of patterns that stay below ``size`` in total, and complete each sample with single questions."""
    rate = (size - _SLACK * size**0.5) / urn.questions
    kind = np.float32 if size * max(1, int(urn.patterns.max())) < 1 << 24 else np.float64  # whole numbers that add up exactly
    weights = np.vstack([urn.patterns.T, np.ones(urn.counts.size)]).astype(kind)
    parts, missing = [], rows
    while missing > 0:
        columns = min(int(missing * 1.15) + 64, max(1, _FLOATS_AT_ONCE // urn.counts.size))
        sums = weights @ _poisson(urn.counts * rate, columns, rng).astype(kind, copy=False)
        parts.append(sums[:, sums[-1] <= size][:, :missing])
        missing -= parts[-1].shape[1]
    sums = np.concatenate(parts, axis=1).astype(np.int64)
    lacking = size - sums[-1]
    order = np.argsort(lacking.astype(np.min_scalar_type(int(lacking.max()))), kind="stable")[::-1]
    totals = sums[:-1, order]
    reach = rows - np.cumsum(np.bincount(lacking))[:-1]
    singles = _singles(lanes, reach, rng)
    totals[:, : singles.shape[1]] += singles
    return np.asarray(totals)


def _poisson(means: FloatArray, columns: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Draw Poisson counts, shape (P, columns)."""
    drawn = np.empty((means.size, columns), dtype=np.float32)
    large = means > _LARGEST_MEAN
    for place in np.flatnonzero(large).tolist():
        drawn[place] = rng.poisson(means[place], columns)
    small = np.flatnonzero(~large)
    distinct, which = np.unique(means[small], return_inverse=True)
    tables = _poisson_tables(distinct)
    cells = _Uniform(_CELLS, columns, rng)
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
