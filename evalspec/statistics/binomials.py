"""How probable are the counts of a binomial variable, at millions of trials as well as at few?"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betainc, gammaln, xlog1py, xlogy

from evalspec.statistics.arguments import FloatArray, IntArray


def cumulative(count: IntArray, trials: IntArray, share: float) -> FloatArray:
    """P(X <= count) for X ~ Binomial(trials, share): 0 below 0, and 1 from ``trials`` on. Arrays broadcast together.

    References
    ----------
    NIST Digital Library of Mathematical Functions, 8.17.5: the regularised incomplete beta function does not overflow where sums
    of binomial coefficients do.

    Examples
    --------
    >>> cumulative(np.array([-1, 0, 2]), np.array([2, 2, 2]), 0.5)
    array([0.  , 0.25, 1.  ])
    """
    inside = (count >= 0) & (count < trials)
    k, m = np.where(inside, count, 0), np.where(inside, trials, 1)
    tail = betainc((m - k).astype(np.float64), k + 1.0, 1.0 - share)
    return np.where(count < 0, 0.0, np.where(inside, tail, 1.0))


def masses(count: IntArray, trials: int, share: float) -> FloatArray:
    """P(X = count) for X ~ Binomial(trials, share), 0 <= count <= trials.

    Examples
    --------
    >>> masses(np.array([0, 1, 2]), 2, 0.5).round(12)
    array([0.25, 0.5 , 0.25])
    """
    return np.asarray(np.exp(log_choose(trials, count) + xlogy(count, share) + xlog1py(trials - count, -share)))


def log_choose(trials: IntArray | int, count: IntArray | int) -> FloatArray:
    """Natural logarithm of the binomial coefficient, 0 <= count <= trials. Arrays broadcast together.

    Examples
    --------
    >>> np.exp(log_choose(5, np.array([0, 2]))).round(9)
    array([ 1., 10.])
    """
    n, k = np.asarray(trials, dtype=np.float64), np.asarray(count, dtype=np.float64)
    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))


def hypergeometric_cumulative(most: int, urn: tuple[int, int], drawn: int) -> float:
    """Probability of at most so many of the first kind among ``drawn``, without replacement, from an urn of two kinds.

    Examples
    --------
    >>> round(hypergeometric_cumulative(0, (2, 2), 2), 6)
    0.166667
    """
    of_first = np.arange(max(0, drawn - urn[1]), min(most, urn[0], drawn) + 1, dtype=np.int64)
    if not of_first.size:
        return 0.0
    logs = log_choose(urn[0], of_first) + log_choose(urn[1], drawn - of_first) - log_choose(sum(urn), np.array(drawn))
    return min(1.0, math.fsum(np.exp(logs)))


def most_in_urn(seen: int, *, drawn: int, urn: int, tail: float) -> int:
    """Upper limit of how many of an urn are of the first kind: the largest of which ``drawn`` show at most ``seen`` with a chance above ``tail``.

    Assumption: they are drawn without replacement. The chance falls as their number rises.

    References
    ----------
    Clopper and Pearson (1934), Biometrika 26, 404-413, here with hypergeometric tails.

    Examples
    --------
    >>> most_in_urn(0, drawn=50, urn=100, tail=0.025)
    5
    """
    low, high = seen, urn - drawn + seen
    while low < high:
        middle = (low + high + 1) // 2
        if hypergeometric_cumulative(seen, (middle, urn - middle), drawn) > tail:
            low = middle
        else:
            high = middle - 1
    return low
