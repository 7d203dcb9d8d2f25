"""Which other intervals of a paired difference are in use?

Assumption of every function here, as in `evalspec.statistics.differences`: questions are independent draws.
"""

from __future__ import annotations

import math

from evalspec.statistics.arguments import two_sided_z
from evalspec.statistics.differences import PairedCounts
from evalspec.statistics.proportion_alternatives import SMALL_FOR_WALD, CautionedInterval
from evalspec.statistics.proportions import Interval


def paired_wald(counts: PairedCounts, *, level: float = 0.95) -> CautionedInterval:
    """Wald's interval of a paired difference (ddof 0). For comparison only.

    Raises
    ------
    ValueError
        For an impossible level.

    References
    ----------
    Fagerland, Lydersen and Laake (2014), Stat. Med. 33, 2850-2875, doi:10.1002/sim.6148 (why not).

    Examples
    --------
    >>> round(paired_wald(PairedCounts(1217, 219, 182, 382)).interval.high, 4)
    0.0381
    """
    caution = None
    if counts.discordant == 0:
        caution = "the models never disagree: the interval has shrunk to a point and says nothing"
    elif counts.questions < SMALL_FOR_WALD:
        caution = f"fewer than {SMALL_FOR_WALD} questions: the interval covers less often than its level"
    return CautionedInterval(_wald(counts.only_first, counts.only_second, counts.questions, level), caution)


def agresti_min(counts: PairedCounts, *, level: float = 0.95) -> Interval:
    """Agresti and Min's interval: Wald's formula after adding half a question to each of the four cells.

    Raises
    ------
    ValueError
        For an impossible level.

    References
    ----------
    Agresti and Min (2005), Stat. Med. 24, 729-740, doi:10.1002/sim.1781.

    Examples
    --------
    >>> round(agresti_min(PairedCounts(100, 40, 10, 50)).low, 4)
    0.0823
    """
    return _wald(counts.only_first + 0.5, counts.only_second + 0.5, counts.questions + 2.0, level)


def bonett_price(counts: PairedCounts, *, level: float = 0.95) -> Interval:
    """Bonett and Price's interval: Wald's formula after adding one question to each of the two discordant cells.

    Raises
    ------
    ValueError
        For an impossible level.

    References
    ----------
    Bonett and Price (2012), J. Educ. Behav. Stat. 37, 479-488, doi:10.3102/1076998611411915.

    Examples
    --------
    >>> round(bonett_price(PairedCounts(100, 40, 10, 50)).low, 4)
    0.0816
    """
    return _wald(counts.only_first + 1.0, counts.only_second + 1.0, counts.questions + 2.0, level)


def paired_correlation(counts: PairedCounts) -> float | None:
    """Phi coefficient of the two models' 0/1 scores; ``None`` when a model is always right or always wrong.

    References
    ----------
    Miller (2024), arXiv:2411.00640 (what it saves: paired standard errors shrink by about sqrt(1 - correlation)).

    Examples
    --------
    >>> round(paired_correlation(PairedCounts(1217, 219, 182, 382)), 3)
    0.515
    """
    n = counts.questions
    margins = counts.first_correct * counts.second_correct * (n - counts.first_correct) * (n - counts.second_correct)
    if margins == 0:
        return None
    return (counts.both * counts.neither - counts.only_first * counts.only_second) / math.sqrt(margins)


def _wald(only_first: float, only_second: float, questions: float, level: float) -> Interval:
    difference = (only_first - only_second) / questions
    variance = ((only_first + only_second) / questions - difference * difference) / questions
    spread = two_sided_z(level) * math.sqrt(max(variance, 0.0))
    return Interval(max(-1.0, difference - spread), min(1.0, difference + spread))
