"""How far must intervals reach, and which models differ, when all comparisons are judged together?

Assumption: questions, or clusters of them, are independent draws. For intervals there are enough for mean scores to be jointly normal; tests
flip signs instead, and their null hypothesis is that differences are as likely to have the opposite signs. The maximum of correlated statistics is
smaller than Bonferroni supposes, because comparisons share models and questions.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalspec.statistics.arguments import FloatArray, as_floats, beyond_rounding, require_count, require_fraction
from evalspec.statistics.groups import group

Pair = tuple[int, int]

_CHUNK = 1 << 22
"""Most numbers that one batch of draws may hold at a time."""

_TIE = 1e-9  # statistics that differ by rounding only are ties


@dataclass(frozen=True, slots=True)
class MaxT:
    """Quantile of the largest |statistic| of a family, its Monte Carlo standard error, and the pairs without any spread."""

    critical_value: float
    standard_error: float
    identical: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class PairStatistics:
    """Mean differences of ordered pairs, their standard errors, and the symmetric root of the mean scores' covariance, (M, M).

    ``totals`` are the scores of each independent draw, a question or the sum over a cluster, (M, units), in an order of their own.
    """

    pairs: tuple[Pair, ...]
    differences: FloatArray
    errors: FloatArray
    root: FloatArray
    totals: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class StepDown:
    """Which ordered pairs are rejected, (pairs,), and the critical value of the last step with its Monte Carlo standard error.

    There is no critical value where no pair has any spread, and where the draws are too few for alpha.
    """

    rejected: NDArray[np.bool_]
    critical_value: float | None
    standard_error: float | None


def pair_statistics(scores: ArrayLike, pairs: Sequence[Pair], *, clusters: Iterable[Hashable] | None = None) -> PairStatistics:
    """Mean paired differences and standard errors of the pairs named.

    Parameters
    ----------
    scores
        Shape (M, Q), at least two questions.
    pairs
        Positions (first, second) of different models.
    clusters
        One label per question, where questions come in clusters; standard errors are then CR1.

    Raises
    ------
    ValueError
        When scores are missing, a pair is impossible, or there are fewer than two clusters.

    References
    ----------
    Miller (2024), arXiv:2411.00640, section 4.2.

    Examples
    --------
    >>> pair_statistics([[1, 1, 0, 1], [1, 0, 0, 1]], [(0, 1)]).differences
    array([0.25])
    """
    values = as_floats("scores", scores)
    if values.ndim != 2 or values.shape[1] < 2:
        raise ValueError(f"scores must be (models, questions) with at least 2 questions; got shape {values.shape}")
    models = values.shape[0]
    for first, second in pairs:
        if first == second or not (0 <= first < models and 0 <= second < models):
            raise ValueError(f"a pair must name two different models below {models}; got {(first, second)}")
    i, j = _columns(pairs)
    totals = _totals(values, clusters)
    parts = _parts(values, clusters)
    # Straight from the differences: identical models then have a standard error of exactly 0.
    errors = np.array([beyond_rounding(float(np.sqrt(np.sum((parts[a] - parts[b]) ** 2)))) for a, b in pairs])
    eigenvalues, vectors = np.linalg.eigh(parts @ parts.T)
    # The symmetric root is unique, so that another order of questions or another machine draws the same numbers.
    root = (vectors * np.sqrt(np.clip(eigenvalues, 0.0, None))) @ vectors.T
    means = values.mean(axis=1)
    return PairStatistics(tuple(pairs), means[i] - means[j], errors, root, totals)


def _totals(values: FloatArray, clusters: Iterable[Hashable] | None) -> FloatArray:
    """Return the scores of each question, or their sums over each cluster, (M, units), ordered by value so that none of names moves the draws."""
    if clusters is not None:
        groups = group(clusters, values.shape[1])
        values = np.stack([groups.totals(row) for row in values])
    return values[:, np.lexsort(np.round(values, 9))]


def _parts(values: FloatArray, clusters: Iterable[Hashable] | None) -> FloatArray:
    """Return what each question or cluster adds to each mean, (M, units), scaled so that products sum to the covariance of the means."""
    questions = values.shape[1]
    residuals = values - values.mean(axis=1, keepdims=True)
    if clusters is None:
        return np.asarray(residuals / np.sqrt(questions * (questions - 1.0)))
    groups = group(clusters, questions)
    count = len(groups.names)
    if count < 2:
        raise ValueError(f"needs at least 2 clusters; got {count}")
    sums = np.stack([groups.totals(row) for row in residuals])
    return np.asarray(sums * (np.sqrt(count / (count - 1.0)) / questions))


def max_t_critical_value(statistics: PairStatistics, *, alpha: float = 0.05, draws: int, rng: np.random.Generator) -> MaxT:
    """Critical value of two-sided intervals that hold all together at ``1 - alpha``, by drawing jointly normal differences.

    Pairs of models that never differ have no spread; they are left out and named.

    Parameters
    ----------
    statistics
        The family, from `pair_statistics`; give each pair in one direction.
    alpha
        Level for the whole family.
    draws, rng
        Number of draws, and where they come from.

    Raises
    ------
    ValueError
        When no pair has any spread, or arguments are impossible.

    References
    ----------
    Westfall and Young (1993), Resampling-Based Multiple Testing. Hothorn, Bretz and Westfall (2008), Biom. J. 50, 346-363,
    doi:10.1002/bimj.200810425.

    Examples
    --------
    >>> family = pair_statistics([[1, 1, 0, 1, 0], [1, 0, 0, 1, 1]], [(0, 1)])
    >>> bool(1.9 < max_t_critical_value(family, draws=20000, rng=np.random.default_rng(1)).critical_value < 2.0)
    True
    """
    return family_critical_value([statistics], alpha=alpha, draws=draws, rng=rng)


def family_critical_value(families: Sequence[PairStatistics], *, alpha: float = 0.05, draws: int, rng: np.random.Generator) -> MaxT:
    """Critical value as `max_t_critical_value` for one family over several benchmarks, whose questions are independent of each other.

    Raises
    ------
    ValueError
        When no pair has any spread, or arguments are impossible.

    References
    ----------
    As `max_t_critical_value`.

    Examples
    --------
    >>> family = pair_statistics([[1, 1, 0, 1, 0], [1, 0, 0, 1, 1]], [(0, 1)])
    >>> bool(2.2 < family_critical_value([family, family], draws=20000, rng=np.random.default_rng(1)).critical_value < 2.3)
    True
    """
    level = 1.0 - require_fraction("alpha", alpha)
    moving = [statistics for statistics in families if np.any(statistics.errors > 0.0)]
    if not moving:
        raise ValueError("no pair of models differs on any question: there is nothing to compare")
    largest = np.max([_largest(statistics, draws, rng) for statistics in moving], axis=0)
    found = _quantile(largest, level)
    identical = tuple(
        pair for statistics in families for pair, error in zip(statistics.pairs, statistics.errors.tolist(), strict=True) if error == 0.0
    )
    return MaxT(found.value, found.error, identical)


@dataclass(frozen=True, slots=True)
class _Quantile:
    value: float
    error: float


def _quantile(drawn: FloatArray, level: float) -> _Quantile:
    """Quantile of drawn values, and its standard error: half the way between the quantiles one standard error of the level below and above."""
    slack = math.sqrt((1.0 - level) * level / drawn.size)
    low, middle, high = np.quantile(drawn, [max(0.0, level - slack), level, min(1.0, level + slack)])
    return _Quantile(float(middle), float(high - low) / 2.0)


def _largest(statistics: PairStatistics, draws: int, rng: np.random.Generator) -> FloatArray:
    spread = statistics.errors > 0.0
    return np.concatenate([np.abs(batch[:, spread]).max(axis=1) for batch in _draws(statistics, draws, rng)])


def step_down(statistics: PairStatistics, *, alpha: float = 0.05, draws: int, rng: np.random.Generator) -> StepDown:
    """Test for each ordered pair H0: the first is not better than the second, by step-down max-T over flipped signs.

    The statistic is the sum of differences over the root of the sum of their squares, with a question or a cluster as one difference. Each draw
    flips the signs of all differences of a random half of them, for all pairs at once. Once a pair is rejected, the others need to beat only the
    largest of those left. For two models that answer right or wrong this is McNemar's exact test, up to the Monte Carlo error.

    Parameters
    ----------
    statistics
        The family of ordered pairs, from `pair_statistics`; one-sided, so give both directions to look for both.
    alpha
        Probability of any false rejection in the family, where the differences of equal models are jointly as likely to have the opposite signs.
        The sizes of clusters do not matter.
    draws, rng
        Number of draws, and where they come from.

    Raises
    ------
    ValueError
        For impossible arguments.

    References
    ----------
    Romano and Wolf (2005), Econometrica 73, 1237-1282, doi:10.1111/j.1468-0262.2005.00615.x. Mogstad, Romano, Shaikh and Wilhelm
    (2024), Rev. Econ. Stud. 91, 476-518, doi:10.1093/restud/rdad006. Canay, Romano and Shaikh (2017), Econometrica 85, 1013-1030,
    doi:10.3982/ECTA13081 (signs of clusters).

    Examples
    --------
    >>> scores = np.vstack([np.ones(40), np.arange(40) % 2])
    >>> found = step_down(pair_statistics(scores, [(0, 1), (1, 0)]), draws=1000, rng=np.random.default_rng(1))
    >>> found.rejected.tolist(), bool(1.5 < found.critical_value < 2.0)
    ([True, False], True)
    """
    level = require_fraction("alpha", alpha)
    # The data count as one draw: at most so many draws may be as large (Phipson and Smyth 2010).
    allowed = math.floor(level * (require_count("draws", draws, minimum=100) + 1) + _TIE) - 1
    totals, i, j = statistics.totals, *_columns(statistics.pairs)
    sizes = np.array([beyond_rounding(float(np.sqrt(np.sum((totals[a] - totals[b]) ** 2)))) for a, b in statistics.pairs])
    rejected, spread = np.zeros(i.size, dtype=np.bool_), sizes > 0.0
    if allowed < 0 or not spread.any():
        return StepDown(rejected, None, None)
    summed = totals.sum(axis=1)
    observed = np.where(spread, (summed[i] - summed[j]) / np.where(spread, sizes, 1.0), -np.inf)
    flipped = _flipped(totals, draws, rng)
    while True:
        left = spread & ~rejected
        largest = np.full(draws, -np.inf)
        for first, second, size in zip(i[left], j[left], sizes[left], strict=True):
            np.maximum(largest, (flipped[first] - flipped[second]) / size, out=largest)
        critical = float(np.partition(largest, draws - 1 - allowed)[draws - 1 - allowed])
        fresh = left & (observed > critical + _TIE)
        rejected |= fresh
        if not fresh.any() or not np.any(spread & ~rejected):
            return StepDown(rejected, critical, _quantile(largest, 1.0 - level).error)


def _flipped(totals: FloatArray, draws: int, rng: np.random.Generator) -> FloatArray:
    """Sums of scores with the signs of random questions or clusters flipped, (M, draws)."""
    step = max(1, _CHUNK // totals.shape[1])
    batches = []
    for start in range(0, draws, step):
        signs = rng.integers(0, 2, size=(min(step, draws - start), totals.shape[1]), dtype=np.int8)
        batches.append(totals @ (2.0 * signs - 1.0).T)
    return np.concatenate(batches, axis=1)


def _draws(statistics: PairStatistics, draws: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Standardised differences under H0, in batches of rows, (R, pairs); 0 for pairs without spread."""
    require_count("draws", draws, minimum=100)
    i, j = _columns(statistics.pairs)
    scale = np.where(statistics.errors > 0.0, statistics.errors, np.inf)
    step = max(1, _CHUNK // len(statistics.pairs))
    for start in range(0, draws, step):
        means = rng.standard_normal((min(step, draws - start), statistics.root.shape[0])) @ statistics.root.T
        yield np.asarray((means[:, i] - means[:, j]) / scale)


def _columns(pairs: Sequence[Pair]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    if not pairs:
        raise ValueError("needs at least one pair of models")
    array = np.array(pairs, dtype=np.intp)
    return array[:, 0], array[:, 1]
