"""How far must intervals reach, and which models differ, when all comparisons are judged together?

Assumption: questions are independent draws, and there are enough for mean scores to be jointly normal. The maximum of correlated
statistics is smaller than Bonferroni supposes, because comparisons share models and questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalspec.statistics.arguments import FloatArray, as_floats, require_count, require_fraction

Pair = tuple[int, int]

_CHUNK = 1 << 22
"""Most numbers that one batch of draws may hold at a time."""


@dataclass(frozen=True, slots=True)
class MaxT:
    """Quantile of the largest |statistic| of a family, its Monte Carlo standard error, and the pairs that never differ."""

    critical_value: float
    standard_error: float
    identical: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class PairStatistics:
    """Mean differences of ordered pairs, their standard errors, and a root of the scores' covariance, (M, M)."""

    pairs: tuple[Pair, ...]
    differences: FloatArray
    errors: FloatArray
    root: FloatArray


def pair_statistics(scores: ArrayLike, pairs: Sequence[Pair]) -> PairStatistics:
    """Mean paired differences and standard errors of the pairs named.

    Parameters
    ----------
    scores
        Shape (M, Q), at least two questions.
    pairs
        Positions (first, second) of different models.

    Raises
    ------
    ValueError
        When scores are missing or a pair is impossible.

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
    models, questions = values.shape
    for first, second in pairs:
        if first == second or not (0 <= first < models and 0 <= second < models):
            raise ValueError(f"a pair must name two different models below {models}; got {(first, second)}")
    covariance = np.atleast_2d(np.cov(values))
    i, j = _columns(pairs)
    # Straight from the differences: identical models then have a standard error of exactly 0.
    errors = np.array([(values[a] - values[b]).std(ddof=1) for a, b in pairs]) / np.sqrt(questions)
    eigenvalues, vectors = np.linalg.eigh(covariance / questions)
    root = vectors * np.sqrt(np.clip(eigenvalues, 0.0, None))
    means = values.mean(axis=1)
    return PairStatistics(tuple(pairs), means[i] - means[j], errors, root)


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
    spread = statistics.errors > 0.0
    if not spread.any():
        raise ValueError("no pair of models differs on any question: there is nothing to compare")
    largest = np.concatenate([np.abs(batch[:, spread]).max(axis=1) for batch in _draws(statistics, draws, rng)])
    level = 1.0 - require_fraction("alpha", alpha)
    slack = np.sqrt(alpha * level / draws)
    low, middle, high = np.quantile(largest, [max(0.0, level - slack), level, min(1.0, level + slack)])
    identical = tuple(pair for pair, apart in zip(statistics.pairs, spread, strict=True) if not apart)
    return MaxT(float(middle), float(high - low) / 2.0, identical)


def step_down(statistics: PairStatistics, *, alpha: float = 0.05, draws: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Test for each ordered pair H0: the first is not better than the second, by step-down max-T; shape (pairs,).

    Once a pair is rejected, the others need to beat only the largest of those left.

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
    (2024), Rev. Econ. Stud. 91, 476-518, doi:10.1093/restud/rdad006.

    Examples
    --------
    >>> scores = np.vstack([np.ones(40), np.arange(40) % 2])
    >>> step_down(pair_statistics(scores, [(0, 1), (1, 0)]), draws=1000, rng=np.random.default_rng(1))
    array([ True, False])
    """
    require_fraction("alpha", alpha)
    spread = statistics.errors > 0.0
    observed = np.where(spread, statistics.differences / np.where(spread, statistics.errors, 1.0), -np.inf)
    drawn = np.concatenate(list(_draws(statistics, draws, rng)))
    rejected = np.zeros(len(statistics.pairs), dtype=np.bool_)
    while True:
        left = spread & ~rejected
        if not left.any():
            return rejected
        critical = float(np.quantile(drawn[:, left].max(axis=1), 1.0 - alpha))
        fresh = left & (observed > critical)
        if not fresh.any():
            return rejected
        rejected |= fresh


def _draws(statistics: PairStatistics, draws: int, rng: np.random.Generator) -> list[FloatArray]:
    """Standardised differences under H0, in batches of rows, (R, pairs); 0 for pairs without spread."""
    require_count("draws", draws, minimum=100)
    i, j = _columns(statistics.pairs)
    scale = np.where(statistics.errors > 0.0, statistics.errors, np.inf)
    step = max(1, _CHUNK // len(statistics.pairs))
    batches = []
    for start in range(0, draws, step):
        means = rng.standard_normal((min(step, draws - start), statistics.root.shape[0])) @ statistics.root.T
        batches.append(np.asarray((means[:, i] - means[:, j]) / scale))
    return batches


def _columns(pairs: Sequence[Pair]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    if not pairs:
        raise ValueError("needs at least one pair of models")
    array = np.array(pairs, dtype=np.intp)
    return array[:, 0], array[:, 1]
