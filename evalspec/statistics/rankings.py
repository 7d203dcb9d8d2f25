"""How stable is a ranking of many models when the questions are drawn again?

Assumption: questions are independent draws; whole rows are redrawn, so models stay paired. These are frequencies of a
simulation with their Monte Carlo error: they show stability, and are no confidence, least of all among models that nearly tie.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evalspec.statistics.arguments import FloatArray, IntArray, require_binary, require_count
from evalspec.statistics.redraws import SplitHalves

Replacement = Literal["with", "without"]

_CHUNK = 1 << 22
"""Most counts that one batch of draws may hold at a time."""


@dataclass(frozen=True, slots=True)
class ResponsePatterns:
    """Distinct rows of right and wrong answers over models, shape (P, M), and how many questions show each, shape (P,)."""

    patterns: IntArray
    counts: IntArray

    @classmethod
    def from_scores(cls, scores: ArrayLike) -> ResponsePatterns:
        """Collect the patterns of 0/1 scores of shape (M, Q); refuses missing scores, which must win nothing."""
        correct = require_binary("scores", scores)
        if correct.ndim != 2 or not correct.size:
            raise ValueError(f"scores must be (models, questions), neither 0; got shape {correct.shape}")
        patterns, counts = np.unique(correct.T, axis=0, return_counts=True)
        return cls(patterns.astype(np.int64), counts.astype(np.int64))

    @property
    def questions(self) -> int:
        """Number of questions."""
        return int(self.counts.sum())

    @property
    def totals(self) -> IntArray:
        """Correct answers per model, shape (M,)."""
        return self.counts @ self.patterns


@dataclass(frozen=True, slots=True)
class RedrawPlan:
    """How many questions each draw holds, how many draws there are, and whether a question can be drawn twice.

    "with" replacement: a new sample from a population like this set. "without": a smaller version of this set.
    """

    questions: int
    draws: int
    replacement: Replacement = "with"

    def __post_init__(self) -> None:
        require_count("questions", self.questions, minimum=1)
        require_count("draws", self.draws, minimum=1)


@dataclass(frozen=True, slots=True)
class RedrawnRanking:
    """How often each model comes first, ties shared, and how often the declared order of the first few holds."""

    first: tuple[float, ...]
    order: float
    draws: int

    def standard_error(self, frequency: float) -> float:
        """Monte Carlo standard error of a frequency from these draws."""
        return math.sqrt(frequency * (1.0 - frequency) / self.draws)


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
    models = responses.patterns.shape[1]
    if len(set(order)) != len(order) or not set(order) <= set(range(models)):
        raise ValueError(f"order must hold distinct positions below {models}; got {list(order)}")
    first, in_order = np.zeros(models), 0.0
    for totals in _redrawn_totals(responses, plan, rng):
        top = totals == totals.max(axis=1, keepdims=True)
        first += np.sum(top / top.sum(axis=1, keepdims=True), axis=0)
        in_order += float(np.sum(order_share(totals, order)))
    return RedrawnRanking(tuple((first / plan.draws).tolist()), in_order / plan.draws, plan.draws)


def order_share(totals: IntArray, order: Sequence[int]) -> FloatArray:
    """Probability that ``order`` heads each row's ranking when ties are broken at random: (R, M) to (R,).

    Examples
    --------
    >>> order_share(np.array([[5, 4, 4], [5, 5, 5]]), [0, 1]).round(4)
    array([0.5   , 0.1667])
    """
    left = totals.copy()
    share = np.ones(left.shape[0])
    for model in order:
        best = left.max(axis=1)
        share *= np.where(left[:, model] == best, 1.0 / np.sum(left == best[:, None], axis=1), 0.0)
        left[:, model] = -1
    return share


def simulated_split_halves(responses: ResponsePatterns, *, draws: int, rng: np.random.Generator) -> SplitHalves:
    """Split the questions at random, choose the winner on one half and compare it, on the other, with the chosen runner-up.

    The lead is over the runner-up of the half that chose, on both halves; ties are broken at random.

    Parameters
    ----------
    responses
        Patterns of the observed scores of at least two models on at least two questions.
    draws, rng
        Number of splits, and where they come from.

    Raises
    ------
    ValueError
        With fewer than two models or questions.

    References
    ----------
    Andrews, Kitagawa and McCloskey (2024), Q. J. Econ. 139, 305-358, doi:10.1093/qje/qjad043.

    Examples
    --------
    >>> scores = [[1, 1, 1, 1], [0, 0, 0, 0]]
    >>> simulated_split_halves(ResponsePatterns.from_scores(scores), draws=20, rng=np.random.default_rng(1))
    SplitHalves(same_winner=1.0, lead_selected=1.0, lead_held_out=1.0)
    """
    half, rest = responses.questions // 2, responses.questions - responses.questions // 2
    if half < 1 or responses.patterns.shape[1] < 2:
        raise ValueError("needs at least 2 models and 2 questions")
    same = selected = held_out = 0.0
    for totals in _redrawn_totals(responses, RedrawPlan(half, draws, "without"), rng):
        others = responses.totals - totals
        rows = np.arange(totals.shape[0])
        # Integer totals plus a uniform draw below 1 sort ties at random and nothing else.
        ranked = np.argsort(-(totals + rng.random(totals.shape)), axis=1)
        winner, second = ranked[:, 0], ranked[:, 1]
        again = np.argmax(others + rng.random(others.shape), axis=1)
        same += float(np.sum(again == winner))
        selected += float(np.sum(totals[rows, winner] - totals[rows, second]))
        held_out += float(np.sum(others[rows, winner] - others[rows, second]))
    return SplitHalves(same / draws, selected / draws / half, held_out / draws / rest)


def _redrawn_totals(responses: ResponsePatterns, plan: RedrawPlan, rng: np.random.Generator) -> Iterator[IntArray]:
    """Yield correct answers per model, (R, M), in batches that together are all draws."""
    size, total = plan.questions, responses.questions
    if plan.replacement == "without" and size > total:
        raise ValueError(f"questions must not exceed {total} without replacement; got {size}")
    step = max(1, _CHUNK // responses.counts.size)
    for start in range(0, plan.draws, step):
        rows = min(step, plan.draws - start)
        if plan.replacement == "with":
            times = rng.multinomial(size, responses.counts / total, size=rows)
        else:
            times = rng.multivariate_hypergeometric(responses.counts, size, size=rows, method="marginals")
        yield np.rint(times.astype(np.float64) @ responses.patterns).astype(np.int64)
