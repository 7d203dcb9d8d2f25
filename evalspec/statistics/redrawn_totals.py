"""Which scores do models get when questions are drawn again?  Whole rows are drawn, so that models stay paired.

Assumption: questions are independent draws, within each stratum where there are strata. Totals are whole numbers, so that ties are
exact, and carry a shift that all models of a sample share: they serve comparisons between models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evalspec.statistics.arguments import FloatArray, IntArray, require_count
from evalspec.statistics.fast_draws import draw_with_replacement
from evalspec.statistics.packed_scores import Totals, Urn
from evalspec.statistics.response_patterns import ResponsePatterns
from evalspec.statistics.subset_draws import draw_without_replacement

Replacement = Literal["with", "without"]

MOST_QUESTIONS = 1_000_000
"""Largest sample: sums of scores stay far from the limits of exact arithmetic."""

_NUMBERS_AT_ONCE = 1 << 22
"""Most numbers that one batch of draws may hold."""

_GRID = 2.0**40
"""Scores of weighted strata are compared on this grid: equal ones tie, whatever the rounding of their sums."""

_TOLERANCE = 0.01
_SLOPES = np.geomspace(0.005, 5.0, 60)


@dataclass(frozen=True, slots=True)
class RedrawPlan:
    """How many questions each draw holds, how many draws there are, and whether a question can be drawn twice.

    "with" replacement: a new sample from a population like this set. "without": a smaller version of this set.
    """

    questions: int
    draws: int
    replacement: Replacement = "with"

    def __post_init__(self) -> None:
        if require_count("questions", self.questions, minimum=1) > MOST_QUESTIONS:
            raise ValueError(f"questions must be at most {MOST_QUESTIONS}; got {self.questions}")
        require_count("draws", self.draws, minimum=1)


@dataclass(frozen=True, slots=True)
class RedrawnTotals:
    """Totals of R samples, (M, R), and how many of their units make a score of 1."""

    totals: Totals
    units: float


def allocate(sizes: IntArray, questions: int) -> IntArray:
    """Divide ``questions`` among strata in proportion to their ``sizes``, to the nearest whole numbers with that sum.

    Examples
    --------
    >>> allocate(np.array([50, 30, 21]), 10)
    array([5, 3, 2])
    """
    exact = sizes * questions / sizes.sum()
    whole = np.floor(exact).astype(np.int64)
    largest = np.argsort(whole - exact, kind="stable")[: questions - int(whole.sum())]
    whole[largest] += 1
    return np.asarray(whole)


def taken_per_stratum(responses: ResponsePatterns, plan: RedrawPlan) -> IntArray:
    """Return how many questions each draw takes from each stratum, in proportion to their number there.

    Raises
    ------
    ValueError
        As `redrawn_totals`.

    Examples
    --------
    >>> taken_per_stratum(ResponsePatterns.from_scores([[1, 0, 1]], strata=["a", "a", "b"]), RedrawPlan(6, 1))
    array([4, 2])
    """
    if plan.replacement == "without" and plan.questions > responses.questions:
        raise ValueError(f"questions must not exceed {responses.questions} without replacement; got {plan.questions}")
    taken = allocate(responses.sizes, plan.questions)
    if taken.min() < 1:
        raise ValueError(f"{plan.questions} questions are too few for one of each of {taken.size} strata in proportion")
    return taken


def redrawn_totals(
    responses: ResponsePatterns, plans: Sequence[RedrawPlan], rng: np.random.Generator, *, among: Sequence[Sequence[int]] | None = None
) -> Iterator[tuple[RedrawnTotals, ...]]:
    """Yield batches that together are all draws, with one entry per plan; strata keep their share of the questions and their weight.

    Plans differ in size alone, and sizes grow. With replacement and without strata the draws of a larger size continue those of the
    smaller ones, which costs less and makes differences between sizes more precise; otherwise all draws are independent.

    Parameters
    ----------
    responses, plans, rng
        What to draw from, how, and where the draws come from.
    among
        The models of each plan, by position, whose totals are wanted; all of them by default.

    Raises
    ------
    ValueError
        When there are not that many questions to draw without replacement, or too few for one of each stratum.

    References
    ----------
    As `draw_with_replacement` and `draw_without_replacement`.

    Examples
    --------
    >>> twins = ResponsePatterns.from_scores([[1, 0, 1], [0, 0, 0]])
    >>> next(redrawn_totals(twins, [RedrawPlan(3, 2, "without")], np.random.default_rng(1)))[0].totals.tolist()
    [[2, 2], [0, 0]]
    """
    stages = _stages(responses, plans, among)
    # Draws are mostly random bits, which SFC64 makes a fifth faster than NumPy's default.
    bits = np.random.Generator(np.random.SFC64(rng.integers(1 << 63, size=4)))
    step = max(1, _NUMBERS_AT_ONCE // (responses.patterns.shape[1] * len(plans)))
    for start in range(0, plans[0].draws, step):
        how = (min(step, plans[0].draws - start), plans[0].replacement)
        batch: list[RedrawnTotals] = []
        for stage in stages:
            parts = [_drawn(urn, int(size), how, bits) for urn, size in zip(stage.urns, stage.fresh, strict=True)]
            if stage.continued is not None:
                parts[0] = parts[0].astype(stage.urns[0].total_type(int(stage.taken[0])), copy=False)
                for row, before in enumerate(stage.continued):
                    parts[0][row] += batch[-1].totals[before]
            batch.append(_combined(stage.responses, parts, stage.taken))
        yield tuple(batch)


@dataclass(frozen=True, slots=True)
class _Stage:
    """What one plan draws: questions of each stratum in all, and afresh beyond the draws of the plan before that it continues.

    ``continued`` are the rows of those draws that hold its models, ``None`` where all is drawn afresh.
    """

    responses: ResponsePatterns
    urns: list[Urn]
    taken: IntArray
    fresh: IntArray
    continued: list[int] | None


def _stages(responses: ResponsePatterns, plans: Sequence[RedrawPlan], among: Sequence[Sequence[int]] | None) -> list[_Stage]:
    everyone = range(responses.patterns.shape[1])
    stages: list[_Stage] = []
    before: Sequence[int] = ()
    for plan, models in zip(plans, among or [everyone] * len(plans), strict=True):
        taken = taken_per_stratum(responses, plan)
        chosen = responses.among(models) if among else responses
        nested = plan.replacement == "with" and taken.size == 1 and bool(stages) and set(models) <= set(before)
        continued = [before.index(model) for model in models] if nested else None
        stages.append(_Stage(chosen, _urns(chosen), taken, taken - stages[-1].taken if nested else taken, continued))
        before = models
    return stages


def halved_totals(responses: ResponsePatterns, draws: int, rng: np.random.Generator) -> Iterator[tuple[RedrawnTotals, RedrawnTotals]]:
    """Yield the totals of both halves in batches that together are all splits; a stratum of odd size gives the second half one more.

    References
    ----------
    As `draw_without_replacement`.

    Examples
    --------
    >>> first, second = next(halved_totals(ResponsePatterns.from_scores([[1, 1, 1], [0, 0, 0]]), 1, np.random.default_rng(1)))
    >>> first.totals.tolist(), second.totals.tolist()
    ([[1], [0]], [[2], [0]])
    """
    taken = responses.sizes // 2
    urns = _urns(responses)
    step = max(1, _NUMBERS_AT_ONCE // (2 * responses.patterns.shape[1]))
    for start in range(0, draws, step):
        how: tuple[int, Replacement] = (min(step, draws - start), "without")
        parts = [_drawn(urn, int(size), how, rng) for urn, size in zip(urns, taken, strict=True)]
        rest = [(urn.counts @ urn.patterns)[:, None] - part for urn, part in zip(urns, parts, strict=True)]
        yield _combined(responses, parts, taken), _combined(responses, rest, responses.sizes - taken)


def _urns(responses: ResponsePatterns) -> list[Urn]:
    inside = [responses.strata == place for place in range(responses.shares.size)]
    return [Urn(responses.patterns[which], responses.counts[which]) for which in inside]


def _combined(responses: ResponsePatterns, parts: Sequence[Totals], taken: IntArray) -> RedrawnTotals:
    """Add up the strata's totals by their weight: plainly where every question counts the same, on a grid where not."""
    factors = responses.shares / taken
    if float(np.ptp(factors)) <= 1e-12 * float(factors.max()):
        totals = parts[0] if len(parts) == 1 else np.asarray(sum(parts, np.int64(0)))
        return RedrawnTotals(totals, float(responses.denominator * taken.sum()))
    scores = np.asarray(sum(factor * part for factor, part in zip(factors, parts, strict=True)))
    return RedrawnTotals(np.rint(scores * (_GRID / responses.denominator)).astype(np.int64), _GRID)


def contenders(responses: ResponsePatterns, taken: IntArray, *, draws: int, order: Sequence[int]) -> tuple[int, ...]:
    """Return the models that can matter: ``order``, and all that may reach the last of it in any of the draws of ``taken`` questions.

    Left out are models that in all draws together reach it with probability below 0.01, by Chernoff's bound; it holds without
    replacement too.

    References
    ----------
    Hoeffding (1963), J. Am. Stat. Assoc. 58, 13-30, doi:10.1080/01621459.1963.10500830 (theorem 4 for draws without replacement).

    Examples
    --------
    >>> scores = np.vstack([np.ones(900), np.arange(900) % 2, np.zeros(900)])
    >>> contenders(ResponsePatterns.from_scores(scores), np.array([200]), draws=1000, order=[0, 1])
    (0, 1)
    """
    others = np.array([model for model in range(responses.patterns.shape[1]) if model not in order], dtype=np.int64)
    bounds = _bounds(responses, taken, order[-1], others)
    ranked = np.argsort(bounds)
    hopeless = others[ranked[np.cumsum(bounds[ranked]) * draws < _TOLERANCE]]
    return tuple(sorted(set(range(responses.patterns.shape[1])) - set(hopeless.tolist())))


def _bounds(responses: ResponsePatterns, taken: IntArray, anchor: int, others: IntArray) -> FloatArray:
    """Bound the probability of each other model to reach the anchor in one draw: the least E exp(-slope x lead) over slopes."""
    leads = (responses.patterns[:, [anchor]] - responses.patterns[:, others]) / responses.denominator
    per_stratum = np.zeros((taken.size, responses.counts.size))
    per_stratum[responses.strata, np.arange(responses.counts.size)] = responses.counts / responses.sizes[responses.strata]
    ahead, behind = per_stratum @ np.maximum(leads, 0.0), per_stratum @ np.maximum(-leads, 0.0)
    slopes = _SLOPES[:, None, None] * (responses.shares * taken.sum() / taken)[:, None]
    # Convexity: a lead of d in [-1, 1] counts at most as |d| parts of a whole one and 1 - |d| of none.
    logs = taken[:, None] * np.log1p(ahead * np.expm1(-slopes) + behind * np.expm1(slopes))
    return np.asarray(np.exp(np.minimum(0.0, logs.sum(axis=1).min(axis=0))))


def _drawn(urn: Urn, size: int, how: tuple[int, Replacement], rng: np.random.Generator) -> Totals:
    rows, replacement = how
    return draw_with_replacement(urn, size, rows, rng) if replacement == "with" else draw_without_replacement(urn, size, rows, rng)
