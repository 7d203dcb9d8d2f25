"""By how much do two models differ when each answered its own, independent set of questions?

Assumption: two independent samples, of independent 0/1 scores or with means as their designs say. Where both answered the same questions, the
paired functions of `evalspec.statistics.differences` use more of the evidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evalspec.statistics.arguments import bisect, require_count, two_sided_z
from evalspec.statistics.binomials import log_choose
from evalspec.statistics.designs import DesignMean
from evalspec.statistics.differences import EDGE
from evalspec.statistics.means import TTest
from evalspec.statistics.p_values import held, normal_p, student_p
from evalspec.statistics.proportions import Interval, wilson


@dataclass(frozen=True, slots=True)
class TwoSamples:
    """Successes and trials of two independent samples."""

    first_successes: int
    first_trials: int
    second_successes: int
    second_trials: int

    def __post_init__(self) -> None:
        for name in ("first", "second"):
            trials = require_count(f"{name}_trials", getattr(self, f"{name}_trials"), minimum=1)
            successes = require_count(f"{name}_successes", getattr(self, f"{name}_successes"))
            if successes > trials:
                raise ValueError(f"{name}_successes must not exceed {name}_trials; got {successes} of {trials}")

    @property
    def first(self) -> float:
        """First proportion."""
        return self.first_successes / self.first_trials

    @property
    def second(self) -> float:
        """Second proportion."""
        return self.second_successes / self.second_trials


@dataclass(frozen=True, slots=True)
class ZTest:
    """A standard normal statistic and its two-sided p-value."""

    statistic: float
    p_value: float


def two_sample_z(samples: TwoSamples) -> ZTest:
    """Pooled z test of H0: both proportions are equal; statistic 0 and p-value 1 when nothing varies.

    References
    ----------
    Pearson (1900), Philos. Mag. 50, 157-175 (the chi-square test, of which this is the root).

    Examples
    --------
    >>> round(two_sample_z(TwoSamples(1436, 2000, 1399, 2000)).p_value, 4)
    0.1979
    """
    n1, n2 = samples.first_trials, samples.second_trials
    pooled = (samples.first_successes + samples.second_successes) / (n1 + n2)
    variance = pooled * (1.0 - pooled) * (1.0 / n1 + 1.0 / n2)
    statistic = (samples.first - samples.second) / math.sqrt(variance) if variance > 0.0 else 0.0
    return ZTest(statistic, normal_p(statistic))


def fisher_exact(samples: TwoSamples) -> float:
    """Fisher's exact two-sided p-value of H0: both proportions are equal, given how many successes there are in all.

    Tables that are no more probable than the observed one count as at least as extreme, as in R.

    References
    ----------
    Fisher (1935), J. R. Stat. Soc. 98, 39-82, doi:10.2307/2342435.

    Examples
    --------
    >>> round(fisher_exact(TwoSamples(8, 10, 1, 6)), 4)
    0.035
    """
    n1, n2 = samples.first_trials, samples.second_trials
    total = samples.first_successes + samples.second_successes
    possible = np.arange(max(0, total - n2), min(n1, total) + 1)
    logs = log_choose(n1, possible) + log_choose(n2, total - possible) - log_choose(n1 + n2, total)
    observed = logs[samples.first_successes - possible[0]]
    # Equal probabilities may differ by rounding only; R allows the same.
    return held(float(np.exp(logs[logs <= observed + 1e-7]).sum()))


def newcombe_independent(samples: TwoSamples, *, level: float = 0.95) -> Interval:
    """Newcombe's hybrid score interval of the difference (his method 10 for independent samples).

    Raises
    ------
    ValueError
        For an impossible level.

    References
    ----------
    Newcombe (1998), Stat. Med. 17, 873-890, doi:10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I.

    Examples
    --------
    >>> round(newcombe_independent(TwoSamples(63, 93, 38, 92)).low, 4)
    0.1212
    """
    first = wilson(samples.first_successes, samples.first_trials, level=level)
    second = wilson(samples.second_successes, samples.second_trials, level=level)
    difference = samples.first - samples.second
    below = math.hypot(samples.first - first.low, second.high - samples.second)
    above = math.hypot(first.high - samples.first, samples.second - second.low)
    return Interval(max(-1.0, difference - below), min(1.0, difference + above))


def miettinen_nurminen(samples: TwoSamples, *, level: float = 0.95) -> Interval:
    """Miettinen and Nurminen's score interval of the difference.

    Raises
    ------
    ValueError
        For an impossible level.

    References
    ----------
    Miettinen and Nurminen (1985), Stat. Med. 4, 213-226, doi:10.1002/sim.4780040211.

    Examples
    --------
    >>> round(miettinen_nurminen(TwoSamples(63, 93, 38, 92)).low, 4)
    0.1216
    """
    z = two_sided_z(level)
    estimate = samples.first - samples.second
    inner = min(max(estimate, -EDGE), EDGE)
    low = -1.0 if estimate <= -EDGE else bisect(lambda delta: _score(samples, delta) - z, -EDGE, inner)
    high = 1.0 if estimate >= EDGE else bisect(lambda delta: _score(samples, delta) + z, inner, EDGE)
    return Interval(low, high)


def _score(samples: TwoSamples, delta: float) -> float:
    n1, n2 = samples.first_trials, samples.second_trials
    second = _restricted_second(samples, delta)
    first = min(1.0, max(0.0, second + delta))
    total = n1 + n2
    variance = (first * (1.0 - first) / n1 + second * (1.0 - second) / n2) * total / (total - 1.0)
    excess = samples.first - samples.second - delta
    if variance > 0.0:
        return excess / math.sqrt(variance)
    return 0.0 if excess == 0.0 else math.copysign(math.inf, excess)


def _restricted_second(samples: TwoSamples, delta: float) -> float:
    """Maximum-likelihood second proportion at a fixed difference: the cubic of Miettinen and Nurminen (1985), appendix I."""
    n1, n2 = samples.first_trials, samples.second_trials
    x1, x2 = samples.first_successes, samples.second_successes
    l3, l0 = n1 + n2, x2 * delta * (1.0 - delta)
    l2 = (n1 + 2 * n2) * delta - l3 - x1 - x2
    l1 = (n2 * delta - l3 - 2 * x2) * delta + x1 + x2
    q = l2**3 / (3.0 * l3) ** 3 - l1 * l2 / (6.0 * l3**2) + l0 / (2.0 * l3)
    p = math.copysign(math.sqrt(max((l2 / (3.0 * l3)) ** 2 - l1 / (3.0 * l3), 0.0)), q)
    ratio = 0.0 if p == 0.0 else min(1.0, max(-1.0, q / p**3))
    root = 2.0 * p * math.cos((math.pi + math.acos(ratio)) / 3.0) - l2 / (3.0 * l3)
    return min(1.0, max(0.0, root))


def separate_means_test(first: DesignMean, second: DesignMean) -> TTest:
    """Welch's t test of H0: two means of separate questions are equal, with Satterthwaite's degrees of freedom.

    Raises
    ------
    ValueError
        When neither mean has a spread.

    References
    ----------
    Welch (1947), Biometrika 34, 28-35, doi:10.1093/biomet/34.1-2.28.

    Examples
    --------
    >>> from evalspec.statistics.designs import Design, design_mean
    >>> one, other = design_mean(np.array([1.0, 0, 1, 1]), Design()), design_mean(np.array([0.0, 0, 1, 0, 0]), Design())
    >>> round(separate_means_test(one, other).p_value, 4)
    0.1352
    """
    squares = first.standard_error**2, second.standard_error**2
    if sum(squares) == 0.0:
        raise ValueError("neither mean has a spread to measure their difference by")
    freedom = sum(squares) ** 2 / (squares[0] ** 2 / first.degrees_of_freedom + squares[1] ** 2 / second.degrees_of_freedom)
    statistic = (first.mean - second.mean) / math.sqrt(sum(squares))
    return TTest(statistic, freedom, student_p(statistic, freedom))
