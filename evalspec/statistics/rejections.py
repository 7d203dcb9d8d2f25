"""At which numbers of discordant questions does a McNemar test reject, and how often does it then?

Model: of n questions each is discordant with probability ``discordance``, independently; a discordant question is the better
model's with probability ``(1 + difference / discordance) / 2``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import betainc, gammaln, ndtri, xlog1py, xlogy

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
        """Tabulate the test at every number of discordant questions that is likely enough to matter.

        Raises
        ------
        ValueError
            When alpha is not strictly between 0 and 1.

        References
        ----------
        Duffy (1984), Biometrics 40, 1005-1015, doi:10.2307/2531151.

        Examples
        --------
        >>> Rejections.around(20, 0.5, 0.05, "exact").limits.tolist()[:4]
        [0, 0, 0, 1]
        """
        first, last = likely_discordant(questions, discordance)
        m = np.arange(first, last + 1, dtype=np.int64)
        limits = rejection_limits(m, require_fraction("alpha", alpha), test)
        used = limits >= 0
        weights = masses(m[used], questions, discordance)
        return cls(questions, m[used], weights, limits[used])

    def power(self, discordance: float, difference: float, *, directions: Directions = "both") -> float:
        """Probability of rejecting, in both directions or only in favour of the better model.

        References
        ----------
        As `Rejections.around`.

        Examples
        --------
        >>> round(Rejections.around(200, 0.2, 0.05, "exact").power(0.2, 0.05), 4)
        0.2984
        """
        share = min(1.0, 0.5 * (1.0 + abs(difference) / discordance))
        return min(1.0, float(self.weights @ _rejected(self.discordant, self.limits, share, directions)))


@dataclass(frozen=True, slots=True)
class PowerCurve:
    """Power of the two-sided test at many numbers of questions, for one discordance and difference."""

    discordance: float
    difference: float
    alpha: float
    test: Variant

    def at(self, questions: IntArray) -> FloatArray:
        """Power at each of these neighbouring numbers of questions, which share one table of the discordant numbers that matter.

        References
        ----------
        As `Rejections.around`.

        Examples
        --------
        >>> PowerCurve(0.2, 0.05, 0.05, "exact").at(np.array([199, 200])).round(4)
        array([0.2967, 0.2984])
        """
        first, last = likely_discordant(int(questions[0]), self.discordance)[0], likely_discordant(int(questions[-1]), self.discordance)[1]
        m = np.arange(first, last + 1, dtype=np.int64)
        limits = rejection_limits(m, self.alpha, self.test)
        m, limits = m[limits >= 0], limits[limits >= 0]
        share = min(1.0, 0.5 * (1.0 + abs(self.difference) / self.discordance))
        rejected = _rejected(m, limits, share, "both")
        return np.asarray(np.minimum(1.0, _mass_table(questions, m, self.discordance) @ rejected))


def _rejected(discordant: IntArray, limits: IntArray, share: float, directions: Directions) -> FloatArray:
    """Probability of rejecting given each number of discordant questions, of which the better model wins this share."""
    a, b = (discordant - limits).astype(np.float64), limits + 1.0
    rejected = betainc(a, b, share)
    return np.asarray(rejected + betainc(a, b, 1.0 - share) if directions == "both" else rejected)


def likely_discordant(questions: int, discordance: float) -> tuple[int, int]:
    """First and last number of discordant questions worth counting: beyond them the binomial mass is below 1e-14.

    Examples
    --------
    >>> likely_discordant(2000, 0.2)
    (236, 564)
    """
    # 8 standard deviations, and 20 for skewness.
    spread = 8.0 * math.sqrt(questions * discordance * (1.0 - discordance)) + 20.0
    return max(0, math.floor(questions * discordance - spread)), min(questions, math.ceil(questions * discordance + spread))


def _mass_table(questions: IntArray, discordant: IntArray, discordance: float) -> FloatArray:
    """P(X = m) for X ~ Binomial(n, discordance), shape (numbers of questions, numbers of discordant ones); 0 where m exceeds n."""
    if not discordant.size:
        return np.zeros((questions.size, 0))
    agreeing = questions[:, None] - discordant[None, :]
    # Differences of whole numbers repeat: their logarithms of factorials are looked up, not computed again.
    floor = max(0, int(agreeing.min()))
    factorials = gammaln(np.arange(floor, int(agreeing.max()) + 1) + 1.0)
    looked_up = factorials[np.maximum(agreeing, floor) - floor]
    logs = gammaln(questions + 1.0)[:, None] - gammaln(discordant + 1.0)[None, :] - looked_up
    logs = logs + xlogy(discordant, discordance)[None, :] + xlog1py(agreeing, -discordance)
    return np.where(agreeing < 0, 0.0, np.exp(np.where(agreeing < 0, 0.0, logs)))


def rejection_limits(discordant: IntArray, alpha: float, test: Variant) -> IntArray:
    """Largest number of wins of the losing model at which the two-sided test still rejects; -1 where it never does.

    References
    ----------
    As `mcnemar_p`.

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
    tail = cumulative(count, discordant, 0.5)
    return 2.0 * tail if test == "exact" else tail + cumulative(count - 1, discordant, 0.5)
