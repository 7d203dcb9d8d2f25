"""What is the mean, and how precisely is it known, when questions come in clusters that stand for others like them?

Assumption: clusters are independent draws; questions within one may depend on each other in any way. A mean over few clusters
is not calibrated whatever the formula: results carry a caution below 30 clusters, or where unequal ones are worth fewer than 30 of one size.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evalspec.statistics.arguments import FloatArray, IntArray, beyond_rounding, require_binary, require_scores, two_sided_t
from evalspec.statistics.groups import Groups, group
from evalspec.statistics.proportions import Interval, score_limits

Correction = Literal["CR0", "CR1", "CR2", "CR3", "miller"]

ENOUGH_CLUSTERS = 30


@dataclass(frozen=True, slots=True)
class ClusteredMean:
    """A mean with its cluster-robust standard error; ``degrees_of_freedom`` are Bell and McCaffrey's for CR2, else clusters - 1."""

    mean: float
    standard_error: float
    degrees_of_freedom: float
    clusters: int
    questions: int
    caution: str | None


@dataclass(frozen=True, slots=True)
class ClusteredProportion:
    """A proportion's interval on the effective number of questions, which clustering leaves of the nominal one."""

    proportion: float
    interval: Interval
    effective_n: float
    clusters: int
    caution: str | None


def clustered_mean(scores: ArrayLike, clusters: Iterable[Hashable], *, correction: Correction = "CR2") -> ClusteredMean:
    """Mean score with a cluster-robust standard error.

    Parameters
    ----------
    scores
        Shape (Q,): scores, or paired differences of scores.
    clusters
        One label per question, at least two different ones.
    correction
        CR0: none. CR1: times clusters / (clusters - 1), as inspect_ai. CR2: Bell and McCaffrey's, unbiased under independence.
        CR3: the jackknife's, with Cameron and Miller's (clusters - 1) / clusters. miller: the formula of Miller (2024) taken
        literally, with ddof 1 on the diagonal.

    Raises
    ------
    ValueError
        With fewer than two clusters, or a missing label or score.

    References
    ----------
    Bell and McCaffrey (2002), Surv. Methodol. 28, 169-181. Cameron and Miller (2015), J. Hum. Resour. 50, 317-372,
    doi:10.3368/jhr.50.2.317. Miller (2024), arXiv:2411.00640, section 2.2.

    Examples
    --------
    >>> mean = clustered_mean([1, 1, 0, 0, 1, 0], ["a", "a", "b", "b", "c", "c"], correction="CR1")
    >>> round(mean.standard_error, 4)
    0.2887
    """
    values = require_scores("scores", scores, minimum=2)
    groups = _clusters(clusters, values.size)
    count = len(groups.names)
    residuals = values - values.mean()
    sums = groups.totals(residuals)
    variance = _variance(residuals, sums, groups.sizes, correction)
    freedom = bell_mccaffrey_freedom(groups.sizes) if correction == "CR2" else count - 1.0
    return ClusteredMean(float(values.mean()), beyond_rounding(math.sqrt(variance)), freedom, count, values.size, _caution(groups.sizes))


def _variance(residuals: FloatArray, sums: FloatArray, sizes: IntArray, correction: Correction) -> float:
    total, count = residuals.size, sizes.size
    leverage = 1.0 - sizes / total
    if correction == "miller":
        independent = float(residuals @ residuals) / (total - 1) / total
        return independent + (float(sums @ sums) - float(residuals @ residuals)) / total**2
    factors = {
        "CR0": np.ones(count),
        "CR1": np.full(count, count / (count - 1.0)),
        "CR2": 1.0 / leverage,
        "CR3": (count - 1.0) / count / leverage**2,
    }
    return float(np.sum(factors[correction] * sums**2)) / total**2


def bell_mccaffrey_freedom(sizes: ArrayLike) -> float:
    """Satterthwaite degrees of freedom of the CR2 variance of a mean, from the cluster sizes alone.

    Raises
    ------
    ValueError
        With fewer than two clusters.

    References
    ----------
    Bell and McCaffrey (2002), Surv. Methodol. 28, 169-181, for the model with an intercept only.

    Examples
    --------
    >>> round(bell_mccaffrey_freedom([10, 10, 10]), 6)
    2.0
    """
    n = np.asarray(sizes, dtype=np.float64)
    if n.size < 2:
        raise ValueError(f"needs at least 2 clusters; got {n.size}")
    total = float(n.sum())
    weight = 1.0 / np.sqrt(1.0 - n / total)
    # Covariance of the adjusted cluster sums of residuals when questions are independent with equal variance.
    covariance = weight[:, None] * weight[None, :] * (np.diag(n) - np.outer(n, n) / total)
    return float(np.trace(covariance) ** 2 / np.sum(covariance**2))


def clustered_interval(scores: ArrayLike, clusters: Iterable[Hashable], *, level: float = 0.95) -> Interval:
    """Interval of a clustered mean: CR2 standard error and Bell and McCaffrey's degrees of freedom.

    Raises
    ------
    ValueError
        As `clustered_mean`.

    References
    ----------
    As `clustered_mean`. Imbens and Kolesár (2016), Rev. Econ. Stat. 98, 701-712, doi:10.1162/REST_a_00552.

    Examples
    --------
    >>> interval = clustered_interval([1, 1, 0, 0, 1, 0], ["a", "a", "b", "b", "c", "c"])
    >>> round(interval.low, 3), round(interval.high, 3)
    (-0.742, 1.742)
    """
    mean = clustered_mean(scores, clusters, correction="CR2")
    spread = two_sided_t(level, mean.degrees_of_freedom) * mean.standard_error
    return Interval(mean.mean - spread, mean.mean + spread)


def clustered_wilson(scores: ArrayLike, clusters: Iterable[Hashable], *, level: float = 0.95) -> ClusteredProportion:
    """Wilson's interval on the effective number of questions, with Student's quantile for the number of clusters.

    Without a success or a failure the design effect cannot be seen; each cluster then counts as one question, the least that it
    can be worth.

    Parameters
    ----------
    scores
        0/1 scores of shape (Q,).
    clusters
        One label per question, at least two different ones.

    Raises
    ------
    ValueError
        As `clustered_mean`, and when a score is neither 0 nor 1.

    References
    ----------
    Korn and Graubard (1998), Surv. Methodol. 24, 193-201 (the effective sample size, there with Clopper and Pearson's limits).

    Examples
    --------
    >>> round(clustered_wilson([1, 1, 0, 0, 1, 0], ["a", "a", "b", "b", "c", "c"]).effective_n, 3)
    3.0
    """
    correct = require_binary("scores", scores).astype(np.float64)
    labels = list(clusters)
    mean = clustered_mean(correct, labels, correction="CR1")
    p, count, total = mean.mean, mean.clusters, mean.questions
    naive = p * (1.0 - p) / total
    effective = total / max(1.0, mean.standard_error**2 / naive) if naive > 0.0 else float(count)
    limits = score_limits(np.array([p]), np.array([effective]), two_sided_t(level, count - 1.0))
    low = 0.0 if p == 0.0 else float(limits.low[0])
    high = 1.0 if p == 1.0 else float(limits.high[0])
    return ClusteredProportion(p, Interval(low, high), effective, count, mean.caution)


def _clusters(labels: Iterable[Hashable], questions: int) -> Groups:
    groups = group(labels, questions)
    if len(groups.names) < 2:
        raise ValueError(f"needs at least 2 clusters; got {len(groups.names)}, and one cluster has no spread between clusters")
    return groups


def clusters_worth(sizes: ArrayLike) -> float:
    """Number of clusters of one size that tell as much about the spread between clusters: Bell and McCaffrey's degrees of freedom, plus one.

    Raises
    ------
    ValueError
        With fewer than two clusters.

    References
    ----------
    As `bell_mccaffrey_freedom`.

    Examples
    --------
    >>> round(clusters_worth([100, *[10] * 40]), 1)
    18.3
    """
    return bell_mccaffrey_freedom(sizes) + 1.0


def enough_clusters(sizes: ArrayLike) -> bool:
    """Return whether there are 30 clusters, and unequal ones are worth as many of one size.

    References
    ----------
    As `bell_mccaffrey_freedom`. The bound is a convention: see docs/tiers.md for error rates below it.

    Examples
    --------
    >>> enough_clusters([10] * 30), enough_clusters([100, *[10] * 40])
    (True, False)
    """
    return np.size(sizes) >= ENOUGH_CLUSTERS and round(clusters_worth(sizes)) >= ENOUGH_CLUSTERS


def _caution(sizes: IntArray) -> str | None:
    clusters = sizes.size
    if clusters < 10:
        return f"{clusters} clusters: fewer than 10, so the interval is not calibrated"
    if clusters < ENOUGH_CLUSTERS:
        return f"{clusters} clusters: fewer than {ENOUGH_CLUSTERS}, so the interval may cover less often than its level"
    if enough_clusters(sizes):
        return None
    return (
        f"{clusters} clusters of sizes so different that they are worth about {clusters_worth(sizes):.0f} of one size: fewer than "
        f"{ENOUGH_CLUSTERS}, so the interval may cover less often than its level"
    )
