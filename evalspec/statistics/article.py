"""Which figures does the common two-digit recipe give, for those who want to compare with published ones?

These functions repeat widely printed formulas to the letter: z = 1.96, no small-sample correction, Wald intervals, random
tie-breaking. They are for comparison; the defaults of the other modules are better.

Assumption: questions are independent draws, and enough of them for means to be nearly normal.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from evalspec.statistics.arguments import require_binary, require_count
from evalspec.statistics.differences import PairedCounts, paired_difference
from evalspec.statistics.proportions import Interval
from evalspec.statistics.unpaired import TwoSamples

Z = 1.96
"""The quantile of 0.95 as it is printed."""


def unpaired_half_width(samples: TwoSamples) -> float:
    """Half width 1.96 sqrt(p1 (1 - p1) / n1 + p2 (1 - p2) / n2) of a difference of independent proportions.

    References
    ----------
    Miller (2024), arXiv:2411.00640, section 4.1.

    Examples
    --------
    >>> round(unpaired_half_width(TwoSamples(1436, 2000, 1399, 2000)), 4)
    0.0282
    """
    first = samples.first * (1.0 - samples.first) / samples.first_trials
    second = samples.second * (1.0 - samples.second) / samples.second_trials
    return Z * math.sqrt(first + second)


def paired_interval(counts: PairedCounts) -> Interval:
    """Difference plus and minus 1.96 sqrt((q - D^2) / n), not cut at -1 and 1.

    References
    ----------
    Miller (2024), arXiv:2411.00640, section 4.2.

    Examples
    --------
    >>> round(paired_interval(PairedCounts(1217, 219, 182, 382)).high, 4)
    0.0381
    """
    difference = paired_difference(counts)
    spread = Z * math.sqrt((counts.discordance - difference**2) / counts.questions)
    return Interval(difference - spread, difference + spread)


def pairing_gain(counts: PairedCounts) -> float:
    """Share by which pairing shortens the interval: 1 - paired half width / unpaired half width.

    Raises
    ------
    ValueError
        When neither model's scores vary.

    References
    ----------
    Miller (2024), arXiv:2411.00640, section 4.2.

    Examples
    --------
    >>> round(pairing_gain(PairedCounts(1217, 219, 182, 382)), 3)
    0.304
    """
    n = counts.questions
    unpaired = unpaired_half_width(TwoSamples(counts.first_correct, n, counts.second_correct, n))
    if unpaired == 0.0:
        raise ValueError("both models are always right or always wrong: there is no width to compare")
    interval = paired_interval(counts)
    return 1.0 - (interval.high - interval.low) / 2.0 / unpaired


def null_half_width(discordance: float, questions: int) -> float:
    """Half width 1.96 sqrt(q / n) of a paired difference when there is none: a rule of thumb for what n questions resolve.

    Raises
    ------
    ValueError
        When the discordance leaves [0, 1] or there is no question.

    References
    ----------
    Miller (2024), arXiv:2411.00640, section 5.

    Examples
    --------
    >>> round(null_half_width(0.2, 500), 4)
    0.0392
    """
    if not 0.0 <= discordance <= 1.0:
        raise ValueError(f"discordance must lie in [0, 1]; got {discordance!r}")
    return Z * math.sqrt(discordance / require_count("questions", questions, minimum=1))


def jittered_first_share(scores: ArrayLike, questions: int, *, draws: int, rng: np.random.Generator) -> float:
    """Share of redraws, with replacement, in which the first model comes first, ties broken by a tiny random number.

    Parameters
    ----------
    scores
        0/1 scores of shape (M, Q).
    questions
        Size of each redraw.
    draws, rng
        Number of redraws, and where they come from.

    Raises
    ------
    ValueError
        When a score is missing or fractional, or a number is below 1.

    References
    ----------
    Use `evalspec.statistics.rankings.redraw_ranking`, which shares ties exactly, for new work.

    Examples
    --------
    >>> jittered_first_share([[1, 1], [0, 0]], 5, draws=10, rng=np.random.default_rng(0))
    1.0
    """
    correct = require_binary("scores", scores).T.astype(np.float64)
    places = rng.integers(0, correct.shape[0], size=(require_count("draws", draws, minimum=1), questions))
    means = np.stack([correct[row].mean(axis=0) for row in places])
    means += rng.random(means.shape) * 1e-9
    return float(np.mean(np.argmax(means, axis=1) == 0))
