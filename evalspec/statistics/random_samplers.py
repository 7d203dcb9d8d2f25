"""Which questions does a random sampler take, and how is the score estimated from them?

Simple random samples, samples within strata, and samples within strata of the confidence of other models.
"""

from __future__ import annotations

import numpy as np

from evalspec.statistics.arguments import FloatArray, IntArray
from evalspec.statistics.selections import Candidates, Choice, Chooser, Selection, by_shares, evenly

CONFIDENCE_STRATA = 10
_MOST_ROUNDS = 100


def uniform(candidates: Candidates, rng: np.random.Generator) -> Chooser:
    """Choose at random without replacement; the estimate is the plain mean.

    References
    ----------
    Cochran (1977), Sampling Techniques, chapter 2.

    Examples
    --------
    >>> pool = Candidates(np.zeros(9, dtype=int), np.zeros((0, 9)))
    >>> uniform(pool, np.random.default_rng(1))(3).own.questions.size
    3
    """
    return lambda size: Choice(evenly(rng.choice(candidates.questions, size, replace=False)))


def stratified_equal(candidates: Candidates, rng: np.random.Generator) -> Chooser:
    """Choose as many of each stratum; the estimate weighs strata by their size. Strata that run out give their seats to the others.

    The published form takes the plain mean of the same questions, which estimates another score where strata differ in size; it has no form for
    strata that run out.

    References
    ----------
    Cochran (1977), Sampling Techniques, chapter 5. Yauney, Warraich and Swayamdipta (2026), arXiv:2510.08730 (the published form).

    Examples
    --------
    >>> pool = Candidates(np.array([0, 0, 0, 0, 0, 0, 1, 1]), np.zeros((0, 8)))
    >>> stratified_equal(pool, np.random.default_rng(1))(4).own.weights.tolist()
    [0.375, 0.375, 0.125, 0.125]
    """
    sizes = candidates.sizes

    def choose(size: int) -> Choice:
        taken = _equal_parts(sizes, size, rng)
        chosen = _within(candidates.strata, taken, rng)
        fits = bool(np.all(taken <= -(-size // sizes.size)))
        return Choice(by_shares(chosen, candidates.strata), evenly(chosen) if fits else None)

    return choose


def stratified_proportional(candidates: Candidates, rng: np.random.Generator) -> Chooser:
    """Choose of each stratum by its share, fractions at random; the estimate weighs strata by their size where each gave a question.

    The published form of this name draws questions by a weight of one over the size of their stratum, which gives strata the same expected number
    and not a proportional one, and takes the plain mean.

    References
    ----------
    Cochran (1977), Sampling Techniques, chapter 5. Yauney, Warraich and Swayamdipta (2026), arXiv:2510.08730 (the published form).

    Examples
    --------
    >>> pool = Candidates(np.array([0, 0, 0, 0, 0, 0, 1, 1]), np.zeros((0, 8)))
    >>> stratified_proportional(pool, np.random.default_rng(1))(4).own.weights.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    def choose(size: int) -> Choice:
        inverse = 1.0 / candidates.sizes[candidates.strata]
        published = rng.choice(candidates.questions, size, replace=False, p=inverse / inverse.sum())
        return Choice(_proportional(candidates.strata, size, rng), evenly(published))

    return choose


def confidence_strata(candidates: Candidates, rng: np.random.Generator) -> Chooser:
    """Choose in proportion from ten groups of questions on which other models are about equally confident; groups count by their size.

    The published form rounds each group's number by itself, adds questions at random where too few come out, and divides by the intended share
    (Horvitz and Thompson), which overshoots or falls short where rounding did.

    References
    ----------
    Yauney, Warraich and Swayamdipta (2026), arXiv:2510.08730 (the published form). Horvitz and Thompson (1952), J. Am. Stat. Assoc. 47, 663-685.

    Examples
    --------
    >>> pool = Candidates(np.zeros(6, dtype=int), np.array([[1.0, 1, 1, 0, 0, 0]]))
    >>> sorted((confidence_strata(pool, np.random.default_rng(1))(2).own.questions // 3).tolist())
    [0, 1]
    """
    groups = nearest_groups(candidates.trust.mean(axis=0), CONFIDENCE_STRATA)

    def choose(size: int) -> Choice:
        return Choice(_proportional(groups, size, rng), _rounded_shares(groups, size, rng))

    return choose


def nearest_groups(values: FloatArray, most: int) -> IntArray:
    """Part numbers into at most ``most`` groups of near ones by k-means, begun at their quantiles; groups are numbered from the lowest.

    References
    ----------
    Lloyd (1982), IEEE Trans. Inf. Theory 28, 129-137, doi:10.1109/TIT.1982.1056489.

    Examples
    --------
    >>> nearest_groups(np.array([0.9, 0.1, 0.2, 0.8]), 2).tolist()
    [1, 0, 0, 1]
    """
    # Sums of scores in another order must not part what is equal.
    numbers = np.round(values, 9)
    centres = np.unique(np.quantile(numbers, (np.arange(most) + 0.5) / most, method="inverted_cdf"))
    for _ in range(_MOST_ROUNDS):
        groups = np.searchsorted(0.5 * (centres[1:] + centres[:-1]), numbers)
        sizes = np.bincount(groups, minlength=centres.size)
        moved = (np.bincount(groups, numbers, minlength=centres.size) / np.maximum(sizes, 1))[sizes > 0]
        if moved.size == centres.size and np.allclose(moved, centres, rtol=0.0, atol=1e-9):
            break
        centres = moved
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


def _equal_parts(sizes: IntArray, size: int, rng: np.random.Generator) -> IntArray:
    """Share ``size`` seats equally among strata, at most as many as each has; what is left over goes to strata drawn at random."""
    taken = np.zeros_like(sizes)
    while (left := size - int(taken.sum())) > 0:
        roomy = np.flatnonzero(taken < sizes)
        if left >= roomy.size:
            taken[roomy] = np.minimum(sizes[roomy], taken[roomy] + left // roomy.size)
        else:
            taken[rng.choice(roomy, left, replace=False)] += 1
    return taken


def _within(strata: IntArray, taken: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw as many questions of each stratum as are taken: the first of each in a random order of all."""
    order = rng.permutation(strata.size)
    grouped = order[np.argsort(strata[order], kind="stable")]
    of_group = strata[grouped]
    starts = np.cumsum(np.bincount(strata)) - np.bincount(strata)
    return np.sort(grouped[np.arange(strata.size) - starts[of_group] < taken[of_group]])


def _proportional(groups: IntArray, size: int, rng: np.random.Generator) -> Selection:
    """Take of each group its share, rounded by one random start so that every question has the same chance.

    Where a group gives nothing the plain mean stands, in which every question has its chance of size over all.
    """
    ends = np.cumsum(np.bincount(groups)) * (size / groups.size)
    ends[-1] = size
    taken = np.diff(np.floor(np.append(0.0, ends) + rng.random())).astype(np.int64)
    chosen = _within(groups, taken, rng)
    return by_shares(chosen, groups) if np.all(taken > 0) else evenly(chosen)


def _rounded_shares(groups: IntArray, size: int, rng: np.random.Generator) -> Selection:
    sizes = np.bincount(groups)
    taken = np.rint(size * sizes / groups.size).astype(np.int64)
    chances = np.where(taken > 0, taken / sizes, size / groups.size)[groups]
    chosen = _within(groups, taken, rng)
    if chosen.size < size:
        rest = np.setdiff1d(np.arange(groups.size), chosen)
        chosen = np.concatenate([chosen, rng.choice(rest, size - chosen.size, replace=False)])
    return Selection(chosen, 1.0 / (groups.size * chances[chosen]))
