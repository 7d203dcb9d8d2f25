"""Between which limits does harmony lie, groups kept?

A bootstrap of questions can never reach 1, and adds noise to accuracies that are noisy already. Here the accuracies are taken as draws
around their mean with an unknown spread between groups; accuracies that fit the scores, drawn again and again, are pulled towards their
mean as far as that spread allows, and each set of them has a harmony. A group of which all answers are right shows no spread and may still
stand apart: what its own limits allow counts too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, ndtri

from evalspec.statistics.arguments import FloatArray, as_floats, require_count, require_counts, require_fraction
from evalspec.statistics.harmony import DEFAULT, Kernel, harmonies
from evalspec.statistics.levels import fewest_levels

ADDED = 2.0
"""Questions of average difficulty that are added to each group where the variance of its proportion is taken (Agresti and Coull's idea)."""

_FINEST, _COARSEST, _STEPS = 1e-8, 4.0, 400


@dataclass(frozen=True, slots=True)
class HarmonyInterval:
    """Limits of harmony, and the estimated standard deviation of the true accuracies between groups."""

    low: float
    high: float
    between: float
    draws: int


def proportion_errors(right: ArrayLike, asked: ArrayLike) -> FloatArray:
    """Standard error of each group's share of right answers, shape (k,), never 0: two questions of average difficulty are added to each group.

    Raises
    ------
    ValueError
        For impossible counts.

    References
    ----------
    Agresti and Coull (1998), Am. Stat. 52, 119-126, doi:10.1080/00031305.1998.10480550.

    Examples
    --------
    >>> proportion_errors([10, 5], [10, 10]).round(3)
    array([0.066, 0.158])
    """
    successes, trials = require_counts("right", right), require_counts("asked", asked)
    if successes.shape != trials.shape or trials.min() < 1 or np.any(successes > trials):
        raise ValueError("every group needs at least one question, and no more right answers than questions")
    return _eased_errors(successes / trials, trials.astype(np.float64))


def between_groups(means: ArrayLike, errors: ArrayLike) -> float:
    """DerSimonian and Laird's estimate of the standard deviation of true group means, 0 where the means scatter no more than their errors.

    Examples
    --------
    >>> between_groups([0.7, 0.7, 0.7], [0.05, 0.05, 0.05]), round(between_groups([0.9, 0.7, 0.5], [0.05, 0.05, 0.05]), 3)
    (0.0, 0.194)
    """
    values, spreads = _pairs(means, errors)
    precision = spreads**-2.0
    total = float(precision.sum())
    excess = float(precision @ (values - precision @ values / total) ** 2) - (values.size - 1)
    return math.sqrt(max(0.0, excess / (total - float(precision @ precision) / total)))


def empirical_bayes_interval(
    means: ArrayLike,
    errors: ArrayLike,
    weights: ArrayLike,
    *,
    draws: int,
    rng: np.random.Generator,
    level: float = 0.95,
    kernel: Kernel = DEFAULT,
    asked: ArrayLike | None = None,
    own: ArrayLike | None = None,
) -> HarmonyInterval:
    """Limits of the harmony of the true accuracies, by a random-effects model of the groups with the uncertainty of its spread.

    The spread between groups is drawn so that Cochran's Q at that spread is a draw of its chi-square distribution (where Q at 0 is smaller, the
    spread is 0; means closer together than chance expects do not count as such); the mean and the accuracies follow from their normal
    distributions. Limits under the fewest levels that fit (see `evalspec.statistics.levels`) are joined to these, and so is every harmony that
    these levels have with a single group moved to one of its own limits: near 0 and 1 the normal distribution promises too much. Assumption:
    true accuracies are nearly normal over groups or stand in few levels, of which one group may depart. In simulations at 0.95 the limits hold
    the true value in at least 0.90 of the samples: of groups that are alike, that fall into two or three levels, that spread evenly, of which
    one fails, and that are nearly always right or wrong.

    Parameters
    ----------
    means, errors
        Mean score of each group in [0, 1] and its standard error, shape (k,), errors positive.
    weights
        Share of each group, taken as fixed.
    draws, rng
        Sets of accuracies, and where they come from.
    level
        Two-sided confidence level, in (0, 1).
    kernel
        Of harmony.
    asked
        Where means are shares of right answers, the number of questions behind each, shape (k,).
    own
        Lower and upper limits of each group's own mean at this level, shape (2, k). By default Clopper and Pearson's where ``asked`` is given,
        and those of the normal distribution otherwise.

    Raises
    ------
    ValueError
        With fewer than two groups, errors or numbers that are not positive, limits that do not hold the means, or without a draw.

    References
    ----------
    DerSimonian and Laird (1986), Control. Clin. Trials 7, 177-188. Viechtbauer (2007), Stat. Med. 26, 37-52, doi:10.1002/sim.2514 (the
    distribution of Q at a spread). Morris (1983), J. Am. Stat. Assoc. 78, 47-55, doi:10.1080/01621459.1983.10477920. Clopper and Pearson
    (1934), Biometrika 26, 404-413, doi:10.1093/biomet/26.4.404.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> alike = empirical_bayes_interval([0.7, 0.71, 0.69], [0.02] * 3, [1, 1, 1], draws=2000, rng=rng)
    >>> round(alike.high, 6), alike.low > 0.9
    (1.0, True)
    """
    values, spreads = _pairs(means, errors)
    require_count("draws", draws, minimum=1)
    tail = (1.0 - require_fraction("level", level)) / 2.0
    drawn = _drawn_accuracies(values, spreads**2, draws, rng)
    counted = None if asked is None else as_floats("asked", asked)
    levels = fewest_levels(values, spreads**-2 if counted is None else counted, tail=tail, shares=counted is not None)
    shared = levels.means(values)
    their_errors = levels.totals**-0.5 if counted is None else _eased_errors(shared, levels.totals)
    sets = (drawn, (shared + their_errors * rng.standard_normal((draws, levels.count)))[:, levels.labels])
    low, high = np.quantile([harmonies(np.clip(one, 0.0, 1.0), weights, kernel) for one in sets], [tail, 1.0 - tail], axis=1)
    limits = _own_limits(values, spreads, counted, tail) if own is None else _holding("own", own, values)
    apart = harmonies(_one_apart(shared[levels.labels], np.clip(limits, 0.0, 1.0)), weights, kernel)
    return HarmonyInterval(float(min(low.min(), apart.min())), float(max(high.max(), apart.max())), between_groups(values, spreads), draws)


def alike_limits(value: float, units: int, *, level: float = 0.95) -> tuple[float, float]:
    """Limits of the mean of a score in [0, 1] of which ``units`` independent draws all had this value.

    Assumption: none on the distribution. The chance of this value is at least its exact lower limit, and other values lie in [0, 1].

    Raises
    ------
    ValueError
        Without a draw, or for an impossible level.

    References
    ----------
    Clopper and Pearson (1934), Biometrika 26, 404-413, doi:10.1093/biomet/26.4.404.

    Examples
    --------
    >>> tuple(round(limit, 3) for limit in alike_limits(1.0, 30))
    (0.884, 1.0)
    """
    chance = ((1.0 - require_fraction("level", level)) / 2.0) ** (1.0 / require_count("units", units, minimum=1))
    return value * chance, value * chance + (1.0 - chance)


def _own_limits(values: FloatArray, spreads: FloatArray, asked: FloatArray | None, tail: float) -> FloatArray:
    """Return the limits of each group alone, (2, k)."""
    if asked is None:
        reach = -ndtri(tail) * spreads
        return np.stack([values - reach, values + reach])
    right, wrong = values * asked, (1.0 - values) * asked
    low = np.where(right > 0.0, betaincinv(np.maximum(right, 1e-9), wrong + 1.0, tail), 0.0)
    high = np.where(wrong > 0.0, betaincinv(right + 1.0, np.maximum(wrong, 1e-9), 1.0 - tail), 1.0)
    return np.stack([np.minimum(low, values), np.maximum(high, values)])


def _holding(name: str, limits: ArrayLike, values: FloatArray) -> FloatArray:
    array = as_floats(name, limits)
    if array.shape != (2, values.size) or np.any(array[0] > values) or np.any(array[1] < values):
        raise ValueError(f"{name} must be lower and upper limits of {values.size} means, which lie between them")
    return array


def _one_apart(levels: FloatArray, limits: FloatArray) -> FloatArray:
    """Return the levels with one group at a time moved to its lower and to its upper limit, (2 k, k)."""
    moved = np.tile(levels, (2 * levels.size, 1))
    moved[np.arange(2 * levels.size), np.tile(np.arange(levels.size), 2)] = limits.ravel()
    return moved


def _eased_errors(shares: FloatArray, asked: FloatArray) -> FloatArray:
    """Return standard errors of shares of right answers; the pooled share is eased as well, so that a model that is always right keeps some doubt."""
    pooled = (float(shares @ asked) + ADDED / 2.0) / (float(asked.sum()) + ADDED)
    eased = (shares * asked + ADDED * pooled) / (asked + ADDED)
    return np.asarray(np.sqrt(eased * (1.0 - eased) / asked))


def _drawn_accuracies(values: FloatArray, variances: FloatArray, draws: int, rng: np.random.Generator) -> FloatArray:
    """Return sets of true accuracies that fit the means of groups whose accuracies are normal about a common mean, (draws, k)."""
    between = _drawn_between(values, variances, rng.chisquare(values.size - 1, draws))
    precision = 1.0 / (variances + between[:, None])
    total = precision.sum(axis=1)
    centres = (precision @ values[:, None])[:, 0] / total + rng.standard_normal(draws) / np.sqrt(total)
    kept = between[:, None] * precision
    noise = np.sqrt(kept * variances) * rng.standard_normal((draws, values.size))
    return np.asarray(centres[:, None] + kept * (values - centres[:, None]) + noise)


def _drawn_between(values: FloatArray, variances: FloatArray, quantiles: FloatArray) -> FloatArray:
    """Return the variance between groups at which Cochran's Q equals each quantile; Q falls as that variance grows.

    Means that lie closer together than their errors would have them do not show that groups are alike: Q is taken as what chance expects at least.
    """
    grid = np.concatenate([[0.0], np.geomspace(_FINEST, _COARSEST, _STEPS)])
    precision = 1.0 / (variances + grid[:, None])
    centres = (precision @ values) / precision.sum(axis=1)
    heights = np.sum(precision * (values - centres[:, None]) ** 2, axis=1)
    missing = max(0.0, values.size - 1.0 - float(heights[0]))
    heights += missing * np.mean(precision * variances, axis=1)
    return np.where(quantiles >= heights[0], 0.0, np.interp(-quantiles, -heights, grid))


def _pairs(means: ArrayLike, errors: ArrayLike) -> tuple[FloatArray, FloatArray]:
    values, spreads = as_floats("means", means), as_floats("errors", errors)
    if values.shape != spreads.shape or values.ndim != 1 or values.size < 2:
        raise ValueError(f"means and errors must be two rows of at least 2 groups; got shapes {values.shape} and {spreads.shape}")
    if spreads.min() <= 0.0:
        raise ValueError(f"errors must be positive; got {spreads.min()!r}")
    return values, spreads
