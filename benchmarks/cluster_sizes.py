"""How often do clusters of two or three sizes pass wrongly by Gaffke's bound, and how large must its made-up cluster be?

Every cluster is all right, with one chance whatever its size, or all wrong, and that chance is the limit. Rates are summed exactly over how many
clusters of each size are right. Designs are sought out to be unfavourable: some are drawn at random, the others are the worst found so far with a
small change. Beside the made-up size that evalspec takes stands a smaller one, the mean size that a question meets, on a search of its own. More
kinds of sizes, with answers that are merely correlated within clusters, are drawn at random.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import product

import numpy as np
from scipy.stats import binom

from benchmarks.bounded_means import Drawn, Ints, chances
from benchmarks.measuring import conclude
from benchmarks.rates import ONE_SIDED, Rate, monte_carlo_error, summaries
from evalspec.statistics.gaffke import Units, gaffke_p

ALPHAS = (0.0025, 0.01, ONE_SIDED, 0.1)
MEANS = np.arange(0.02, 0.985, 0.02)
COUNTS = (10, 30, 57)
LAWS = ((0.7, 0.1), (0.9, 0.3), (0.45, 1.0), (0.9, 1.0))
"""Mean of the chances of clusters, and correlation of answers within them."""

HOLDING = ((1, 0.2), (1, 0.5), (3, 0.2), (3, 0.5), (8, 0.5))
"""How many clusters of one size hold which share of the questions, among others of 10 each."""

NEGLIGIBLE = 1e-10
"""Chance of tables that are not decided and count as passed."""


class SmallerMadeUp(Units):
    """The same draws beside a made-up one that is as large as the cluster of a random question, on average."""

    @property
    def made_up_size(self) -> float:
        """Number of questions of the made-up draw: the mean size, weighted by the sizes themselves."""
        return float(self.counts @ self.sizes**2 / (self.counts @ self.sizes))


MADE_UP = {"made-up size": Units, "smaller made-up size (comparison)": SmallerMadeUp}


@dataclass(frozen=True, slots=True)
class Clusters:
    """Sizes, the largest first, how many clusters have each, and the chance that one is all right; the last size has the most clusters, for speed."""

    sizes: tuple[int, ...]
    numbers: tuple[int, ...]
    mean: float

    def __str__(self) -> str:
        """Name them as the rows do."""
        return ", ".join(f"{number} of {size}" for number, size in zip(self.numbers, self.sizes, strict=True)) + f", mean {self.mean:.6g}"

    def too_few(self, right: tuple[int, ...]) -> int:
        """Return how many of the last size leave the mean at or below the limit, with so many right of the others; p is 1 / e there, or more.

        That is Grünbaum's inequality. It is -1 where none do, and all of them at most.
        """
        needed = self.mean * float(np.dot(self.sizes, self.numbers)) - float(np.dot(self.sizes[:-1], right))
        return min(max(math.floor(needed / self.sizes[-1] - 1e-9), -1), self.numbers[-1])

    def passing(self, right: tuple[int, ...], alpha: float, made_up: type[Units]) -> Callable[[int], bool]:
        """Return what says of a number right of the last size whether a sample passes with so many right of the others."""
        sizes, numbers = np.array(self.sizes, dtype=np.float64), np.array(self.numbers, dtype=np.float64)
        totals, of = np.concatenate([sizes, 0.0 * sizes]), np.concatenate([sizes, sizes])

        def passes(also: int) -> bool:
            found = np.array([*right, also], dtype=np.float64)
            return gaffke_p(made_up(totals, of, np.concatenate([found, numbers - found]), 0.0), self.mean) < alpha

        return passes


def main() -> None:
    """Print the largest rates by either made-up size, and where they were found."""
    options = argparse.ArgumentParser()
    options.add_argument("--designs", type=int, default=400, help="designs that are searched for either made-up size")
    options.add_argument("--samples", type=int, default=50, help="samples that are drawn of each kind of sizes")
    options.add_argument("--rows", action="store_true", help="print each design")
    chosen = options.parse_args()
    rates = list(simulated(chosen.samples))
    for name, made_up in MADE_UP.items():
        rates += [*shares(name, made_up), *searched(name, made_up, chosen.designs)]
    for rate in rates if chosen.rows else ():
        print(json.dumps(asdict(rate)))
    agree = not any(rate.above for rate in rates if "comparison" not in rate.test)
    conclude("cluster_sizes", "chance of a false pass by clusters of different sizes", {"false_pass": summaries(rates), "agree": agree})


def shares(name: str, made_up: type[Units]) -> Iterator[Rate]:
    """Yield the rates, over all means, of eight clusters with half of the questions among small ones, and of a few with less among tiny ones."""
    designs = {
        "eight with half of the questions among 192": [((240, 10), (8, 192))],
        "a few with a half to a fifth of the questions among tiny ones": [
            ((100, 1), (large, large * times)) for large, times in product((2, 8, 15), (100, 200, 400))
        ],
    }
    for kind, of_kind in designs.items():
        for (sizes, numbers), mean in product(of_kind, MEANS.tolist()):
            clusters = Clusters(sizes, numbers, mean)
            yield Rate(f"{name}, {kind}", str(clusters), false_pass_rate(clusters, ONE_SIDED, made_up))


def searched(name: str, made_up: type[Units], designs: int) -> Iterator[Rate]:
    """Yield the rates of designs drawn at random, and of changes to the worst so far of each alpha and number of the largest clusters."""
    rng = np.random.default_rng(20261204)
    worst: dict[tuple[float, int], tuple[float, Clusters]] = {}
    for place in range(designs):
        alpha = ALPHAS[place % len(ALPHAS)]
        known = [clusters for (level, _), (_, clusters) in worst.items() if level == alpha]
        clusters = _changed(known[rng.integers(len(known))], rng) if known and rng.random() < 0.6 else _drawn(rng)
        rate = false_pass_rate(clusters, alpha, made_up)
        key = alpha, clusters.numbers[0]
        if key not in worst or rate > worst[key][0]:
            worst[key] = rate, clusters
        yield Rate(f"{name}, searched, alpha {alpha:g}", str(clusters), rate, alpha=alpha)


def simulated(samples: int) -> Iterator[Rate]:
    """Yield the rates of samples drawn at random, of which the first go through the functions that gates rest on; sizes tell nothing of scores."""
    rng = np.random.default_rng(20261205)
    for count, (mean, icc) in product(COUNTS, LAWS):
        for kind, sizes in _drawn_sizes(rng, (samples, count)).items():
            totals = rng.binomial(sizes, chances(rng, mean, icc, sizes.shape))
            setting = f"{count} clusters, mean {mean}, ICC {icc}"
            rate = Drawn(kind, setting, totals.astype(np.float64), sizes.astype(np.float64), mean).rate()
            yield Rate(f"drawn, {kind}", setting, rate, monte_carlo_error(rate, samples))


def _drawn_sizes(rng: np.random.Generator, shape: tuple[int, int]) -> dict[str, Ints]:
    """Sizes of clusters, new ones for every sample but where a few hold a share of the questions."""
    holding = {}
    for number, share in HOLDING:
        sizes = holding[f"{number} with {share:.0%} of the questions"] = np.full(shape, 10)
        sizes[:, :number] = max(1, round(10 * (shape[1] - number) * share / (1.0 - share) / number))
    return {
        "Pareto": np.ceil(3.0 * (rng.pareto(1.1, shape) + 1.0)).astype(np.int64),
        "lognormal": np.ceil(np.exp(rng.normal(2.0, 1.0, shape))).astype(np.int64),
        "one in ten of 100, the others of 10": np.where(rng.random(shape) < 0.1, 100, 10),
        **holding,
    }


def false_pass_rate(clusters: Clusters, alpha: float, made_up: type[Units] = Units) -> float:
    """Return the chance of all samples that pass; the more clusters of a size are right, the surer a sample passes."""
    *firsts, last = clusters.numbers
    chances = [binom.pmf(np.arange(number + 1), number, clusters.mean) for number in firsts]
    at_least = binom.sf(np.arange(-1, last + 1), last, clusters.mean)
    enough: dict[tuple[int, ...], int] = {}
    rate = 0.0
    for right in product(*(range(number + 1) for number in firsts)):
        chance = math.prod(float(each[count]) for each, count in zip(chances, right, strict=True))
        fewest = clusters.too_few(right) + 1
        if chance * at_least[fewest] > NEGLIGIBLE:
            passes = clusters.passing(right, alpha, made_up)
            fewest = enough[right] = _fewest(passes, fewest, _start(clusters, right, enough))
        rate += chance * float(at_least[fewest])
    return rate


@dataclass(frozen=True, slots=True)
class _Start:
    """Where to look first for how many clusters of the last size must be right, and a number that is surely enough."""

    guess: int
    high: int


def _start(clusters: Clusters, right: tuple[int, ...], enough: dict[tuple[int, ...], int]) -> _Start:
    """Look where as many questions are right as were enough with one large cluster less, which number is enough here too."""
    highs, guesses = [clusters.numbers[-1] + 1], [clusters.numbers[-1]]
    for place, size in enumerate(clusters.sizes[:-1]):
        near = (*right[:place], right[place] - 1, *right[place + 1 :])
        if near in enough:
            highs.append(enough[near])
            guesses.append(enough[near] - round(size / clusters.sizes[-1]))
    return _Start(min(guesses), min(highs))


def _fewest(passes: Callable[[int], bool], low: int, start: _Start) -> int:
    """Return the least number from low to high that passes, or high, by steps that double away from the guess and halving once it is between two."""
    below, above, place, step = low - 1, max(start.high, low), start.guess, 1
    while above - below > 1:
        place = place if below < place < above else (below + above) // 2
        if passes(place):
            above, place = place, place - step
        else:
            below, place = place, place + step
        step *= 2
    return above


def _drawn(rng: np.random.Generator) -> Clusters:
    """Draw a design: up to 15 clusters 1.1 to 300 times as large as the others, of which there are up to 400, or up to 8 and 12 of two such sizes."""
    if rng.random() < 0.75:
        return _tidied([10.0 * _spread(rng, 1.1, 300.0), 10.0], [_spread(rng, 1.0, 15.5), _spread(rng, 5.0, 400.0)], rng.uniform(0.02, 0.98))
    sizes = sorted((10.0 * _spread(rng, 1.1, 300.0) for _ in range(2)), reverse=True)
    numbers = [_spread(rng, 1.0, 8.5), _spread(rng, 1.0, 12.5), _spread(rng, 12.0, 400.0)]
    return _tidied([*sizes, 10.0], numbers, rng.uniform(0.02, 0.98))


def _changed(clusters: Clusters, rng: np.random.Generator) -> Clusters:
    """Change one or several of sizes, numbers and mean by about a tenth, or by about a hundredth."""
    reach = rng.choice([0.01, 0.1, 0.3])
    sizes = [size * _factor(reach, rng) for size in clusters.sizes[:-1]]
    numbers = [number * _factor(reach, rng) + rng.choice([-1.0, 0.0, 0.0, 1.0]) for number in clusters.numbers]
    odds = clusters.mean / (1.0 - clusters.mean) * math.exp(reach * rng.standard_normal())
    return _tidied([*sizes, 10.0], numbers, odds / (1.0 + odds))


def _factor(reach: float, rng: np.random.Generator) -> float:
    return math.exp(reach * rng.standard_normal()) if rng.random() < 0.5 else 1.0


def _tidied(sizes: list[float], numbers: list[float], mean: float) -> Clusters:
    """Round sizes and numbers to what is possible and soon summed: the smallest of size 10, which are the most."""
    whole = [min(max(round(number), 1), most) for number, most in zip(numbers, (15, 12, 400) if len(numbers) == 3 else (15, 400), strict=True)]
    large = sorted((min(max(round(size), 11), 3000) for size in sizes[:-1]), reverse=True)
    return Clusters((*large, 10), (*whole[:-1], max(whole)), min(max(mean, 0.01), 0.99))


def _spread(rng: np.random.Generator, low: float, high: float) -> float:
    """Draw between two numbers, uniformly in the logarithm."""
    return float(low * (high / low) ** rng.random())


if __name__ == "__main__":
    main()
