"""How often does Gaffke's bound of clusters and fractional scores pass wrongly at its limit, and what does its guarantee cost?

False passes are drawn at random with the truth exactly at the limit; the first draws of each setting go through `accuracy` and
`settled_difference` as well, which must decide alike. The price is how far the bound lies from the mean, and how often a check passes that
should, both beside Student's t with the standard error CR2.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import conclude
from benchmarks.rates import ONE_SIDED
from evalspec.statistics.accuracies import accuracy
from evalspec.statistics.designs import Design, design_mean
from evalspec.statistics.gaffke import Units, gaffke_bound, gaffke_p
from evalspec.statistics.one_sided import LimitTest, bounded_mean_above, mean_above
from evalspec.statistics.paired_designs import bounded_difference
from evalspec.statistics.settled import settled_difference

ALPHA = ONE_SIDED
MARGIN = 0.05
COUNTS = (10, 30, 57, 200)
EQUAL, GEOMETRIC = "equal clusters", "clusters of geometric sizes"
CHECKED = 10
"""Draws of each setting that go through the functions that gates rest on."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Drawn:
    """Totals and sizes of independent draws, both of shape (samples, draws), the true mean, and the smallest score: -1 for differences."""

    gate: str
    setting: str
    totals: Floats
    sizes: Floats
    truth: float
    smallest: float = 0.0

    def rate(self) -> float:
        """Return the share of samples that pass wrongly; the first ones are decided by what gates rest on too."""
        passed = [self._below(totals, sizes) for totals, sizes in zip(self.totals, self.sizes, strict=True)]
        for totals, sizes, decided in zip(self.totals[:CHECKED], self.sizes, passed, strict=False):
            if self._passes(totals, sizes) != decided:
                raise AssertionError(f"{self.gate}, {self.setting}: the gate decides otherwise than the p-value")
        return float(np.mean(passed))

    def _below(self, totals: Floats, sizes: Floats) -> bool:
        """Say whether p is below alpha; it is 1 / e at least where the mean is at or below the limit, by Grünbaum's inequality."""
        alike, counts = np.unique(np.stack([totals, sizes]), axis=1, return_counts=True)
        units = Units(alike[0], alike[1], counts.astype(np.float64), self.smallest)
        return units.mean > self.truth and gaffke_p(units, self.truth) < ALPHA

    def _passes(self, totals: Floats, sizes: Floats) -> bool:
        clusters = _labels(sizes) if self.sizes.max() > 1.0 else None
        scores = np.concatenate([_questions(total, int(size)) for total, size in zip(totals, sizes, strict=True)])
        if self.smallest == 0.0:
            interval = accuracy(scores, Design(clusters=clusters), method="clopper_pearson", level=1.0 - 2.0 * ALPHA).interval
            return interval is not None and interval.low > self.truth
        first, second, design = np.maximum(scores, 0.0), np.maximum(-scores, 0.0), Design(clusters=clusters)
        shown = settled_difference(first[:, None], second[:, None], design, LimitTest(self.truth, ALPHA, "exact")).outcome == "shown"
        # What `mcnemar` tests by method exact is the same at a limit of 0.
        found = bounded_difference(first, second, design)
        if self.truth == 0.0 and (found.difference > 0.0 and found.p_value < 2.0 * ALPHA) != shown:
            raise AssertionError(f"{self.gate}, {self.setting}: `mcnemar` decides otherwise than `noninferiority`")
        return shown


def settings(samples: int) -> Iterator[Drawn]:
    """Yield samples of every setting, each with the truth at its limit."""
    rng = np.random.default_rng(20261202)
    yield from _accuracies(rng, samples)
    yield from _fractions(rng, samples)
    yield from _differences(rng, samples)
    yield from _gains(rng, samples)
    yield from _telling(rng, samples)


def _accuracies(rng: np.random.Generator, samples: int) -> Iterator[Drawn]:
    """Right and wrong answers in beta-binomial clusters, also in clusters that are all right or all wrong (ICC 1)."""
    for count, (mean, icc) in product(COUNTS[:3], ((0.7, 0.1), (0.7, 0.3), (0.9, 0.3), (0.97, 0.3), (0.3, 1.0), (0.45, 1.0), (0.9, 1.0))):
        for kind, sizes in _kinds(rng, (samples, count)).items():
            totals = rng.binomial(sizes, chances(rng, mean, icc, sizes.shape))
            yield Drawn(f"gaffke, {kind}", f"{count} clusters, mean {mean}, ICC {icc}", totals.astype(np.float64), sizes.astype(np.float64), mean)


def _fractions(rng: np.random.Generator, samples: int) -> Iterator[Drawn]:
    """Fractional scores of independent questions: near 1, near 0, at both ends, averages over repeats, strata that are passed over."""
    laws: dict[str, tuple[float, Callable[[tuple[int, int]], Floats]]] = {
        "Beta(9, 1)": (0.9, lambda shape: rng.beta(9.0, 1.0, shape)),
        "Beta(0.9, 0.1)": (0.9, lambda shape: rng.beta(0.9, 0.1, shape)),
        "Beta(0.5, 0.5)": (0.5, lambda shape: rng.beta(0.5, 0.5, shape)),
        "Beta(1, 9)": (0.1, lambda shape: rng.beta(1.0, 9.0, shape)),
        "4 repeats": (0.8, lambda shape: rng.binomial(4, rng.beta(1.6, 0.4, shape)) / 4.0),
        "strata of mean 0.02 to 0.5": (0.26, lambda shape: _strata(rng, shape)),
    }
    for count, (law, (mean, draw)) in product((5, 10, 57, 200), laws.items()):
        yield Drawn("gaffke, fractional scores", f"{count} questions, {law}", draw((samples, count)), np.ones((samples, count)), mean)


def _differences(rng: np.random.Generator, samples: int) -> Iterator[Drawn]:
    """A candidate that is truly worse by the margin: in clusters, whose totals are wins less losses, and by fractional scores."""
    for count, (mean, icc) in product(COUNTS[:3], ((0.7, 0.1), (0.7, 0.3), (0.95, 0.3))):
        for kind, sizes in _kinds(rng, (samples, count)).items():
            baseline = chances(rng, mean, icc, sizes.shape)
            won = rng.binomial(sizes, baseline * (1.0 - MARGIN / mean)) - rng.binomial(sizes, baseline)
            setting = f"{count} clusters, baseline {mean}, ICC {icc}"
            yield Drawn(f"gaffke, differences, {kind}", setting, won.astype(np.float64), sizes.astype(np.float64), -MARGIN, -1.0)
    for count, certain in product((5, 10, 57, 200), (1.0, 10.0)):
        candidate, other = (rng.beta(0.9 * certain, 0.1 * certain, (samples, count)) for _ in range(2))
        scores = candidate * (1.0 - MARGIN / 0.9) - other
        yield Drawn(
            "gaffke, differences of fractional scores", f"{count} questions, Beta of {certain:g}", scores, np.ones(scores.shape), -MARGIN, -1.0
        )


def _gains(rng: np.random.Generator, samples: int) -> Iterator[Drawn]:
    """Two models that are equally good, where a check asks for a gain: one of them varies between clusters, or loses rarely and much."""
    for count, (mean, icc) in product(COUNTS[:3], ((0.7, 0.2), (0.97, 0.3))):
        for kind, sizes in _kinds(rng, (samples, count)).items():
            won = rng.binomial(sizes, mean) - rng.binomial(sizes, chances(rng, mean, icc, sizes.shape))
            setting = f"{count} clusters, mean {mean}, ICC 0 against {icc}"
            yield Drawn(f"gaffke, gains, uneven {kind}", setting, won.astype(np.float64), sizes.astype(np.float64), 0.0, -1.0)
    for count, share in product((50, 200), (0.005, 0.02, 0.1)):
        gains = np.where(rng.random((samples, count)) < 0.5, 2.0 * share / (1.0 - share), 0.0)
        scores = np.where(rng.random((samples, count)) < share, -1.0, gains)
        yield Drawn("gaffke, gains, rare losses", f"{count} questions, {share:g} lost", scores, np.ones(scores.shape), 0.0, -1.0)


def _telling(rng: np.random.Generator, samples: int) -> Iterator[Drawn]:
    """What the bound takes not to be so: one cluster in 50 is ten times as large as the others, and all wrong."""
    for count in COUNTS[:3]:
        large = rng.random((samples, count)) < 0.02
        sizes = np.where(large, 100, 10)
        totals = np.where(large, 0, rng.binomial(10, chances(rng, 0.95, 0.1, sizes.shape)))
        truth = 0.98 * 9.5 / (0.98 * 10.0 + 0.02 * 100.0)
        yield Drawn("sizes that tell of scores", f"{count} clusters", totals.astype(np.float64), sizes.astype(np.float64), truth)


def _kinds(rng: np.random.Generator, shape: tuple[int, int]) -> dict[str, Ints]:
    """Sizes of clusters: of 10 questions each, geometric, and of 10 except for three that hold half of the questions."""
    halves = np.full(shape, 10)
    halves[:, :3] = round(10 * (shape[1] - 3) / 3)
    return {EQUAL: np.full(shape, 10), GEOMETRIC: rng.geometric(0.1, shape), "three clusters with half of the questions": halves}


def _labels(sizes: Floats | Ints) -> NDArray[np.str_]:
    return np.repeat(np.arange(sizes.size).astype(str), sizes.astype(np.int64))


def chances(rng: np.random.Generator, mean: float, icc: float, shape: tuple[int, ...]) -> Floats:
    """Draw each cluster's chance of a right answer: Beta of this mean and correlation within clusters, 0 or 1 where that is 1."""
    if icc == 1.0:
        return (rng.random(shape) < mean).astype(np.float64)
    scale = 1.0 / icc - 1.0
    return rng.beta(mean * scale, (1.0 - mean) * scale, shape)


def _strata(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    means = np.linspace(0.02, 0.5, shape[1])
    return rng.beta(2.0 * means, 2.0 * (1.0 - means), shape)


def _questions(total: float, size: int) -> Floats:
    """Return scores of one sign, of which all but one have the largest size, that sum to the total."""
    sign, rest = math.copysign(1.0, total), abs(total) - np.arange(size)
    return np.asarray(sign * np.clip(rest, 0.0, 1.0))


def main() -> None:
    """Print how far below the mean each bound lies, in points, and how often each of two realistic checks passes, as it should."""
    options = argparse.ArgumentParser()
    options.add_argument("--draws", type=int, default=400)
    draws = options.parse_args().draws
    rng = np.random.default_rng(20261203)
    figures = {"points_below_the_mean": dict(_distances(rng, draws)), "chance_of_a_right_pass": dict(_powers(rng, draws)), "agree": True}
    conclude("bounded_means", "what Gaffke's bound costs beside Student's t with CR2", figures)


def _distances(rng: np.random.Generator, draws: int) -> Iterator[tuple[str, dict[str, float]]]:
    for (mean, icc), count in product(((0.7, 0.1), (0.7, 0.3), (0.9, 0.3)), COUNTS):
        for kind, sizes in list(_kinds(rng, (draws, count)).items())[:2]:
            totals = rng.binomial(sizes, chances(rng, mean, icc, sizes.shape)).astype(np.float64)
            gaffke, student = np.mean([_below(*sample) for sample in zip(totals, sizes, strict=True)], axis=0)
            yield f"{count} {kind}, mean {mean}, ICC {icc}", {"gaffke": round(100 * gaffke, 1), "cr2_t": round(100 * student, 1)}


def _below(totals: Floats, sizes: Ints) -> tuple[float, float]:
    """Return how far below the mean Gaffke's bound lies, and Student's."""
    units = Units(totals, sizes.astype(np.float64), np.ones(sizes.size), 0.0)
    scores = np.concatenate([_questions(total, int(size)) for total, size in zip(totals, sizes, strict=True)])
    interval = design_mean(scores, Design(clusters=_labels(sizes))).interval(1.0 - 2.0 * ALPHA)
    return units.mean - gaffke_bound(units, alpha=ALPHA), units.mean - interval.low if interval else 0.0


def _powers(rng: np.random.Generator, draws: int) -> Iterator[tuple[str, dict[str, float]]]:
    """No true difference and a margin of 5 points; models agree on 80 % of the questions, and clusters differ in their difference by 5 points."""
    for count, kind in product((57, 200, 1000), (EQUAL, GEOMETRIC)):
        passed = np.zeros((draws, 2))
        for row, sizes in zip(passed, _kinds(rng, (draws, count))[kind], strict=True):
            tilt = rng.normal(0.0, 0.05, count)
            chances = np.stack([0.1 + tilt / 2.0, 0.1 - tilt / 2.0], axis=1).clip(0.0)
            differences = np.concatenate(
                [rng.choice([1.0, -1.0, 0.0], size=size, p=[won, lost, 1.0 - won - lost]) for size, (won, lost) in zip(sizes, chances, strict=True)]
            )
            design = Design(clusters=_labels(sizes))
            row[:] = [test(differences, design, -MARGIN, alpha=ALPHA).passed for test in (bounded_mean_above, mean_above)]
        yield f"margin 5 points, {count} {kind}", {"gaffke": round(passed[:, 0].mean(), 3), "cr2_t": round(passed[:, 1].mean(), 3)}


if __name__ == "__main__":
    main()
