"""What harmony would chance alone give, were every group equally hard; and do groups differ at all?

Both tests hold only where groups were not made from the scores that are tested: subjects that are declared, or clusters of the questions' text.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc

from evalspec.statistics.arguments import FloatArray, IntArray, as_floats, require_count, require_counts, require_scores
from evalspec.statistics.groups import group
from evalspec.statistics.harmony import DEFAULT, Kernel, harmonies, harmony

SMALLEST_EXPECTED = 5.0
"""Below this many expected right or wrong answers in a group, the chi-square distribution of the homogeneity test is rough (Cochran)."""

_TIE = 1e-9
_CELLS_AT_ONCE = 1 << 22


@dataclass(frozen=True, slots=True)
class HarmonyNull:
    """Harmony under reshuffled scores: its mean, and how often it is as low as the observed one, (r + 1) / (R + 1), with its error."""

    mean: float
    p_value: float
    standard_error: float
    draws: int


@dataclass(frozen=True, slots=True)
class Homogeneity:
    """Test of equal accuracy in all groups; ``smallest_expected`` is the least expected count, None where answers are not counted."""

    statistic: float
    degrees_of_freedom: int
    p_value: float
    smallest_expected: float | None = None


def harmony_null(
    scores: ArrayLike,
    labels: Iterable[Hashable],
    *,
    draws: int,
    rng: np.random.Generator,
    kernel: Kernel = DEFAULT,
    weights: ArrayLike | None = None,
) -> HarmonyNull:
    """Harmony when scores are reshuffled over the questions, groups kept: the floor to read harmony against, and a test.

    Null hypothesis: the score of a question has one distribution in all groups. Assumption: questions are independent.

    Parameters
    ----------
    scores
        Shape (Q,), of any kind, none missing.
    labels
        The group of each question, at least two different ones.
    draws, rng
        Number of reshuffles, and where they come from.
    kernel
        Of harmony.
    weights
        Share of each group in the mean, in the order in which groups first appear; by default its share of the questions.

    Raises
    ------
    ValueError
        With a missing value or label, a single group, or without a draw.

    References
    ----------
    Phipson and Smyth (2010), Stat. Appl. Genet. Mol. Biol. 9, 39, doi:10.2202/1544-6115.1585.

    Examples
    --------
    >>> null = harmony_null([1, 0, 1, 0], ["x", "x", "y", "y"], draws=99, rng=np.random.default_rng(1))
    >>> null.p_value
    1.0
    """
    values = require_scores("scores", scores)
    require_count("draws", draws, minimum=1)
    groups = group(labels, values.size)
    shares = groups.sizes if weights is None else as_floats("weights", weights)
    observed = harmony(groups.totals(values) / groups.sizes, shares, kernel)
    chance = harmonies(_reshuffled_totals(values, groups.sizes, draws, rng) / groups.sizes, shares, kernel)
    p_value = (int(np.count_nonzero(chance <= observed + _TIE)) + 1) / (draws + 1)
    return HarmonyNull(float(chance.mean()), p_value, math.sqrt(p_value * (1.0 - p_value) / draws), draws)


def homogeneous_counts(right: ArrayLike, asked: ArrayLike) -> Homogeneity:
    """Pearson's chi-square test of H0: right answers are equally likely in every group.

    Parameters
    ----------
    right, asked
        Right answers and questions of each group, shape (k,), k at least 2.

    Raises
    ------
    ValueError
        For impossible counts, a single group, or answers that are all right or all wrong, which leave nothing to test.

    References
    ----------
    Pearson (1900), Philos. Mag. 50, 157-175. Cochran (1954), Biometrics 10, 417-451, doi:10.2307/3001616.

    Examples
    --------
    >>> round(homogeneous_counts([60, 80], [100, 100]).p_value, 6)
    0.002028
    """
    successes, trials = require_counts("right", right), require_counts("asked", asked)
    if successes.shape != trials.shape or trials.ndim != 1 or trials.size < 2:
        raise ValueError(f"right and asked must be two rows of at least 2 groups; got shapes {successes.shape} and {trials.shape}")
    if trials.min() < 1 or np.any(successes > trials):
        raise ValueError("every group needs at least one question, and no more right answers than questions")
    share = float(successes.sum() / trials.sum())
    if share in (0.0, 1.0):
        raise ValueError("all answers are alike, so that groups cannot differ")
    statistic = float(np.sum((successes - trials * share) ** 2 / (trials * share * (1.0 - share))))
    freedom = trials.size - 1
    return Homogeneity(statistic, freedom, float(chdtrc(freedom, statistic)), float(trials.min()) * min(share, 1.0 - share))


def homogeneous_means(means: ArrayLike, errors: ArrayLike) -> Homogeneity:
    """Cochran's Q test of H0: all groups have one mean, for scores of any kind and standard errors of any design.

    Parameters
    ----------
    means, errors
        Mean score of each group and its standard error, shape (k,), errors positive. Assumption: means are nearly normal.

    Raises
    ------
    ValueError
        With a single group, or an error that is not positive.

    References
    ----------
    Cochran (1954), Biometrics 10, 101-129, doi:10.2307/3001666.

    Examples
    --------
    >>> round(homogeneous_means([0.6, 0.8], [0.05, 0.04]).p_value, 4)
    0.0018
    """
    values, spreads = as_floats("means", means), as_floats("errors", errors)
    if values.shape != spreads.shape or values.ndim != 1 or values.size < 2:
        raise ValueError(f"means and errors must be two rows of at least 2 groups; got shapes {values.shape} and {spreads.shape}")
    if spreads.min() <= 0.0:
        raise ValueError(f"errors must be positive; got {spreads.min()!r}")
    precision = spreads**-2.0
    statistic = float(precision @ (values - precision @ values / precision.sum()) ** 2)
    return Homogeneity(statistic, values.size - 1, float(chdtrc(values.size - 1, statistic)))


def _reshuffled_totals(values: FloatArray, sizes: IntArray, draws: int, rng: np.random.Generator) -> FloatArray:
    """Sum the scores that fall into each group, (draws, k); right and wrong answers need one draw of counts and no reshuffle."""
    if np.all((values == 0.0) | (values == 1.0)):
        return _reshuffled_counts(int(values.sum()), sizes, draws, rng)
    # In an order of their own, so that the order of questions cannot move the draws.
    ordered, ends = np.sort(values), np.cumsum(sizes)
    totals = np.empty((draws, sizes.size))
    at_once = max(1, _CELLS_AT_ONCE // values.size)
    for start in range(0, draws, at_once):
        rows = min(at_once, draws - start)
        sums = np.cumsum(rng.permuted(np.broadcast_to(ordered, (rows, ordered.size)), axis=1), axis=1)[:, ends - 1]
        totals[start : start + rows] = np.diff(sums, axis=1, prepend=0.0)
    return totals


def _reshuffled_counts(right: int, sizes: IntArray, draws: int, rng: np.random.Generator) -> FloatArray:
    """Multivariate hypergeometric counts: which groups the right answers fall into."""
    return rng.multivariate_hypergeometric(sizes, right, size=draws, method="marginals").astype(np.float64)
