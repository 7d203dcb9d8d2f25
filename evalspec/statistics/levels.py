"""In how few levels do the accuracies of groups fit what was observed?

Groups in order of their accuracies are parted into runs that share one accuracy each: first one run, then two, and so on, every time the parting
that fits best, until the rest is no more than chance would leave.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtri

from evalspec.statistics.arguments import FloatArray, IntArray, as_floats, require_fraction


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """The level of each group, shape (k,), numbered from the lowest; ``weights`` (k,) are those by which groups of one level are averaged."""

    labels: IntArray
    weights: FloatArray

    @property
    def count(self) -> int:
        """Number of levels."""
        return int(self.labels.max()) + 1

    def means(self, values: FloatArray) -> FloatArray:
        """Return the weighted mean of each level."""
        return np.asarray(np.bincount(self.labels, self.weights * values) / self.totals)

    @property
    def totals(self) -> FloatArray:
        """The sum of the weights of each level."""
        return np.asarray(np.bincount(self.labels, self.weights), dtype=np.float64)


def fewest_levels(means: ArrayLike, weights: ArrayLike, *, tail: float, shares: bool) -> Levels:
    """Part groups into the fewest levels whose misfit is no larger than chance leaves with probability ``1 - tail``.

    The misfit is Cochran's Q within levels, or, for shares of right answers, Pearson's chi-square within levels, held against chi-square with as
    many degrees of freedom as there are groups less levels. The best parting is sought, which favours few levels.

    Parameters
    ----------
    means
        Mean score of each group, shape (k,).
    weights
        One over the variance of each mean; for shares of right answers the number of questions.
    tail
        The chance that so few levels are given up although they are right, in (0, 1).
    shares
        Whether means are shares of right answers, whose variance follows from their level.

    Raises
    ------
    ValueError
        For weights that are not positive, or not one per mean.

    References
    ----------
    Fisher (1958), J. Am. Stat. Assoc. 53, 789-798, doi:10.1080/01621459.1958.10501479 (the best parting of ordered groups). Cochran (1954),
    Biometrics 10, 417-451, doi:10.2307/3001616.

    Examples
    --------
    >>> fewest_levels([0.85, 0.35, 0.83, 0.86], [100, 100, 100, 100], tail=0.025, shares=True).labels.tolist()
    [1, 0, 1, 1]
    """
    values, precision = as_floats("means", means), as_floats("weights", weights)
    if values.ndim != 1 or not values.size or precision.shape != values.shape or precision.min() <= 0.0:
        raise ValueError(f"weights must be {values.size} positive numbers, one per mean")
    require_fraction("tail", tail)
    order = np.argsort(values, kind="stable")
    misfit = _misfits(values[order], precision[order], shares=shares)
    starts = _fewest(misfit, tail)
    labels = np.empty(values.size, dtype=np.int64)
    labels[order] = np.searchsorted(starts, np.arange(values.size), side="right") - 1
    return Levels(labels, precision)


def _misfits(values: FloatArray, weights: FloatArray, *, shares: bool) -> FloatArray:
    """Return the misfit of one level to the groups from ``i`` to before ``j``, (k + 1, k + 1); infinite where there is none."""
    size, total, squares = (np.append(0.0, np.cumsum(sums)) for sums in (weights, weights * values, weights * values**2))
    first, behind = np.triu_indices(size.size, 1)
    level = (total[behind] - total[first]) / (size[behind] - size[first])
    misfit = np.maximum(squares[behind] - squares[first] - (size[behind] - size[first]) * level**2, 0.0)
    if shares:
        variance = level * (1.0 - level)
        misfit = np.divide(misfit, variance, out=np.zeros_like(misfit), where=(variance > 0.0) & (behind - first > 1))
    found = np.full((size.size, size.size), np.inf)
    found[first, behind] = misfit
    return found


def _fewest(misfit: FloatArray, tail: float) -> IntArray:
    """Return where each level starts, of the best parting into the fewest levels that fit."""
    groups = len(misfit) - 1
    best, cuts = misfit[0], []
    for levels in range(1, groups + 1):
        if levels == groups or best[groups] <= chdtri(groups - levels, tail):
            break
        parted = best[:, None] + misfit
        cuts.append(parted.argmin(axis=0))
        best = parted.min(axis=0)
    starts, end = [], groups
    for cut in reversed(cuts):
        end = int(cut[end])
        starts.append(end)
    return np.array([0, *reversed(starts)], dtype=np.int64)
