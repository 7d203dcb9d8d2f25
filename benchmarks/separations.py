"""How often are equally accurate models called separated?  Measured for `tiers` and `mcnemar`: few questions, few and unequal clusters, many models.

Answers are right where a normal variable, made of a part of the cluster and a part of the question, lies below a bound: both parts are correlated
between models, and models that count as equal are right equally often. In `uneven` settings every second model has no part of the cluster, so that
the differences of equal models are skewed and flipping their signs is approximate. Quick as it stands; `--draws 4000` made the tables in docs/.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import combinations, permutations, product

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from benchmarks.measuring import conclude
from evalspec.statistics.clusters import clustered_interval, clusters_worth, enough_clusters
from evalspec.statistics.designs import Design, level_of
from evalspec.statistics.max_t import max_t_critical_value, pair_statistics, step_down
from evalspec.statistics.multiplicity import bonferroni_critical_value
from evalspec.statistics.paired_designs import design_difference

ALPHA = 0.05
ONE_SIDED = 0.025
FLIPS = 1000
"""Draws of flipped signs in each simulated study."""

CORRELATED = 0.4
SLACK = 4.0
"""Monte Carlo standard errors that a rate may lie above alpha before it counts as above."""

KINDS = ("equal", "geometric", "largest 20 %", "largest 50 %")
CLUSTERS = (10, 30, 57, 200)
NULLS = ((0.7, 0.2), (0.95, 0.3))
"""Accuracy and correlation within clusters."""

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rate:
    """The chance of any false separation in one setting, with its Monte Carlo standard error; `worth` is how many equal clusters there are worth."""

    test: str
    setting: str
    alpha: float
    rate: float
    error: float
    worth: float | None = None

    @property
    def above(self) -> bool:
        """Whether the rate lies above alpha by more than chance explains."""
        return self.rate > self.alpha + SLACK * self.error


@dataclass(frozen=True, slots=True)
class Truth:
    """How often each model is right, and how its answers are correlated within clusters, both (M,)."""

    means: NDArray[np.float64]
    spread: NDArray[np.float64]

    def drawn(self, sizes: NDArray[np.int64], rng: np.random.Generator) -> Scores:
        """Return one study's scores, (M, questions)."""
        models = self.spread.size
        cluster = _correlated((models, sizes.size), rng)[:, np.repeat(np.arange(sizes.size), sizes)]
        question = _correlated((models, int(sizes.sum())), rng)
        latent = np.sqrt(self.spread)[:, None] * cluster + np.sqrt(1.0 - self.spread)[:, None] * question
        return (latent < ndtri(self.means)[:, None]).astype(np.float64)


def main() -> None:
    """Print every rate, and the largest of each test."""
    options = argparse.ArgumentParser()
    options.add_argument("--draws", type=int, default=100)
    options.add_argument("--rows", action="store_true", help="print each setting")
    chosen = options.parse_args()
    rates = []
    for rate in (*questions(chosen.draws), *families(chosen.draws), *intervals(chosen.draws), *pairs(chosen.draws)):
        rates.append(rate)
        if chosen.rows:
            print(json.dumps(asdict(rate)), flush=True)
    kinds = dict.fromkeys(rate.test for rate in rates)
    figures = {kind: _summary([rate for rate in rates if rate.test == kind]) for kind in kinds}
    agree = not any(rate.above for rate in rates if "uneven" not in rate.test and "intervals" not in rate.test)
    conclude("separations", "chance that equally accurate models are called separated", {"false_separation": figures, "agree": agree})


def questions(draws: int) -> Iterator[Rate]:
    """Yield the chance that max_t separates any two equal models of few independent questions."""
    for count, models, mean in product((20, 30, 50, 200), (3, 12), (0.5, 0.7, 0.9, 0.97)):
        truth = Truth(np.full(models, mean), np.zeros(models))
        yield _rate(
            "max_t, questions",
            f"{count} questions, {models} models, mean {mean}",
            ALPHA,
            draws,
            _any_separated(truth, np.ones(count, dtype=np.int64)),
        )


def families(draws: int) -> Iterator[Rate]:
    """Yield the chance that max_t separates any two equal models of clustered questions, all being equal or one half ahead of the other."""
    for kind, count, (models, mean, icc) in product(KINDS, CLUSTERS, ((3, 0.95, 0.3), (12, 0.7, 0.2), (12, 0.95, 0.3))):
        sizes, same = sizes_of(kind, count), np.full(models, mean)
        setting = f"{count} clusters, {kind}, {models} models, mean {mean}, ICC {icc}"
        truths = {"max_t, clusters": Truth(same, _spread(models, icc)), "max_t, uneven clusters": Truth(same, _spread(models, icc, even=False))}
        if models > 3:
            truths["max_t, clusters, half of the models worse"] = Truth(np.where(np.arange(models) % 2 == 0, mean, mean - 0.2), _spread(models, icc))
        for name, truth in truths.items():
            yield _rate(name, setting, ALPHA, draws, _any_separated(truth, sizes), clusters_worth(sizes))


def intervals(draws: int) -> Iterator[Rate]:
    """Yield the chance that any simultaneous interval of eight equal models leaves out 0."""
    for kind, count in product(KINDS, CLUSTERS):
        sizes, truth = sizes_of(kind, count), Truth(np.full(8, 0.7), _spread(8, 0.2))
        setting = f"{count} clusters, {kind}, 8 models, mean 0.7, ICC 0.2"
        yield _rate("simultaneous intervals, clusters", setting, ALPHA, draws, _any_excluded(truth, sizes), clusters_worth(sizes))


def pairs(draws: int) -> Iterator[Rate]:
    """Yield the chance that the test of one pair separates a model as the better one, whose accuracy varies more between clusters or as much."""
    for kind, count, (mean, icc), even in product(KINDS, CLUSTERS, NULLS, (True, False)):
        sizes = sizes_of(kind, count)
        name = "mcnemar, clusters, one-sided" if even else "mcnemar, uneven clusters, one-sided"
        setting = f"{count} clusters, {kind}, mean {mean}, ICC {icc}"
        truth = Truth(np.full(2, mean), _spread(2, icc, even=even))
        yield _rate(name, setting, ONE_SIDED, 2 * draws, _first_better(truth, sizes), clusters_worth(sizes))


def sizes_of(kind: str, count: int) -> NDArray[np.int64]:
    """Return cluster sizes: 10 each, geometric around 10, or of a Pareto tail with one that holds a share of all questions."""
    rng = np.random.default_rng(count)
    if kind == "equal":
        return np.full(count, 10)
    if kind == "geometric":
        return rng.geometric(0.1, count).astype(np.int64)
    share = float(kind.split()[1]) / 100.0
    rest = np.clip((rng.pareto(1.5, count - 1) + 1.0) * 10.0 / 3.0, 1, 100).round().astype(np.int64)
    return np.concatenate([[round(float(rest.sum()) * share / (1.0 - share))], rest])


def _any_separated(truth: Truth, sizes: NDArray[np.int64]) -> Callable[[np.random.Generator], bool]:
    directions = list(permutations(range(truth.spread.size), 2))
    false = np.array([truth.means[first] <= truth.means[second] for first, second in directions])
    labels = _labels(sizes) if sizes.max() > 1 else None

    def separated(rng: np.random.Generator) -> bool:
        family = pair_statistics(truth.drawn(sizes, rng), directions, clusters=labels)
        return bool(step_down(family, alpha=ALPHA, draws=FLIPS, rng=rng).rejected[false].any())

    return separated


def _any_excluded(truth: Truth, sizes: NDArray[np.int64]) -> Callable[[np.random.Generator], bool]:
    both, labels = list(combinations(range(truth.spread.size), 2)), _labels(sizes)

    def excluded(rng: np.random.Generator) -> bool:
        scores = truth.drawn(sizes, rng)
        critical = bonferroni_critical_value(len(both), alpha=ALPHA)
        if enough_clusters(sizes):
            critical = max_t_critical_value(pair_statistics(scores, both, clusters=labels), alpha=ALPHA, draws=FLIPS, rng=rng).critical_value
        found = (clustered_interval(scores[first] - scores[second], labels, level=level_of(critical)) for first, second in both)
        return any(interval.low > 0.0 or interval.high < 0.0 for interval in found)

    return excluded


def _first_better(truth: Truth, sizes: NDArray[np.int64]) -> Callable[[np.random.Generator], bool]:
    design = Design(clusters=_labels(sizes))

    def better(rng: np.random.Generator) -> bool:
        first, second = truth.drawn(sizes, rng)
        found = design_difference(first, second, design, rng=rng)
        return found.difference > 0.0 and found.p_value <= 2.0 * ONE_SIDED

    return better


def _rate(test: str, setting: str, alpha: float, draws: int, wrong: Callable[[np.random.Generator], bool], worth: float | None = None) -> Rate:
    rng = np.random.default_rng(20261201)
    rate = sum(wrong(rng) for _ in range(draws)) / draws
    return Rate(test, setting, alpha, rate, math.sqrt(rate * (1.0 - rate) / draws), worth)


def _correlated(shape: tuple[int, int], rng: np.random.Generator) -> Scores:
    return np.asarray(math.sqrt(CORRELATED) * rng.standard_normal(shape[1]) + math.sqrt(1.0 - CORRELATED) * rng.standard_normal(shape))


def _spread(models: int, icc: float, *, even: bool = True) -> NDArray[np.float64]:
    return np.full(models, icc) if even else np.where(np.arange(models) % 2 == 0, icc, 0.0)


def _labels(sizes: NDArray[np.int64]) -> NDArray[np.str_]:
    return np.repeat(np.arange(sizes.size).astype(str), sizes)


def _summary(rates: list[Rate]) -> dict[str, float | int | str]:
    largest = max(rates, key=lambda rate: rate.rate)
    return {
        "settings": len(rates),
        "alpha": largest.alpha,
        "largest": round(largest.rate, 4),
        "largest_at": largest.setting,
        "mean": round(float(np.mean([rate.rate for rate in rates])), 4),
        "above_alpha": sum(rate.above for rate in rates),
        "monte_carlo_error": round(largest.error, 4),
    }


if __name__ == "__main__":
    main()
