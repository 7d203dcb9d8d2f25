"""How often does Gaffke's bound pass wrongly where questions weigh differently?  Designs of two or three strata, sought out and summed exactly.

Answers of a stratum are right with one chance; weights are those of an average over subjects (1 over the number of questions) or any. The weight
of the made-up question is the largest one; the mean weight, weighted by squared weights, stands beside it.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from benchmarks.measuring import conclude
from benchmarks.rates import Rate, summaries
from evalspec.statistics.gaffke import Units, gaffke_p

ALPHAS = (0.0025, 0.025, 0.1)
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


def main() -> None:
    """Print the largest rate by alpha and by the weight of the made-up question, and whether all by the largest weight stay below alpha."""
    options = argparse.ArgumentParser()
    options.add_argument("--designs", type=int, default=300)
    rng = np.random.default_rng(20261204)
    rates = []
    for strata in (drawn(rng) for _ in range(options.parse_args().designs)):
        setting = f"{strata.sizes.tolist()} questions of weights {strata.weights.round(4).tolist()}, chances {strata.chances.round(3).tolist()}"
        for name, weighted in (("largest weight", True), ("mean weight", False)):
            rates += [Rate(f"{name}, alpha {alpha:g}", setting, rate, alpha=alpha) for alpha, rate in strata.rates(weighted=weighted).items()]
    agree = not any(rate.above for rate in rates if rate.test.startswith("largest"))
    work = "chance of a false pass, summed exactly, where questions weigh differently"
    conclude("weighted_strata", work, {"false_pass": summaries(rates), "agree": agree})


if __name__ == "__main__":
    main()
