"""Do two models differ in accuracy on the same questions?

Assumption of every test here: questions are independent. Null hypothesis: a question that exactly one model answers correctly
is as likely to be the first model's as the second's. Questions on which the models agree carry no evidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evalspec.statistics.arguments import FloatArray, IntArray, require_counts
from evalspec.statistics.binomials import cumulative, log_choose
from evalspec.statistics.differences import PairedCounts
from evalspec.statistics.odds_ratios import odds_ratio, odds_ratio_exact
from evalspec.statistics.p_values import SMALLEST_P, ChiSquare, chi_square
from evalspec.statistics.proportions import Interval

Variant = Literal["exact", "mid_p"]


@dataclass(frozen=True, slots=True)
class McNemar:
    """An exact or mid-p test of two models on the same questions.

    A p-value too small for a double is held at the smallest one, and its size stands in ``log10_p_value``.
    ``odds_ratio`` is only_first / only_second, ``None`` when only_second is 0; ``odds_ratio_interval.high`` is ``inf`` then.
    """

    p_value: float
    log10_p_value: float
    discordant: int
    odds_ratio: float | None
    odds_ratio_interval: Interval


def mcnemar_exact(counts: PairedCounts, *, level: float = 0.95) -> McNemar:
    """Exact two-sided McNemar test, with the odds ratio and its exact conditional interval.

    Parameters
    ----------
    counts
        The paired 2x2 table.
    level
        Confidence level of the odds ratio's interval, in (0, 1).

    Returns
    -------
    McNemar
        The p-value is 1 when the models never disagree. The interval holds 1 exactly when the p-value exceeds ``1 - level``.

    Raises
    ------
    ValueError
        For an impossible level.

    References
    ----------
    McNemar (1947), Psychometrika 12, 153-157, doi:10.1007/BF02295996. Fay (2010), The R Journal 2(1), 53-58.

    Examples
    --------
    >>> test = mcnemar_exact(PairedCounts(1217, 219, 182, 382))
    >>> round(test.p_value, 4), round(test.odds_ratio, 3)
    (0.0721, 1.203)
    """
    log10_p = float(mcnemar_exact_log10_p(counts.only_first, counts.only_second))
    p_value = float(mcnemar_exact_p(counts.only_first, counts.only_second))
    interval = odds_ratio_exact(counts, level=level)
    return McNemar(p_value, log10_p, counts.discordant, odds_ratio(counts), interval)


def mcnemar_mid_p(counts: PairedCounts) -> float:
    """Two-sided McNemar mid-p-value: less conservative than the exact one, and close to its nominal level in size.

    Returns
    -------
    float
        1 when the models never disagree or are level.

    References
    ----------
    Fagerland, Lydersen and Laake (2013), BMC Med. Res. Methodol. 13, 91, doi:10.1186/1471-2288-13-91.

    Examples
    --------
    >>> round(mcnemar_mid_p(PairedCounts(1217, 219, 182, 382)), 4)
    0.0648
    """
    return float(mcnemar_p(counts.only_first, counts.only_second, variant="mid_p"))


def mcnemar_exact_p(only_first: ArrayLike, only_second: ArrayLike) -> FloatArray:
    """Exact two-sided p-values for arrays of discordant counts, which broadcast together.

    Raises
    ------
    ValueError
        When a count is negative or has a fraction.

    References
    ----------
    As `mcnemar_exact`.

    Examples
    --------
    >>> mcnemar_exact_p([219, 0], [182, 0]).round(4)
    array([0.0721, 1.    ])
    """
    return mcnemar_p(only_first, only_second, variant="exact")


def mcnemar_p(only_first: ArrayLike, only_second: ArrayLike, *, variant: Variant) -> FloatArray:
    """Two-sided p-values of the named variant for arrays of discordant counts, which broadcast together.

    Raises
    ------
    ValueError
        When a count is negative or has a fraction.

    References
    ----------
    As `mcnemar_exact` and `mcnemar_mid_p`.

    Examples
    --------
    >>> mcnemar_p([5], [0], variant="mid_p")
    array([0.03125])
    """
    fewer, more = _ordered(only_first, only_second)
    # The mid-p-value leaves out half of the probability of the observed split, in each of the two tails.
    tail = cumulative(fewer, fewer + more, 0.5)
    doubled = 2.0 * tail if variant == "exact" else tail + cumulative(fewer - 1, fewer + more, 0.5)
    return np.asarray(np.clip(doubled, SMALLEST_P, 1.0))


def mcnemar_exact_log10_p(only_first: ArrayLike, only_second: ArrayLike) -> FloatArray:
    """Base-10 logarithm of the exact two-sided p-value, finite where the p-value itself is too small for a double.

    Raises
    ------
    ValueError
        When a count is negative or has a fraction.

    References
    ----------
    As `mcnemar_exact`.

    Examples
    --------
    >>> round(float(mcnemar_exact_log10_p(1200, 0)), 6)
    -360.934965
    """
    fewer, more = _ordered(only_first, only_second)
    return log10_of_p(mcnemar_p(fewer, more, variant="exact"), fewer, fewer + more)


def log10_of_p(p_values: FloatArray, fewer: IntArray, discordant: IntArray) -> FloatArray:
    """Base-10 logarithm of exact p-values, from the counts where a p-value is too small for a double.

    Parameters
    ----------
    p_values, fewer, discordant
        Exact two-sided p-values, the smaller of the two discordant counts, and their sum, of one shape.

    References
    ----------
    As `mcnemar_exact`.

    Examples
    --------
    >>> log10_of_p(np.array([0.01]), np.array([3]), np.array([19]))
    array([-2.])
    """
    logs = np.asarray(np.log10(p_values))
    small = p_values <= 1e-290
    if small.any():
        logs[small] = _log10_small_tails(fewer[small], discordant[small])
    return logs


def _log10_small_tails(count: IntArray, trials: IntArray) -> FloatArray:
    """Sum P(X = count), P(X = count - 1), ... from the largest term down, in logarithms; doubled."""
    largest = log_choose(trials, count) - trials * math.log(2.0)
    term, series = np.ones(count.shape), np.zeros(count.shape)
    left = count.astype(np.float64)
    # Successive ratios only shrink, and in a tail this small they are below 1: the sum converges geometrically.
    while term.max() > 1e-18:
        term = term * left / (trials - left + 1.0)
        series += term
        left = np.maximum(left - 1.0, 0.0)
    return np.asarray((largest + np.log1p(series) + math.log(2.0)) / math.log(10.0))


def mcnemar_asymptotic(counts: PairedCounts) -> ChiSquare:
    """McNemar's chi-square test without continuity correction; statistic 0 and p-value 1 when the models never disagree.

    References
    ----------
    McNemar (1947), Psychometrika 12, 153-157, doi:10.1007/BF02295996.

    Examples
    --------
    >>> round(mcnemar_asymptotic(PairedCounts(1, 1, 7, 12)).p_value, 4)
    0.0339
    """
    return chi_square(float((counts.only_first - counts.only_second) ** 2), float(counts.discordant))


def mcnemar_continuity(counts: PairedCounts) -> ChiSquare:
    """McNemar's chi-square test with Edwards' continuity correction: very conservative, for comparison with older tables.

    The correction never turns an even split into evidence: the statistic is 0 and the p-value 1 there, as in R.

    References
    ----------
    Edwards (1948), Psychometrika 13, 185-187, doi:10.1007/BF02289261.

    Examples
    --------
    >>> mcnemar_continuity(PairedCounts(1, 1, 7, 12)).statistic
    3.125
    """
    return chi_square(float(max(abs(counts.only_first - counts.only_second) - 1, 0) ** 2), float(counts.discordant))


def _ordered(only_first: ArrayLike, only_second: ArrayLike) -> tuple[IntArray, IntArray]:
    b, c = np.broadcast_arrays(require_counts("only_first", only_first), require_counts("only_second", only_second))
    return np.minimum(b, c), np.maximum(b, c)
