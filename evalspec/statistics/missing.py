"""What becomes of questions that a model has no score on?

Nothing here guesses: the caller names the rule, and the number of questions that it touched comes back with the scores. A
missing score is NaN or ``None``. Assumption: that of the rule that the caller names.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalspec.statistics.arguments import FloatArray


@dataclass(frozen=True, slots=True)
class CompletePairs:
    """Scores on the questions that both models have a score on, and how many questions were dropped."""

    first: FloatArray
    second: FloatArray
    dropped: int


@dataclass(frozen=True, slots=True)
class FilledScores:
    """Scores with every missing one replaced, and how many were."""

    scores: FloatArray
    filled: int


def complete_pairs(first: ArrayLike, second: ArrayLike) -> CompletePairs:
    """Keep the questions that both models have a score on. Assumes that being missing says nothing about being right.

    Raises
    ------
    ValueError
        When the two are not one-dimensional and of one length, or no question is complete.

    References
    ----------
    Little and Rubin (2019), Statistical Analysis with Missing Data, 3rd ed., section 3.2.

    Examples
    --------
    >>> complete_pairs([1, 0, None, 1], [1, 1, 0, None]).dropped
    2
    """
    a, b = np.array(first, dtype=np.float64), np.array(second, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"first and second must be one-dimensional and of one length; got {a.shape} and {b.shape}")
    complete = ~(np.isnan(a) | np.isnan(b))
    if not complete.any():
        raise ValueError(f"none of {a.size} question(s) has a score from both models")
    return CompletePairs(a[complete], b[complete], int(a.size - complete.sum()))


def fill_missing(scores: ArrayLike, value: float) -> FilledScores:
    """Give every missing score the declared value: 0 where "missing" means "wrong", or the worst case for a candidate.

    Raises
    ------
    ValueError
        When the value is not in [0, 1].

    References
    ----------
    Little and Rubin (2019), Statistical Analysis with Missing Data, 3rd ed., chapter 15 (answers that are not missing at random).

    Examples
    --------
    >>> fill_missing([1, None], 0.0)
    FilledScores(scores=array([1., 0.]), filled=1)
    """
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"value must lie in [0, 1]; got {value!r}")
    array = np.array(scores, dtype=np.float64)
    gaps = np.isnan(array)
    return FilledScores(np.where(gaps, value, array), int(gaps.sum()))
