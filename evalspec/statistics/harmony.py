"""Does one accuracy speak for the groups of a benchmark's questions?

Harmony is the entropy of the groups' weights once each is discounted by how far its accuracy lies from the mean: 1 where groups of equal
size are equally accurate, 0 where one group is left. It is blind to symmetric splits and it mixes sizes with accuracies, so it is read
beside its value from sizes alone, the gap and the worst group. The bandwidth is a choice of this package; the source states none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from evalspec.statistics.arguments import FloatArray, as_floats


@dataclass(frozen=True, slots=True)
class Kernel:
    """How fast the weight of a group falls as its accuracy leaves the mean.

    ``bandwidth`` is the distance at which a group keeps 1/e of its weight, on the scale of the accuracies; ``epsilon`` is added inside the
    logarithm of the entropy. Raises ValueError when one of them is not positive.
    """

    bandwidth: float = 0.1
    epsilon: float = 1e-12

    def __post_init__(self) -> None:
        if not self.bandwidth > 0.0 or not self.epsilon > 0.0:
            raise ValueError(f"bandwidth and epsilon must be positive; got {self.bandwidth!r} and {self.epsilon!r}")

    def discounted(self, accuracies: FloatArray, shares: FloatArray) -> FloatArray:
        """Logarithms of the weights that groups keep, up to a constant, for each row of accuracies, shape (R, k)."""
        return np.asarray(np.log(shares) - ((accuracies - (accuracies @ shares)[:, None]) / self.bandwidth) ** 2)


DEFAULT = Kernel()


@dataclass(frozen=True, slots=True)
class Spread:
    """How far the accuracies of groups lie apart: ``mean`` by size, ``macro`` with equal weights, ``deviation`` weighted by size.

    ``worst`` and ``best`` are positions of groups, the first of several that are level; ``gap`` is best less worst.
    """

    mean: float
    macro: float
    deviation: float
    gap: float
    worst: int
    best: int


def harmony(accuracies: ArrayLike, weights: ArrayLike, kernel: Kernel = DEFAULT) -> float:
    """Harmony of a model over groups of questions: the normalised entropy of ``w exp(-((accuracy - mean) / bandwidth)^2)``.

    Parameters
    ----------
    accuracies
        Mean score of each group, shape (k,), k at least 2.
    weights
        Share of the questions in each group, shape (k,), positive; they are scaled to sum to 1.
    kernel
        Bandwidth and epsilon.

    Raises
    ------
    ValueError
        With fewer than two groups, or a weight that is not positive.

    References
    ----------
    Uzunoglu, Li and Khashabi (2025), arXiv:2509.25671, as summarised by others; bandwidth and epsilon are our choice.

    Examples
    --------
    >>> round(harmony([0.8] * 9 + [0.3], [1] * 10), 3), round(harmony([0.0, 1.0], [1, 1]), 3)
    (0.954, 1.0)
    """
    return float(harmonies(np.asarray(accuracies)[None, :], weights, kernel)[0])


def harmonies(accuracies: ArrayLike, weights: ArrayLike, kernel: Kernel = DEFAULT) -> FloatArray:
    """Harmony of each row of accuracies, shape (R, k), over groups of one set of weights. See `harmony`.

    Examples
    --------
    >>> harmonies([[0.5, 0.5], [0.2, 0.9]], [1, 1]).round(6)
    array([1., 1.])
    """
    psi, shares = as_floats("accuracies", accuracies), _shares(weights)
    if psi.ndim != 2 or psi.shape[1] != shares.size:
        raise ValueError(f"accuracies must be (rows, {shares.size}); got shape {psi.shape}")
    return _entropy(softmax(kernel.discounted(psi, shares), axis=1), kernel)


def masses(accuracies: ArrayLike, weights: ArrayLike, kernel: Kernel = DEFAULT) -> FloatArray:
    """Share of the discounted weight that each group keeps, shape (k,): the distribution whose entropy harmony is.

    Examples
    --------
    >>> masses([0.9, 0.5, 0.5], [800, 100, 100]).round(4)
    array([1., 0., 0.])
    """
    psi, shares = as_floats("accuracies", accuracies), _shares(weights)
    return np.asarray(softmax(kernel.discounted(psi[None, :], shares), axis=1)[0])


def size_harmony(weights: ArrayLike, kernel: Kernel = DEFAULT) -> float:
    """Harmony that sizes alone give: the value when all groups are equally accurate, and what harmony must be read beside.

    Examples
    --------
    >>> round(size_harmony([700, 100, 100, 100]), 3), round(size_harmony([970, 10, 10, 10]), 3)
    (0.678, 0.121)
    """
    return float(_entropy(_shares(weights)[None, :], kernel)[0])


def spread(accuracies: ArrayLike, weights: ArrayLike) -> Spread:
    """Mean, macro-average, weighted standard deviation, gap, worst and best of the groups: what harmony does not show.

    Examples
    --------
    >>> found = spread([0.8, 0.8, 0.5], [1, 1, 2])
    >>> round(found.mean, 3), round(found.macro, 3), round(found.deviation, 3), round(found.gap, 3), found.worst
    (0.65, 0.7, 0.15, 0.3, 2)
    """
    psi, shares = as_floats("accuracies", accuracies), _shares(weights)
    mean = float(psi @ shares)
    worst, best = int(psi.argmin()), int(psi.argmax())
    deviation = math.sqrt(float((psi - mean) ** 2 @ shares))
    return Spread(mean, float(psi.mean()), deviation, float(psi[best] - psi[worst]), worst, best)


def _shares(weights: ArrayLike) -> FloatArray:
    array = as_floats("weights", weights)
    if array.ndim != 1 or array.size < 2:
        raise ValueError(f"harmony needs at least 2 groups; got weights of shape {array.shape}")
    if array.min() <= 0.0:
        raise ValueError(f"weights must be positive; got {array.min()!r}")
    return np.asarray(array / array.sum())


def _entropy(mass: FloatArray, kernel: Kernel) -> FloatArray:
    """Return the entropy of each row over that of equal shares; the epsilon can carry it a hair beyond [0, 1]."""
    return np.asarray(np.clip(-np.sum(mass * np.log(mass + kernel.epsilon), axis=1) / math.log(mass.shape[1]), 0.0, 1.0))
