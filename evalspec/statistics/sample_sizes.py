"""How many questions does a comparison need, by the closed formulas in use?

Model: questions are independent, and the test statistic is nearly normal. `evalspec.statistics.paired_power` plans the exact and mid-p
tests without approximation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import ndtr, ndtri

from evalspec.statistics.arguments import require_count, require_fraction, require_one_sided
from evalspec.statistics.restricted_shares import restricted_only_second


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Normal quantiles that stand for alpha (two-sided) and power in a sample-size formula."""

    alpha: float
    power: float

    @classmethod
    def of(cls, alpha: float, power: float) -> Quantiles:
        """Quantiles of a two-sided level and a power.

        Raises
        ------
        ValueError
            When one of them is not strictly between 0 and 1.

        Examples
        --------
        >>> round(Quantiles.of(0.05, 0.8).alpha, 4), round(Quantiles.of(0.05, 0.8).power, 4)
        (1.96, 0.8416)
        """
        return cls(float(-ndtri(require_fraction("alpha", alpha) / 2.0)), float(ndtri(require_fraction("power", power))))


ROUNDED = Quantiles(1.96, 0.84)
"""The two-digit quantiles of 0.05 and 0.8 that published plans often print."""


def simple_questions(discordance: float, difference: float, *, quantiles: Quantiles = ROUNDED) -> float:
    """Number of paired questions by the simple formula (z_alpha + z_power)^2 q / D^2, not rounded.

    Raises
    ------
    ValueError
        When the difference is 0 or exceeds the discordance.

    References
    ----------
    Connor (1987), Biometrics 43, 207-211, doi:10.2307/2531961, of which this is the limit for a small difference.

    Examples
    --------
    >>> round(simple_questions(0.2, 0.0185))
    4581
    """
    require_setting(discordance, difference)
    _require_some(difference)
    return (quantiles.alpha + quantiles.power) ** 2 * discordance / difference**2


def connor_power(questions: int, discordance: float, difference: float, *, alpha: float = 0.05) -> float:
    """Normal approximation to the power of McNemar's test without continuity correction.

    Rejections in the wrong direction are not counted. The exact test is less powerful; see `evalspec.statistics.paired_power.exact_power`.

    Raises
    ------
    ValueError
        For an impossible combination.

    References
    ----------
    Connor (1987), Biometrics 43, 207-211, doi:10.2307/2531961.

    Examples
    --------
    >>> round(connor_power(200, 0.2, 0.05), 4)
    0.3515
    """
    require_setting(discordance, difference)
    n = require_count("questions", questions, minimum=1)
    z = -ndtri(require_fraction("alpha", alpha) / 2.0)
    spread = math.sqrt(discordance - difference * difference)
    distance = abs(difference) * math.sqrt(n) - z * math.sqrt(discordance)
    return float(ndtr(distance / spread)) if spread else float(distance > 0.0)


def connor_questions(discordance: float, difference: float, *, power: float = 0.8, alpha: float = 0.05) -> float:
    """Number of questions at which `connor_power` reaches ``power``, not rounded.

    Raises
    ------
    ValueError
        For an impossible combination, and for a difference of 0.

    References
    ----------
    Connor (1987), Biometrics 43, 207-211, doi:10.2307/2531961.

    Examples
    --------
    >>> round(connor_questions(0.2, 0.0185), 1)
    4584.3
    """
    require_setting(discordance, difference)
    _require_some(difference)
    z = Quantiles.of(alpha, power)
    root = z.alpha * math.sqrt(discordance) + z.power * math.sqrt(discordance - difference * difference)
    return (root / difference) ** 2


def miettinen_questions(discordance: float, difference: float, *, power: float = 0.8, alpha: float = 0.05) -> float:
    """Number of paired questions by Miettinen's unconditional formula, not rounded.

    Raises
    ------
    ValueError
        When the difference is 0 or exceeds the discordance, or a level is impossible.

    References
    ----------
    Miettinen (1968), Biometrics 24, 339-352, doi:10.2307/2528039, as given by Lachin (1992), Stat. Med. 11, 1239-1251.

    Examples
    --------
    >>> round(miettinen_questions(0.2, 0.05), 1)
    618.4
    """
    require_setting(discordance, difference)
    _require_some(difference)
    z = Quantiles.of(alpha, power)
    q, square = discordance, difference**2
    return (z.alpha * q + z.power * math.sqrt(q * q - square * (3.0 + q) / 4.0)) ** 2 / (q * square)


def nam_questions(discordance: float, difference: float, limit: float, *, power: float = 0.8, alpha: float = 0.025) -> float:
    """Number of paired questions at which a score test shows the difference above ``limit`` with this probability, not rounded.

    Parameters
    ----------
    discordance, difference
        Expected share of discordant questions, and true difference, first minus second, above the limit.
    limit
        In (-1, 1): -margin for non-inferiority, 0 for superiority.
    power, alpha
        Probability wanted, and the one-sided level.

    Raises
    ------
    ValueError
        When the true difference is not above the limit, or an argument is impossible.

    References
    ----------
    Nam (1997), Biometrics 53, 1422-1430, doi:10.2307/2533508. Tango (1998), Stat. Med. 17, 891-908.

    Examples
    --------
    >>> math.ceil(nam_questions(0.2, 0.0, -0.05))
    644
    """
    require_setting(discordance, difference)
    if not -1.0 < limit < difference:
        raise ValueError(f"limit must lie between -1 and the true difference ({difference:g}); got {limit!r}")
    only_first, only_second = (discordance + difference) / 2.0, (discordance - difference) / 2.0
    null_variance = 2.0 * restricted_only_second(only_first, only_second, limit) + limit * (1.0 - limit)
    variance = discordance - difference * difference
    # Rounding can leave a variance of 0 a little below it.
    root = -ndtri(require_one_sided(alpha)) * math.sqrt(max(null_variance, 0.0)) + ndtri(require_fraction("power", power)) * math.sqrt(
        max(variance, 0.0)
    )
    return float((root / (difference - limit)) ** 2)


@dataclass(frozen=True, slots=True)
class PairedVariance:
    """What makes a paired difference of mean scores vary from question to question (Miller's omega and sigmas).

    ``between`` is the variance, over questions, of the difference of expected scores; ``first_within`` and ``second_within`` are
    the mean variances of one answer given the question; the repeats are answers drawn per question and model.
    """

    between: float
    first_within: float = 0.0
    second_within: float = 0.0
    first_repeats: float = 1.0
    second_repeats: float = 1.0

    def __post_init__(self) -> None:
        if not min(self.between, self.first_within, self.second_within) >= 0.0:
            raise ValueError(f"variances must not be negative; got {self}")
        if not min(self.first_repeats, self.second_repeats) >= 1.0:
            raise ValueError(f"repeats must be at least 1; got {self}")

    @property
    def total(self) -> float:
        """Variance of one question's difference of mean scores."""
        return self.between + self.first_within / self.first_repeats + self.second_within / self.second_repeats


def miller_questions(variance: PairedVariance, difference: float, *, power: float = 0.8, alpha: float = 0.05) -> float:
    """Number of paired questions for mean scores of any kind, not rounded; multiply by the design effect for clusters.

    Raises
    ------
    ValueError
        When the difference is 0 or a level is impossible.

    References
    ----------
    Miller (2024), arXiv:2411.00640, section 5.

    Examples
    --------
    >>> round(miller_questions(PairedVariance(1 / 9), 0.03))
    969
    """
    _require_some(difference)
    z = Quantiles.of(alpha, power)
    return (z.alpha + z.power) ** 2 * variance.total / difference**2


def miller_detectable_difference(variance: PairedVariance, questions: int, *, power: float = 0.8, alpha: float = 0.05) -> float:
    """Smallest difference of mean scores detected with probability ``power``, by normal approximation.

    Raises
    ------
    ValueError
        When there is no question or a level is impossible.

    References
    ----------
    Miller (2024), arXiv:2411.00640, section 5.

    Examples
    --------
    >>> round(miller_detectable_difference(PairedVariance(1 / 9), 500), 4)
    0.0418
    """
    require_count("questions", questions, minimum=1)
    z = Quantiles.of(alpha, power)
    return (z.alpha + z.power) * math.sqrt(variance.total / questions)


def require_setting(discordance: float, difference: float) -> None:
    """Accept a discordance in (0, 1] and a difference that it can carry.

    Raises
    ------
    ValueError
        When the discordance is out of range, or the difference exceeds it in size.

    Examples
    --------
    >>> require_setting(0.2, 0.05)
    """
    if not 0.0 < discordance <= 1.0:
        raise ValueError(f"discordance must lie in (0, 1]; got {discordance!r}")
    if not abs(difference) <= discordance:
        raise ValueError(f"difference must not exceed the discordance ({discordance:g}) in size; got {difference!r}")


def _require_some(difference: float) -> None:
    if not abs(difference) > 0.0:
        raise ValueError(f"difference must not be 0: no number of questions detects it; got {difference!r}")
