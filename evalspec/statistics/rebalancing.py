"""What becomes of an accuracy when groups with many questions give some up?

The kept questions are part of all questions, so neither a paired nor a two-sample test of the two accuracies is right. Had the same number
of questions been removed at random, the right answers among those kept would be hypergeometric: that is the reference here.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfc

from evalspec.statistics.arguments import IntArray, require_counts, require_scores
from evalspec.statistics.finite_pools import subsample_deviation
from evalspec.statistics.unpaired import TwoSamples, fisher_exact


def levelled_sizes(sizes: ArrayLike, *, most_removed: float) -> IntArray:
    """Sizes of groups once the largest ones have given up questions, until all are level or so large a share is gone.

    Parameters
    ----------
    sizes
        Questions of each group, shape (k,), positive.
    most_removed
        The largest share of all questions that may go, in (0, 1).

    Raises
    ------
    ValueError
        For a group without questions, or a share outside (0, 1).

    Examples
    --------
    >>> levelled_sizes([120, 20, 20, 20], most_removed=0.9), levelled_sizes([120, 20, 20, 20], most_removed=0.25)
    (array([20, 20, 20, 20]), array([75, 20, 20, 20]))
    """
    counts = require_counts("sizes", sizes)
    if counts.ndim != 1 or not counts.size or counts.min() < 1:
        raise ValueError(f"every group needs at least one question; got {sizes!r}")
    if not 0.0 < most_removed < 1.0:
        raise ValueError(f"most_removed must lie strictly between 0 and 1; got {most_removed!r}")
    total = int(counts.sum())
    kept = total - math.floor(most_removed * total)
    # A level between the smallest and the largest group; what it takes is a whole number of questions, so it is searched among those.
    low, high = int(counts.min()), int(counts.max())
    while low < high:
        middle = (low + high) // 2
        if int(np.minimum(counts, middle).sum()) >= kept:
            high = middle
        else:
            low = middle + 1
    return np.minimum(counts, low)


def thinned(codes: ArrayLike, sizes: ArrayLike, *, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Mark ``sizes`` questions of each group, every choice equally likely, shape (Q,); ``codes`` number the group of each question from 0.

    Raises
    ------
    ValueError
        When a group has fewer questions than it is to keep.

    Examples
    --------
    >>> int(thinned([0, 0, 0, 1], [2, 1], rng=np.random.default_rng(1)).sum())
    3
    """
    places, wanted = require_counts("codes", codes), require_counts("sizes", sizes)
    chosen = np.zeros(places.size, dtype=np.bool_)
    for code, size in enumerate(wanted):
        members = np.flatnonzero(places == code)
        if members.size < size:
            raise ValueError(f"group {code} has {members.size} questions and cannot keep {size}")
        chosen[rng.permutation(members)[:size]] = True
    return chosen


def removal_test(scores: ArrayLike, kept: NDArray[np.bool_]) -> float:
    """Two-sided p-value of H0: the questions removed were chosen without regard to their scores.

    Exact (hypergeometric, Fisher's ordering of tables by their probability) where scores are 0 and 1; otherwise the mean of the kept scores
    is taken as normal with the variance of draws without replacement.

    Parameters
    ----------
    scores
        Shape (Q,), none missing.
    kept
        Shape (Q,), which questions are left.

    Raises
    ------
    ValueError
        When nothing or everything was removed.

    References
    ----------
    Fisher (1935), J. R. Stat. Soc. 98(1), 39-82. Cochran (1977), Sampling Techniques, 3rd ed., theorem 2.2.

    Examples
    --------
    >>> round(removal_test([1, 1, 1, 0, 0, 0], np.array([True, True, True, False, False, False])), 3)
    0.1
    """
    values = require_scores("scores", scores, minimum=2)
    left = int(np.count_nonzero(kept))
    if not 0 < left < values.size:
        raise ValueError(f"some of the questions must be removed and some kept; got {left} kept of {values.size}")
    if np.all((values == 0.0) | (values == 1.0)):
        return fisher_exact(TwoSamples(int(values[kept].sum()), left, int(values[~kept].sum()), values.size - left))
    deviation = subsample_deviation(values, left)
    distance = abs(float(values[kept].mean() - values.mean()))
    return 1.0 if deviation == 0.0 else float(erfc(distance / deviation / math.sqrt(2.0)))
