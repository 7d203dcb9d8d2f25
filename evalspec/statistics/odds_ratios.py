"""How many questions does the first model win for each that it loses, and between which limits?

Assumption: questions are independent. Given the number of discordant questions, the first model's share of them is binomial;
limits for that share t become limits for the odds ratio t / (1 - t).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from evalspec.statistics.arguments import bisect, require_counts, require_fraction
from evalspec.statistics.differences import PairedCounts
from evalspec.statistics.proportions import Interval, Intervals, clopper_pearson, clopper_pearson_many


def odds_ratio(counts: PairedCounts) -> float | None:
    """Conditional estimate only_first / only_second; ``None`` when the second model wins no question.

    References
    ----------
    As `odds_ratio_exact`.

    Examples
    --------
    >>> odds_ratio(PairedCounts(0, 9, 2, 0))
    4.5
    """
    return counts.only_first / counts.only_second if counts.only_second else None


def odds_ratio_exact(counts: PairedCounts, *, level: float = 0.95) -> Interval:
    """Exact conditional interval, which agrees with the exact McNemar test; (0, inf) when the models never disagree.

    Raises
    ------
    ValueError
        For an impossible level.

    References
    ----------
    Fay (2010), The R Journal 2(1), 53-58. Clopper and Pearson (1934), Biometrika 26, 404-413.

    Examples
    --------
    >>> interval = odds_ratio_exact(PairedCounts(1217, 219, 182, 382))
    >>> round(interval.low, 3), round(interval.high, 3)
    (0.984, 1.473)
    """
    require_fraction("level", level)
    if counts.discordant == 0:
        return Interval(0.0, math.inf)
    share = clopper_pearson(counts.only_first, counts.discordant, level=level)
    return Interval(_odds(share.low), _odds(share.high))


def odds_ratio_limits(only_first: ArrayLike, only_second: ArrayLike, *, level: float = 0.95) -> Intervals:
    """`odds_ratio_exact` for arrays of discordant counts, which broadcast together.

    Raises
    ------
    ValueError
        When a count is negative or has a fraction, or for an impossible level.

    References
    ----------
    As `odds_ratio_exact`.

    Examples
    --------
    >>> limits = odds_ratio_limits([219, 0], [182, 0])
    >>> limits.low.round(3), limits.high.round(3)
    (array([0.984, 0.   ]), array([1.473,   inf]))
    """
    first, second = np.broadcast_arrays(require_counts("only_first", only_first), require_counts("only_second", only_second))
    trials = first + second
    shares = clopper_pearson_many(first, np.maximum(trials, 1), level=level)
    low, high = (np.divide(share, 1.0 - share, out=np.full(share.shape, math.inf), where=share < 1.0) for share in (shares.low, shares.high))
    return Intervals(np.where(trials == 0, 0.0, low), np.where(trials == 0, math.inf, high))


def odds_ratio_mid_p(counts: PairedCounts, *, level: float = 0.95) -> Interval:
    """Mid-p version of the conditional interval: shorter, without the guarantee.

    Raises
    ------
    ValueError
        For an impossible level.

    References
    ----------
    Fagerland, Lydersen and Laake (2013), BMC Med. Res. Methodol. 13, 91, doi:10.1186/1471-2288-13-91.

    Examples
    --------
    >>> interval = odds_ratio_mid_p(PairedCounts(1217, 219, 182, 382))
    >>> round(interval.low, 3), round(interval.high, 3)
    (0.989, 1.466)
    """
    tail = (1.0 - require_fraction("level", level)) / 2.0
    if counts.discordant == 0:
        return Interval(0.0, math.inf)
    share = mid_p_share(counts.only_first, counts.discordant, tail)
    return Interval(_odds(share.low), _odds(share.high))


def mid_p_share(successes: int, trials: int, tail: float) -> Interval:
    """Limits of a binomial proportion at which half of P(X = successes) plus the further tail equals ``tail``.

    References
    ----------
    Lancaster (1961), J. Am. Stat. Assoc. 56, 223-234, doi:10.1080/01621459.1961.10482105.

    Examples
    --------
    >>> round(mid_p_share(0, 10, 0.025).high, 4)
    0.2589
    """
    low = 0.0 if successes == 0 else bisect(lambda p: _upper_mid_p(successes, trials, p) - tail, 0.0, 1.0)
    high = 1.0 if successes == trials else bisect(lambda p: _upper_mid_p(trials - successes, trials, 1.0 - p) - tail, 0.0, 1.0)
    return Interval(low, high)


def _upper_mid_p(successes: int, trials: int, p: float) -> float:
    """P(X > successes) + P(X = successes) / 2 for X ~ Binomial(trials, p), successes >= 1."""
    at_least = betainc(successes, trials - successes + 1.0, p)
    above = betainc(successes + 1.0, float(trials - successes), p) if successes < trials else 0.0
    return float(0.5 * (at_least + above))


def _odds(share: float) -> float:
    return share / (1.0 - share) if share < 1.0 else math.inf
