"""How often does a check pass wrongly when the truth lies exactly at its limit?  The error rate that a gate promises, measured where it is worst.

Single checks are summed exactly over every possible table, so their rates carry no error. Corrected checks (`require: any`) and repeated looks
are drawn at random through the gate's own arithmetic, and their rates carry a Monte Carlo error.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import reduce
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, hypergeom

from benchmarks.bounded_means import settings
from benchmarks.measuring import conclude
from benchmarks.rates import ONE_SIDED, Rate, monte_carlo_error, summaries
from evalspec.statistics.differences import PairedCounts
from evalspec.statistics.exact_differences import fay_lumbard_p
from evalspec.statistics.finite_pools import pool_clopper_pearson
from evalspec.statistics.floors import Floor
from evalspec.statistics.one_sided import LimitTest, Method, passing
from evalspec.statistics.one_sided_power import limit_power
from evalspec.statistics.proportion_alternatives import lower_bound
from evalspec.statistics.sequential import LookPlan, nominal_alpha

ALPHA = ONE_SIDED
SIZES = (50, 100, 200, 500, 1000, 2000)
FLOORS = (0.25, 0.5, 0.7, 0.9, 0.97)
MARGINS = (0.01, 0.02, 0.05)
DISCORDANCES = (0.06, 0.1, 0.2, 0.3)
WIDE_SIZES = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
WIDE_MARGINS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
WIDE_ALPHAS = (0.005, ALPHA, 0.05, 0.1)

STRATA = ((5, 20), (20, 5), (57, 2), (57, 20))
SPREADS = ((0.7, 0.2), (0.9, 0.08), (0.97, 0.02))
"""Mean accuracy of strata, and how far the best and the worst lie from it."""

BINOMIAL = ("clopper_pearson", "clopper_pearson, part of a pool", "clopper_pearson, strata", "clopper_pearson, strata of a pool")
PROVEN = (*BINOMIAL, "e_value", "e_value, looks")
"""What is proven to keep alpha; the others are measured."""

COMPUTED = ("exact", "gaffke", "any, corrected")
"""How the gates begin that keep alpha by a conjecture: the documentation says that they kept it in every case computed."""


def main() -> None:
    """Print every rate, the largest and the mean of each kind, and whether what is proven or was said to hold in every case holds."""
    options = argparse.ArgumentParser()
    options.add_argument("--draws", type=int, default=20_000)
    options.add_argument("--discordances", type=int, default=7, help="how many discordances `exact` is summed over; 25 took about 2 minutes")
    options.add_argument("--rows", action="store_true", help="print each setting")
    chosen = options.parse_args()
    rates = [*floors(), *margins("score"), *margins("e_value"), *exact_margins(chosen.discordances), *any_of(chosen.draws), *looks(chosen.draws)]
    rates += [*pools(), *strata(), *strata_of_pools(), *bounded_means(chosen.draws // 5)]
    for rate in rates if chosen.rows else ():
        print(json.dumps(asdict(rate)))
    agree = not any(rate.above for rate in rates if _promised(rate.test))
    figures = {"alpha": ALPHA, "false_pass": summaries(rates), "agree": agree}
    conclude("boundary", "chance of a false pass with the truth at the limit", figures)


def floors() -> Iterator[Rate]:
    """Yield the chance of clearing a floor at which the truth lies, for each interval."""
    for method in ("clopper_pearson", "wilson", "jeffreys"):
        for limit in FLOORS:
            powers = Floor(limit, ALPHA, method).power(np.array(SIZES), limit)
            yield from (Rate(method, f"n={n} floor={limit}", float(power)) for n, power in zip(SIZES, powers, strict=True))


def margins(method: Method) -> Iterator[Rate]:
    """Yield the chance of clearing a margin by which the candidate is truly worse."""
    for n, margin, discordance in product(SIZES, MARGINS, DISCORDANCES):
        rate = limit_power(n, discordance, -margin, LimitTest(-margin, ALPHA, method))
        yield Rate(method, f"n={n} margin={margin} discordance={discordance}", rate)


def exact_margins(discordances: int) -> Iterator[Rate]:
    """Yield the same for `exact`, which gates take, at several alphas and at discordances from the margin, all of them losses, to 1."""
    for alpha, n, margin in product(WIDE_ALPHAS, WIDE_SIZES, WIDE_MARGINS):
        for discordance in margin + (1.0 - margin) * np.linspace(0.0, 1.0, discordances) ** 3:
            rate = limit_power(n, float(discordance), -margin, LimitTest(-margin, alpha, "exact"))
            yield Rate(f"exact, alpha {alpha:g}", f"n={n} margin={margin} discordance={discordance:.4g}", rate, alpha=alpha)


def pools() -> Iterator[Rate]:
    """Yield the chance of clearing a floor that is the share right in a pool, by the exact bound for a random part of it."""
    for pool, asked in ((100, 50), (400, 200), (400, 350), (2000, 200)):
        for floor in FLOORS:
            right = math.ceil(pool * floor)
            counts = np.arange(asked + 1)
            chances = hypergeom.pmf(counts, pool, right, asked)
            passed = [pool_clopper_pearson(int(k), questions=asked, pool=pool).low > right / pool + 1e-12 for k in counts]
            yield Rate("clopper_pearson, part of a pool", f"{asked} of {pool} floor={floor}", float(chances @ passed))


def strata() -> Iterator[Rate]:
    """Yield the chance of clearing the mean over strata of equal size, by Clopper and Pearson's bound, which passes over them."""
    for (count, size), (mean, reach) in product(STRATA, SPREADS):
        each = [binom.pmf(np.arange(size + 1), size, share) for share in mean + np.linspace(-reach, reach, count)]
        yield Rate("clopper_pearson, strata", f"{count} strata of {size}, mean {mean}", _cleared(each, mean))


def strata_of_pools() -> Iterator[Rate]:
    """Yield the chance of clearing the share right in a pool of which a part of each stratum is asked, by the bound that passes over both."""
    for (count, size), (mean, reach), times in product(STRATA, SPREADS, (2, 5)):
        pool = times * size
        right = np.round(pool * (mean + np.linspace(-reach, reach, count))).astype(np.int64)
        each = [hypergeom.pmf(np.arange(size + 1), pool, among, size) for among in right.tolist()]
        truth = float(right.sum()) / (count * pool)
        setting = f"{count} strata, {size} of {pool} asked, mean {truth:.3g}"
        yield Rate("clopper_pearson, strata of a pool", setting, _cleared(each, truth))
        yield Rate("clopper_pearson, strata of a pool taken for a simple part (comparison)", setting, _cleared(each, truth, pool=count * pool))


def _cleared(each: Sequence[NDArray[np.float64]], truth: float, *, pool: int | None = None) -> float:
    """Return the chance that the bound of all answers, or that of a simple part of a pool, lies above the truth.

    `each` holds the chances of every number right in each stratum.
    """
    chances = reduce(np.convolve, each)
    n = chances.size - 1
    lows = (
        lower_bound(right, n, level=1.0 - ALPHA) if pool is None else pool_clopper_pearson(right, questions=n, pool=pool).low
        for right in range(n + 1)
    )
    return float(chances @ [low > truth + 1e-12 for low in lows])


def bounded_means(draws: int) -> Iterator[Rate]:
    """Yield the chance of clearing the true mean of clusters and of fractional scores, by Gaffke's bound."""
    for drawn in settings(draws):
        rate = drawn.rate()
        yield Rate(drawn.gate, drawn.setting, rate, monte_carlo_error(rate, draws))


def any_of(draws: int) -> Iterator[Rate]:
    """Yield the chance that any of several candidates, each worse by the margin, passes after Holm's correction; and uncorrected beside it."""
    for candidates in (2, 5, 10):
        for n, margin in ((500, 0.05), (2000, 0.02)):
            levels = _pass_levels(draws, candidates, n, margin)
            setting = f"{candidates} candidates, n={n} margin={margin}"
            for gate, divisor in (("any, corrected", candidates), ("any, uncorrected", 1)):
                rate = float(np.mean((levels >= divisor).any(axis=1)))
                yield Rate(gate, setting, rate, monte_carlo_error(rate, draws))


def looks(draws: int) -> Iterator[Rate]:
    """Yield the chance that any of several looks passes: with alpha spent, with an e-value, and with the same alpha at each look."""
    at = tuple(range(200, 2001, 200))
    plan, margin, discordance = LookPlan(at), 0.02, 0.12
    wins, losses = _accumulated(draws, at, margin, discordance)
    for gate, method, levels in (
        ("score, looks spent", "score", [nominal_alpha(plan, look, alpha=ALPHA) for look in range(1, len(at) + 1)]),
        ("e_value, looks", "e_value", [ALPHA] * len(at)),
        ("score, looks ignored", "score", [ALPHA] * len(at)),
    ):
        passed = np.zeros(draws, dtype=np.bool_)
        for look, (n, level) in enumerate(zip(at, levels, strict=True)):
            passed |= _passing(wins[:, look], losses[:, look], n, LimitTest(-margin, level, method))
        rate = float(passed.mean())
        yield Rate(gate, f"{len(at)} looks to n={at[-1]} margin={margin}", rate, monte_carlo_error(rate, draws))


def _pass_levels(draws: int, candidates: int, n: int, margin: float) -> NDArray[np.int64]:
    """Return, per draw and candidate, the largest divisor of alpha at which the candidate still passes; all share one baseline's answers."""
    rng = np.random.default_rng(20261129)
    right, discordance = 0.7, 0.2
    lost, won = (discordance + margin) / 2 / right, (discordance - margin) / 2 / (1 - right)
    of_baseline = rng.binomial(n, right, size=(draws, 1))
    losses = rng.binomial(of_baseline, lost, size=(draws, candidates))
    wins = rng.binomial(n - of_baseline, won, size=(draws, candidates))
    tables, place = np.unique(np.stack([wins.ravel(), losses.ravel()]), axis=1, return_inverse=True)
    p_values = np.array([fay_lumbard_p(PairedCounts(n - won - lost, won, lost, 0), -margin) for won, lost in tables.T.tolist()])
    divisors = np.arange(1, candidates + 1)
    passed = p_values[:, None] < ALPHA / divisors
    return np.asarray(passed.sum(axis=1)[place.ravel()].reshape(wins.shape))


def _accumulated(draws: int, at: tuple[int, ...], margin: float, discordance: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return wins and losses up to each look, shape (draws, looks)."""
    rng = np.random.default_rng(20261130)
    shares = [(discordance - margin) / 2, (discordance + margin) / 2, 1 - discordance]
    steps = np.stack([rng.multinomial(late - early, shares, size=draws) for early, late in zip((0, *at), at, strict=False)], axis=1)
    totals = steps.cumsum(axis=1)
    return totals[:, :, 0], totals[:, :, 1]


def _passing(wins: NDArray[np.int64], losses: NDArray[np.int64], n: int, test: LimitTest) -> NDArray[np.bool_]:
    """Decide each distinct table once."""
    tables, place = np.unique(np.stack([wins, losses]), axis=1, return_inverse=True)
    return passing(tables[0], tables[1], n, test)[place.ravel()]


def _promised(gate: str) -> bool:
    """Whether the gate keeps alpha by proof, or by a conjecture."""
    return gate in PROVEN or gate.startswith(COMPUTED)


if __name__ == "__main__":
    main()
