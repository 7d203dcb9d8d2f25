"""How stable is a ranking of many models when the questions are drawn again?

Assumption: questions are independent draws; whole rows are redrawn, so models stay paired. These are frequencies of a
simulation with their Monte Carlo error: they show stability, and are no confidence, least of all among models that nearly tie.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

import numpy as np

from evalspec.statistics.arguments import FloatArray, require_count
from evalspec.statistics.packed_scores import Totals
from evalspec.statistics.proportions import Interval, effective_limits
from evalspec.statistics.redrawn_totals import RedrawnTotals, RedrawPlan, contenders, halved_totals, redrawn_totals, taken_per_stratum
from evalspec.statistics.response_patterns import ResponsePatterns

__all__ = [
    "RedrawPlan",
    "RedrawnRanking",
    "ResponsePatterns",
    "SimulatedHalves",
    "monte_carlo_interval",
    "order_share",
    "redraw_ranking",
    "redraw_rankings",
    "simulated_split_halves",
]


@dataclass(frozen=True, slots=True)
class RedrawnRanking:
    """How often each model comes first, ties shared, and how often the declared order of the first few holds.

    A model that could hardly come first in any of the draws was left out of them and stands at 0.
    """

    first: tuple[float, ...]
    order: float
    draws: int

    def standard_error(self, frequency: float) -> float:
        """Monte Carlo standard error of a frequency from these draws.

        Examples
        --------
        >>> RedrawnRanking((0.5, 0.5), 0.5, 10_000).standard_error(0.5)
        0.005
        """
        return math.sqrt(frequency * (1.0 - frequency) / self.draws)


@dataclass(frozen=True, slots=True)
class SimulatedHalves:
    """What choosing the winner on one half shows on the other, over many splits; leads are proportions.

    ``wins`` is how often each model wins the half that chooses. ``shrinkage`` is the share of the selected lead that is gone on the
    other half, ``None`` when there is no lead. Each number has its Monte Carlo standard error beside it.
    """

    same_winner: float
    same_winner_error: float
    lead_selected: float
    lead_selected_error: float
    lead_held_out: float
    lead_held_out_error: float
    shrinkage: float | None
    shrinkage_error: float | None
    wins: tuple[float, ...]


def monte_carlo_interval(frequency: float, draws: int, *, level: float = 0.95) -> Interval:
    """Wilson's interval for what a frequency would be with draws without end; honest at 0 and 1 too.

    Shared ties only make a frequency more precise than this.

    Raises
    ------
    ValueError
        For a frequency outside [0, 1], or without a draw.

    References
    ----------
    Wilson (1927), J. Am. Stat. Assoc. 22, 209-212, doi:10.1080/01621459.1927.10502953.

    Examples
    --------
    >>> monte_carlo_interval(1.0, 20_000).low > 0.9998
    True
    """
    return effective_limits(frequency, float(draws), level=level)


def redraw_ranking(responses: ResponsePatterns, plan: RedrawPlan, *, order: Sequence[int], rng: np.random.Generator) -> RedrawnRanking:
    """Draw questions again and again, and count who comes first and whether ``order`` heads the ranking.

    Parameters
    ----------
    responses
        Patterns of the observed scores.
    plan
        Size and number of the draws; without replacement a draw is at most as large as the set at hand.
    order
        Distinct model positions, best first, such as the observed first three.
    rng
        Where the draws come from.

    Raises
    ------
    ValueError
        For impossible arguments.

    References
    ----------
    Hall and Miller (2009), Ann. Stat. 37, 3929-3959, doi:10.1214/09-AOS699 (what it cannot show). Xie, Singh and Zhang (2009),
    J. Am. Stat. Assoc. 104, 775-788, doi:10.1198/jasa.2009.0142.

    Examples
    --------
    >>> twins = ResponsePatterns.from_scores([[1, 0, 1], [1, 0, 1]])
    >>> redraw_ranking(twins, RedrawPlan(3, 50), order=[0], rng=np.random.default_rng(1)).first
    (0.5, 0.5)
    """
    return redraw_rankings(responses, [plan], order=order, rng=rng)[0]


def redraw_rankings(
    responses: ResponsePatterns, plans: Sequence[RedrawPlan], *, order: Sequence[int], rng: np.random.Generator
) -> tuple[RedrawnRanking, ...]:
    """Redraw at several sizes, as `redraw_ranking` does at one; the plans differ in their number of questions alone, which grows.

    Raises
    ------
    ValueError
        For impossible arguments.

    References
    ----------
    As `redraw_ranking`.

    Examples
    --------
    >>> responses = ResponsePatterns.from_scores([[1, 1, 1], [0, 0, 0]])
    >>> plans = [RedrawPlan(size, 50) for size in (1, 10)]
    >>> [ranking.first for ranking in redraw_rankings(responses, plans, order=[0], rng=np.random.default_rng(1))]
    [(1.0, 0.0), (1.0, 0.0)]
    """
    models = responses.patterns.shape[1]
    if not order or len(set(order)) != len(order) or not set(order) <= set(range(models)):
        raise ValueError(f"order must hold distinct positions below {models}; got {list(order)}")
    if len({(plan.draws, plan.replacement) for plan in plans}) > 1 or any(second.questions <= first.questions for first, second in pairwise(plans)):
        raise ValueError("plans must differ in their number of questions alone, which grows")
    if not plans:
        return ()
    kept = [contenders(responses, taken_per_stratum(responses, plan), draws=plan.draws, order=order) for plan in plans]
    first, in_order = np.zeros((len(plans), models)), np.zeros(len(plans))
    for batch in redrawn_totals(responses, plans, rng, among=kept):
        for number, (who, drawn) in enumerate(zip(kept, batch, strict=True)):
            first[number, list(who)] += _first_places(drawn.totals)
            in_order[number] += float(order_share(drawn.totals, [who.index(model) for model in order]).sum())
    draws = plans[0].draws
    # Sums of shared ties can exceed their number in the last bit.
    frequencies, kept_order = np.minimum(first / draws, 1.0), np.minimum(in_order / draws, 1.0)
    return tuple(RedrawnRanking(tuple(shares), held, draws) for shares, held in zip(frequencies.tolist(), kept_order.tolist(), strict=True))


def _first_places(totals: Totals) -> FloatArray:
    """Sum over samples each model's chance to be first when ties are broken at random, (M,)."""
    top = totals == totals.max(axis=0)
    level = np.add.reduce(top.view(np.uint8), axis=0, dtype=np.uint16)
    tied = np.flatnonzero(level > 1)
    shared = top.take(tied, axis=1)
    alone = np.array([np.count_nonzero(wins) for wins in top]) - np.count_nonzero(shared, axis=1)
    return np.asarray(alone + (shared / level[tied]).sum(axis=1))


def order_share(totals: Totals, order: Sequence[int]) -> FloatArray:
    """Probability that ``order`` heads each sample's ranking when ties are broken at random: (M, R) to (R,).

    Examples
    --------
    >>> order_share(np.array([[5, 5], [4, 5], [4, 5]]), [0, 1]).round(4)
    array([0.5   , 0.1667])
    """
    left = dict(enumerate(totals))
    share = np.ones(totals.shape[1])
    for model in order:
        ahead = left.pop(model)
        if not left:
            break
        # The next in order comes next when nobody left is ahead of it, with one chance among those that are level with it.
        best = reduce(np.maximum, left.values())
        share *= best <= ahead
        tied = np.flatnonzero((best == ahead) & (share > 0.0))
        level = ahead.take(tied)
        share[tied] /= 1 + sum(other.take(tied) == level for other in left.values())
    return share


def simulated_split_halves(responses: ResponsePatterns, *, draws: int, rng: np.random.Generator) -> SimulatedHalves:
    """Split the questions at random, choose the winner on one half and compare it, on the other, with the chosen runner-up.

    The lead is over the runner-up of the half that chose, on both halves; ties are broken at random. Strata are halved each.

    Parameters
    ----------
    responses
        Patterns of the observed scores of at least two models on at least two questions of every stratum.
    draws, rng
        Number of splits, and where they come from.

    Raises
    ------
    ValueError
        With fewer than two models, or two questions of a stratum.

    References
    ----------
    Andrews, Kitagawa and McCloskey (2024), Q. J. Econ. 139, 305-358, doi:10.1093/qje/qjad043.

    Examples
    --------
    >>> scores = [[1, 1, 1, 1], [0, 0, 0, 0]]
    >>> halves = simulated_split_halves(ResponsePatterns.from_scores(scores), draws=20, rng=np.random.default_rng(1))
    >>> halves.same_winner, halves.lead_selected, halves.lead_held_out, halves.wins
    (1.0, 1.0, 1.0, (1.0, 0.0))
    """
    models = responses.patterns.shape[1]
    if models < 2 or responses.sizes.min() < 2:
        raise ValueError("needs at least 2 models and 2 questions of every stratum")
    require_count("draws", draws, minimum=2)
    leaders = np.argsort(-responses.scores, kind="stable")[:2].tolist()
    kept = contenders(responses, responses.sizes // 2, draws=2 * draws, order=leaders)
    wins, rows = np.zeros(models), []
    for chosen, other in halved_totals(responses.among(kept), draws, rng):
        share = _top_share(chosen.totals)
        wins[list(kept)] += share.sum(axis=1)
        rows.append(np.vstack([np.sum(share * _top_share(other.totals), axis=0), *_leads(chosen, other)]))
    return _summary(np.concatenate(rows, axis=1), wins / draws)


def _top_share(totals: Totals) -> FloatArray:
    """Probability of each model to be first in each sample when ties are broken at random, (M, R)."""
    best = totals.max(axis=0)
    top = totals == best
    return np.asarray(top * (1.0 / top.sum(axis=0, dtype=np.int32)))


def _leads(chosen: RedrawnTotals, other: RedrawnTotals) -> tuple[FloatArray, FloatArray]:
    """Lead of the winner over the runner-up on the half that chose and on the other, expected over ties, (R,) each."""
    best = chosen.totals.max(axis=0)
    top = chosen.totals == best
    alone = np.count_nonzero(top, axis=0) == 1
    behind = np.where(top, np.iinfo(np.int64).min, chosen.totals)
    second = behind.max(axis=0)
    runners_up = behind == second
    winner = np.sum(np.where(top, other.totals, 0), axis=0)
    runner_up = np.sum(np.where(runners_up, other.totals, 0), axis=0) / np.count_nonzero(runners_up, axis=0)
    # Of models that tie at the top either may be called the winner and either the runner-up: the expected lead is 0 on both halves.
    selected = np.where(alone, best - np.where(alone, second, 0), 0) / chosen.units
    return selected, np.where(alone, winner - runner_up, 0.0) / other.units


def _summary(rows: FloatArray, wins: FloatArray) -> SimulatedHalves:
    """Average over splits: rows are same winner, selected lead, held-out lead."""
    means = rows.mean(axis=1)
    covariance = np.cov(rows) / rows.shape[1]
    errors = np.sqrt(np.diag(covariance))
    same, selected, held_out = means.tolist()
    shrinkage = error = None
    if selected > 0.0:
        ratio = held_out / selected
        # The delta method for a ratio of two means from the same splits.
        variance = covariance[2, 2] - 2.0 * ratio * covariance[1, 2] + ratio**2 * covariance[1, 1]
        shrinkage, error = 1.0 - ratio, math.sqrt(max(0.0, float(variance))) / selected
    return SimulatedHalves(
        same_winner=same,
        same_winner_error=float(errors[0]),
        lead_selected=selected,
        lead_selected_error=float(errors[1]),
        lead_held_out=held_out,
        lead_held_out_error=float(errors[2]),
        shrinkage=shrinkage,
        shrinkage_error=error,
        wins=tuple(wins.tolist()),
    )
