"""How often does a test err in each setting, and which setting is the worst?  Rates as benchmarks print them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

ONE_SIDED = 0.025
"""What a check errs by at most, where it does not say otherwise."""

SLACK = 4.0
"""Monte Carlo standard errors that a drawn rate may lie above alpha before it counts as above."""


@dataclass(frozen=True, slots=True)
class Rate:
    """The chance of an error in one setting; `error` is its Monte Carlo standard error, 0 where it was summed.

    `worth` is how many clusters of one size the clusters are worth, where there are clusters.
    """

    test: str
    setting: str
    rate: float
    error: float = 0.0
    alpha: float = ONE_SIDED
    worth: float | None = None

    @property
    def above(self) -> bool:
        """Whether the rate lies above alpha by more than chance and rounding explain."""
        return self.rate > self.alpha + SLACK * self.error + 1e-9


def monte_carlo_error(rate: float, draws: int) -> float:
    """Return the standard error of a rate that was counted in so many draws."""
    return math.sqrt(rate * (1.0 - rate) / draws)


def summaries(rates: Sequence[Rate]) -> dict[str, dict[str, float | int | str]]:
    """Return the largest rate of each test, where it was found, the mean, and how many lie above alpha."""
    return {test: _summary([rate for rate in rates if rate.test == test]) for test in dict.fromkeys(rate.test for rate in rates)}


def _summary(rates: Sequence[Rate]) -> dict[str, float | int | str]:
    largest = max(rates, key=lambda rate: rate.rate)
    return {
        "settings": len(rates),
        "alpha": largest.alpha,
        "largest": round(largest.rate, 5),
        "largest_at": largest.setting,
        "mean": round(float(np.mean([rate.rate for rate in rates])), 5),
        "above_alpha": sum(rate.above for rate in rates),
        "monte_carlo_error": round(largest.error, 5),
    }
