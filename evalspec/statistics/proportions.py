"""Between which limits does the true proportion lie, given successes among independent trials?

Assumption of every function here: the trials are independent and share one probability of success.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainccinv, betaincinv

from evalspec.statistics.arguments import FloatArray, IntArray, require_count, require_counts, require_fraction, two_sided_t, two_sided_z

ProportionMethod = Literal["wilson", "clopper_pearson", "jeffreys"]
"""Which interval of a proportion."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Two limits, ``low <= high``."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Intervals:
    """Limits for many estimates at once: ``low`` and ``high`` have the shape of the counts that they were made from."""

    low: FloatArray
    high: FloatArray


def wilson(successes: int, trials: int, *, level: float = 0.95) -> Interval:
    """Wilson's score interval of a proportion: the default for independent 0/1 scores at any number of trials.

    Parameters
    ----------
    successes, trials
        Counts, ``0 <= successes <= trials`` and ``trials >= 1``.
    level
        Two-sided confidence level, in (0, 1).

    Returns
    -------
    Interval
        The proportions that the score test of H0 ``p = p0`` does not reject. ``low`` is exactly 0 without a success and ``high``
        exactly 1 without a failure.

    Raises
    ------
    ValueError
        For impossible counts or level.

    References
    ----------
    Wilson (1927), J. Am. Stat. Assoc. 22, 209-212, doi:10.1080/01621459.1927.10502953.
    Brown, Cai and DasGupta (2001), Stat. Sci. 16, 101-133, doi:10.1214/ss/1009213286.

    Examples
    --------
    >>> interval = wilson(1436, 2000)
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.6979, 0.7373)
    """
    return _single(wilson_many(*_one(successes, trials), level=level))


def wilson_many(successes: ArrayLike, trials: ArrayLike, *, level: float = 0.95) -> Intervals:
    """Wilson's interval for arrays of counts, which broadcast together. See `wilson`.

    Raises
    ------
    ValueError
        For impossible counts or level.

    References
    ----------
    As `wilson`.

    Examples
    --------
    >>> wilson_many([0, 10], 10).high.round(4)
    array([0.2775, 1.    ])
    """
    k, n = _counts(successes, trials)
    bounds = score_limits(k / n, n.astype(np.float64), two_sided_z(level))
    return Intervals(np.where(k == 0, 0.0, bounds.low), np.where(k == n, 1.0, bounds.high))


def score_limits(proportion: FloatArray, trials: FloatArray, critical: float) -> Intervals:
    """Wilson's formula for a proportion on a possibly fractional (effective) number of trials and any critical value.

    References
    ----------
    As `wilson`; on effective numbers as `effective_limits`.

    Examples
    --------
    >>> limits = score_limits(np.array([0.5]), np.array([10.0]), 1.96)
    >>> limits.low.round(4)
    array([0.2366])
    """
    square = critical * critical
    centre = (proportion * trials + square / 2.0) / (trials + square)
    spread = critical / (trials + square) * np.sqrt(proportion * (1.0 - proportion) * trials + square / 4.0)
    return Intervals(np.clip(centre - spread, 0.0, 1.0), np.clip(centre + spread, 0.0, 1.0))


def clopper_pearson(successes: int, trials: int, *, level: float = 0.95) -> Interval:
    """Clopper and Pearson's exact interval of a proportion: covers at least ``level`` whatever the true proportion is.

    Parameters
    ----------
    successes, trials
        Counts, ``0 <= successes <= trials`` and ``trials >= 1``.
    level
        Two-sided confidence level, in (0, 1).

    Returns
    -------
    Interval
        The proportions that neither one-sided binomial test of H0 ``p = p0`` rejects at ``(1 - level) / 2``.

    Raises
    ------
    ValueError
        For impossible counts or level.

    References
    ----------
    Clopper and Pearson (1934), Biometrika 26, 404-413, doi:10.1093/biomet/26.4.404.
    Thulin (2014), Electron. J. Stat. 8, 817-840, arXiv:1303.1288 (what the guarantee costs).

    Examples
    --------
    >>> interval = clopper_pearson(29, 30)
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.8278, 0.9992)
    """
    return _single(clopper_pearson_many(*_one(successes, trials), level=level))


def clopper_pearson_many(successes: ArrayLike, trials: ArrayLike, *, level: float = 0.95) -> Intervals:
    """Clopper and Pearson's interval for arrays of counts, which broadcast together. See `clopper_pearson`.

    Raises
    ------
    ValueError
        For impossible counts or level.

    References
    ----------
    As `clopper_pearson`.

    Examples
    --------
    >>> clopper_pearson_many([0, 10], 10).high.round(4)
    array([0.3085, 1.    ])
    """
    k, n = _counts(successes, trials)
    tail = (1.0 - require_fraction("level", level)) / 2.0
    # At 0 and n one limit has a closed form; the quantile of Beta(0, .) does not exist, so 1 stands in and is not used.
    edge = -np.expm1(np.log(tail) / n)
    low = betaincinv(np.maximum(k, 1), n - k + 1, tail)
    high = betainccinv(k + 1, np.maximum(n - k, 1), tail)
    low = np.where(k == 0, 0.0, np.where(k == n, 1.0 - edge, low))
    high = np.where(k == n, 1.0, np.where(k == 0, edge, high))
    return Intervals(low, high)


def jeffreys(successes: int, trials: int, *, level: float = 0.95) -> Interval:
    """Jeffreys' interval: equal-tailed Beta(successes + 1/2, failures + 1/2) quantiles, closed at 0 and 1.

    It assumes the prior Beta(1/2, 1/2).

    Parameters
    ----------
    successes, trials
        Counts, ``0 <= successes <= trials`` and ``trials >= 1``.
    level
        Posterior probability, in (0, 1).

    Returns
    -------
    Interval
        ``low`` is 0 without a success and ``high`` is 1 without a failure, after Brown, Cai and DasGupta.

    Raises
    ------
    ValueError
        For impossible counts or level.

    References
    ----------
    Brown, Cai and DasGupta (2001), Stat. Sci. 16, 101-133, doi:10.1214/ss/1009213286.

    Examples
    --------
    >>> interval = jeffreys(13, 16)
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.5792, 0.9442)
    """
    (k,), (n,) = _counts(*_one(successes, trials))
    tail = (1.0 - require_fraction("level", level)) / 2.0
    low = 0.0 if k == 0 else float(betaincinv(k + 0.5, n - k + 0.5, tail))
    high = 1.0 if k == n else float(betainccinv(k + 0.5, n - k + 0.5, tail))
    return Interval(low, high)


def effective_limits(
    proportion: float, effective_n: float, *, method: ProportionMethod = "wilson", level: float = 0.95, degrees_of_freedom: float | None = None
) -> Interval:
    """Limits of a proportion that is as precise as one of ``effective_n`` independent trials.

    Parameters
    ----------
    proportion
        The estimate, in [0, 1].
    effective_n
        Positive, not necessarily whole.
    method
        Whose formula is used on the effective number.
    level
        Two-sided confidence level, in (0, 1).
    degrees_of_freedom
        Those of the variance behind ``effective_n``: Student's quantile then stands for the normal one.

    Raises
    ------
    ValueError
        For impossible arguments.

    References
    ----------
    Korn and Graubard (1998), Surv. Methodol. 24, 193-201, who shrink the effective number by the squared ratio of the quantiles.

    Examples
    --------
    >>> interval = effective_limits(0.9, 40.0, method="clopper_pearson")
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.7634, 0.9721)
    """
    if not (0.0 <= proportion <= 1.0 and effective_n > 0.0):
        raise ValueError(f"needs a proportion in [0, 1] and a positive effective number; got {proportion!r} and {effective_n!r}")
    z = two_sided_z(level)
    n = effective_n if degrees_of_freedom is None else effective_n * (z / two_sided_t(level, degrees_of_freedom)) ** 2
    if method == "wilson":
        found = score_limits(np.array([proportion]), np.array([n]), z)
        low, high = float(found.low[0]), float(found.high[0])
    else:
        added, tail = 0.5 if method == "jeffreys" else 0.0, (1.0 - level) / 2.0
        right, wrong = proportion * n, (1.0 - proportion) * n
        low = float(betaincinv(right + added, wrong + 1.0 - added, tail)) if right > 0.0 else 0.0
        high = float(betainccinv(right + 1.0 - added, wrong + added, tail)) if wrong > 0.0 else 1.0
    return Interval(0.0 if proportion == 0.0 else low, 1.0 if proportion == 1.0 else high)


def _one(successes: int, trials: int) -> tuple[IntArray, IntArray]:
    trials = require_count("trials", trials, minimum=1)
    return np.array([require_count("successes", successes)]), np.array([trials])


def _counts(successes: ArrayLike, trials: ArrayLike) -> tuple[IntArray, IntArray]:
    k, n = np.broadcast_arrays(require_counts("successes", successes), require_counts("trials", trials))
    if n.size and n.min() < 1:
        raise ValueError("trials must be at least 1; got 0, and a proportion of nothing is undefined")
    if np.any(k > n):
        worst = int(np.argmax(k > n))
        raise ValueError(f"successes must not exceed trials; got {k.flat[worst]} of {n.flat[worst]}")
    return k, n


def _single(intervals: Intervals) -> Interval:
    return Interval(float(intervals.low[0]), float(intervals.high[0]))
