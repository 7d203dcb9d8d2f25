"""Which gap can a simple random sample rank the right way round, by formula?

Net wins among n questions of N have the mean n x and the variance n (d - x^2) (1 - n / N), where x is the gap and d the share of questions that
exactly one of two models answers correctly. Assumption: net wins are nearly normal, and questions a simple random sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from evalspec.statistics.arguments import FloatArray, bisect, require_count
from evalspec.statistics.mdad import Ties

NEAREST_SHARE = 10
FEWEST_NEAR = 30


@dataclass(frozen=True, slots=True, eq=False)
class PairSpread:
    """Gaps of pairs of models in ascending order, and the discordance of each, shape (P,) both."""

    gaps: FloatArray
    discordances: FloatArray

    @classmethod
    def of(cls, scores: FloatArray) -> PairSpread:
        """Measure every pair of models by scores of shape (M, N): the discordance is the mean squared difference of a question's scores."""
        first, second = np.triu_indices(len(scores), 1)
        means, products = scores.mean(axis=1), scores @ scores.T / scores.shape[1]
        squares = np.diag(products)
        gaps = np.abs(means[first] - means[second])
        spread = np.maximum(squares[first] + squares[second] - 2.0 * products[first, second], 0.0)
        order = np.argsort(gaps, kind="stable")
        return cls(gaps[order], spread[order])

    def near(self, gap: float) -> float:
        """Return the mean discordance of the pairs whose gaps lie nearest: a tenth of them, 30 at least where there are as many."""
        size = min(self.gaps.size, max(FEWEST_NEAR, self.gaps.size // NEAREST_SHARE))
        start = int(np.searchsorted(self.gaps, gap)) - size // 2
        start = max(0, min(start, self.gaps.size - size))
        return float(self.discordances[start : start + size].mean())

    def share_below(self, gap: float) -> float:
        """Return the share of pairs whose gap is smaller."""
        return float(np.mean(self.gaps < gap - 1e-12))


def rankable_gap(
    questions: int, pool: int | None, discordance: float | Callable[[float], float], *, level: float = 0.8, ties: Ties = "wrong"
) -> float | None:
    """Find the gap that ``questions`` drawn from ``pool`` rank the right way round with probability ``level``.

    ``None`` where it would exceed the discordance, which no gap does.

    Parameters
    ----------
    questions
        Questions drawn.
    pool
        Questions drawn from, whose own ranking is the right one; ``None`` for a population without end.
    discordance
        Share of questions that exactly one of the two models answers correctly; a function of the gap where it depends on that.
    level
        The wanted probability, above one half.
    ties
        Whether a tie on the sample counts as wrong or half right.

    Raises
    ------
    ValueError
        For impossible numbers.

    References
    ----------
    Cochran (1977), Sampling Techniques, theorem 2.2 (variance without replacement).

    Examples
    --------
    >>> round(rankable_gap(100, 224, 0.36), 4), round(rankable_gap(100, None, 0.36), 4)
    (0.0425, 0.0553)
    """
    n = require_count("questions", questions, minimum=1)
    left = 0.0 if pool == n else 1.0 if pool is None else 1.0 - n / require_count("pool", pool, minimum=n)
    if not 0.5 < level < 1.0:
        raise ValueError(f"level must lie strictly between 0.5 and 1; got {level!r}")
    if left == 0.0:
        return 0.0
    z, step = float(ndtri(level)), 0.5 / n if ties == "wrong" else 0.0

    def share(gap: float) -> float:
        return discordance if isinstance(discordance, int | float) else discordance(gap)

    def short(gap: float) -> float:
        return gap - step - z * math.sqrt(max(share(gap) - gap * gap, 0.0) * left / n)

    found = bisect(short, 0.0, 1.0, tolerance=1e-9)
    return found if found <= share(found) else None
