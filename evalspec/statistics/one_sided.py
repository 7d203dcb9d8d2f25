"""Do the counts show that a paired difference lies above a limit named beforehand?

Assumption: both models answered the same questions, which are independent draws. Null hypothesis: the difference, first minus second, is
at most the limit. "Not significantly different" never passes here: too few questions cannot clear a limit.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, logsumexp, ndtr, stdtr

from evalspec.statistics.arguments import FloatArray, IntArray, bisect, require_one_sided, require_scores
from evalspec.statistics.binomials import cumulative
from evalspec.statistics.designs import Design, about_spread, design_mean
from evalspec.statistics.differences import PairedCounts, paired_difference, tango, tango_statistic
from evalspec.statistics.exact_differences import fay_lumbard, fay_lumbard_p
from evalspec.statistics.gaffke import gaffke_bound, gaffke_method, gaffke_p, units_of
from evalspec.statistics.p_values import held
from evalspec.statistics.quadrature import Rule, gauss_legendre
from evalspec.statistics.restricted_shares import restricted_shares

Method = Literal["score", "exact", "e_value"]
"""`score`: Tango's. `exact`: Fay and Lumbard's, the exact McNemar test at a limit of 0. `e_value`: a mixture of bets, for any number of looks.
Of scores that are no right and wrong answers of independent questions, `score` is Student's t test and `exact` Gaffke's."""

NODES = 16
"""Nodes of each panel of the mixture over bets; panels are about four standard deviations wide where the best bet is surest."""


@dataclass(frozen=True, slots=True)
class LimitTest:
    """A one-sided test of a paired difference against a limit, as it will be run at one look.

    With ``both`` the difference must also lie below the opposite of a negative limit: two one-sided tests, for equivalence.
    """

    limit: float
    alpha: float = 0.025
    method: Method = "score"
    both: bool = False

    def __post_init__(self) -> None:
        require_one_sided(self.alpha)
        if not -1.0 < self.limit < 1.0:
            raise ValueError(f"limit must lie strictly between -1 and 1; got {self.limit!r}")
        if self.both and self.limit >= 0.0:
            raise ValueError(f"a difference between two limits needs a negative lower one; got {self.limit!r}")


@dataclass(frozen=True, slots=True)
class OneSided:
    """A one-sided test against a limit; ``bound`` is the lower bound of the same level, and ``passed`` says that it lies above the limit.

    For `e_value` the p-value is 1 / e (at most 1), which holds however often one looks, and ``log10_e`` is given. Tests of means name
    Student's test that fits the design, and say what to keep in mind.
    """

    difference: float
    p_value: float
    bound: float
    passed: bool
    method: str
    log10_e: float | None = None
    clusters: int | None = None
    caution: str | None = None


def above(counts: PairedCounts, limit: float, *, alpha: float = 0.025, method: Method = "score") -> OneSided:
    """Test H0: the difference is at most ``limit``.

    Parameters
    ----------
    counts
        The paired 2x2 table.
    limit
        In (-1, 1): -margin for non-inferiority, 0 for superiority.
    alpha
        One-sided level, in (0, 0.5).
    method
        `Method`. The level of `score` is approximate. That of `exact` is proven at a limit of 0; elsewhere its authors conjecture it and
        support it by calculation. That of `e_value` is proven at every limit and number of looks.

    Raises
    ------
    ValueError
        For an impossible limit or level.

    References
    ----------
    Tango (1998), Stat. Med. 17, 891-908. Nam (1997), Biometrics 53, 1422-1430, doi:10.2307/2533508.
    Fay and Lumbard (2021), Stat. Med. 40, 1147-1159, doi:10.1002/sim.8829.
    Waudby-Smith and Ramdas (2024), J. R. Stat. Soc. B 86, 1-27, arXiv:2010.09686.

    Examples
    --------
    >>> test = above(PairedCounts(1217, 182, 219, 382), -0.05)
    >>> test.passed, round(test.p_value, 6)
    (True, 0.00091)
    >>> above(PairedCounts(40, 0, 0, 0), -0.05).passed
    False
    """
    level = 1.0 - 2.0 * require_one_sided(alpha)
    if method == "e_value":
        log_e = log_e_value_above(counts, limit)
        p_value, bound, log10_e = math.exp(-max(log_e, 0.0)), _e_value_bound(counts, alpha), log_e / math.log(10.0)
    elif method == "exact":
        p_value, bound, log10_e = fay_lumbard_p(counts, limit), fay_lumbard(counts, level=level).low, None
    else:
        p_value, bound, log10_e = float(ndtr(-tango_statistic(counts, limit))), tango(counts, level=level).low, None
    return OneSided(paired_difference(counts), held(p_value), bound, bound > limit, method, log10_e)


def mean_above(differences: ArrayLike, design: Design, limit: float, *, alpha: float = 0.025) -> OneSided:
    """Test H0: the mean of the question differences is at most ``limit``, by Student's t with the standard error of the design.

    Parameters
    ----------
    differences
        First minus second, question by question, shape (Q,): of fractional scores, averages over repeats, or questions in clusters.
    design
        Of the same questions.
    limit, alpha
        As `above`.

    Raises
    ------
    ValueError
        With the reason, where nothing measures how sure the mean is.

    References
    ----------
    Miller (2024), arXiv:2411.00640, section 4.2. Bell and McCaffrey (2002), Surv. Methodol. 28, 169-181 (clusters).

    Examples
    --------
    >>> round(mean_above([0.5, 0.0, 0.75, 0.0], Design(), 0.0).p_value, 4)
    0.0971
    """
    values = require_scores("differences", differences, minimum=2)
    moments = design_mean(values, design)
    interval = moments.interval(1.0 - 2.0 * require_one_sided(alpha), smallest=-1.0)
    if interval is None:
        raise ValueError(f"{values.size} question differences, all equal or equal on average in every group, do not measure how sure their mean is")
    statistic = (moments.mean - limit) / moments.standard_error
    p_value = held(stdtr(moments.degrees_of_freedom, -statistic))
    caution = about_spread(moments)
    return OneSided(moments.mean, p_value, interval.low, interval.low > limit, moments.method, clusters=moments.clusters, caution=caution)


def bounded_mean_above(differences: ArrayLike, design: Design, limit: float, *, alpha: float = 0.025) -> OneSided:
    """Test H0: the mean of the question differences is at most ``limit``, by Gaffke's bound for scores of any distribution.

    Parameters
    ----------
    differences
        As `mean_above`, each in [-1, 1].
    design
        Of the same questions; strata and pools are passed over, and questions then count as independent draws, by their weights where strata are
        weighted.
    limit, alpha
        As `above`.

    Raises
    ------
    ValueError
        With a single cluster, or a stratum that has a weight and no score.

    References
    ----------
    As `gaffke_bound`, which says what of its guarantee is proven.

    Examples
    --------
    >>> round(bounded_mean_above([0.5, 0.0, 0.75, 0.0], Design(), 0.0).p_value, 4)
    0.381
    """
    units = units_of(differences, design, smallest=-1.0)
    bound = gaffke_bound(units, alpha=require_one_sided(alpha))
    clusters = units.number if design.clusters is not None else None
    method = gaffke_method(design)
    return OneSided(units.mean, gaffke_p(units, limit), bound, bound > limit, method, clusters=clusters, caution=units.caution)


def log_e_value_above(counts: PairedCounts, limit: float) -> float:
    """Natural logarithm of an e-value against H0: the difference is at most ``limit``.

    Each question pays 1 + bet (x - limit) with x = 1, 0 or -1 as only the first, both or neither, or only the second model is right. That
    is at most 1 on average under H0 for any bet in [0, 1 / (1 + limit)], so the product over the questions, mixed over bets, reaches
    1 / alpha with probability at most alpha, however often one looks. The mixture is Jeffreys' Beta(1/2, 1/2) on the half of favourable
    bets; at a limit of 0 it is the one-sided half of the closed form of `evalspec.statistics.sequential.log_e_value`.

    Raises
    ------
    ValueError
        When the limit is not strictly between -1 and 1.

    References
    ----------
    Waudby-Smith and Ramdas (2024), as `above`. Grünwald, de Heide and Koolen (2024), J. R. Stat. Soc. B 86, 1091-1128.

    Examples
    --------
    >>> round(log_e_value_above(PairedCounts(100, 40, 10, 50), 0.0), 2)
    8.14
    """
    b, c = np.array([counts.only_first]), np.array([counts.only_second])
    return float(log_e_values(b, c, counts.questions, limit)[0])


def log_e_values(only_first: IntArray, only_second: IntArray, questions: int, limit: float) -> FloatArray:
    """`log_e_value_above` for arrays of discordant counts of shape (K,), at one number of questions.

    Raises
    ------
    ValueError
        When the limit is not strictly between -1 and 1.

    References
    ----------
    As `log_e_value_above`.

    Examples
    --------
    >>> log_e_values(np.array([40, 0]), np.array([10, 0]), 200, 0.0).round(2)
    array([8.14, 0.  ])
    """
    if not -1.0 < limit < 1.0:
        raise ValueError(f"limit must lie strictly between -1 and 1; got {limit!r}")
    rule = _mixture(questions)
    bets = np.cos(rule.points) / (1.0 + limit)
    won, lost, drawn = np.log1p(bets * (1.0 - limit)), np.log1p(-bets * (1.0 + limit)), np.log1p(-bets * limit)
    agreeing = questions - only_first - only_second
    logs = np.outer(only_first, won) + np.outer(only_second, lost) + np.outer(agreeing, drawn)
    return np.asarray(logsumexp(logs, axis=1, b=rule.weights * 2.0 / math.pi))


@lru_cache(maxsize=64)
def _mixture(questions: int) -> Rule:
    """The arcsine law of Jeffreys' prior is uniform in the angle; so many questions leave a peak of 1 / sqrt(questions) in it."""
    panels = math.ceil(0.5 * math.pi * math.sqrt(questions) / 4.0)
    edges = np.linspace(0.0, 0.5 * math.pi, panels + 1)
    rules = [gauss_legendre(low, high, count=NODES) for low, high in pairwise(edges)]
    return Rule(np.concatenate([rule.points for rule in rules]), np.concatenate([rule.weights for rule in rules]))


def passing(only_first: IntArray, only_second: IntArray, questions: int, test: LimitTest) -> NDArray[np.bool_]:
    """Whether each table passes `above`, for arrays of discordant counts of shape (K,), at one number of questions.

    References
    ----------
    As `above`.

    Examples
    --------
    >>> passing(np.array([182, 0]), np.array([219, 0]), 2000, LimitTest(-0.05))
    array([ True,  True])
    """
    if test.method == "e_value":
        return np.asarray(log_e_values(only_first, only_second, questions, test.limit) >= -math.log(test.alpha))
    if test.method == "exact" and not test.limit:
        return np.asarray(cumulative(only_second, only_first + only_second, 0.5) < test.alpha)
    if test.method == "exact":
        tables = (PairedCounts(questions - int(b) - int(c), int(b), int(c), 0) for b, c in zip(only_first, only_second, strict=True))
        return np.array([fay_lumbard_p(table, test.limit) < test.alpha for table in tables], dtype=np.bool_)
    return np.asarray(log_ndtr(-_tango_statistics(only_first, only_second, questions, test.limit)) < math.log(test.alpha))


def _tango_statistics(only_first: IntArray, only_second: IntArray, questions: int, limit: float) -> FloatArray:
    """`tango_statistic` of many tables; see there for the formula and its source."""
    first, second = only_first / questions, only_second / questions
    share = restricted_shares(first, second, limit).share
    variance = np.maximum(questions * (2.0 * share + limit * (1.0 - limit)), 0.0)
    excess = only_first - only_second - questions * limit
    return np.asarray(np.where(excess == 0.0, 0.0, excess / np.sqrt(np.maximum(variance, sys.float_info.min))))


def _e_value_bound(counts: PairedCounts, alpha: float) -> float:
    """Largest limit below which every difference is rejected: the e-value falls as the limit rises."""
    edge = 1.0 - 1e-9
    enough = -math.log(alpha)
    if log_e_value_above(counts, -edge) < enough:
        return -1.0
    return bisect(lambda limit: log_e_value_above(counts, limit) - enough, -edge, edge, tolerance=1e-12)
