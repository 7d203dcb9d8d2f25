"""Which models of a benchmark are better than which, when the comparisons of all its pairs are judged together?

Models with the same answers throughout count as one in the comparisons, so that a copy of a model moves nobody. Loaded by what computes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evalspec.analyses.designs import design_of, weighted
from evalspec.analyses.pairs import WEIGHTED, Limits, PairRow, Part, about_random_flips, compare_pairs
from evalspec.artifacts.responses import BenchmarkResponses
from evalspec.protocols import Context
from evalspec.statistics.clusters import clusters_worth, enough_clusters
from evalspec.statistics.designs import Design
from evalspec.statistics.gaffke import SIZES_DIFFER
from evalspec.statistics.max_t import pair_statistics, step_down
from evalspec.statistics.multiplicity import holm

ONE_MODEL = "a ranking needs at least two models"
NO_COMMON = "fewer than two questions have a score from every model"
TOO_FEW_CLUSTERS = (
    "{} clusters cannot separate any two models at this error rate: between equal models all of them favour the same one with a probability of {:.2g}"
)
TOO_FEW_DRAWS = "{:,} draws are too few for this error rate: nothing can be separated with fewer than {:,}"
LITTLE_WORTH = (
    "{} clusters, worth about {:.0f} of one size: fewer than 30, so that equally good models may be called separated more often than stated where "
    "one of them varies from cluster to cluster much more than the other"
)


@dataclass(frozen=True, slots=True)
class Contest:
    """The models of a benchmark on the questions that all of them have a score for; `kinds` are models of equal scores throughout, best first.

    `scores` are counted so that more is better.
    """

    benchmark: BenchmarkResponses
    complete: NDArray[np.bool_]  # (Q,)
    scores: NDArray[np.float64]  # (M, Q)
    kinds: tuple[tuple[int, ...], ...]

    @property
    def representatives(self) -> list[int]:
        """One model of each kind."""
        return [kind[0] for kind in self.kinds]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Every two kinds, the one with the better score first."""
        return list(combinations(range(len(self.kinds)), 2))

    @property
    def clusters(self) -> list[str]:
        """The cluster of each question of the contest; nothing where questions are independent."""
        return [label for label, kept in zip(self.benchmark.clusters, self.complete, strict=True) if kept] if self.benchmark.clusters else []

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean score of each model on the questions of the contest, counted so that more is better, (M,)."""
        return np.asarray(self.scores[:, self.complete].mean(axis=1))


@dataclass(frozen=True, slots=True)
class Separation:
    """Which kinds are better than which, (K, K); how many pairs no test could compare; the last critical value of `max_t` with its error.

    `tests` are those that compared single pairs, by name; `caution` is what to keep in mind of the clusters.
    """

    better: NDArray[np.bool_]
    undecided: int = 0
    critical: float | None = None
    critical_error: float | None = None
    tests: tuple[str, ...] = ()
    caution: str | None = None


def contest_of(benchmark: BenchmarkResponses) -> Contest:
    """Return the contest of a benchmark's models; raises ValueError with the reason where there is none."""
    if len(benchmark.models) < 2:
        raise ValueError(ONE_MODEL)
    if weighted(benchmark):
        raise ValueError(WEIGHTED)
    scores = benchmark.merits()
    complete = np.asarray(~np.isnan(scores).any(axis=0))
    if complete.sum() < 2:
        raise ValueError(NO_COMMON)
    means = scores[:, complete].mean(axis=1)
    alike: dict[bytes, list[int]] = {}
    for model in sorted(range(len(means)), key=lambda model: (-round(float(means[model]), 12), benchmark.models[model])):
        alike.setdefault(scores[model, complete].tobytes(), []).append(model)
    return Contest(benchmark, complete, scores, tuple(tuple(kind) for kind in alike.values()))


def separated_by_holm(contests: Sequence[Contest], context: Context, *, alpha: float, exact: bool = False) -> Iterator[Separation]:
    """Adjust the paired tests of all pairs of all contests together; a pair without a test counts as p = 1.

    With `exact` the tests are those that keep their level at every sample size, one for each direction of a pair, so that the error rate is that
    of directions too: all directions are one family.
    """
    rows = [_compared(contest, context, exact=exact) for contest in contests]
    flips = about_random_flips([row for group in rows for row in group], alpha=alpha)
    raw = [1.0 if row.p_value is None else row.p_value for group in rows for row in group]
    adjusted = iter(_of_directions(raw) if exact else holm(raw).tolist())
    for contest, group in zip(contests, rows, strict=True):
        better = np.zeros((len(contest.kinds), len(contest.kinds)), dtype=np.bool_)
        for (first, second), row in zip(contest.pairs, group, strict=True):
            if next(adjusted) <= alpha and row.difference:
                first_is_better = (row.difference > 0) != contest.benchmark.lower_is_better
                better[(first, second) if first_is_better else (second, first)] = True
        tests = tuple(sorted({row.test for row in group if row.test is not None}))
        drawn = flips if any(row.p_error is not None for row in group) else None
        caution = ". ".join(filter(None, (_about_clusters(contest, alpha, exact=exact), drawn))) or None
        yield Separation(better, undecided=sum(row.p_value is None for row in group), tests=tests, caution=caution)


def _of_directions(p_values: Sequence[float]) -> list[float]:
    """Adjust what exact tests say of the direction that is seen, half of the two-sided p-value, beside as many opposite ones, which do not reject."""
    adjusted: list[float] = holm([p / 2.0 for p in p_values] + [1.0] * len(p_values)).tolist()
    return adjusted[: len(p_values)]


def _compared(contest: Contest, context: Context, *, exact: bool) -> tuple[PairRow, ...]:
    names, one = contest.benchmark.models, contest.representatives
    pairs = [(names[one[first]], names[one[second]]) for first, second in contest.pairs]
    part = Part(contest.complete, design_of(contest.benchmark))
    limits = Limits(0.95, exact=exact and not _exact_anyway(contest, part.design))
    return compare_pairs(contest.benchmark, pairs, context, limits, part=part) if pairs else ()


def _exact_anyway(contest: Contest, design: Design) -> bool:
    """Return whether the usual tests are exact: those of right and wrong answers of independent questions, or of a simple random part of a pool.

    Exact intervals, which nothing of a ranking rests on, would take more time than all else.
    """
    counted = design.clusters is None and bool(np.isin(contest.scores[:, contest.complete], (0.0, 1.0)).all())
    return counted and not (design.pool and design.strata is not None)


def separated_by_max_t(contests: Sequence[Contest], context: Context, *, alpha: float, draws: int) -> Iterator[Separation]:
    """Test both directions of every pair by flipping signs, step by step; each contest takes its part of alpha."""
    for contest in contests:
        better = np.zeros((len(contest.kinds), len(contest.kinds)), dtype=np.bool_)
        if not contest.pairs:
            yield Separation(better)
            continue
        directions = [*contest.pairs, *((second, first) for first, second in contest.pairs)]
        statistics = pair_statistics(contest.scores[contest.representatives][:, contest.complete], directions, clusters=contest.clusters or None)
        found = step_down(statistics, alpha=alpha / len(contests), draws=draws, rng=context.rng)
        for direction, rejected in zip(directions, found.rejected.tolist(), strict=True):
            better[direction] = rejected
        caution = _about_draws(draws, alpha / len(contests)) or _about_clusters(contest, alpha / len(contests))
        yield Separation(better, critical=found.critical_value, critical_error=found.standard_error, caution=caution)


def _about_draws(draws: int, alpha: float) -> str | None:
    least = math.ceil(1.0 / alpha - 1e-9) - 1
    return TOO_FEW_DRAWS.format(draws, least) if draws < least else None


def _about_clusters(contest: Contest, alpha: float, *, exact: bool = False) -> str | None:
    sizes = np.unique(np.array(contest.clusters, dtype=np.str_), return_counts=True)[1]
    if sizes.size < 2:
        return None
    # All agree: for either of two models. Gaffke's test of as many clusters that are won outright has the same p-value.
    agreeing = 2.0 ** (1 - sizes.size)
    if agreeing > alpha:
        return TOO_FEW_CLUSTERS.format(sizes.size, agreeing)
    if exact:
        return SIZES_DIFFER if np.ptp(sizes) > 0 else None
    return None if enough_clusters(sizes) else LITTLE_WORTH.format(sizes.size, clusters_worth(sizes))
