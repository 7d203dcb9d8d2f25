"""Which of many models differ?  Every pair at once, with the same numbers that the functions for one pair give.

Assumption and null hypotheses are those of `evalspec.statistics.mcnemar` and `evalspec.statistics.differences`: questions are
independent, and under the null hypothesis either model is as likely to be the only one that is right. Statistics are worked out for
blocks of different tables, so that memory does not grow with the number of pairs beyond the results themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalspec.statistics.arguments import FloatArray, IntArray, require_binary, require_counts, two_sided_z
from evalspec.statistics.binomials import cumulative
from evalspec.statistics.differences import EDGE, PairedCounts
from evalspec.statistics.exact_differences import fay_lumbard
from evalspec.statistics.mcnemar import log10_of_p
from evalspec.statistics.multiplicity import holm
from evalspec.statistics.p_values import SMALLEST_P
from evalspec.statistics.paired_tables import DistinctTables, PairedTables, distinct_combinations, paired_tables
from evalspec.statistics.restricted_shares import restricted_shares

_TABLES_AT_ONCE = 1 << 12
"""Distinct tables that are worked on together: their arrays fit a processor's cache."""

_STEPS = 100


@dataclass(frozen=True, slots=True)
class PairedComparisons:
    """What each of many comparisons shows: arrays of shape (K,); ``low`` and ``high`` are Tango's limits."""

    difference: FloatArray
    low: FloatArray
    high: FloatArray
    p_value: FloatArray
    p_mid: FloatArray
    log10_p: FloatArray


@dataclass(frozen=True, slots=True)
class AllPairs:
    """All M (M - 1) / 2 pairs, in the order of ``itertools.combinations``, by positions of the models.

    ``p_adjusted`` is Holm's adjustment of the exact p-values over all of them.
    """

    first: IntArray
    second: IntArray
    tables: PairedTables
    comparisons: PairedComparisons
    p_adjusted: FloatArray


def all_pairs(scores: ArrayLike, *, level: float = 0.95) -> AllPairs:
    """Compare every two of M models: paired counts, exact and mid-p McNemar tests, Tango's intervals, Holm over all pairs.

    Parameters
    ----------
    scores
        0/1 scores of shape (M, Q), M at least 2.
    level
        Confidence level of each interval, for its own comparison alone.

    Raises
    ------
    ValueError
        When a score is missing or fractional, or there are fewer than two models or no questions.

    References
    ----------
    As `mcnemar_exact`, `mcnemar_mid_p`, `tango` and `holm`.

    Examples
    --------
    >>> pairs = all_pairs([[1, 1, 1, 0, 1, 1], [0, 0, 0, 0, 0, 0], [1, 1, 1, 0, 1, 1]])
    >>> pairs.tables.only_first, pairs.comparisons.p_value
    (array([5, 0, 0]), array([0.0625, 1.    , 0.0625]))
    """
    correct = require_binary("scores", scores)
    if correct.ndim != 2 or correct.shape[0] < 2 or correct.shape[1] < 1:
        raise ValueError(f"scores must be (models, questions), at least 2 by 1; got shape {correct.shape}")
    first, second = (index.astype(np.int64, copy=False) for index in np.triu_indices(correct.shape[0], 1))
    tables = paired_tables(correct, np.ones(correct.shape, dtype=np.bool_), first, second)
    distinct = DistinctTables.of(tables)
    numbers = _compared(distinct, level)
    times = np.bincount(distinct.place, minlength=2 * distinct.more.size).reshape(2, -1).sum(axis=0)
    *compared, adjusted = _spread(distinct, np.vstack([numbers, holm(numbers[3], times=times)]))
    return AllPairs(first, second, tables, PairedComparisons(*compared), adjusted)


def compare_tables(tables: PairedTables, *, level: float = 0.95) -> PairedComparisons:
    """Test and measure many comparisons; equal tables are worked on once.

    Raises
    ------
    ValueError
        When a comparison has no question, or for an impossible level.

    References
    ----------
    As `all_pairs`.

    Examples
    --------
    >>> article = PairedTables(np.array([1217]), np.array([219]), np.array([182]), np.array([382]))
    >>> pair = compare_tables(article)
    >>> pair.p_value.round(4), pair.low.round(6), pair.high.round(6)
    (array([0.0721]), array([-0.001128]), array([0.038198]))
    """
    distinct = DistinctTables.of(tables)
    return PairedComparisons(*_spread(distinct, _compared(distinct, level)))


def tango_limits(only_first: ArrayLike, only_second: ArrayLike, questions: ArrayLike, *, level: float = 0.95) -> FloatArray:
    """Tango's limits of many paired differences, of shape (2, K): the lower ones, then the upper ones.

    Parameters
    ----------
    only_first, only_second, questions
        Discordant counts and sizes of the comparisons, of shape (K,).
    level
        Two-sided confidence level, in (0, 1).

    Raises
    ------
    ValueError
        When counts are negative, fractional or exceed the questions, or for an impossible level.

    References
    ----------
    Tango (1998), Stat. Med. 17, 891-908. The derivative of the restricted share follows from his quadratic.

    Examples
    --------
    >>> tango_limits([219, 0], [182, 0], [2000, 40]).round(4)
    array([[-0.0011, -0.0876],
           [ 0.0382,  0.0876]])
    """
    b, c, n = (require_counts(name, values) for name, values in (("only_first", only_first), ("only_second", only_second), ("questions", questions)))
    if b.size and (n.min() < 1 or (b + c - n).max() > 0):
        raise ValueError("each comparison needs at least 1 question, and no more discordant ones than it has")
    z, size = two_sided_z(level), b.size
    # The upper limit is the lower limit of the comparison turned round.
    lower = _lower_limits(np.concatenate([b, c]) / np.tile(n, 2), np.concatenate([c, b]) / np.tile(n, 2), z / np.sqrt(np.tile(n, 2)))
    return np.stack([lower[:size], -lower[size:]])


def exact_limits(tables: PairedTables, *, level: float = 0.95) -> FloatArray:
    """Fay and Lumbard's limits of many comparisons, of shape (2, K): the lower ones, then the upper ones; some milliseconds for each table.

    Raises
    ------
    ValueError
        For an impossible level.

    References
    ----------
    As `evalspec.statistics.exact_differences.fay_lumbard`.

    Examples
    --------
    >>> article = PairedTables(np.array([1217]), np.array([219]), np.array([182]), np.array([382]))
    >>> exact_limits(article).round(6)
    array([[-0.001616],
           [ 0.038631]])
    """
    agreeing = tables.both + tables.neither
    distinct, place = np.unique(np.stack([tables.only_first, tables.only_second, agreeing]), axis=1, return_inverse=True)
    intervals = [fay_lumbard(PairedCounts(agreed, first, second, 0), level=level) for first, second, agreed in distinct.T.tolist()]
    return np.array([(interval.low, interval.high) for interval in intervals]).reshape(-1, 2)[place.ravel()].T


def _lower_limits(first: FloatArray, second: FloatArray, reach: FloatArray) -> FloatArray:
    """Solve estimate - delta = reach * deviation(delta) for delta by Newton's method, halving its bracket where that leaves it."""
    estimate = first - second
    low, high = np.full(estimate.shape, -EDGE), np.maximum(np.minimum(estimate, EDGE), -EDGE)
    guess = np.clip(estimate - reach * np.sqrt(first + second - estimate**2 + reach**2), low, high)
    for _ in range(_STEPS):
        value, slope = _excess(first, second, reach, guess)
        low, high = np.where(value > 0.0, guess, low), np.where(value > 0.0, high, guess)
        step = guess - value / slope
        inside = (step >= low) & (step <= high)
        refined = np.where(inside, step, 0.5 * (low + high))
        done = bool(np.max(np.abs(refined - guess), initial=0.0) <= 1e-12)
        guess = refined
        if done:
            break
    return np.where(estimate <= -EDGE, -1.0, guess)


def _excess(first: FloatArray, second: FloatArray, reach: FloatArray, delta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return how far the estimate exceeds what delta allows, and the slope of that in delta."""
    restricted = restricted_shares(first, second, delta)
    variance = np.maximum(2.0 * restricted.share + delta * (1.0 - delta), 0.0)
    slope_linear, root = 2.0 - first + second, np.maximum(restricted.root, 1e-300)
    slope_share = ((restricted.linear * slope_linear + 4.0 * second * (1.0 - 2.0 * delta)) / root - slope_linear) / 4.0
    deviation = np.sqrt(variance)
    slope = -1.0 - reach * (2.0 * slope_share + 1.0 - 2.0 * delta) / (2.0 * np.maximum(deviation, 1e-150))
    return first - second - delta - reach * deviation, slope


def _p_values(more: IntArray, fewer: IntArray) -> FloatArray:
    """Exact p, mid-p and log10 of the exact p, of shape (3, K)."""
    trials = more + fewer
    # One less of one comparison is often the count of another with as many trials.
    (count, among), place = distinct_combinations(np.concatenate([fewer, fewer - 1]), np.tile(trials, 2))
    tail, below = cumulative(count, among, 0.5).take(place.reshape(2, -1))
    p_value = np.clip(2.0 * tail, SMALLEST_P, 1.0)
    p_mid = np.clip(tail + below, SMALLEST_P, 1.0)
    return np.stack([p_value, p_mid, log10_of_p(p_value, fewer, trials)])


def _compared(distinct: DistinctTables, level: float) -> FloatArray:
    """Difference, lower and upper limit, exact p, mid-p and log10 p of each different comparison, of shape (6, D)."""
    numbers = np.empty((6, distinct.more.size))
    numbers[0] = (distinct.more - distinct.fewer) / distinct.questions
    for start in range(0, distinct.more.size, _TABLES_AT_ONCE):
        block = slice(start, start + _TABLES_AT_ONCE)
        more, fewer = distinct.more[block], distinct.fewer[block]
        numbers[1:3, block] = tango_limits(more, fewer, distinct.questions[block], level=level)
        numbers[3:, block] = _p_values(more, fewer)
    return numbers


def _spread(distinct: DistinctTables, numbers: FloatArray) -> FloatArray:
    """Give every comparison the numbers, (7, D) or fewer, of the different one that it is; turned round, it has the opposite interval."""
    turned = np.concatenate([-numbers[[0, 2, 1]], numbers[3:]])
    return np.take(np.concatenate([numbers, turned], axis=1), distinct.place, axis=1)
