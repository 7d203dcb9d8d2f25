"""Which equally accurate models would a multivariate t call separated?  What `tiers`, which flips signs, is compared with."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evalspec.statistics.clusters import bell_mccaffrey_freedom

DRAWS = 1000
"""Draws of the multivariate t in each study."""

Floats = NDArray[np.float64]
Correction = Literal["CR1", "CR2"]
CORRECTIONS: tuple[Correction, ...] = ("CR1", "CR2")


def any_beyond(scores: Floats, sizes: NDArray[np.int64], correction: Correction, *, alpha: float, rng: np.random.Generator) -> bool:
    """Say whether any difference of two models lies beyond the critical value of the largest: the first step of the step-down test.

    Scores are (M, questions), cluster after cluster, and sizes (K,). CR1 goes with K - 1 degrees of freedom, CR2 with Bell and McCaffrey's. That the
    largest |t| of all pairs is taken tests both directions of each pair, as `tiers` does.
    """
    parts = parts_of(scores, sizes, correction)
    freedom = sizes.size - 1.0 if correction == "CR1" else bell_mccaffrey_freedom(sizes)
    first, second = np.triu_indices(len(scores), k=1)
    errors = np.sqrt(np.sum((parts[first] - parts[second]) ** 2, axis=1))
    moving = errors > 1e-12
    if not moving.any():
        return False
    first, second, errors = first[moving], second[moving], errors[moving]
    means = scores.mean(axis=1)
    drawn = rng.standard_normal((DRAWS, sizes.size)) @ parts.T / np.sqrt(rng.chisquare(freedom, DRAWS) / freedom)[:, None]
    largest = np.abs((drawn[:, first] - drawn[:, second]) / errors).max(axis=1)
    return bool(np.max(np.abs(means[first] - means[second]) / errors) > np.quantile(largest, 1.0 - alpha))


def parts_of(scores: Floats, sizes: NDArray[np.int64], correction: Correction) -> Floats:
    """Return what each cluster adds to each mean, (M, K): products of two models' rows sum to the covariance of their means."""
    residuals = scores - scores.mean(axis=1, keepdims=True)
    sums = np.add.reduceat(residuals, np.cumsum(sizes) - sizes, axis=1)
    factors = sizes.size / (sizes.size - 1.0) if correction == "CR1" else 1.0 / (1.0 - sizes / sizes.sum())
    return np.asarray(sums * np.sqrt(factors) / sizes.sum())
