"""What share of right answers does a weighted, stratified sample point to?

Assumption: within each stratum the sample is random, and the weights bring each stratum back to its share of the source.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, ndtri

from evalspec.statistics.arguments import FloatArray
from evalspec.statistics.proportions import Interval, score_limits


@dataclass(frozen=True, slots=True)
class WeightedProportion:
    """A weighted share and `effective_n`, the size of the simple sample that would be as precise."""

    value: float
    effective_n: float


def weighted_proportion(scores: ArrayLike, weights: ArrayLike, strata: ArrayLike) -> WeightedProportion:
    """Return the weighted share of ones and its effective sample size.

    Parameters
    ----------
    scores
        Zeros and ones, shape (n,).
    weights
        Positive weights, constant within a stratum, shape (n,).
    strata
        The stratum of each question, shape (n,).

    Returns
    -------
    WeightedProportion
        The effective size is p(1 - p) / Var(p), and no larger than n; where every answer is alike, Kish's size stands for it.

    Raises
    ------
    ValueError
        When the arrays are empty or differ in length, or a stratum has fewer than two questions.

    References
    ----------
    Kish (1965), Survey Sampling, section 11.7. Korn & Graubard (1998), Survey Methodology 24(2), 193-201.

    Examples
    --------
    >>> share = weighted_proportion([1, 1, 0, 1], [1.5, 1.5, 0.5, 0.5], ["a", "a", "b", "b"])
    >>> share.value, share.effective_n
    (0.875, 4.0)
    """
    scored, weighted, groups = np.asarray(scores, dtype=np.float64), np.asarray(weights, dtype=np.float64), np.asarray(strata)
    if not scored.size or scored.shape != weighted.shape or scored.shape != groups.shape:
        raise ValueError(f"scores, weights and strata must be equally long and not empty; got {scored.shape}, {weighted.shape}, {groups.shape}")
    _, index, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    if np.min(sizes) < 2:
        raise ValueError("each stratum needs at least two questions")
    shares = np.bincount(index, weighted) / weighted.sum()
    means = np.bincount(index, scored) / sizes
    value = float(shares @ means)
    variance = float(np.sum(shares**2 * means * (1 - means) / (sizes - 1)))
    size = value * (1 - value) / variance if variance > 0 else float(1 / np.sum(shares**2 / sizes))
    return WeightedProportion(value, min(size, float(scored.size)))


def wilson_effective(share: WeightedProportion, *, level: float = 0.95) -> Interval:
    """Return Wilson's interval with the effective sample size in place of n.

    References
    ----------
    Wilson (1927), doi:10.1080/01621459.1927.10502953; effective size as in Korn & Graubard (1998).

    Examples
    --------
    >>> limits = wilson_effective(WeightedProportion(0.9, 40.0))
    >>> round(limits.low, 4), round(limits.high, 4)
    (0.7695, 0.9604)
    """
    limits = score_limits(np.array([share.value]), np.array([share.effective_n]), float(ndtri(0.5 + level / 2)))
    return Interval(float(limits.low[0]), float(limits.high[0]))


def clopper_pearson_effective(share: WeightedProportion, *, level: float = 0.95) -> Interval:
    """Return Clopper and Pearson's interval with the effective sample size in place of n.

    References
    ----------
    Korn & Graubard (1998), Survey Methodology 24(2), 193-201.

    Examples
    --------
    >>> limits = clopper_pearson_effective(WeightedProportion(0.9, 40.0))
    >>> round(limits.low, 4), round(limits.high, 4)
    (0.7634, 0.9721)
    """
    right, wrong = share.value * share.effective_n, (1 - share.value) * share.effective_n
    tail: FloatArray = np.array((1 - level) / 2)
    low = float(betaincinv(right, wrong + 1, tail)) if right > 0 else 0.0
    high = float(betaincinv(right + 1, wrong, 1 - tail)) if wrong > 0 else 1.0
    return Interval(low, high)
