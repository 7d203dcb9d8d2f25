"""What is left of each p-value when a whole family of comparisons is judged together?

Every adjusted p-value stands in the place of its raw one. Neighbours may come out equal: a step-down procedure keeps the order
of the evidence, so an adjusted value never falls below that of stronger evidence. A missing p-value is refused, because leaving
a planned comparison out of the count makes the others too strong; count it as 1 if it could not be computed.

Assumption of every function here: under its null hypothesis each p-value is at most alpha with probability at most alpha.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from evalspec.statistics.arguments import FloatArray, require_count, require_counts, require_fraction


def holm(p_values: ArrayLike, *, times: ArrayLike | None = None) -> FloatArray:
    """Adjust p-values by Holm's step-down method, in the order given; needs no assumption about their dependence.

    Parameters
    ----------
    p_values
        Shape (F,), each in [0, 1]. F may be 0.
    times
        Shape (F,): how often each p-value stands in the family, where equal ones are given once; by default once each.

    Returns
    -------
    ndarray
        Shape (F,). Rejecting those at most alpha keeps the probability of any false rejection in the family at alpha.

    Raises
    ------
    ValueError
        When a p-value is missing or outside [0, 1], the array is not one-dimensional, or ``times`` are not positive whole numbers.

    References
    ----------
    Holm (1979), Scand. J. Stat. 6(2), 65-70.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    >>> holm([0.01, 0.03], times=[1, 2])
    array([0.03, 0.06])
    """
    p = _p_values(p_values)
    counts = np.ones(p.shape, dtype=np.int64) if times is None else require_counts("times", times)
    if counts.shape != p.shape or (counts.size and counts.min() < 1):
        raise ValueError(f"times must hold one number of at least 1 for each of {p.size} p-values; got {times!r}")
    # Which of two equal p-values comes first moves nothing: the running maximum gives both the same.
    order = np.argsort(p)
    steps = np.cumsum(counts[order][::-1])[::-1]
    return _in_given_order(np.maximum.accumulate(np.minimum(p[order] * steps, 1.0)), order)


def hochberg(p_values: ArrayLike) -> FloatArray:
    """Adjust p-values by Hochberg's step-up method, in the order given; valid only under positive dependence.

    McNemar tests that share models need not be positively dependent, so `holm` is the default for them.

    Raises
    ------
    ValueError
        As `holm`.

    References
    ----------
    Hochberg (1988), Biometrika 75, 800-802, doi:10.1093/biomet/75.4.800.

    Examples
    --------
    >>> hochberg([0.01, 0.04, 0.03])
    array([0.03, 0.04, 0.04])
    """
    p = _p_values(p_values)
    return _step_up(p, np.arange(p.size, 0, -1, dtype=np.float64))


def hommel(p_values: ArrayLike) -> FloatArray:
    """Adjust p-values by Hommel's method, in the order given; valid only under positive dependence.

    Raises
    ------
    ValueError
        As `holm`.

    References
    ----------
    Hommel (1988), Biometrika 75, 383-386, doi:10.1093/biomet/75.2.383. Algorithm: Wright (1992), Biometrics 48, 1005-1013.

    Examples
    --------
    >>> hommel([0.01, 0.04, 0.03])
    array([0.03, 0.04, 0.04])
    """
    p = _p_values(p_values)
    size = p.size
    order = np.argsort(p, kind="stable")
    ranked = p[order]
    adjusted = np.full(size, np.min(size * ranked / np.arange(1, size + 1)) if size else 1.0)
    for part in range(size - 1, 1, -1):
        upper = np.arange(size - part + 1, size)
        smallest = np.min(part * ranked[upper] / np.arange(2, part + 1))
        bound = np.minimum(part * ranked, smallest)
        bound[upper] = bound[size - part]
        adjusted = np.maximum(adjusted, bound)
    return _in_given_order(np.maximum(adjusted, ranked), order)


def benjamini_hochberg(p_values: ArrayLike) -> FloatArray:
    """Adjust p-values to control the expected share of false discoveries, under positive dependence.

    Raises
    ------
    ValueError
        As `holm`.

    References
    ----------
    Benjamini and Hochberg (1995), J. R. Stat. Soc. B 57, 289-300, doi:10.1111/j.2517-6161.1995.tb02031.x.

    Examples
    --------
    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    array([0.03, 0.04, 0.04])
    """
    p = _p_values(p_values)
    return _step_up(p, p.size / np.arange(1, p.size + 1))


def benjamini_yekutieli(p_values: ArrayLike) -> FloatArray:
    """Adjust p-values to control the expected share of false discoveries, whatever their dependence.

    Raises
    ------
    ValueError
        As `holm`.

    References
    ----------
    Benjamini and Yekutieli (2001), Ann. Stat. 29, 1165-1188, doi:10.1214/aos/1013699998.

    Examples
    --------
    >>> benjamini_yekutieli([0.01, 0.04, 0.03]).round(4)
    array([0.055 , 0.0733, 0.0733])
    """
    p = _p_values(p_values)
    ranks = np.arange(1, p.size + 1)
    return _step_up(p, np.sum(1.0 / ranks) * p.size / ranks)


def bonferroni_critical_value(comparisons: int, *, alpha: float = 0.05) -> float:
    """Normal quantile for two-sided intervals that hold all together at ``1 - alpha``, whatever their dependence.

    Raises
    ------
    ValueError
        When there is no comparison or alpha is impossible.

    References
    ----------
    Dunn (1961), J. Am. Stat. Assoc. 56, 52-64, doi:10.1080/01621459.1961.10482090.

    Examples
    --------
    >>> round(bonferroni_critical_value(28), 3)
    3.124
    """
    family = require_count("comparisons", comparisons, minimum=1)
    return float(-ndtri(require_fraction("alpha", alpha) / (2.0 * family)))


def sidak_critical_value(comparisons: int, *, alpha: float = 0.05) -> float:
    """Normal quantile as `bonferroni_critical_value`, a little smaller; valid for normal estimates of any correlation.

    Raises
    ------
    ValueError
        When there is no comparison or alpha is impossible.

    References
    ----------
    Šidák (1967), J. Am. Stat. Assoc. 62, 626-633, doi:10.1080/01621459.1967.10482935.

    Examples
    --------
    >>> round(sidak_critical_value(28), 3)
    3.116
    """
    family = require_count("comparisons", comparisons, minimum=1)
    each = -np.expm1(np.log1p(-require_fraction("alpha", alpha)) / family)
    return float(-ndtri(each / 2.0))


def _p_values(p_values: ArrayLike) -> FloatArray:
    try:
        p = np.asarray(p_values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"p_values must be numbers without gaps: {error}") from error
    if p.ndim != 1:
        raise ValueError(f"p_values must be one-dimensional; got shape {p.shape}")
    wrong = np.flatnonzero(~((p >= 0.0) & (p <= 1.0)))
    if wrong.size:
        raise ValueError(f"p_values must lie in [0, 1]; got {p[wrong[0]]} at position {wrong[0]}")
    return p


def _step_up(p: FloatArray, factors: FloatArray) -> FloatArray:
    order = np.argsort(p, kind="stable")
    scaled = np.minimum(p[order] * factors, 1.0)
    return _in_given_order(np.minimum.accumulate(scaled[::-1])[::-1], order)


def _in_given_order(ranked: FloatArray, order: NDArray[np.intp]) -> FloatArray:
    adjusted = np.empty_like(ranked)
    adjusted[order] = ranked
    return adjusted
