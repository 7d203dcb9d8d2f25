"""Which models of a benchmark are better than which, when the comparisons of all its pairs are judged together?

Models with the same answers throughout count as one in the comparisons, so that a copy of a model moves nobody. Loaded by what computes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evalspec.analyses.designs import design_of, weighted
from evalspec.analyses.pairs import WEIGHTED, PairRow, Part, compare_pairs
from evalspec.artifacts.responses import BenchmarkResponses
from evalspec.protocols import Context
from evalspec.statistics.max_t import pair_statistics, stepped_down
from evalspec.statistics.multiplicity import holm
from evalspec.statistics.paired_designs import ENOUGH_CLUSTERS

ONE_MODEL = "a ranking needs at least two models"
NO_COMMON = "fewer than two questions have a score from every model"
FEW_CLUSTERS = (
    "{} clusters: fewer than 30, so that equally good models may be called separated more often than stated; the method holm flips the signs of "
    "whole clusters instead"
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


def separated_by_holm(contests: Sequence[Contest], context: Context, *, alpha: float) -> Iterator[Separation]:
    """Adjust the paired tests of all pairs of all contests together; a pair without a test counts as p = 1."""
    rows = [_compared(contest, context) for contest in contests]
    raw = [1.0 if row.p_value is None else row.p_value for group in rows for row in group]
    adjusted = iter(holm(raw).tolist())
    for contest, group in zip(contests, rows, strict=True):
        better = np.zeros((len(contest.kinds), len(contest.kinds)), dtype=np.bool_)
        for (first, second), row in zip(contest.pairs, group, strict=True):
            if next(adjusted) <= alpha and row.difference:
                first_is_better = (row.difference > 0) != contest.benchmark.lower_is_better
                better[(first, second) if first_is_better else (second, first)] = True
        tests = tuple(sorted({row.test for row in group if row.test is not None}))
        yield Separation(better, undecided=sum(row.p_value is None for row in group), tests=tests)


def _compared(contest: Contest, context: Context) -> tuple[PairRow, ...]:
    names, one = contest.benchmark.models, contest.representatives
    pairs = [(names[one[first]], names[one[second]]) for first, second in contest.pairs]
    part = Part(contest.complete, design_of(contest.benchmark))
    return compare_pairs(contest.benchmark, pairs, context, level=0.95, part=part) if pairs else ()


def separated_by_max_t(contests: Sequence[Contest], context: Context, *, alpha: float, draws: int) -> Iterator[Separation]:
    """Test both directions of every pair, step by step; each contest takes its part of alpha."""
    for contest in contests:
        better = np.zeros((len(contest.kinds), len(contest.kinds)), dtype=np.bool_)
        if not contest.pairs:
            yield Separation(better)
            continue
        directions = [*contest.pairs, *((second, first) for first, second in contest.pairs)]
        statistics = pair_statistics(contest.scores[contest.representatives][:, contest.complete], directions, clusters=_clusters(contest))
        found = stepped_down(statistics, alpha=alpha / len(contests), draws=draws, rng=context.rng)
        for direction, rejected in zip(directions, found.rejected.tolist(), strict=True):
            better[direction] = rejected
        caution = FEW_CLUSTERS.format(statistics.units) if contest.benchmark.clusters and statistics.units < ENOUGH_CLUSTERS else None
        yield Separation(better, int(np.sum(statistics.errors == 0.0)) // 2, found.critical_value, found.standard_error, caution=caution)


def _clusters(contest: Contest) -> list[str] | None:
    labels = contest.benchmark.clusters
    return [label for label, kept in zip(labels, contest.complete, strict=True) if kept] if labels else None
