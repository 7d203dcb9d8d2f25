"""Between which limits does a mean of scores in [0, 1] lie, with a guarantee and without assuming any shape?

Assumption: questions are independent draws, and their order does not depend on the scores.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from evalspec.statistics.arguments import FloatArray, bisect, require_fraction, require_scores
from evalspec.statistics.proportions import Interval

_TRUNCATION = 0.5
"""Largest share of the capital that one bet may risk (Waudby-Smith and Ramdas 2024, section 4.4)."""


def betting_interval(scores: ArrayLike, *, level: float = 0.95) -> Interval:
    """Interval by betting against each candidate mean: those against which a fair bettor would have become rich are left out.

    Parameters
    ----------
    scores
        Shape (Q,), each in [0, 1].
    level
        Two-sided confidence level, in (0, 1); at least this much is covered at every sample size.

    Raises
    ------
    ValueError
        When a score is missing or outside [0, 1], or the level is impossible.

    References
    ----------
    Waudby-Smith and Ramdas (2024), J. R. Stat. Soc. B 86, 1-27, doi:10.1093/jrsssb/qkad009, arXiv:2010.09686, theorem 3.

    Examples
    --------
    >>> interval = betting_interval([0.5] * 100)
    >>> interval.low < 0.5 < interval.high
    True
    """
    values = require_scores("scores", scores)
    if values.min() < 0.0 or values.max() > 1.0:
        raise ValueError(f"scores must lie in [0, 1]; got {values.min()} to {values.max()}")
    alpha = 1.0 - require_fraction("level", level)
    bets = _bets(values, alpha)
    rich = math.log(2.0 / alpha)
    return Interval(_limit(values, bets, rich), 1.0 - _limit(1.0 - values, bets, rich))


def _limit(values: FloatArray, bets: FloatArray, rich: float) -> float:
    """Smallest mean against which betting that the truth is higher never pays enough; the capital falls as the mean rises."""
    if _most_capital(values, bets, 0.0) < rich:
        return 0.0
    return bisect(lambda mean: _most_capital(values, bets, mean) - rich, 0.0, 1.0)


def _most_capital(values: FloatArray, bets: FloatArray, mean: float) -> float:
    """Largest logarithm of the capital reached at any time by betting that the true mean exceeds ``mean``."""
    stakes = np.minimum(bets, _TRUNCATION / mean) if mean > 0.0 else bets
    return float(np.max(np.cumsum(np.log1p(stakes * (values - mean)))))


def _bets(values: FloatArray, alpha: float) -> FloatArray:
    """Predictable bets: each uses only the scores before it (equation 26 there, for a fixed number of scores)."""
    count = np.arange(1, values.size + 1)
    running = (0.5 + np.cumsum(values)) / (count + 1.0)
    variance = (0.25 + np.cumsum((values - running) ** 2)) / (count + 1.0)
    before = np.concatenate([[0.25], variance[:-1]])
    return np.asarray(np.sqrt(2.0 * math.log(2.0 / alpha) / (values.size * before)))
