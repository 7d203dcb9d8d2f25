"""How often does Gaffke's bound pass wrongly where questions weigh differently?  Designs of two or three strata, sought out and summed exactly.

Answers of a stratum are right with one chance; weights are those of an average over subjects (1 over the number of questions) or any. The weight
of the made-up question is the largest one; the mean weight, weighted by squared weights, stands beside it. So do, of averages over subjects of 2, 2
and 100 questions, bounds on an effective number of questions, which `wilson` and `jeffreys` have.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from benchmarks.measuring import conclude
from benchmarks.rates import ONE_SIDED, Rate, summaries
from evalspec.statistics.accuracies import accuracy
from evalspec.statistics.designs import Design
from evalspec.statistics.gaffke import Units, gaffke_p
from evalspec.statistics.proportions import ProportionMethod

ALPHAS = (0.0025, ONE_SIDED, 0.1)
METHODS: tuple[ProportionMethod, ...] = ("clopper_pearson", "wilson", "jeffreys")
SIZES = (2, 2, 100)
"""Numbers of questions of three subjects that count the same."""

NEGLIGIBLE = 1e-8
"""Chance of a sample below which it is counted as passing, so that rates are never too small by more than all of these together."""


@dataclass(frozen=True, slots=True)
class Strata:
    """Numbers of questions, the weight of each question, and the chance of a right answer; all of shape (G,)."""

    sizes: NDArray[np.int64]
    weights: NDArray[np.float64]
    chances: NDArray[np.float64]

    @property
    def truth(self) -> float:
        """The mean that the bound is held against."""
        return float((self.sizes * self.weights) @ self.chances / (self.sizes @ self.weights))

    def rates(self, *, weighted: bool) -> dict[float, float]:
        """Return the chance of a lower bound above the truth, by alpha; `weighted` takes the largest weight for the made-up question."""
        counts = np.stack([axis.ravel() for axis in np.meshgrid(*(np.arange(size + 1) for size in self.sizes), indexing="ij")], axis=1)
        each = [binom.pmf(np.arange(size + 1), size, chance) for size, chance in zip(self.sizes, self.chances, strict=True)]
        likely, truth = reduce(np.multiply.outer, each).ravel(), self.truth
        above = (likely > 0.0) & (counts @ self.weights > truth * float(self.sizes @ self.weights))
        samples = zip(counts[above], likely[above], strict=True)
        p_values = [self._p(right, weighted=weighted) if chance > NEGLIGIBLE else 0.0 for right, chance in samples]
        return {alpha: float(likely[above] @ (np.array(p_values) < alpha)) for alpha in ALPHAS}

    def _p(self, right: NDArray[np.int64], *, weighted: bool) -> float:
        totals, sizes = np.append(self.weights, np.zeros(right.size)), np.tile(self.weights, 2)
        numbers = np.append(right, self.sizes - right).astype(np.float64)
        some = numbers > 0.0
        return gaffke_p(Units(totals[some], sizes[some], numbers[some], 0.0, weighted=weighted), self.truth)


def drawn(rng: np.random.Generator) -> Strata:
    """Return a design that may be unfavourable: few questions of large weight, chances of 0 and 1 among others."""
    groups = int(rng.integers(2, 4))
    sizes = rng.integers(1, 13 if groups == 2 else 7, groups)
    weights = 1.0 / sizes if rng.random() < 0.5 else 10.0 ** rng.uniform(-2.0, 0.0, groups)
    chances = rng.choice([0.0, 1.0, *rng.random(4)], groups)
    if rng.random() < 0.3:
        chances = np.maximum(chances, 0.5)
    return Strata(sizes, weights / weights.max(), chances) if 0.0 < chances.sum() < groups else drawn(rng)


def averages(method: ProportionMethod) -> Iterator[Rate]:
    """Yield the rates of averages over subjects of 2, 2 and 100 questions, right with one chance, by the bound that a check takes for a method."""
    lows = np.array([_lower_bound(right, method) for right in product(*(range(size + 1) for size in SIZES))])
    name = "largest weight, an average over subjects" if method == "clopper_pearson" else f"{method}, an average over subjects"
    for chance in np.arange(0.01, 0.995, 0.01).tolist():
        likely = reduce(np.multiply.outer, [binom.pmf(np.arange(size + 1), size, chance) for size in SIZES])
        yield Rate(name, f"2, 2 and 100 questions, chance {chance:.2f}", float(likely.ravel() @ (lows > chance + 1e-12)))


def _lower_bound(right: tuple[int, ...], method: ProportionMethod) -> float:
    """Return the lower bound of the average over subjects with so many right answers each."""
    scores = np.concatenate([np.arange(size) < answered for size, answered in zip(SIZES, right, strict=True)]).astype(np.float64)
    subjects = Design(strata=np.repeat(("first", "second", "third"), SIZES), shares={"first": 1.0, "second": 1.0, "third": 1.0})
    interval = accuracy(scores, subjects, method=method, level=1.0 - 2.0 * ONE_SIDED).interval
    return interval.low if interval else 0.0


def main() -> None:
    """Print the largest rate by alpha and by the weight of the made-up question, and whether all by the largest weight stay below alpha."""
    options = argparse.ArgumentParser()
    options.add_argument("--designs", type=int, default=300)
    rng = np.random.default_rng(20261204)
    rates = [rate for method in METHODS for rate in averages(method)]
    for strata in (drawn(rng) for _ in range(options.parse_args().designs)):
        setting = f"{strata.sizes.tolist()} questions of weights {strata.weights.round(4).tolist()}, chances {strata.chances.round(3).tolist()}"
        for name, weighted in (("largest weight", True), ("mean weight", False)):
            rates += [Rate(f"{name}, alpha {alpha:g}", setting, rate, alpha=alpha) for alpha, rate in strata.rates(weighted=weighted).items()]
    agree = not any(rate.above for rate in rates if rate.test.startswith("largest"))
    work = "chance of a false pass, summed exactly, where questions weigh differently"
    conclude("weighted_strata", work, {"false_pass": summaries(rates), "agree": agree})


if __name__ == "__main__":
    main()
