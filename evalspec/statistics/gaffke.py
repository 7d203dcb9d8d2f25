"""Above which limit does a mean of bounded scores lie, whatever their distribution?

Assumption: the units (questions, or whole clusters of them) are independent draws, and scores cannot lie below a known value. Where clusters
differ in size, their sizes say nothing about their scores. Null hypothesis: the mean is at most the limit.

For scores of 0 and 1 of independent questions the bound is Clopper and Pearson's. That it keeps its level for other scores is Gaffke's
conjecture, which calculation supports; no counterexample is known. The conjecture is about draws alike. For clusters that differ in size the
size of the made-up one is evalspec's own, and that the bound keeps its level with it rests on calculation alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from evalspec.statistics.arguments import FloatArray, require_fraction, require_one_sided, require_scores
from evalspec.statistics.designs import Design, stratum_shares
from evalspec.statistics.exponential_sums import log_chance_at_most_zero
from evalspec.statistics.groups import group
from evalspec.statistics.p_values import held

WEIGHTS_DIFFER = "questions weigh differently: that the bounds keep their level rests on calculation alone"
SIZES_DIFFER = "clusters differ in size: the bounds take it that their sizes say nothing about their scores, and rest on calculation alone there"

PRECISION = 1e-12
"""Largest relative error of the chance at a bound."""


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Independent draws: the total score of each, its number of questions, and how many draws have both; all of shape (K,).

    ``smallest`` is the least score that a question can have. Of questions that were fixed beforehand and are ``weighted``, sizes are weights, and
    totals are scores times weights.
    """

    totals: FloatArray
    sizes: FloatArray
    counts: FloatArray
    smallest: float
    weighted: bool = False

    @property
    def mean(self) -> float:
        """Mean score over all questions."""
        return float(self.counts @ self.totals / (self.counts @ self.sizes))

    @property
    def made_up_size(self) -> float:
        """Number of questions of the made-up draw: the mean size, sizes weighted by their squares, as the variance of the total weighs them.

        Half of it is enough to the first order (an Edgeworth expansion, for scores of any distribution that does not depend on the size); all of
        it is needed where sizes are equal, and where a few large clusters hold part of the questions and the others are tiny. The mean size
        weighted by the sizes themselves is too small there: checks passed wrongly up to nine times as often as stated.

        Of weighted questions it is the largest weight: weights and chances of a right answer may then go together.
        """
        if self.weighted:
            return float(self.sizes.max())
        return float(self.counts @ self.sizes**3 / (self.counts @ self.sizes**2))

    @property
    def number(self) -> int:
        """How many draws there are."""
        return int(self.counts.sum())

    @property
    def caution(self) -> str | None:
        """What to keep in mind about a bound that rests on these draws."""
        if np.ptp(self.sizes) == 0.0:
            return None
        return WEIGHTS_DIFFER if self.weighted else SIZES_DIFFER


GaffkeMethod = Literal["gaffke", "gaffke_clustered", "gaffke_cluster_means", "gaffke_weighted"]


def gaffke_method(design: Design) -> GaffkeMethod:
    """Return what the bound is called, by what the independent draws are: questions, alike or weighted, clusters, or the means of clusters.

    Examples
    --------
    >>> gaffke_method(Design())
    'gaffke'
    """
    if design.clusters is None:
        return "gaffke" if design.shares is None else "gaffke_weighted"
    return "gaffke_cluster_means" if design.by_cluster else "gaffke_clustered"


def units_of(scores: ArrayLike, design: Design, *, smallest: float = 0.0) -> Units:
    """Return the independent draws behind scores: questions, or clusters where the design has them.

    Strata and pools are passed over: questions then count as independent draws, by their weights where strata are weighted.

    Parameters
    ----------
    scores
        Shape (Q,): scores, averages over repeats, or differences of either.
    design
        Of the same questions.
    smallest
        The least value that a score can have: 0, or -1 for differences.

    Raises
    ------
    ValueError
        When a score is missing or lies below ``smallest``, a stratum that has a weight has no score, or there is a single cluster.

    References
    ----------
    As `gaffke_bound`.

    Examples
    --------
    >>> units_of([1, 0, 1, 1], Design(clusters=np.array(["a", "a", "b", "b"]))).totals
    array([1., 2.])
    """
    values = require_scores("scores", scores)
    if values.min() < smallest - 1e-9:
        raise ValueError(f"scores must not lie below {smallest:g}; got {values.min()!r}")
    weights = _question_weights(design, values.size)
    totals, sizes = np.maximum(values, smallest) * weights, weights
    if design.clusters is not None:
        groups = group(design.clusters, values.size)
        if len(groups.names) < 2:
            raise ValueError("needs at least 2 clusters; got 1, and one cluster has no spread between clusters")
        totals, sizes = groups.totals(totals), groups.sizes.astype(np.float64)
        totals, sizes = (totals / sizes, np.ones(sizes.size)) if design.by_cluster else (totals, sizes)
    pairs, counts = np.unique(np.stack([totals, sizes])[:, sizes > 0.0], axis=1, return_counts=True)
    return Units(pairs[0], pairs[1], counts.astype(np.float64), smallest, weighted=design.shares is not None)


def _question_weights(design: Design, questions: int) -> FloatArray:
    """Return the weight of each question in the mean, (Q,), 1 on average: the share of its stratum over the number of its questions."""
    if design.strata is None or design.shares is None:
        return np.ones(questions)
    groups = group(design.strata, questions)
    return np.asarray((questions * stratum_shares(design, groups) / groups.sizes)[groups.codes])


def gaffke_p(units: Units, limit: float) -> float:
    """One-sided p-value against H0: the mean is at most ``limit``; below ``alpha`` exactly where the lower bound exceeds it.

    A made-up draw with the smallest score throughout, as large as the others where they are alike, joins the units; the p-value is the chance
    that their mean lies at or below the limit when all are weighted at random, uniformly on the simplex.

    Raises
    ------
    ValueError
        When the limit lies below the smallest score.

    References
    ----------
    As `gaffke_bound`.

    Examples
    --------
    >>> round(gaffke_p(units_of([1.0] * 9 + [0.0], Design()), 0.5), 6)  # as the binomial test of 9 successes in 10 trials
    0.010742
    """
    if limit < units.smallest:
        raise ValueError(f"limit must not lie below the smallest score, {units.smallest:g}; got {limit!r}")
    return held(math.exp(_log_p(units, limit)))


def gaffke_bound(units: Units, *, alpha: float = 0.025) -> float:
    """Lower bound of the mean of bounded scores at one-sided level ``alpha``.

    With independent questions it is the alpha-quantile of a random average of the scores and the smallest possible one, weights being uniform
    on the simplex. With clusters it is the limit at which the cluster totals less limit times size, weighted so, lie at or below 0 with
    chance alpha.

    Parameters
    ----------
    units
        As `units_of` returns them.
    alpha
        One-sided level, in (0, 0.5).

    Raises
    ------
    ValueError
        For an impossible level.

    References
    ----------
    Gaffke (2005), Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable, Math. Methods
    Statist. 14, 451-467. Learned-Miller and Thomas (2019), arXiv:1905.06208. Phan, Thomas and Learned-Miller (2021), Proc. ICML,
    arXiv:2106.03163. That the bound holds with chance 1 - alpha is proven for scores of two values and for one draw; else it is a conjecture,
    for draws alike. For clusters of unequal size it was calculated (`Units.made_up_size`).

    Examples
    --------
    >>> round(gaffke_bound(units_of([1.0] * 29 + [0.0], Design())), 4)  # Clopper and Pearson's
    0.8278
    >>> round(gaffke_bound(units_of([0.9] * 10 + [0.6] * 5, Design())), 4)
    0.6148
    """
    target = math.log(require_one_sided(alpha))
    smallest, reach = units.smallest, float(np.max(units.totals / units.sizes)) - units.smallest
    if reach <= 0.0:
        return smallest
    # In the logarithm of the distance from the smallest score log p is nearly straight, and straight where all scores are alike.
    excess = _rising_root(lambda place: _log_p(units, smallest + reach * math.exp(place)) - target, *_first_places(units, reach, alpha))
    return smallest + reach * math.exp(excess)


def fewest_draws(share: float, *, alpha: float = 0.025) -> int:
    """How many draws that are all alike leave the bound at this share of the way from the smallest score to theirs, alpha ** (1 / n).

    Draws of unequal size, or that differ, need more. Nothing that holds for every distribution needs fewer: draws that are all alike with
    chance alpha say no more.

    Raises
    ------
    ValueError
        When the share or the level is impossible.

    References
    ----------
    As `gaffke_bound`.

    Examples
    --------
    >>> fewest_draws(0.95)  # a margin of 5 points less than no difference, on the way from -1
    72
    """
    return math.ceil(math.log(require_one_sided(alpha)) / math.log(require_fraction("share", share)) - 1e-9)


def _log_p(units: Units, limit: float) -> float:
    made_up = (units.smallest - limit) * units.made_up_size
    return log_chance_at_most_zero(np.append(units.totals - limit * units.sizes, made_up), np.append(units.counts, 1.0))


def _first_places(units: Units, reach: float, alpha: float) -> tuple[float, float]:
    """Return where to start, by the normal approximation, and a place that is surely high enough: were all scores the best observed one."""
    highest = math.log(alpha) / units.number
    made_up, mean = units.made_up_size, units.mean
    questions = float(units.counts @ units.sizes) + made_up
    spread = math.sqrt(float(units.counts @ (units.totals - mean * units.sizes) ** 2) + (made_up * (mean - units.smallest)) ** 2) / questions
    guess = mean - made_up / questions * (mean - units.smallest) + float(ndtri(alpha)) * spread - units.smallest
    return min(math.log(guess / reach) if guess > 0.0 else 2.0 * highest - 1.0, highest), highest


def _rising_root(function: Callable[[float], float], start: float, highest: float) -> float:
    """Return where a rising function crosses 0, by secants through the last two places; ``highest`` lies above the crossing."""
    low, high = -math.inf, highest
    before, earlier = highest, function(highest)
    place = min(start, highest - 1e-6)
    for _ in range(200):
        value = function(place)
        low, high = (place, high) if value < 0.0 else (low, place)
        if abs(value) < PRECISION or high - low < 1e-15 * abs(high):
            break
        ahead = place - value * (place - before) / (value - earlier) if math.isfinite(value) and value != earlier else math.nan
        before, earlier = place, value
        floor = low if math.isfinite(low) else 2.0 * high - 1.0
        place = ahead if floor < ahead < high else 0.5 * (floor + high)
    return place
