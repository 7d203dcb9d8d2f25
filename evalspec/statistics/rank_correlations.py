"""Do two orders of the same things agree?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike

from evalspec.statistics.arguments import FloatArray, require_count, require_scores

MOST_ENUMERATED = 7
_TIE = 1e-12


@dataclass(frozen=True, slots=True)
class RankCorrelation:
    """Spearman's coefficient with its two-sided permutation p-value; ``standard_error`` is 0 where all orders were enumerated."""

    coefficient: float
    p_value: float
    standard_error: float


def spearman(first: ArrayLike, second: ArrayLike, *, draws: int, rng: np.random.Generator) -> RankCorrelation:
    """Spearman's rank correlation, ties by their mean rank, with a permutation p-value of H0: every pairing is equally likely.

    All orders are enumerated for up to 7 pairs and drawn beyond.

    Parameters
    ----------
    first, second
        Shape (n,), n at least 3, neither constant.
    draws, rng
        Number of random orders, and where they come from.

    Raises
    ------
    ValueError
        With fewer than three pairs, different lengths, or values that are all equal.

    References
    ----------
    Spearman (1904), Am. J. Psychol. 15, 72-101, doi:10.2307/1412159. Phipson and Smyth (2010), doi:10.2202/1544-6115.1585.

    Examples
    --------
    >>> found = spearman([1, 2, 3, 4], [2, 3, 5, 9], draws=99, rng=np.random.default_rng(1))
    >>> found.coefficient, round(found.p_value, 4)
    (1.0, 0.0833)
    """
    x, y = require_scores("first", first, minimum=3), require_scores("second", second, minimum=3)
    if x.size != y.size:
        raise ValueError(f"first and second must be as long as each other; got {x.size} and {y.size}")
    a, b = _standard_ranks("first", x), _standard_ranks("second", y)
    coefficient = float(a @ b)
    if x.size <= MOST_ENUMERATED:
        orders = np.array(list(permutations(range(x.size))))
        p_value = float(np.mean(np.abs(b[orders] @ a) >= abs(coefficient) - _TIE))
        return RankCorrelation(max(-1.0, min(1.0, coefficient)), p_value, 0.0)
    require_count("draws", draws, minimum=1)
    chance = rng.permuted(np.tile(b, (draws, 1)), axis=1) @ a
    p_value = (int(np.count_nonzero(np.abs(chance) >= abs(coefficient) - _TIE)) + 1) / (draws + 1)
    return RankCorrelation(max(-1.0, min(1.0, coefficient)), p_value, math.sqrt(p_value * (1.0 - p_value) / draws))


def _standard_ranks(name: str, values: FloatArray) -> FloatArray:
    """Return mean ranks, centred and of length 1, so that a product of two of them is their correlation."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2.0)[place]
    centred = ranks - ranks.mean()
    length = float(np.linalg.norm(centred))
    if length == 0.0:
        raise ValueError(f"{name} has one value only, which orders nothing")
    return np.asarray(centred / length)
