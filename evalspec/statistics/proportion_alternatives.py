"""Which other intervals of a proportion are in use, and when may each be trusted?

Assumption of every function here, as in `evalspec.statistics.proportions`: independent trials with one probability of success.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import betainccinv, betaincinv

from evalspec.statistics.arguments import require_count, require_fraction, two_sided_z
from evalspec.statistics.odds_ratios import mid_p_share
from evalspec.statistics.proportions import Interval

SMALL_FOR_WALD = 300
"""Below this many trials the Wald interval falls visibly short of its level (Bowyer et al. 2025)."""


@dataclass(frozen=True, slots=True)
class CautionedInterval:
    """Limits, and why they should not be trusted; ``caution`` is ``None`` where they can be."""

    interval: Interval
    caution: str | None


def wald(successes: int, trials: int, *, level: float = 0.95) -> CautionedInterval:
    """Wald's interval: estimate plus and minus a normal quantile of standard errors, cut at 0 and 1. For comparison only.

    Raises
    ------
    ValueError
        For impossible counts or level.

    References
    ----------
    Brown, Cai and DasGupta (2001), Stat. Sci. 16, 101-133, doi:10.1214/ss/1009213286. Bowyer, Aitchison and Ivanova (2025),
    arXiv:2503.01747.

    Examples
    --------
    >>> wald(0, 10).caution
    'no success or no failure: the interval has shrunk to a point and says nothing'
    """
    k, n = _counts(successes, trials)
    p = k / n
    spread = two_sided_z(level) * math.sqrt(p * (1.0 - p) / n)
    caution = None
    if k in (0, n):
        caution = "no success or no failure: the interval has shrunk to a point and says nothing"
    elif n < SMALL_FOR_WALD:
        caution = f"fewer than {SMALL_FOR_WALD} trials: the interval covers less often than its level"
    return CautionedInterval(Interval(max(0.0, p - spread), min(1.0, p + spread)), caution)


def agresti_coull(successes: int, trials: int, *, level: float = 0.95) -> Interval:
    """Agresti and Coull's interval: Wald's formula after adding half a squared quantile to successes and failures each.

    Raises
    ------
    ValueError
        For impossible counts or level.

    References
    ----------
    Agresti and Coull (1998), Am. Stat. 52, 119-126, doi:10.1080/00031305.1998.10480550.

    Examples
    --------
    >>> round(agresti_coull(13, 16).low, 4)
    0.562
    """
    k, n = _counts(successes, trials)
    z = two_sided_z(level)
    total = n + z * z
    centre = (k + z * z / 2.0) / total
    spread = z * math.sqrt(centre * (1.0 - centre) / total)
    return Interval(max(0.0, centre - spread), min(1.0, centre + spread))


def mid_p(successes: int, trials: int, *, level: float = 0.95) -> Interval:
    """Mid-p interval: Clopper and Pearson's with half of the observed count's probability left out; close to its level on average.

    Raises
    ------
    ValueError
        For impossible counts or level.

    References
    ----------
    Lancaster (1961), J. Am. Stat. Assoc. 56, 223-234, doi:10.1080/01621459.1961.10482105.

    Examples
    --------
    >>> round(mid_p(13, 16).low, 4)
    0.5699
    """
    k, n = _counts(successes, trials)
    return mid_p_share(k, n, (1.0 - require_fraction("level", level)) / 2.0)


def beta_posterior(successes: int, trials: int, *, prior: tuple[float, float] = (1.0, 1.0), level: float = 0.95) -> Interval:
    """Equal-tailed posterior interval under a Beta prior; the default prior is uniform.

    Raises
    ------
    ValueError
        For impossible counts, level or prior.

    References
    ----------
    Bowyer, Aitchison and Ivanova (2025), arXiv:2503.01747.

    Examples
    --------
    >>> round(beta_posterior(3, 3).low, 4)
    0.3976
    """
    k, n = _counts(successes, trials)
    if not min(prior) > 0.0:
        raise ValueError(f"both parameters of the prior must be positive; got {prior}")
    tail = (1.0 - require_fraction("level", level)) / 2.0
    a, b = k + prior[0], n - k + prior[1]
    return Interval(float(betaincinv(a, b, tail)), float(betainccinv(a, b, tail)))


def upper_bound(successes: int, trials: int, *, level: float = 0.95) -> float:
    """One-sided exact upper bound of a proportion: at least ``level`` of such bounds lie above the truth.

    Without a success it is ``1 - (1 - level) ** (1 / trials)``, which the "rule of three" 3 / trials approximates at 0.95.

    Raises
    ------
    ValueError
        For impossible counts or level.

    References
    ----------
    Clopper and Pearson (1934), Biometrika 26, 404-413. Hanley and Lippman-Hand (1983), JAMA 249, 1743-1745 (rule of three).

    Examples
    --------
    >>> round(upper_bound(0, 300), 4)
    0.0099
    """
    k, n = _counts(successes, trials)
    tail = 1.0 - require_fraction("level", level)
    if k == n:
        return 1.0
    return -math.expm1(math.log(tail) / n) if k == 0 else float(betainccinv(k + 1.0, n - k, tail))


def lower_bound(successes: int, trials: int, *, level: float = 0.95) -> float:
    """One-sided exact lower bound of a proportion. See `upper_bound`.

    Raises
    ------
    ValueError
        For impossible counts or level.

    References
    ----------
    As `upper_bound`.

    Examples
    --------
    >>> round(lower_bound(300, 300), 4)
    0.9901
    """
    k, n = _counts(successes, trials)
    return 1.0 - upper_bound(n - k, n, level=level)


def _counts(successes: int, trials: int) -> tuple[int, int]:
    n = require_count("trials", trials, minimum=1)
    k = require_count("successes", successes)
    if k > n:
        raise ValueError(f"successes must not exceed trials; got {k} of {n}")
    return k, n
