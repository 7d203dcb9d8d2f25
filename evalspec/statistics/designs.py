"""What is the mean of scores, and between which limits, given how the questions came about?

Questions may be independent draws, come in strata that are asked about themselves, in clusters that stand for others like them, or be
a random part of a finite pool. One description of that, `Design`, leads to one standard error and one interval.

Assumption: that the design says how the questions came about, and that of the interval that the result names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from evalspec.statistics.arguments import FloatArray, beyond_rounding, require_scores, two_sided_t
from evalspec.statistics.clusters import clustered_mean
from evalspec.statistics.groups import Groups, group
from evalspec.statistics.means import mean_score
from evalspec.statistics.proportions import Interval

FEW_QUESTIONS = 30
FEW_APART = 10
LONELY = "a subject has a single scored question, so subjects are not used to shorten the interval"
WHOLE = ""
"""The key of a pool without strata."""

MeanMethod = Literal["t", "stratified_t", "cr2_t", "cluster_means_t"]


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """How the questions behind some scores came about; arrays hold one label per question.

    ``strata`` are groups with numbers of questions that were fixed beforehand; ``shares`` is the weight of each stratum in the mean, by
    default its share of the questions. ``clusters`` are groups that stand for others like them. ``by_cluster`` lets every cluster count
    the same. ``pool`` says how many questions each stratum of the pool has, or, under `WHOLE`, the pool, when the target is the pool alone.
    """

    strata: NDArray[np.str_] | None = None
    shares: Mapping[str, float] | None = None
    clusters: NDArray[np.str_] | None = None
    by_cluster: bool = False
    pool: Mapping[str, int] | None = None
    note: str | None = None

    def kept(self, which: NDArray[np.bool_]) -> Design:
        """Return the design of the questions that ``which`` marks.

        Where a stratum is left with one question, strata that carry no weights are given up: treating the questions as independent draws is
        then the cautious reading.

        Examples
        --------
        >>> Design(strata=np.array(["x", "x", "y", "y"])).kept(np.array([True, True, True, False])).strata is None
        True
        """
        strata, clusters = (None if labels is None else labels[which] for labels in (self.strata, self.clusters))
        kept = replace(self, strata=strata, clusters=clusters)
        if strata is None or self.shares is not None or self.pool is not None or not strata.size:
            return kept
        return replace(kept, strata=None, note=LONELY) if np.unique(strata, return_counts=True)[1].min() < 2 else kept

    def asked(self, questions: int) -> float:
        """Return the share of the pool that this many questions are; 0 where the target is no pool.

        Examples
        --------
        >>> Design(pool={"law": 30, "logic": 10}).asked(10)
        0.25
        """
        return questions / sum(self.pool.values()) if self.pool else 0.0


@dataclass(frozen=True, slots=True)
class DesignMean:
    """A mean, its standard error and the degrees of freedom of that; ``caution`` says what to keep in mind.

    ``apart`` counts the questions, or the clusters, that have another score than the one that is most frequent.
    """

    mean: float
    standard_error: float
    degrees_of_freedom: float
    questions: int
    method: MeanMethod
    clusters: int | None = None
    caution: str | None = None
    apart: int | None = None

    def interval(self, level: float, *, smallest: float = 0.0, largest: float = 1.0) -> Interval | None:
        """Student's interval within the values that scores can take; None where the scores have no spread to measure.

        Raises
        ------
        ValueError
            For an impossible level.

        References
        ----------
        Student (1908), Biometrika 6, 1-25, doi:10.1093/biomet/6.1.1.

        Examples
        --------
        >>> round(design_mean(np.array([0.0, 0.5, 0.5, 1.0, 0.25]), Design()).interval(0.95).high, 4)
        0.9104
        """
        if self.standard_error == 0.0:
            return None
        spread = two_sided_t(level, self.degrees_of_freedom) * self.standard_error
        return Interval(max(smallest, self.mean - spread), min(largest, self.mean + spread))


def design_mean(scores: FloatArray, design: Design) -> DesignMean:
    """Mean of scores of any kind, or of differences of scores, with its standard error under the design.

    Independent questions: the central limit theorem with ddof 1. Strata: sqrt(sum w^2 s^2 / n), with Satterthwaite's degrees of freedom.
    Clusters: CR2 with Bell and McCaffrey's degrees of freedom; or, where every cluster counts the same, Student's for the cluster means.
    A pool shrinks each part by sqrt(1 - n / N).

    Raises
    ------
    ValueError
        With fewer than two questions or clusters, or a stratum with a single question.

    References
    ----------
    Miller (2024), arXiv:2411.00640, section 2. Cochran (1977), Sampling Techniques, 3rd ed., chapters 2 and 5. Bell and McCaffrey (2002),
    Surv. Methodol. 28, 169-181.

    Examples
    --------
    >>> labels = np.array(["x", "x", "y", "y", "y", "y"])
    >>> round(design_mean(np.array([1.0, 0, 1, 1, 0, 0]), Design(strata=labels, shares={"x": 0.5, "y": 0.5})).standard_error, 4)
    0.2887
    """
    values = require_scores("scores", scores, minimum=2)
    groups = None if design.clusters is None else group(design.clusters, values.size)
    alike = np.unique(np.round(values if groups is None else groups.totals(values) / groups.sizes, 9), return_counts=True)[1]
    return replace(_moments(values, design), apart=int(alike.sum() - alike.max()))


def _moments(values: FloatArray, design: Design) -> DesignMean:
    if design.clusters is not None:
        return _cluster_means(values, design.clusters) if design.by_cluster else _clustered(values, design.clusters)
    if design.strata is None:
        simple = mean_score(values)
        error = simple.standard_error * math.sqrt(1.0 - design.asked(values.size))
        return DesignMean(simple.mean, error, values.size - 1.0, values.size, "t", caution=design.note)
    return _stratified(values, design, group(design.strata, values.size))


def _clustered(values: FloatArray, labels: NDArray[np.str_]) -> DesignMean:
    mean = clustered_mean(values, labels, correction="CR2")
    return DesignMean(mean.mean, mean.standard_error, mean.degrees_of_freedom, values.size, "cr2_t", mean.clusters, mean.caution)


def _cluster_means(values: FloatArray, labels: NDArray[np.str_]) -> DesignMean:
    groups = group(labels, values.size)
    count = len(groups.names)
    if count < 2:
        raise ValueError("needs at least 2 clusters; got 1, and one cluster has no spread between clusters")
    of_clusters = mean_score(groups.totals(values) / groups.sizes)
    caution = clustered_mean(values, labels, correction="CR0").caution
    return DesignMean(of_clusters.mean, of_clusters.standard_error, count - 1.0, values.size, "cluster_means_t", count, caution)


@dataclass(frozen=True, slots=True)
class StratumParts:
    """Per stratum: its weight in the mean, its mean, and the variance of that."""

    shares: FloatArray
    means: FloatArray
    variances: FloatArray


def _stratified(values: FloatArray, design: Design, groups: Groups) -> DesignMean:
    if groups.sizes.min() < 2:
        lonely = groups.names[int(groups.sizes.argmin())]
        raise ValueError(f"subject {lonely} has a single scored question, and the spread within a subject needs at least 2")
    parts = stratum_parts(values, design, groups)
    pieces = parts.shares**2 * parts.variances
    variance, denominator = float(pieces.sum()), float(np.sum(pieces**2 / (groups.sizes - 1)))
    freedom = variance**2 / denominator if denominator > 0.0 else float(values.size - len(groups.names))
    # Shares sum to 1 up to rounding only, and a mean lies among its scores.
    mean = float(np.clip(parts.shares @ parts.means, values.min(), values.max()))
    return DesignMean(mean, beyond_rounding(math.sqrt(variance)), freedom, values.size, "stratified_t")


def stratum_parts(values: FloatArray, design: Design, groups: Groups) -> StratumParts:
    """Return what each stratum adds to the mean; strata of one question must have been refused.

    References
    ----------
    Cochran (1977), Sampling Techniques, 3rd ed., chapter 5.

    Examples
    --------
    >>> design, scores = Design(strata=np.array(["x", "x", "y", "y"])), np.array([1.0, 0, 1, 1])
    >>> stratum_parts(scores, design, group(design.strata, 4)).variances
    array([0.25, 0.  ])
    """
    means = groups.totals(values) / groups.sizes
    spread = groups.totals((values - means[groups.codes]) ** 2) / (groups.sizes - 1)
    return StratumParts(stratum_shares(design, groups), means, spread / groups.sizes * (1.0 - asked_shares(design, groups)))


def stratum_shares(design: Design, groups: Groups) -> FloatArray:
    """Weight of each stratum in the mean, of shape (groups,) and sum 1: its declared share, or its share of the questions.

    Raises
    ------
    ValueError
        When a stratum that has a share has no question.

    References
    ----------
    Cochran (1977), Sampling Techniques, 3rd ed., section 5.3.

    Examples
    --------
    >>> labels = np.array(["x", "x", "x", "y"])
    >>> stratum_shares(Design(strata=labels), group(labels, 4))
    array([0.75, 0.25])
    """
    if design.shares is None:
        return np.asarray(groups.sizes / groups.sizes.sum())
    absent = sorted(set(design.shares) - set(map(str, groups.names)))
    if absent:
        raise ValueError(f"subject {absent[0]} has a weight in the mean and no scored question")
    raw = np.array([design.shares[str(name)] for name in groups.names])
    return np.asarray(raw / raw.sum())


def asked_shares(design: Design, groups: Groups) -> FloatArray:
    """Share of its part of the pool that was asked, per stratum; 0 where the target is no pool.

    References
    ----------
    Cochran (1977), Sampling Techniques, 3rd ed., chapter 5: the sampling fraction of each stratum.

    Examples
    --------
    >>> labels = np.array(["x", "x", "y"])
    >>> asked_shares(Design(strata=labels, pool={"x": 4, "y": 10}), group(labels, 3))
    array([0.5, 0.1])
    """
    if design.pool is None:
        return np.zeros(len(groups.names))
    return np.array([size / design.pool[str(name)] for name, size in zip(groups.names, groups.sizes, strict=True)])


def about_spread(moments: DesignMean) -> str | None:
    """Return what to keep in mind about an interval that rests on the spread of scores of any kind.

    Examples
    --------
    >>> about_spread(design_mean(np.array([0.5, 0.25, 1.0]), Design()))
    '3 questions: fewer than 30, so the mean may not be nearly normal'
    """
    if moments.standard_error == 0.0:
        return "the spread is 0, so it gives no interval"
    few = moments.questions < FEW_QUESTIONS and moments.clusters is None
    told = f"{moments.questions} questions: fewer than {FEW_QUESTIONS}, so the mean may not be nearly normal" if few else moments.caution
    return "; ".join(filter(None, (told, _about_apart(moments)))) or None


def _about_apart(moments: DesignMean) -> str | None:
    units = moments.clusters or moments.questions
    if moments.apart is None or moments.apart >= min(FEW_APART, units / 2):
        return None
    named = f"{moments.apart} of {units:,} {'questions' if moments.clusters is None else 'clusters'}"
    differ = "has another score than all others" if moments.apart == 1 else "have another score than the others, which all have the same"
    return f"{named} {differ}: fewer than {FEW_APART} make the spread, and Student's interval and test can err far more often than stated"


def level_of(critical: float) -> float:
    """Confidence level of the two-sided normal interval that reaches ``critical`` standard errors out.

    Examples
    --------
    >>> round(level_of(1.959964), 6)
    0.95
    """
    return float(1.0 - 2.0 * ndtr(-critical))
