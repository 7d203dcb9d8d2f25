"""What is the mean of scores of any kind, how precisely is it known, and does a paired mean difference exclude 0?

Assumption of every function here: questions are independent draws, and there are enough of them (30, as a rule) for their mean
to be nearly normal. For 0/1 scores prefer `evalspec.statistics.proportions` and `evalspec.statistics.differences`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalspec.statistics.arguments import beyond_rounding, require_count, require_scores, two_sided_t
from evalspec.statistics.p_values import student_p
from evalspec.statistics.proportions import Interval


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean, its standard error, and the number of questions behind it."""

    mean: float
    standard_error: float
    questions: int


@dataclass(frozen=True, slots=True)
class PairedMean:
    """Mean difference of two models, its standard error, and their correlation (``None`` when a model never varies)."""

    difference: float
    standard_error: float
    correlation: float | None
    questions: int


@dataclass(frozen=True, slots=True)
class TTest:
    """Student's statistic, its degrees of freedom and the two-sided p-value."""

    statistic: float
    degrees_of_freedom: float
    p_value: float


def mean_score(scores: ArrayLike) -> Mean:
    """Mean and its standard error by the central limit theorem (ddof 1), for scores of any kind.

    Parameters
    ----------
    scores
        Shape (Q,), Q at least 2.

    Raises
    ------
    ValueError
        With fewer than two scores the standard error is undefined; missing scores are refused.

    References
    ----------
    Miller (2024), arXiv:2411.00640, section 2.1.

    Examples
    --------
    >>> round(mean_score([0, 0.5, 0.5, 1, 0.25]).standard_error, 4)
    0.1658
    """
    values = require_scores("scores", scores, minimum=2)
    error = beyond_rounding(float(values.std(ddof=1)) / math.sqrt(values.size))
    return Mean(float(values.mean()), error, values.size)


def bernoulli_standard_error(proportion: float, questions: int) -> float:
    """Standard error sqrt(p (1 - p) / n) of a mean of independent 0/1 scores; an upper bound for scores in [0, 1].

    Raises
    ------
    ValueError
        When the proportion leaves [0, 1] or there is no question.

    References
    ----------
    Miller (2024), arXiv:2411.00640, section 2.1.

    Examples
    --------
    >>> round(bernoulli_standard_error(0.5957, 14042), 5)
    0.00414
    """
    if not 0.0 <= proportion <= 1.0:
        raise ValueError(f"proportion must lie in [0, 1]; got {proportion!r}")
    return math.sqrt(proportion * (1.0 - proportion) / require_count("questions", questions, minimum=1))


def mean_interval(scores: ArrayLike, *, level: float = 0.95) -> Interval:
    """Student's interval of a mean with Q - 1 degrees of freedom.

    Raises
    ------
    ValueError
        As `mean_score`, and for an impossible level.

    References
    ----------
    Student (1908), Biometrika 6, 1-25, doi:10.1093/biomet/6.1.1.

    Examples
    --------
    >>> round(mean_interval([0, 0.5, 0.5, 1, 0.25]).low, 4)
    -0.0104
    """
    mean = mean_score(scores)
    spread = two_sided_t(level, mean.questions - 1) * mean.standard_error
    return Interval(mean.mean - spread, mean.mean + spread)


def paired_mean(first: ArrayLike, second: ArrayLike) -> PairedMean:
    """Mean of first minus second on the same questions, with the standard error that pairing gives.

    Raises
    ------
    ValueError
        When the two are not of one length of at least 2, or a score is missing.

    References
    ----------
    Miller (2024), arXiv:2411.00640, section 4.2.

    Examples
    --------
    >>> paired = paired_mean([1, 1, 0, 1], [1, 0, 0, 1])
    >>> round(paired.difference, 3), round(paired.standard_error, 3)
    (0.25, 0.25)
    """
    a, b = require_scores("first", first, minimum=2), require_scores("second", second, minimum=2)
    if a.size != b.size:
        raise ValueError(f"first and second must be of one length; got {a.size} and {b.size}")
    mean = mean_score(a - b)
    spreads = beyond_rounding(float(a.std())) * beyond_rounding(float(b.std()))
    correlation = float(np.mean((a - a.mean()) * (b - b.mean()))) / spreads if spreads > 0.0 else None
    if correlation is not None:
        correlation = min(1.0, max(-1.0, correlation))
    return PairedMean(mean.mean, mean.standard_error, correlation, mean.questions)


def t_test(differences: ArrayLike) -> TTest:
    """One-sample t test of H0: the expected difference is 0; p-value 1 when every difference is 0.

    Raises
    ------
    ValueError
        With fewer than two differences, and when all are equal but not 0: then nothing measures their spread.

    References
    ----------
    Student (1908), Biometrika 6, 1-25, doi:10.1093/biomet/6.1.1.

    Examples
    --------
    >>> round(t_test([0.1, 0.3, 0.2, -0.1]).p_value, 4)
    0.2394
    """
    mean = mean_score(differences)
    freedom = float(mean.questions - 1)
    if mean.standard_error == 0.0:
        if mean.mean != 0.0:
            raise ValueError(f"all {mean.questions} differences equal {mean.mean:g}: a t test needs some spread")
        return TTest(0.0, freedom, 1.0)
    statistic = mean.mean / mean.standard_error
    return TTest(statistic, freedom, student_p(statistic, freedom))
