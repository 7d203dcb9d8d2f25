"""How often do the offered intervals hold the true value?  Exact sums where they are possible, simulation for clusters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, betainc, gammaln, xlogy

from benchmarks.measuring import conclude, peak_mib, seconds

LEVEL = 0.95
TRIALS = (3, 10, 30, 100, 300, 1000)
CASES = ((10, 0.2, 0.05), (30, 0.05, 0.03), (30, 0.2, 0.05), (100, 0.05, 0.03), (100, 0.2, 0.05), (300, 0.2, 0.05))
CLUSTERS, SETTINGS = (5, 10, 20, 57), ((0.7, 0.3), (0.95, 0.3))
MEAN_SIZE, REPETITIONS = 10, 1000
EDGE = 1e-9

Floats = NDArray[np.float64]
Limits = tuple[Floats, Floats]


def main() -> None:
    """Print one table per situation, and the whole as JSON."""
    found: dict[str, dict[str, object]] = {}

    def work() -> None:
        found["one proportion"] = _proportions()
        found["paired difference"] = _paired()
        found["clusters"] = _clustered()

    spent = seconds(work)
    exact = found["one proportion"]
    guaranteed = all(row["clopper_pearson"][1] >= LEVEL - 1e-9 for row in exact.values())  # type: ignore[index]
    figures = {"ours_s": round(spent, 1), "peak_mib": peak_mib(), "coverage": found, "agree": guaranteed and _direct_sum_agrees()}
    conclude("coverage", f"coverage of {LEVEL:.0%} intervals; clusters by {REPETITIONS} simulations each", figures)


def _proportions() -> dict[str, object]:
    """Mean over p uniform on (0, 1), least over p in [0.02, 0.98], and at p = 0.99."""
    print("\nOne proportion: mean over all p / least for p from 0.02 to 0.98 / at p = 0.99")
    print("| n | Wald (comparison) | Wilson | Clopper-Pearson | Jeffreys |\n|---|---|---|---|---|")
    rows: dict[str, object] = {}
    for trials in TRIALS:
        row = {}
        for name, (low, high) in _limits(trials).items():
            counts = np.arange(trials + 1)
            mean = np.sum(betainc(counts + 1, trials - counts + 1, high) - betainc(counts + 1, trials - counts + 1, low)) / (trials + 1)
            places = np.concatenate([low - EDGE, low + EDGE, high - EDGE, high + EDGE, np.linspace(0.02, 0.98, 193)])
            covered = _covered(low, high, trials, places[(places >= 0.02) & (places <= 0.98)])
            row[name] = (round(float(mean), 3), round(float(covered.min()), 3), round(float(_covered(low, high, trials, np.array([0.99]))[0]), 3))
        rows[str(trials)] = row
        print(f"| {trials} | " + " | ".join(f"{mean:.3f} / {least:.2f} / {rare:.2f}" for mean, least, rare in row.values()) + " |")
    return rows


def _limits(trials: int) -> dict[str, Limits]:
    from evalspec.statistics.proportion_alternatives import wald
    from evalspec.statistics.proportions import clopper_pearson_many, jeffreys, wilson_many

    counts = np.arange(trials + 1)
    walds = [wald(int(count), trials, level=LEVEL).interval for count in counts]
    score, exact = wilson_many(counts, trials, level=LEVEL), clopper_pearson_many(counts, trials, level=LEVEL)
    bayes = [jeffreys(int(count), trials, level=LEVEL) for count in counts]
    return {
        "wald": (np.clip([one.low for one in walds], 0, 1), np.clip([one.high for one in walds], 0, 1)),
        "wilson": (score.low, score.high),
        "clopper_pearson": (exact.low, exact.high),
        "jeffreys": (np.array([one.low for one in bayes]), np.array([one.high for one in bayes])),
    }


def _covered(low: Floats, high: Floats, trials: int, places: Floats) -> Floats:
    """Sum the probability of the counts whose interval holds p: limits rise with the count, so these are neighbours."""
    last = np.searchsorted(low, places, side="right") - 1
    first = np.searchsorted(high, places, side="left")
    below = np.where(first > 0, bdtr(np.maximum(first - 1, 0), trials, places), 0.0)
    return np.where(last >= first, bdtr(np.maximum(last, 0), trials, places) - below, 0.0)


def _direct_sum_agrees() -> bool:
    """Compare the closed mean with a sum over a fine grid of p."""
    low, high = _limits(10)["wilson"]
    places = (np.arange(200_000) + 0.5) / 200_000
    counts = np.arange(11)
    closed = np.sum(betainc(counts + 1, 11 - counts, high) - betainc(counts + 1, 11 - counts, low)) / 11
    return bool(abs(closed - _covered(low, high, 10, places).mean()) < 1e-4)


def _paired() -> dict[str, object]:
    """Sum over the tables that matter; agreed questions are split evenly between both right and both wrong, which only Newcombe sees."""
    print("\nPaired difference D at discordance q")
    print("| n | q, D | Wald (comparison) | Newcombe | Tango |\n|---|---|---|---|---|")
    rows: dict[str, object] = {}
    for n, discordance, difference in CASES:
        cells, weights = _tables(n, discordance, difference)
        row = {name: _share(limits(cells), weights, difference) for name, limits in (("wald", _wald), ("newcombe", _newcombe), ("tango", _tango))}
        rows[f"n={n} q={discordance} D={difference}"] = row
        print(f"| {n} | {discordance}, {difference} | " + " | ".join(f"{value:.3f}" for value in row.values()) + " |")
    return rows


def _tables(n: int, discordance: float, difference: float) -> tuple[NDArray[np.int64], Floats]:
    """Return (both, only first, only second, neither), of shape (4, K), and their probabilities, which sum to more than 1 - 1e-7."""
    shares = np.array([(1 - discordance) / 2, (discordance + difference) / 2, (discordance - difference) / 2, (1 - discordance) / 2])
    reach = 6.5 * np.sqrt(n * shares * (1 - shares)) + 3
    ranges = [np.arange(max(0, int(n * share - far)), min(n, int(n * share + far)) + 1) for share, far in zip(shares[:3], reach, strict=False)]
    grids = np.stack([one.ravel() for one in np.meshgrid(*ranges, indexing="ij")])
    cells = np.vstack([grids, n - grids.sum(axis=0)])
    cells = cells[:, cells[3] >= 0]
    logs = gammaln(n + 1) + np.sum(xlogy(cells, shares[:, None]) - gammaln(cells + 1), axis=0)
    likely = logs > np.log(1e-12)
    return cells[:, likely], np.exp(logs[likely])


def _share(limits: Limits, weights: Floats, difference: float) -> float:
    held = (limits[0] <= difference) & (difference <= limits[1])
    return round(float(weights[held].sum() / weights.sum()), 3)


def _tango(cells: NDArray[np.int64]) -> Limits:
    from evalspec.statistics.all_pairs import compare_tables
    from evalspec.statistics.paired_tables import PairedTables

    found = compare_tables(PairedTables(*cells), level=LEVEL)
    return found.low, found.high


def _newcombe(cells: NDArray[np.int64]) -> Limits:
    """Newcombe's method 10 for many tables; `newcombe_paired` is the function for one."""
    from evalspec.statistics.proportions import wilson_many

    both, only_first, only_second, neither = cells
    n = cells.sum(axis=0)
    first, second = both + only_first, both + only_second
    p1, p2 = first / n, second / n
    one, two = wilson_many(first, n, level=LEVEL), wilson_many(second, n, level=LEVEL)
    margins = first * second * (n - first) * (n - second)
    determinant = both * neither - only_first * only_second
    corrected = np.where(determinant > 0, np.maximum(determinant - n / 2, 0), determinant)
    phi = np.where(margins > 0, corrected / np.sqrt(np.maximum(margins, 1)), 0)

    def spread(of_first: Floats, of_second: Floats) -> Floats:
        return np.sqrt(np.maximum(of_first**2 - 2 * phi * of_first * of_second + of_second**2, 0))

    return p1 - p2 - spread(p1 - one.low, two.high - p2), p1 - p2 + spread(one.high - p1, p2 - two.low)


def _wald(cells: NDArray[np.int64]) -> Limits:
    from evalspec.statistics.arguments import two_sided_z

    n = cells.sum(axis=0)
    estimate = (cells[1] - cells[2]) / n
    half = two_sided_z(LEVEL) * np.sqrt(((cells[1] + cells[2]) / n - estimate**2) / n)
    return estimate - half, estimate + half


def _clustered() -> dict[str, object]:
    """Simulate beta-binomial clusters of 10 questions, equal or geometric in size; the error of a share near 0.95 is about 0.007."""
    print("\nClusters of 10 questions on average: equal sizes / geometric sizes")
    print("| clusters | p, ICC | naive z (comparison) | CR2, Bell-McCaffrey t | Wilson, effective n |\n|---|---|---|---|---|")
    rows: dict[str, object] = {}
    for count, (p, icc) in product(CLUSTERS, SETTINGS):
        rng = np.random.default_rng(20261129)
        equal = _simulated(rng, (p, icc), partial(np.full, count, MEAN_SIZE))
        unequal = _simulated(rng, (p, icc), partial(rng.geometric, 1 / MEAN_SIZE, count))
        rows[f"{count} clusters p={p} icc={icc}"] = {name: (equal[name], unequal[name]) for name in equal}
        print(f"| {count} | {p}, {icc} | " + " | ".join(f"{equal[name]:.2f} / {unequal[name]:.2f}" for name in equal) + " |")
    return rows


def _simulated(rng: np.random.Generator, setting: tuple[float, float], sizes: Callable[[], NDArray[np.int64]]) -> dict[str, float]:
    from evalspec.statistics.arguments import two_sided_z
    from evalspec.statistics.clusters import clustered_interval, clustered_wilson

    p, icc = setting
    scale, held = 1 / icc - 1, dict.fromkeys(("naive", "cr2", "wilson"), 0)
    for _ in range(REPETITIONS):
        size = sizes()
        labels = np.repeat(np.arange(size.size), size)
        scores = (rng.random(labels.size) < np.repeat(rng.beta(p * scale, (1 - p) * scale, size.size), size)).astype(np.float64)
        mean = scores.mean()
        held["naive"] += bool(abs(mean - p) <= two_sided_z(LEVEL) * np.sqrt(mean * (1 - mean) / scores.size))
        robust, score = clustered_interval(scores, labels.tolist(), level=LEVEL), clustered_wilson(scores, labels.tolist(), level=LEVEL).interval
        held["cr2"] += bool(robust.low <= p <= robust.high)
        held["wilson"] += bool(score.low <= p <= score.high)
    return {name: round(count / REPETITIONS, 3) for name, count in held.items()}


if __name__ == "__main__":
    main()
