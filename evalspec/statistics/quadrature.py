"""At which points, and with which weights, is a smooth function summed into its integral?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from evalspec.statistics.arguments import FloatArray


@dataclass(frozen=True, slots=True)
class Rule:
    """Points and their weights: an integral is ``weights @ function(points)``."""

    points: FloatArray
    weights: FloatArray


def gauss_legendre(low: float, high: float, *, count: int = 400) -> Rule:
    """Gauss and Legendre's rule of ``count`` points on [low, high].

    References
    ----------
    NIST Digital Library of Mathematical Functions, 3.5(v).

    Examples
    --------
    >>> rule = gauss_legendre(0.0, 2.0, count=3)
    >>> round(float(rule.weights @ rule.points**2), 9)
    2.666666667
    """
    rule, half = _standard_rule(count), 0.5 * (high - low)
    return Rule(0.5 * (high + low) + half * rule.points, half * rule.weights)


@cache
def _standard_rule(count: int) -> Rule:
    """The rule on [-1, 1]; finding its points costs far more than using them."""
    points, weights = np.polynomial.legendre.leggauss(count)
    return Rule(points, weights)
