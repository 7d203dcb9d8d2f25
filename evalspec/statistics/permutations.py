"""How often would chance alone, by flipping signs or reshuffling, give a difference as large as the one seen?

A p-value by random draws counts the data themselves as one draw, so it is never 0; it counts ties with the data as "as large".

Null hypothesis: as each function names it; nothing is assumed about the shape of scores beyond it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from evalspec.statistics.arguments import FloatArray, IntArray, require_count, require_scores
from evalspec.statistics.groups import group
from evalspec.statistics.p_values import held

MOST_ENUMERATED = 1 << 20
"""Exact tests refuse to enumerate more arrangements than this."""

FINEST_PART = 100
"""Differences are taken for whole multiples of a part of one down to this one."""

_WHOLE = 1e-9
"""How near a sum of averages must come to a whole number of parts to be it, up to rounding."""

_TIE = 1e-12
"""Sums that differ by rounding only must count as ties; relative to the sum of sizes."""


@dataclass(frozen=True, slots=True)
class MonteCarloP:
    """A p-value estimated from random draws, (r + 1) / (R + 1), and its Monte Carlo standard error."""

    p_value: float
    standard_error: float
    draws: int


def sign_flip(differences: ArrayLike, *, draws: int, rng: np.random.Generator) -> MonteCarloP:
    """Two-sided Monte Carlo sign-flip test of H0: differences are symmetric about 0.

    Parameters
    ----------
    differences
        First minus second, shape (Q,), independent, scores of any kind.
    draws, rng
        Number of random flips, and where they come from.

    Raises
    ------
    ValueError
        When a difference is missing or there is no draw.

    References
    ----------
    Phipson and Smyth (2010), Stat. Appl. Genet. Mol. Biol. 9, 39, doi:10.2202/1544-6115.1585.

    Examples
    --------
    >>> sign_flip([0.0, 0.0], draws=99, rng=np.random.default_rng(1)).p_value
    1.0
    """
    values = require_scores("differences", differences)
    require_count("draws", draws, minimum=1)
    threshold = _threshold(values)
    as_large = 0
    for start in range(0, draws, 1024):
        signs = rng.integers(0, 2, size=(min(1024, draws - start), values.size), dtype=np.int8)
        as_large += int(np.count_nonzero(np.abs((2.0 * signs - 1.0) @ values) >= threshold))
    p_value = (as_large + 1) / (draws + 1)
    return MonteCarloP(p_value, math.sqrt(p_value * (1.0 - p_value) / draws), draws)


def sign_flip_exact(differences: ArrayLike) -> float:
    """Exact two-sided sign-flip p-value over all arrangements of signs.

    Any number of differences that are whole multiples of one part (`whole_multiples`), by counting how many arrangements lead to each sum; at most
    20 others that are not 0, by enumeration.

    Raises
    ------
    ValueError
        When a difference is missing, or more than 20 are not 0 and no whole multiples.

    References
    ----------
    Fisher (1935), The Design of Experiments, section 21. Pagano and Tritchler (1983), J. Am. Stat. Assoc. 78, 435-440,
    doi:10.1080/01621459.1983.10477990 (counting sums).

    Examples
    --------
    >>> sign_flip_exact([1, 2, 3, 0])
    0.25
    """
    values = require_scores("differences", differences)
    wholes = whole_multiples(values)
    if wholes is not None:
        return _share_of_sums(wholes)
    values = values[values != 0.0]
    if 1 << values.size > MOST_ENUMERATED:
        raise ValueError(f"at most 20 differences other than 0 can be enumerated; got {values.size}: use sign_flip")
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    return float(np.mean(np.abs(sums) >= _threshold(values)))


def whole_multiples(values: ArrayLike) -> IntArray | None:
    """Whole numbers in the proportions of the values, such as counts of averages over repeats; None where no part up to a hundredth divides them.

    References
    ----------
    Pagano and Tritchler (1983), J. Am. Stat. Assoc. 78, 435-440, doi:10.1080/01621459.1983.10477990.

    Examples
    --------
    >>> whole_multiples([0.25, -1.5])
    array([ 1, -6])
    """
    array = np.asarray(values, dtype=np.float64)
    for parts in range(1, FINEST_PART + 1):
        scaled = array * parts
        rounded = np.rint(scaled)
        if np.all(np.abs(scaled - rounded) <= _WHOLE):
            return rounded.astype(np.int64) if np.abs(rounded).sum() <= MOST_ENUMERATED else None
    return None


def _share_of_sums(wholes: IntArray) -> float:
    """Share of arrangements of signs whose sum is as far from 0 as that of the numbers given."""
    sizes = np.sort(np.abs(wholes[wholes != 0]))
    total, observed = int(sizes.sum()), abs(int(wholes.sum()))
    if observed == 0:
        return 1.0
    # The sum with random signs is twice that of a random part of the sizes, less their total.
    chances = np.zeros(total + 1)
    chances[0], reached = 1.0, 0
    for size in sizes.tolist():
        taken = chances[: reached + 1].copy()
        chances[: reached + size + 1] *= 0.5
        chances[size : reached + size + 1] += 0.5 * taken
        reached += size
    return held(2.0 * float(chances[(total + observed) // 2 :].sum()))


def reshuffle_exact(first: ArrayLike, second: ArrayLike) -> float:
    """Exact two-sided permutation p-value of a difference in means of two independent samples.

    Null hypothesis: all scores are exchangeable between the samples.

    Raises
    ------
    ValueError
        When a score is missing or there are more than about a million arrangements.

    References
    ----------
    Pitman (1937), Suppl. J. R. Stat. Soc. 4, 119-130, doi:10.2307/2984124.

    Examples
    --------
    >>> reshuffle_exact([3, 5, 0], [4, 0, 1])
    0.8
    """
    a, b = require_scores("first", first), require_scores("second", second)
    pooled = np.concatenate([a, b])
    arrangements = math.comb(pooled.size, a.size)
    if arrangements > MOST_ENUMERATED:
        raise ValueError(f"at most {MOST_ENUMERATED} arrangements can be enumerated; got {arrangements}")
    sums = np.array([pooled[list(chosen)].sum() for chosen in combinations(range(pooled.size), a.size)])
    # A sum's distance from its expectation orders arrangements as the difference in means does.
    expected = pooled.sum() * a.size / pooled.size
    slack = _TIE * float(np.abs(pooled).sum())
    return float(np.mean(np.abs(sums - expected) >= abs(a.sum() - expected) - slack))


def reshuffle_groups(values: ArrayLike, labels: Iterable[Hashable], *, draws: int, rng: np.random.Generator) -> MonteCarloP:
    """Monte Carlo test of H0: values have one distribution in all groups, by the spread of group means under reshuffled labels.

    Parameters
    ----------
    values
        Scores or differences of any kind, shape (Q,), independent.
    labels
        The group of each value, at least two different ones.
    draws, rng
        Number of random reshuffles, and where they come from.

    Raises
    ------
    ValueError
        With a missing value or label, a single group, or without a draw.

    References
    ----------
    Good (2005), Permutation, Parametric and Bootstrap Tests of Hypotheses, 3rd ed. Phipson and Smyth (2010),
    doi:10.2202/1544-6115.1585.

    Examples
    --------
    >>> reshuffle_groups([0.5, 0.5, 0.5], ["a", "b", "b"], draws=99, rng=np.random.default_rng(1)).p_value
    1.0
    """
    scores = require_scores("values", values)
    require_count("draws", draws, minimum=1)
    groups = group(labels, scores.size)
    if len(groups.names) < 2:
        raise ValueError(f"needs at least 2 groups; got {len(groups.names)}")
    # In an order of their own, so that the order of questions cannot move the draws.
    by_name = np.argsort(np.argsort([str(name) for name in groups.names]))[groups.codes]
    order = np.lexsort((scores, by_name))
    ordered, codes = scores[order], by_name[order]
    sizes = np.bincount(codes)
    observed = float(np.sum(np.bincount(codes, ordered) ** 2 / sizes))
    threshold = observed - _TIE * float(np.sum(ordered**2))
    as_large = sum(bool(np.sum(np.bincount(codes, rng.permutation(ordered)) ** 2 / sizes) >= threshold) for _ in range(draws))
    p_value = (as_large + 1) / (draws + 1)
    return MonteCarloP(p_value, math.sqrt(p_value * (1.0 - p_value) / draws), draws)


def _threshold(values: FloatArray) -> float:
    return abs(float(values.sum())) - _TIE * float(np.abs(values).sum())
