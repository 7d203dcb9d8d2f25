"""Which paired differences agree with the exact McNemar test?

Assumption: questions are independent draws. The difference is the share of discordant questions times how one-sided they are;
exact confidence distributions of both are melded into limits whose guarantee holds at every sample size.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betainc, betaincinv, betaln, xlog1py, xlogy

from evalspec.statistics.arguments import FloatArray, require_fraction
from evalspec.statistics.differences import PairedCounts
from evalspec.statistics.proportions import Interval
from evalspec.statistics.quadrature import gauss_legendre


def fay_lumbard(counts: PairedCounts, *, level: float = 0.95) -> Interval:
    """Fay and Lumbard's exact interval of a paired difference: holds 0 exactly when the exact McNemar test does not reject.

    Parameters
    ----------
    counts
        The paired 2x2 table.
    level
        Two-sided confidence level, in (0, 1).

    Raises
    ------
    ValueError
        For an impossible level.

    References
    ----------
    Fay and Lumbard (2021), Stat. Med. 40, 1147-1159, doi:10.1002/sim.8829.

    Examples
    --------
    >>> interval = fay_lumbard(PairedCounts(100, 40, 10, 50))
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.0768, 0.2214)
    """
    tail = (1.0 - require_fraction("level", level)) / 2.0
    return Interval(_lower_limit(counts, tail), -_lower_limit(counts.swapped(), tail))


def fay_lumbard_p(counts: PairedCounts, limit: float) -> float:
    """One-sided p-value against H0: the difference is at most ``limit``; below ``alpha`` exactly where the lower limit exceeds it.

    Parameters
    ----------
    counts
        The paired 2x2 table.
    limit
        In (-1, 1); at 0 this is the one-sided exact McNemar test.

    Raises
    ------
    ValueError
        For an impossible limit.

    References
    ----------
    As `fay_lumbard`. That the p-value keeps its level at limits other than 0 is their conjecture, which they support by calculation.

    Examples
    --------
    >>> round(fay_lumbard_p(PairedCounts(1217, 219, 182, 382), 0.0), 5)
    0.03604
    """
    if not -1.0 < limit < 1.0:
        raise ValueError(f"limit must lie strictly between -1 and 1; got {limit!r}")
    return min(1.0, max(0.0, _Lopsided(counts).below(limit)))


def _lower_limit(counts: PairedCounts, tail: float) -> float:
    from scipy.optimize import brentq  # noqa: PLC0415 - costs as much as all of scipy.special, and p-values do without

    lopsided = _Lopsided(counts)
    if lopsided.at_most_half < tail:
        return float(brentq(lambda limit: lopsided.below(limit) - tail, 0.0, 1.0, xtol=1e-15))
    if lopsided.below(-1.0) >= tail:
        return -1.0
    return -float(brentq(lambda size: lopsided.below(-size) - tail, 0.0, 1.0, xtol=1e-15))


class _Lopsided:
    """Lower confidence distribution of the difference: the first model's share of the discordant, times how many these are."""

    def __init__(self, counts: PairedCounts) -> None:
        self.counts = counts
        b, c = counts.only_first, counts.only_second
        # The lower confidence distribution of the share is Beta(b, c + 1); without a win it is the point 0.
        self.at_most_half = 1.0 if b == 0 else float(betainc(b, c + 1.0, 0.5))

    def below(self, limit: float) -> float:
        """Probability that the difference lies at or below ``limit``."""
        if self.counts.only_first == 0:
            return float(self._discordance_at_least(np.array([-limit]))[0]) if limit < 0.0 else 1.0
        if limit < 0.0 and self.counts.discordant == self.counts.questions:
            # No question agrees, so the upper confidence distribution of the discordance is the point 1.
            return float(betainc(self.counts.only_first, self.counts.only_second + 1.0, 0.5 * (1.0 + limit)))
        share, weights = self._shares(0.0, 0.5) if limit < 0.0 else self._shares(0.5, 1.0)
        advantage = np.maximum(np.abs(2.0 * share - 1.0), 1e-300)
        if limit < 0.0:
            return float(weights @ self._discordance_at_least(-limit / advantage))
        return self.at_most_half + float(weights @ self._discordance_at_most(limit / advantage))

    def _shares(self, low: float, high: float) -> tuple[FloatArray, FloatArray]:
        """Nodes and probability weights of the share on [low, high], cut to where the mass is."""
        a, b = float(self.counts.only_first), self.counts.only_second + 1.0
        low = max(low, float(betaincinv(a, b, 1e-14)))
        high = min(high, 1.0 - float(betaincinv(b, a, 1e-14)))
        if high <= low:
            return np.zeros(1), np.zeros(1)
        rule = gauss_legendre(low, high)
        share = rule.points
        density = np.exp(xlogy(a - 1.0, share) + xlog1py(b - 1.0, -share) - betaln(a, b))
        return share, rule.weights * density

    def _discordance_at_least(self, value: FloatArray) -> FloatArray:
        """Upper confidence distribution Beta(m + 1, n - m), which makes a negative difference as negative as it may be."""
        m, agreeing = self.counts.discordant, self.counts.questions - self.counts.discordant
        if agreeing == 0:
            return np.where(value <= 1.0, 1.0, 0.0)
        return np.asarray(1.0 - betainc(m + 1.0, float(agreeing), np.minimum(value, 1.0)))

    def _discordance_at_most(self, value: FloatArray) -> FloatArray:
        """Lower confidence distribution Beta(m, n - m + 1); m is positive here."""
        m, agreeing = self.counts.discordant, self.counts.questions - self.counts.discordant
        return np.asarray(betainc(float(m), agreeing + 1.0, np.minimum(value, 1.0)))
