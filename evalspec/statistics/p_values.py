"""Which p-value belongs to a statistic?  It is never 0: smaller ones than a double can hold are held at the smallest."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from scipy.special import chdtrc, ndtr, stdtr

SMALLEST_P = sys.float_info.min
"""Smaller p-values than this are held at it: a p-value is never 0."""


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """A chi-square statistic with its degrees of freedom and p-value."""

    statistic: float
    degrees_of_freedom: int
    p_value: float


def held(p_value: float) -> float:
    """Hold a p-value between `SMALLEST_P` and 1, which sums of rounded terms may leave.

    Examples
    --------
    >>> held(0.0) == SMALLEST_P, held(1.0 + 1e-16)
    (True, 1.0)
    """
    return float(min(1.0, max(p_value, SMALLEST_P)))


def normal_p(statistic: float) -> float:
    """Two-sided p-value of a standard normal statistic.

    Examples
    --------
    >>> round(normal_p(1.959964), 6)
    0.05
    """
    return held(2.0 * float(ndtr(-abs(statistic))))


def student_p(statistic: float, degrees_of_freedom: float) -> float:
    """Two-sided p-value of Student's statistic; degrees of freedom are positive and may be fractional.

    Examples
    --------
    >>> round(student_p(2.262157, 9.0), 6)
    0.05
    """
    return held(2.0 * float(stdtr(degrees_of_freedom, -abs(statistic))))


def chi_square(numerator: float, denominator: float) -> ChiSquare:
    """Chi-square statistic of one degree of freedom, numerator over denominator; 0, with p-value 1, where the denominator is 0.

    Examples
    --------
    >>> chi_square(0.0, 0.0)
    ChiSquare(statistic=0.0, degrees_of_freedom=1, p_value=1.0)
    """
    statistic = numerator / denominator if denominator > 0.0 else 0.0
    return ChiSquare(statistic, 1, held(float(chdtrc(1, statistic))))
