"""At which numbers of discordant questions does a McNemar test reject, and how often does it then?

Model: of n questions each is discordant with probability ``discordance``, independently; a discordant question is the better
model's with probability ``(1 + difference / discordance) / 2``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import betainc, ndtri

from evalspec.statistics.arguments import FloatArray, IntArray, require_fraction
from evalspec.statistics.binomials import cumulative, masses
from evalspec.statistics.mcnemar import Variant

Directions = Literal["both", "favoured"]


@dataclass(frozen=True, slots=True)
class Rejections:
    """Numbers m of discordant questions with a probability worth counting, and the test's rejection limit at each."""

    questions: int
    discordant: IntArray
    weights: FloatArray
    limits: IntArray

    @classmethod
    def around(cls, questions: int, discordance: float, alpha: float, test: Variant) -> Rejections:
        """Tabulate the test at every number of discordant questions that is likely enough to matter."""
        # Beyond 8 standard deviations (and 20 for skewness) binomial mass is below 1e-14.
        spread = 8.0 * math.sqrt(questions * discordance * (1.0 - discordance)) + 20.0
        first = max(0, math.floor(questions * discordance - spread))
        last = min(questions, math.ceil(questions * discordance + spread))
        m = np.arange(first, last + 1, dtype=np.int64)
        limits = rejection_limits(m, require_fraction("alpha", alpha), test)
        used = limits >= 0
        weights = masses(m[used], questions, discordance)
        return cls(questions, m[used], weights, limits[used])

    def power(self, discordance: float, difference: float, *, directions: Directions = "both") -> float:
        """Probability of rejecting, in both directions or only in favour of the better model."""
        share = min(1.0, 0.5 * (1.0 + abs(difference) / discordance))
        a, b = (self.discordant - self.limits).astype(np.float64), self.limits + 1.0
        rejected = betainc(a, b, share)
        if directions == "both":
            rejected = rejected + betainc(a, b, 1.0 - share)
        return min(1.0, float(self.weights @ rejected))


def rejection_limits(discordant: IntArray, alpha: float, test: Variant) -> IntArray:
    """Largest number of wins of the losing model at which the two-sided test still rejects; -1 where it never does.

    Examples
    --------
    >>> rejection_limits(np.array([5, 6, 20]), 0.05, "exact")
    array([-1,  0,  5])
    """
    m = discordant
    limits = np.floor(0.5 * (m + ndtri(alpha / 2.0) * np.sqrt(m))).astype(np.int64)
    limits = np.clip(limits, -1, (m - 1) // 2)
    rejects = _p_value(limits, m, test) <= alpha
    while True:
        up = rejects & (limits + 1 <= (m - 1) // 2)
        up &= _p_value(limits + 1, m, test) <= alpha
        down = ~rejects & (limits >= 0)
        if not (up.any() or down.any()):
            return np.asarray(limits)
        limits = limits + up - down
        rejects = (limits < 0) | (_p_value(limits, m, test) <= alpha)


def _p_value(count: IntArray, discordant: IntArray, test: Variant) -> FloatArray:
    return cumulative(count, discordant, 0.5) + cumulative(count if test == "exact" else count - 1, discordant, 0.5)
