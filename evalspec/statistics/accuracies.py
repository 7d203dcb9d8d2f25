"""How accurate is a model, and between which limits, given how the questions came about?

Assumption: as the design says, and that of the interval that the result names.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evalspec.statistics.arguments import FloatArray, require_scores, two_sided_z
from evalspec.statistics.clusters import clustered_mean, clustered_wilson
from evalspec.statistics.designs import Design, DesignMean, StratumParts, about_spread, asked_shares, design_mean, stratum_parts
from evalspec.statistics.finite_pools import pool_clopper_pearson
from evalspec.statistics.gaffke import gaffke_bound, gaffke_method, units_of
from evalspec.statistics.groups import Groups, group
from evalspec.statistics.proportion_alternatives import lower_bound, upper_bound
from evalspec.statistics.proportions import Interval, ProportionMethod, effective_limits

ALL_ASKED = "every question of this part of the pool was asked, so that nothing is uncertain about it"


@dataclass(frozen=True, slots=True)
class Accuracy:
    """A mean score with its interval.

    ``method`` names the interval; ``effective_n`` is the number of independent questions that would be as precise, where it is not the
    number of questions; ``interval`` and ``standard_error`` are None where the scores have no spread that they could rest on. ``one_sided`` is
    the exact bound at the same level, upper where no answer of independent questions is right and lower where all are.
    """

    mean: float
    interval: Interval | None
    standard_error: float | None
    questions: int
    method: str
    successes: int | None = None
    effective_n: float | None = None
    clusters: int | None = None
    caution: str | None = None
    one_sided: float | None = None


def accuracy(scores: FloatArray, design: Design, *, method: ProportionMethod = "wilson", level: float = 0.95) -> Accuracy:
    """Mean of scores in [0, 1] with the interval that fits their kind and the design.

    Scores of 0 and 1 get ``method``, on the effective number of questions where the design asks for it and with Student's quantile where
    few clusters or strata measure the spread (Korn and Graubard). Other scores get Student's interval of their mean. Where ``method`` is
    ``clopper_pearson``, strata are passed over where questions weigh alike, and a pool with them, which keeps its level (Hoeffding); clusters, other
    scores and questions that weigh differently get Gaffke's bounds, which are its continuation to them and pass over strata and pools.

    Parameters
    ----------
    scores
        Shape (Q,), none missing.
    design
        Of the same questions.
    method
        The interval for scores of 0 and 1; with ``clopper_pearson`` that for other scores and for clusters follows.
    level
        Two-sided confidence level, in (0, 1).

    Raises
    ------
    ValueError
        With the reason, where no mean or no standard error is defined: no scores, one cluster, a stratum with a single question.

    References
    ----------
    Wilson (1927), doi:10.1080/01621459.1927.10502953. Clopper and Pearson (1934), doi:10.1093/biomet/26.4.404. Korn and Graubard (1998),
    Surv. Methodol. 24, 193-201. Cochran (1977), Sampling Techniques, 3rd ed., chapters 2 and 5. Bell and McCaffrey (2002), Surv. Methodol.
    28, 169-181. Gaffke (2005), Math. Methods Statist. 14, 451-467. Hoeffding (1956), Ann. Math. Stat. 27, 713-721: with k right answers of
    n at least one more than n times the limit, independent answers of unequal chances reach k no more often than those of one chance.

    Examples
    --------
    >>> result = accuracy(np.array([1.0, 1, 1, 0, 1, 0]), Design())
    >>> round(result.mean, 3), result.successes, result.method
    (0.667, 4, 'wilson')
    """
    values = require_scores("scores", scores)
    binary = bool(np.all((values == 0.0) | (values == 1.0)))
    guaranteed = method == "clopper_pearson" and design.asked(values.size) < 1.0
    if guaranteed and (design.clusters is not None or design.shares is not None or not binary):
        return _bounded(values, design, level)
    if binary and design.clusters is not None and not design.by_cluster:
        return _clustered_proportion(values, design.clusters, method, level)
    moments = design_mean(values, design) if values.size > 1 else None
    if binary and not design.by_cluster:
        passed_over = guaranteed and design.strata is not None
        return _proportion(values, replace(design, strata=None, pool=None) if passed_over else design, moments, method, level)
    if moments is None:
        raise ValueError("a single question has no spread, and its score is neither 0 nor 1")
    error = moments.standard_error or None
    return Accuracy(
        moments.mean, moments.interval(level), error, values.size, moments.method, clusters=moments.clusters, caution=about_spread(moments)
    )


def _proportion(values: FloatArray, design: Design, moments: DesignMean | None, method: ProportionMethod, level: float) -> Accuracy:
    """Interval of a proportion of independent or stratified 0/1 scores."""
    n, successes = values.size, int(values.sum())
    counted = successes if design.shares is None else None
    if _asked_whole(design, n):
        mean = moments.mean if moments else successes / n
        return Accuracy(mean, Interval(mean, mean), None, n, f"{method}_effective_n", counted, caution=ALL_ASKED)
    if design.strata is None or moments is None:
        asked = design.asked(n)
        effective = n / (1.0 - asked) if asked else None
        interval = effective_limits(successes / n, effective or n, method=method, level=level)
        named = method if effective is None else f"{method}_effective_n"
        if effective is not None and design.pool and method == "clopper_pearson":
            interval, named = pool_clopper_pearson(successes, questions=n, pool=sum(design.pool.values()), level=level), "clopper_pearson_pool"
        error = moments.standard_error if moments and moments.standard_error > 0.0 else None
        exact = _one_sided(successes, n, level) if effective is None else None
        return Accuracy(successes / n, interval, error, n, named, successes, effective, caution=design.note, one_sided=exact)
    groups = group(design.strata, n)
    effective = _effective_n(stratum_parts(values, design, groups), design, groups, level, values)
    interval = effective_limits(moments.mean, effective, method=method, level=level, degrees_of_freedom=moments.degrees_of_freedom)
    return Accuracy(moments.mean, interval, moments.standard_error or None, n, f"{method}_stratified", counted, effective)


def _asked_whole(design: Design, questions: int) -> bool:
    """Return whether these are all questions of the pool, or of those of its strata that they are from."""
    if design.pool is None or design.strata is None:
        return design.asked(questions) == 1.0
    return bool(asked_shares(design, group(design.strata, questions)).min() == 1.0)


def _bounded(values: FloatArray, design: Design, level: float) -> Accuracy:
    """Gaffke's bounds on either side, each at half the error: that of the scores, and that of what they lack of 1."""
    alpha = (1.0 - level) / 2.0
    units, lacking = units_of(values, design), units_of(1.0 - values, design)
    interval = Interval(gaffke_bound(units, alpha=alpha), 1.0 - gaffke_bound(lacking, alpha=alpha))
    moments = design_mean(values, design) if values.size > 1 else None
    counted = not design.by_cluster and bool(np.all((values == 0.0) | (values == 1.0)))
    return Accuracy(
        mean=units.mean,
        interval=interval,
        standard_error=moments.standard_error or None if moments else None,
        questions=values.size,
        method=gaffke_method(design),
        successes=int(values.sum()) if counted else None,
        clusters=units.number if design.clusters is not None else None,
        caution=units.caution,
    )


def _one_sided(successes: int, questions: int, level: float) -> float | None:
    """Return the exact one-sided bound where all answers are alike: 1 - alpha^(1/n) at most right, or as few wrong."""
    if successes == 0:
        return upper_bound(successes, questions, level=level)
    return lower_bound(successes, questions, level=level) if successes == questions else None


def _effective_n(parts: StratumParts, design: Design, groups: Groups, level: float, values: FloatArray) -> float:
    """Return the number of independent questions that are as precise as the strata.

    It is the variance of one question, p (1 - p) n / (n - 1), over that of the mean, estimated without bias; the first is not quite unbiased
    under strata or weights. Strata in which all answers are alike would show no variance and
    promise too much, so the same ratio is taken again after z^2 made-up questions, half of them right, are spread over the strata in
    proportion to their weight (the pseudo-observations of Agresti and Coull), and the smaller one counts. One stratum gives n.
    """
    n, mean, left = values.size, float(parts.shares @ parts.means), 1.0 - asked_shares(design, groups)
    added = two_sided_z(level) ** 2 * parts.shares
    eased = (parts.means * groups.sizes + added / 2.0) / (groups.sizes + added)
    of_one = float(parts.shares @ eased) * (1.0 - float(parts.shares @ eased))
    sizes = [of_one / float(np.sum(parts.shares**2 * eased * (1.0 - eased) / groups.sizes * left))]
    variance = float(np.sum(parts.shares**2 * parts.variances))
    if variance > 0.0 and 0.0 < mean < 1.0:
        sizes.append(mean * (1.0 - mean) * n / (n - 1.0) / variance)
    return min(sizes)


def _clustered_proportion(values: FloatArray, labels: NDArray[np.str_], method: ProportionMethod, level: float) -> Accuracy:
    share = clustered_wilson(values, labels, level=level)
    error = clustered_mean(values, labels, correction="CR2").standard_error
    interval = share.interval
    if method != "wilson":
        effective = share.effective_n
        interval = effective_limits(share.proportion, effective, method=method, level=level, degrees_of_freedom=share.clusters - 1.0)
    return Accuracy(
        mean=share.proportion,
        interval=interval,
        standard_error=error or None,
        questions=values.size,
        method=f"{method}_clustered",
        successes=int(values.sum()),
        effective_n=share.effective_n,
        clusters=share.clusters,
        caution=share.caution,
    )
