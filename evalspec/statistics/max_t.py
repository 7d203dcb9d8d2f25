"""How far must intervals reach, and which models differ, when all comparisons are judged together?

Assumption: questions are independent draws, and there are enough for mean scores to be jointly normal. The maximum of correlated
statistics is smaller than Bonferroni supposes, because comparisons share models and questions.
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


@dataclass(frozen=True, slots=True)
class MaxT:
    """Quantile of the largest |statistic| of a family, its Monte Carlo standard error, and the pairs without any spread."""

    critical_value: float
    standard_error: float
    identical: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class PairStatistics:
    """Mean differences of ordered pairs, their standard errors, and the symmetric root of the mean scores' covariance, (M, M).

    ``units`` is the number of independent draws, questions or clusters, from which the standard errors are measured.
    """

    pairs: tuple[Pair, ...]
    differences: FloatArray
    errors: FloatArray
    root: FloatArray
    units: int


@dataclass(frozen=True, slots=True, eq=False)
class StepDown:
    """Which ordered pairs are rejected, (pairs,), and the critical value of the last step with its Monte Carlo standard error.

    There is no critical value where no pair has any spread.
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
    parts = _parts(values, clusters)
    # Straight from the differences: identical models then have a standard error of exactly 0.
    errors = np.array([beyond_rounding(float(np.sqrt(np.sum((parts[a] - parts[b]) ** 2)))) for a, b in pairs])
    eigenvalues, vectors = np.linalg.eigh(parts @ parts.T)
    # The symmetric root is unique, so that another order of questions or another machine draws the same numbers.
    root = (vectors * np.sqrt(np.clip(eigenvalues, 0.0, None))) @ vectors.T
    means = values.mean(axis=1)
    return PairStatistics(tuple(pairs), means[i] - means[j], errors, root, parts.shape[1])


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


def step_down(statistics: PairStatistics, *, alpha: float = 0.05, draws: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Test for each ordered pair H0: the first is not better than the second, by step-down max-T; shape (pairs,).

    Once a pair is rejected, the others need to beat only the largest of those left. The largest is that of Student's t statistics with as many
    degrees of freedom as there are questions, or clusters, less one: few of them do not measure their own spread well.

    Parameters
    ----------
    statistics
        The family of ordered pairs, from `pair_statistics`; one-sided, so give both directions to look for both.
    alpha
        Probability of any false rejection in the family.
    draws, rng
        Number of draws, and where they come from.

    Raises
    ------
    ValueError
        For impossible arguments.

    References
    ----------
    Romano and Wolf (2005), Econometrica 73, 1237-1282, doi:10.1111/j.1468-0262.2005.00615.x. Mogstad, Romano, Shaikh and Wilhelm
    (2024), Rev. Econ. Stud. 91, 476-518, doi:10.1093/restud/rdad006. Dunnett and Sobel (1954), Biometrika 41, 153-169,
    doi:10.1093/biomet/41.1-2.153 (multivariate t).

    Examples
    --------
    >>> scores = np.vstack([np.ones(40), np.arange(40) % 2])
    >>> step_down(pair_statistics(scores, [(0, 1), (1, 0)]), draws=1000, rng=np.random.default_rng(1))
    array([ True, False])
    """
    return stepped_down(statistics, alpha=alpha, draws=draws, rng=rng).rejected


def stepped_down(statistics: PairStatistics, *, alpha: float = 0.05, draws: int, rng: np.random.Generator) -> StepDown:
    """As `step_down`, with the critical value of the last step and its Monte Carlo standard error.

    Raises
    ------
    ValueError
        For impossible arguments.

    References
    ----------
    As `step_down`.

    Examples
    --------
    >>> scores = np.vstack([np.ones(40), np.arange(40) % 2])
    >>> found = stepped_down(pair_statistics(scores, [(0, 1), (1, 0)]), draws=1000, rng=np.random.default_rng(1))
    >>> found.rejected.tolist(), bool(1.5 < found.critical_value < 1.8)
    ([True, False], True)
    """
    level = 1.0 - require_fraction("alpha", alpha)
    require_count("draws", draws, minimum=100)
    spread = statistics.errors > 0.0
    observed = np.where(spread, statistics.differences / np.where(spread, statistics.errors, 1.0), -np.inf)
    means = rng.standard_normal((draws, statistics.root.shape[0])) @ statistics.root.T
    freedom = statistics.units - 1
    means /= np.sqrt(rng.chisquare(freedom, draws) / freedom)[:, None]
    rejected = np.zeros(len(statistics.pairs), dtype=np.bool_)
    critical: _Quantile | None = None
    while np.any(left := spread & ~rejected):
        largest = np.concatenate([batch.max(axis=1) for batch in _standardised(statistics, means, left)])
        critical = _quantile(largest, level)
        fresh = left & (observed > critical.value)
        if not fresh.any():
            break
        rejected |= fresh
    return StepDown(rejected, critical.value if critical else None, critical.error if critical else None)


def _draws(statistics: PairStatistics, draws: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Standardised differences under H0, in batches of rows, (R, pairs); 0 for pairs without spread."""
    require_count("draws", draws, minimum=100)
    step = max(1, _CHUNK // len(statistics.pairs))
    for start in range(0, draws, step):
        means = rng.standard_normal((min(step, draws - start), statistics.root.shape[0])) @ statistics.root.T
        yield from _standardised(statistics, means, np.ones(len(statistics.pairs), dtype=np.bool_))


def _standardised(statistics: PairStatistics, means: FloatArray, which: NDArray[np.bool_]) -> Iterator[FloatArray]:
    """Divide the differences of drawn means by their standard errors, for some of the pairs, in batches of rows."""
    i, j = (column[which] for column in _columns(statistics.pairs))
    scale = np.where(statistics.errors > 0.0, statistics.errors, np.inf)[which]
    step = max(1, _CHUNK // i.size)
    for start in range(0, len(means), step):
        batch = means[start : start + step]
        yield np.asarray((batch[:, i] - batch[:, j]) / scale)


def _columns(pairs: Sequence[Pair]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    if not pairs:
        raise ValueError("needs at least one pair of models")
    array = np.array(pairs, dtype=np.intp)
    return array[:, 0], array[:, 1]
