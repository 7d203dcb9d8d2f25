"""Do two models differ on the same questions when scores are fractional, questions come in clusters, or the pool is finite?

Assumption: as the design says. Null hypothesis: the expected difference is 0; for flips of whole clusters, that the sum of differences in
each cluster is as likely to have the opposite sign.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalspec.statistics.arguments import FloatArray, require_fraction, require_scores, two_sided_z
from evalspec.statistics.designs import Design, DesignMean, about_spread, design_mean, level_of
from evalspec.statistics.differences import PairedCounts, tango
from evalspec.statistics.gaffke import GaffkeMethod, gaffke_bound, gaffke_method, gaffke_p, units_of
from evalspec.statistics.groups import group
from evalspec.statistics.means import paired_mean
from evalspec.statistics.p_values import student_p
from evalspec.statistics.permutations import sign_flip, sign_flip_exact, whole_multiples
from evalspec.statistics.pool_tests import pool_mcnemar
from evalspec.statistics.proportions import Interval

MOST_FLIPPED_EXACTLY = 20
ENOUGH_DISCORDANT = 10
FEW_DISCORDANT = (
    "{} discordant questions: with so few the interval for a part of a pool can hold the true difference less often than it says "
    "(at 95 % in as few as 87 % of simulated samples); the test keeps its level"
)
DRAWN_WITHIN = "questions were drawn within subjects, and the test for a part of a pool is exact for a simple random sample"

DifferenceTest = Literal["t", "stratified_t", "cluster_means_t", "cluster_sign_flip", "pool_exact"] | GaffkeMethod


@dataclass(frozen=True, slots=True)
class DesignDifference:
    """A mean paired difference with its interval and the test that goes with the design.

    ``p_error`` is the Monte Carlo standard error of the p-value, None where nothing was drawn; ``interval`` is None where the scores have no
    spread that it could rest on.
    """

    difference: float
    interval: Interval | None
    standard_error: float | None
    correlation: float | None
    p_value: float
    p_error: float | None
    test: DifferenceTest
    clusters: int | None
    caution: str | None


def design_difference(
    first: ArrayLike, second: ArrayLike, design: Design, *, level: float = 0.95, draws: int = 20_000, rng: np.random.Generator
) -> DesignDifference:
    """Mean of first minus second with Student's interval and test on the question differences.

    The interval of clusters has CR2 and Bell and McCaffrey's degrees of freedom. Their test flips the signs of whole clusters: over all arrangements
    where the sums of clusters are whole multiples of one part, as those of right and wrong answers are, or up to 20 clusters differ; by random draws
    otherwise.

    Parameters
    ----------
    first, second
        Scores in [0, 1] of shape (Q,), none missing.
    design
        Of the same questions.
    level
        Two-sided confidence level, in (0, 1).
    draws, rng
        Number of random flips where not all can be counted, and where they come from.

    Raises
    ------
    ValueError
        With the reason, where the test is undefined: fewer than two questions or clusters, or, where no clusters are flipped, equal differences
        that are not 0.

    References
    ----------
    Miller (2024), arXiv:2411.00640, section 4.2. Bell and McCaffrey (2002), Surv. Methodol. 28, 169-181. Phipson and Smyth (2010),
    doi:10.2202/1544-6115.1585.

    Examples
    --------
    >>> result = design_difference([1, 0.5, 1, 0], [0.5, 0.5, 0.25, 0], Design(), rng=np.random.default_rng(1))
    >>> round(result.difference, 4), round(result.p_value, 4)
    (0.3125, 0.1942)
    """
    a, b = require_scores("first", first, minimum=2), require_scores("second", second, minimum=2)
    paired, moments = paired_mean(a, b), design_mean(a - b, design)
    if moments.standard_error == 0.0 and moments.mean != 0.0 and moments.method != "cr2_t":
        raise ValueError(f"all {a.size} differences lead to one value without any spread, so nothing measures how sure it is")
    tested = _tested(a - b, design, moments, draws, rng)
    return DesignDifference(
        difference=moments.mean,
        interval=moments.interval(level, smallest=-1.0),
        standard_error=moments.standard_error or None,
        correlation=paired.correlation,
        p_value=tested.p_value,
        p_error=tested.p_error,
        test=tested.test,
        clusters=moments.clusters,
        caution=about_spread(moments),
    )


def bounded_difference(first: ArrayLike, second: ArrayLike, design: Design, *, level: float = 0.95) -> DesignDifference:
    """Mean of first minus second with Gaffke's bounds on either side, and the test that agrees with them, for scores of any distribution.

    Parameters
    ----------
    first, second
        Scores in [0, 1] of shape (Q,), none missing.
    design
        Of the same questions; strata and pools are passed over, and questions then count as independent draws, by their weights where strata are
        weighted.
    level
        Two-sided confidence level, in (0, 1); each bound takes half of the error.

    Raises
    ------
    ValueError
        With the reason: fewer than two questions, a single cluster, or a stratum that has a weight and no score.

    References
    ----------
    As `evalspec.statistics.gaffke.gaffke_bound`, which says what of its guarantee is proven.

    Examples
    --------
    >>> result = bounded_difference([1, 0.5, 1, 0], [0.5, 0.5, 0.25, 0], Design())
    >>> round(result.difference, 4), round(result.p_value, 4), round(result.interval.low, 4)
    (0.3125, 0.7619, -0.4939)
    """
    a, b = require_scores("first", first, minimum=2), require_scores("second", second, minimum=2)
    alpha = (1.0 - require_fraction("level", level)) / 2.0
    ahead, behind = units_of(a - b, design, smallest=-1.0), units_of(b - a, design, smallest=-1.0)
    moments = design_mean(a - b, design)
    return DesignDifference(
        difference=ahead.mean,
        interval=Interval(gaffke_bound(ahead, alpha=alpha), -gaffke_bound(behind, alpha=alpha)),
        standard_error=moments.standard_error or None,
        correlation=paired_mean(a, b).correlation,
        p_value=min(1.0, 2.0 * min(gaffke_p(ahead, 0.0), gaffke_p(behind, 0.0))),
        p_error=None,
        test=gaffke_method(design),
        clusters=moments.clusters,
        caution=ahead.caution,
    )


@dataclass(frozen=True, slots=True)
class _Tested:
    """A p-value, its Monte Carlo standard error, and the test that it is of."""

    p_value: float
    p_error: float | None
    test: DifferenceTest


def _tested(differences: FloatArray, design: Design, moments: DesignMean, draws: int, rng: np.random.Generator) -> _Tested:
    if moments.method == "cr2_t":
        return _flipped(_cluster_totals(differences, cast("NDArray[np.str_]", design.clusters)), draws, rng)
    statistic = abs(moments.mean) / moments.standard_error if moments.standard_error > 0.0 else 0.0
    return _Tested(student_p(statistic, moments.degrees_of_freedom), None, moments.method)


def _flipped(totals: FloatArray, draws: int, rng: np.random.Generator) -> _Tested:
    if np.count_nonzero(totals) <= MOST_FLIPPED_EXACTLY or whole_multiples(totals) is not None:
        return _Tested(sign_flip_exact(totals), None, "cluster_sign_flip")
    flipped = sign_flip(totals, draws=draws, rng=rng)
    return _Tested(flipped.p_value, flipped.standard_error, "cluster_sign_flip")


def _cluster_totals(differences: FloatArray, clusters: NDArray[np.str_]) -> FloatArray:
    """Sums within clusters, by name, so that the order of questions cannot move the draws."""
    groups = group(clusters, differences.size)
    order = sorted(range(len(groups.names)), key=lambda place: str(groups.names[place]))
    return groups.totals(differences)[order]


def pool_difference(counts: PairedCounts, pool: int, *, drawn_within: bool = False, level: float = 0.95) -> DesignDifference:
    """Difference of 0/1 scores on a random part of a finite pool: Tango's interval, corrected for the part, and McNemar's test, exact for it.

    Parameters
    ----------
    counts
        The paired 2x2 table.
    pool
        How many questions there are, more than were asked.
    drawn_within
        Whether the questions were drawn within strata, for which the exactness of the test is not shown.
    level
        Two-sided confidence level, in (0, 1).

    Raises
    ------
    ValueError
        When nothing or everything was asked.

    References
    ----------
    Tango (1998), Stat. Med. 17, 891-908; Cochran (1977), section 2.6: the variance of a sample without replacement is (1 - n / N) times that
    of independent draws, so that the critical value shrinks by its root. Berger and Boos (1994), doi:10.1080/01621459.1994.10476836.

    Examples
    --------
    >>> result = pool_difference(PairedCounts(1217, 219, 182, 382), 14042)
    >>> round(result.p_value, 4), round(result.interval.low, 4)
    (0.0562, 0.0003)
    """
    n = counts.questions
    if not 0 < n < pool:
        raise ValueError(f"a part of the pool must have been asked, neither nothing nor all; got {n} of {pool}")
    shrink = math.sqrt(1.0 - n / pool)
    difference = (counts.only_first - counts.only_second) / n
    spread = (counts.discordance - difference**2) / (n - 1) if n > 1 else 0.0
    cautions = [FEW_DISCORDANT.format(counts.discordant)] * (counts.discordant < ENOUGH_DISCORDANT) + [DRAWN_WITHIN] * drawn_within
    return DesignDifference(
        difference=difference,
        interval=tango(counts, level=level_of(two_sided_z(level) * shrink)),
        standard_error=math.sqrt(max(spread, 0.0)) * shrink or None,
        correlation=None,
        p_value=pool_mcnemar(counts.only_first, counts.only_second, questions=n, pool=pool),
        p_error=None,
        test="pool_exact",
        clusters=None,
        caution="; ".join(cautions) or None,
    )
