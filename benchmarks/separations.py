"""How often are equally accurate models called separated?  Measured for `tiers` and `mcnemar`: few questions, few and unequal clusters, many models.

Answers are right where a normal variable, made of a part of the cluster and a part of the question, lies below a bound: both parts are correlated
between models, and models that count as equal are right equally often. In `uneven` settings every second model has no part of the cluster, so that
the differences of equal models are skewed and flipping their signs is approximate. `--comparisons` measures Student's t on the same studies. Quick
as it stands; the tables in docs/ say how many draws made them.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import combinations, permutations, product

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from benchmarks.measuring import conclude
from benchmarks.multivariate_t import CORRECTIONS, Correction, any_beyond
from benchmarks.rates import ONE_SIDED, Rate, monte_carlo_error, summaries
from evalspec.statistics.clusters import clustered_interval, clusters_worth, enough_clusters
from evalspec.statistics.designs import Design, level_of
from evalspec.statistics.max_t import max_t_critical_value, pair_statistics, step_down
from evalspec.statistics.multiplicity import bonferroni_critical_value
from evalspec.statistics.paired_designs import design_difference

ALPHA = 0.05
FLIPS = 1000
"""Draws of flipped signs in each simulated study."""

CORRELATED = 0.4
KINDS = ("equal", "geometric", "largest 20 %", "largest 50 %")
CLUSTERS = (10, 30, 57, 200)
NULLS = ((0.7, 0.2), (0.9, 0.3), (0.95, 0.3), (0.97, 0.3))
"""Accuracy and correlation within clusters."""

COMPARISON = "(comparison)"
"""How the names of tests end that stand beside those which evalspec offers."""

Scores = NDArray[np.float64]
Sizes = NDArray[np.int64]
Wrong = Callable[[Scores, np.random.Generator], bool]
"""Says of the scores of one study whether anything in it is separated wrongly."""


@dataclass(frozen=True, slots=True)
class Truth:
    """How often each model is right, and how its answers are correlated within clusters, both (M,)."""

    means: NDArray[np.float64]
    spread: NDArray[np.float64]

    def drawn(self, sizes: Sizes, rng: np.random.Generator) -> Scores:
        """Return one study's scores, (M, questions), cluster after cluster."""
        models = self.spread.size
        cluster = _correlated((models, sizes.size), rng)[:, np.repeat(np.arange(sizes.size), sizes)]
        question = _correlated((models, int(sizes.sum())), rng)
        latent = np.sqrt(self.spread)[:, None] * cluster + np.sqrt(1.0 - self.spread)[:, None] * question
        return np.asarray(latent < ndtri(self.means)[:, None], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Studies:
    """Simulated studies of one setting: a truth, the sizes of clusters, 1 where there are only questions, and tests, those of comparisons last."""

    setting: str
    truth: Truth
    sizes: Sizes
    tests: Mapping[str, Wrong]
    alpha: float = ALPHA

    def rates(self, draws: int, *, comparisons: bool = False) -> Iterator[Rate]:
        """Yield how often each test separates wrongly, all on the same studies; no test's random numbers depend on which others there are."""
        tests = {name: wrong for name, wrong in self.tests.items() if comparisons or not name.endswith(COMPARISON)}
        seed = 20261201
        rng, own = np.random.default_rng(seed), [np.random.default_rng([seed, place]) for place in range(len(tests))]
        found = np.zeros((draws, len(tests)))
        for row in found:
            scores = self.truth.drawn(self.sizes, rng)
            row[:] = [wrong(scores, generator) for wrong, generator in zip(tests.values(), own, strict=True)]
        worth = clusters_worth(self.sizes) if self.sizes.max() > 1 else None
        for test, rate in zip(tests, found.mean(axis=0).tolist(), strict=True):
            yield Rate(test, self.setting, rate, monte_carlo_error(rate, draws), self.alpha, worth)


def main() -> None:
    """Print every rate, and the largest of each test."""
    options = argparse.ArgumentParser()
    options.add_argument("parts", nargs="*", metavar="PART", default=tuple(PARTS), help=f"some of {', '.join(PARTS)}; default: all")
    options.add_argument("--draws", type=int, default=30, help="studies of each setting")
    options.add_argument("--comparisons", action="store_true", help="measure Student's t on the same studies")
    options.add_argument("--rows", action="store_true", help="print each setting")
    chosen = options.parse_args()
    if unknown := set(chosen.parts) - set(PARTS):
        options.error(f"there is no part '{unknown.pop()}'; there are {', '.join(PARTS)}")
    rates = []
    of_parts = (studies for part in chosen.parts for studies in PARTS[part]())
    for rate in (rate for studies in of_parts for rate in studies.rates(chosen.draws, comparisons=chosen.comparisons)):
        rates.append(rate)
        if chosen.rows:
            print(json.dumps(asdict(rate)), flush=True)
    agree = not any(rate.above for rate in rates if not {"uneven", "intervals", COMPARISON} & set(rate.test.replace(",", "").split()))
    conclude("separations", "chance that equally accurate models are called separated", {"false_separation": summaries(rates), "agree": agree})


def questions() -> Iterator[Studies]:
    """Yield studies of equal models and few independent questions: max_t must separate no two of them."""
    for count, models, mean in product((20, 30, 50, 200), (3, 12), (0.5, 0.7, 0.9, 0.97)):
        truth, sizes = Truth(np.full(models, mean), np.zeros(models)), np.ones(count, dtype=np.int64)
        yield Studies(f"{count} questions, {models} models, mean {mean}", truth, sizes, {"max_t, questions": _any_separated(truth, sizes)})


def families() -> Iterator[Studies]:
    """Yield studies of clustered questions, all models being equal or one half ahead of the other: max_t must separate no two equal ones."""
    for kind, count, (models, mean, icc) in product(KINDS, CLUSTERS, ((3, 0.95, 0.3), (12, 0.7, 0.2), (12, 0.95, 0.3))):
        sizes, same = sizes_of(kind, count), np.full(models, mean)
        truths = {kind: Truth(same, _spread(models, icc)), f"{kind}, uneven": Truth(same, _spread(models, icc, even=False))}
        if models > 3:
            truths[f"{kind}, half worse"] = Truth(np.where(np.arange(models) % 2 == 0, mean, mean - 0.2), _spread(models, icc))
        for name, truth in truths.items():
            tests = {f"max_t, {models} models, {name}": _any_separated(truth, sizes)}
            if models > 3 and "worse" not in name:
                tests |= {f"multivariate t with {which}, {models} models, {name} {COMPARISON}": _any_beyond(sizes, which) for which in CORRECTIONS}
            yield Studies(f"{count} clusters, {kind}, {models} models, mean {mean}, ICC {icc}", truth, sizes, tests)


def intervals() -> Iterator[Studies]:
    """Yield studies of eight equal models: no simultaneous interval of their differences must leave out 0."""
    for kind, count in product(KINDS, CLUSTERS):
        sizes, truth = sizes_of(kind, count), Truth(np.full(8, 0.7), _spread(8, 0.2))
        tests = {f"simultaneous intervals, {kind}": _any_excluded(sizes, by_max_t=enough_clusters(sizes))}
        if not enough_clusters(sizes):
            tests[f"simultaneous intervals, {kind}, max_t all the same {COMPARISON}"] = _any_excluded(sizes, by_max_t=True)
        yield Studies(f"{count} clusters, {kind}, 8 models, mean 0.7, ICC 0.2", truth, sizes, tests)


def pairs() -> Iterator[Studies]:
    """Yield studies of two equal models: the first, whose accuracy varies more between clusters or as much, must not be separated as better."""
    for kind, count, (mean, icc), even in product((*KINDS, "Pareto"), CLUSTERS, NULLS, (True, False)):
        sizes, name = sizes_of(kind, count), kind if even else f"{kind}, uneven"
        truth = Truth(np.full(2, mean), _spread(2, icc, even=even))
        tests = {f"mcnemar, {name}": _better_by_signs(sizes)}
        if count >= 30:
            tests[f"CR2 t, {name} {COMPARISON}"] = _better_by_t(sizes)
        yield Studies(f"{count} clusters, {kind}, mean {mean}, ICC {icc}", truth, sizes, tests, ONE_SIDED)


PARTS = {"questions": questions, "families": families, "intervals": intervals, "pairs": pairs}


def sizes_of(kind: str, count: int) -> Sizes:
    """Return cluster sizes: 10 each, geometric around 10, Pareto's without a bound, or of a bounded tail with one that holds a share of all."""
    rng = np.random.default_rng(count)
    if kind == "equal":
        return np.full(count, 10)
    if kind == "geometric":
        return rng.geometric(0.1, count).astype(np.int64)
    if kind == "Pareto":
        return np.asarray(np.ceil(3.0 * (rng.pareto(1.1, count) + 1.0)), dtype=np.int64)
    share = float(kind.split()[1]) / 100.0
    rest = np.clip((rng.pareto(1.5, count - 1) + 1.0) * 10.0 / 3.0, 1, 100).round().astype(np.int64)
    return np.concatenate([[round(float(rest.sum()) * share / (1.0 - share))], rest])


def _any_separated(truth: Truth, sizes: Sizes) -> Wrong:
    directions = list(permutations(range(truth.spread.size), 2))
    false = np.array([truth.means[first] <= truth.means[second] for first, second in directions])
    labels = _labels(sizes) if sizes.max() > 1 else None

    def separated(scores: Scores, rng: np.random.Generator) -> bool:
        family = pair_statistics(scores, directions, clusters=labels)
        return bool(step_down(family, alpha=ALPHA, draws=FLIPS, rng=rng).rejected[false].any())

    return separated


def _any_beyond(sizes: Sizes, correction: Correction) -> Wrong:
    return lambda scores, rng: any_beyond(scores, sizes, correction, alpha=ALPHA, rng=rng)


def _any_excluded(sizes: Sizes, *, by_max_t: bool) -> Wrong:
    labels = _labels(sizes)

    def excluded(scores: Scores, rng: np.random.Generator) -> bool:
        both = list(combinations(range(len(scores)), 2))
        critical = bonferroni_critical_value(len(both), alpha=ALPHA)
        if by_max_t:
            critical = max_t_critical_value(pair_statistics(scores, both, clusters=labels), alpha=ALPHA, draws=FLIPS, rng=rng).critical_value
        found = (clustered_interval(scores[first] - scores[second], labels, level=level_of(critical)) for first, second in both)
        return any(interval.low > 0.0 or interval.high < 0.0 for interval in found)

    return excluded


def _better_by_signs(sizes: Sizes) -> Wrong:
    design = Design(clusters=_labels(sizes))

    def better(scores: Scores, rng: np.random.Generator) -> bool:
        found = design_difference(scores[0], scores[1], design, rng=rng)
        return found.difference > 0.0 and found.p_value <= 2.0 * ONE_SIDED

    return better


def _better_by_t(sizes: Sizes) -> Wrong:
    labels = _labels(sizes)
    return lambda scores, _: clustered_interval(scores[0] - scores[1], labels, level=1.0 - 2.0 * ONE_SIDED).low > 0.0


def _correlated(shape: tuple[int, int], rng: np.random.Generator) -> Scores:
    return np.asarray(math.sqrt(CORRELATED) * rng.standard_normal(shape[1]) + math.sqrt(1.0 - CORRELATED) * rng.standard_normal(shape))


def _spread(models: int, icc: float, *, even: bool = True) -> NDArray[np.float64]:
    return np.full(models, icc) if even else np.where(np.arange(models) % 2 == 0, icc, 0.0)


def _labels(sizes: Sizes) -> NDArray[np.str_]:
    return np.repeat(np.arange(sizes.size).astype(str), sizes)


if __name__ == "__main__":
    main()
