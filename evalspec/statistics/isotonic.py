"""Which rising curve lies nearest to noisy means, and where does it reach a level?

Assumption: the true curve never falls. Means of neighbours that fall are pooled, weighted by how many observations each rests on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evalspec.statistics.arguments import FloatArray, IntArray, as_floats


def isotonic(means: ArrayLike, weights: ArrayLike) -> FloatArray:
    """Fit the rising curve that is nearest to means in weighted least squares (pool adjacent violators), shape (B,).

    Raises
    ------
    ValueError
        When weights are not positive, or not one per mean.

    References
    ----------
    Ayer, Brunk, Ewing, Reid and Silverman (1955), Ann. Math. Stat. 26, 641-647, doi:10.1214/aoms/1177728423.

    Examples
    --------
    >>> isotonic([0.5, 1.0, 0.75, 1.0], [1, 1, 3, 1]).tolist()
    [0.5, 0.8125, 0.8125, 1.0]
    """
    values, sizes = as_floats("means", means), as_floats("weights", weights)
    if values.ndim != 1 or sizes.shape != values.shape or (sizes.size and sizes.min() <= 0.0):
        raise ValueError(f"weights must be {values.size} positive numbers, one per mean")
    pooled: list[tuple[float, float, int]] = []
    for value, size in zip(values.tolist(), sizes.tolist(), strict=True):
        block = (value, size, 1)
        while pooled and pooled[-1][0] >= block[0]:
            mean, weight, length = pooled.pop()
            total = weight + block[1]
            block = ((mean * weight + block[0] * block[1]) / total, total, length + block[2])
        pooled.append(block)
    return np.repeat([block[0] for block in pooled], [block[2] for block in pooled])


def rising_crossings(sums: ArrayLike, weights: ArrayLike, level: float) -> IntArray:
    """Find the first place at which the isotonic fit to ``sums / weights`` reaches ``level``, along the last axis; its length where none does.

    The fit need not be computed: it reaches the level right behind the lowest point of the running total of ``sums - level * weights``.
    Places of weight 0 are passed over.

    References
    ----------
    Groeneboom and Jongbloed (2014), Nonparametric Estimation under Shape Constraints, section 3.2 (the switch relation).

    Examples
    --------
    >>> rising_crossings([[0.5, 0.9, 2.1, 1.0], [0.1, 0.1, 0.1, 0.1]], [[1, 1, 3, 1], [1, 1, 1, 1]], 0.7).tolist()
    [1, 4]
    """
    weight = np.asarray(weights, dtype=np.float64)
    excess = np.asarray(sums, dtype=np.float64) - level * weight
    running = np.cumsum(excess, axis=-1)
    before = np.concatenate([np.zeros((*running.shape[:-1], 1)), running], axis=-1)
    lowest = before.min(axis=-1, keepdims=True)
    # Sums that ought to be equal can differ in their last bits; the first of them decides.
    scale = 1e-9 * np.maximum(1.0, np.abs(excess).sum(axis=-1, keepdims=True))
    first = np.argmax(before <= lowest + scale, axis=-1)
    places = np.arange(weight.shape[-1])
    behind = (places >= first[..., None]) & (weight > 0.0)
    return np.asarray(np.where(behind.any(axis=-1), np.argmax(behind, axis=-1), weight.shape[-1]), dtype=np.int64)
