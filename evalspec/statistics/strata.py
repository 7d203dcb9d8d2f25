"""What is the mean over declared strata, such as a benchmark's subjects, and how precisely is it known?

Assumption: the strata are the ones that matter ("these subjects"), and questions are independent draws within each. Subjects
that stand for others like them are clusters instead; see `evalspec.statistics.clusters`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evalspec.statistics.arguments import FloatArray, as_floats, beyond_rounding, require_scores
from evalspec.statistics.designs import Design, stratum_parts
from evalspec.statistics.groups import Groups, group

Weighting = Literal["micro", "macro"]


@dataclass(frozen=True, slots=True)
class StratifiedMean:
    """A weighted mean of stratum means, its standard error, and the weights, which sum to 1, in the order of ``strata``."""

    mean: float
    standard_error: float
    strata: tuple[Hashable, ...]
    weights: tuple[float, ...]
    questions: int


def stratified_mean(scores: ArrayLike, strata: Iterable[Hashable], *, weights: Weighting | Mapping[Hashable, float] = "micro") -> StratifiedMean:
    """Weighted mean of stratum means, with the standard error sqrt(sum w_g^2 s_g^2 / n_g).

    Parameters
    ----------
    scores
        Shape (Q,).
    strata
        One label per question.
    weights
        "micro" weights strata by their number of questions, "macro" equally; a mapping gives each stratum's weight, such as its
        share of a population, and is scaled to sum 1.

    Raises
    ------
    ValueError
        When a stratum has fewer than two questions, a label or score is missing, or weights do not match the strata.

    References
    ----------
    Cochran (1977), Sampling Techniques, 3rd ed., chapter 5.

    Examples
    --------
    >>> round(stratified_mean([1, 0, 1, 1, 0, 0], ["x", "x", "y", "y", "y", "y"], weights="macro").standard_error, 4)
    0.2887
    """
    values = require_scores("scores", scores)
    groups = group(strata, values.size)
    if groups.sizes.min() < 2:
        lonely = groups.names[int(groups.sizes.argmin())]
        raise ValueError(f"stratum {lonely!r} has 1 question; the spread within a stratum needs at least 2")
    shares = _shares(groups, weights)
    parts = stratum_parts(values, Design(), groups)
    error = combined_standard_error(np.sqrt(parts.variances), shares)
    # Shares sum to 1 up to rounding only, and a mean lies among its scores.
    mean = float(np.clip(shares @ parts.means, values.min(), values.max()))
    return StratifiedMean(mean, beyond_rounding(error), groups.names, tuple(shares.tolist()), values.size)


def combined_standard_error(standard_errors: ArrayLike, weights: ArrayLike) -> float:
    """Standard error of a weighted mean of independent means, weights scaled to sum 1.

    Raises
    ------
    ValueError
        When shapes differ, a weight is negative, or all weights are 0.

    References
    ----------
    Cochran (1977), Sampling Techniques, 3rd ed., chapter 5.

    Examples
    --------
    >>> round(combined_standard_error([0.05, 0.01], [1, 1]), 4)
    0.0255
    """
    errors, shares = as_floats("standard_errors", standard_errors), as_floats("weights", weights)
    if errors.shape != shares.shape or errors.ndim != 1:
        raise ValueError(f"needs one weight per standard error; got shapes {shares.shape} and {errors.shape}")
    if not (shares.size and shares.min() >= 0.0 and shares.sum() > 0.0):
        raise ValueError("weights must not be negative, and at least one must be positive")
    return math.sqrt(float(np.sum((shares / shares.sum() * errors) ** 2)))


def _shares(groups: Groups, weights: Weighting | Mapping[Hashable, float]) -> FloatArray:
    if weights == "micro":
        raw = groups.sizes.astype(np.float64)
    elif weights == "macro":
        raw = np.ones(len(groups.names))
    else:
        if set(weights) != set(groups.names):
            raise ValueError(f"weights must name exactly the strata {sorted(map(str, groups.names))}; got {sorted(map(str, weights))}")
        raw = as_floats("weights", [weights[name] for name in groups.names])
    if raw.min() < 0.0 or raw.sum() <= 0.0:
        raise ValueError("weights must not be negative, and at least one must be positive")
    return np.asarray(raw / raw.sum())
