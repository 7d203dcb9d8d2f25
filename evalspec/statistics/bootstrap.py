"""Between which limits does a statistic lie, by drawing the questions again from themselves?

Assumption: questions (or clusters) are independent draws. For means of 0/1 scores Wilson's interval is shorter and covers
better at every sample size; there is no BCa here, because its limits are arbitrary on tied scores.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import ArrayLike

from evalspec.statistics.arguments import FloatArray, require_count, require_fraction, require_scores
from evalspec.statistics.groups import group
from evalspec.statistics.proportion_alternatives import CautionedInterval
from evalspec.statistics.proportions import Interval

_CHUNK = 1 << 22
"""Most numbers that one batch of draws may hold at a time."""


def percentile_bootstrap(scores: ArrayLike, *, draws: int, rng: np.random.Generator, level: float = 0.95) -> CautionedInterval:
    """Percentile interval of a mean score: quantiles of the means of redrawn samples.

    Parameters
    ----------
    scores
        Shape (Q,), at least two.
    draws, rng
        Number of redrawn samples, and where they come from.
    level
        Two-sided confidence level, in (0, 1).

    Returns
    -------
    CautionedInterval
        With a caution when all scores are equal, so that redrawing cannot vary.

    Raises
    ------
    ValueError
        For missing scores or impossible arguments.

    References
    ----------
    Davison and Hinkley (1997), Bootstrap Methods and their Application, section 5.3.1.

    Examples
    --------
    >>> percentile_bootstrap([1, 1, 1], draws=99, rng=np.random.default_rng(1)).caution
    'all scores are equal: redrawing them shows no spread'
    """
    values = require_scores("scores", scores, minimum=2)
    means, _ = _redrawn(values, draws, rng)
    return CautionedInterval(_quantiles(means, level), _equal(values))


def studentised_bootstrap(scores: ArrayLike, *, draws: int, rng: np.random.Generator, level: float = 0.95) -> CautionedInterval:
    """Studentised interval of a mean score: redrawn t statistics in place of Student's quantiles.

    Parameters
    ----------
    scores, draws, rng, level
        As `percentile_bootstrap`. Redrawn samples without spread are left out.

    Raises
    ------
    ValueError
        As `percentile_bootstrap`, and when all scores are equal.

    References
    ----------
    Davison and Hinkley (1997), Bootstrap Methods and their Application, section 5.2.

    Examples
    --------
    >>> interval = studentised_bootstrap(np.arange(40.0), draws=999, rng=np.random.default_rng(1)).interval
    >>> 15.0 < interval.low < 16.5 and 22.5 < interval.high < 24.0
    True
    """
    values = require_scores("scores", scores, minimum=2)
    caution = _equal(values)
    if caution:
        raise ValueError(caution)
    means, errors = _redrawn(values, draws, rng)
    spread = errors > 0.0
    t = _quantiles((means[spread] - values.mean()) / errors[spread], level)
    error = float(values.std()) / np.sqrt(values.size)
    caution = f"{values.size} scores: fewer than 30" if values.size < 30 else None
    return CautionedInterval(Interval(float(values.mean() - t.high * error), float(values.mean() - t.low * error)), caution)


def cluster_bootstrap(
    scores: ArrayLike, clusters: Iterable[Hashable], *, draws: int, rng: np.random.Generator, level: float = 0.95
) -> CautionedInterval:
    """Percentile interval of a mean score by redrawing whole clusters; the mean is a ratio of sums, as cluster sizes differ.

    Parameters
    ----------
    scores, draws, rng, level
        As `percentile_bootstrap`.
    clusters
        One label per question, at least two different ones.

    Raises
    ------
    ValueError
        As `percentile_bootstrap`, and with fewer than two clusters or a missing label.

    References
    ----------
    Davison and Hinkley (1997), Bootstrap Methods and their Application, section 3.8.

    Examples
    --------
    >>> cluster_bootstrap([1, 0, 1], ["a", "b", "b"], draws=99, rng=np.random.default_rng(1)).caution
    '2 clusters: fewer than 30'
    """
    values = require_scores("scores", scores, minimum=2)
    groups = group(clusters, values.size)
    count = len(groups.names)
    if count < 2:
        raise ValueError(f"needs at least 2 clusters; got {count}")
    require_count("draws", draws, minimum=2)
    times = rng.multinomial(count, np.full(count, 1.0 / count), size=draws)
    means = (times @ groups.totals(values)) / (times @ groups.sizes)
    caution = f"{count} clusters: fewer than 30" if count < 30 else _equal(values)
    return CautionedInterval(_quantiles(means, level), caution)


def _redrawn(values: FloatArray, draws: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Means and standard errors (ddof 0) of redrawn samples."""
    require_count("draws", draws, minimum=2)
    step = max(1, _CHUNK // values.size)
    means, errors = np.empty(draws), np.empty(draws)
    for start in range(0, draws, step):
        stop = min(start + step, draws)
        sample = values[rng.integers(0, values.size, size=(stop - start, values.size))]
        means[start:stop] = sample.mean(axis=1)
        errors[start:stop] = sample.std(axis=1) / np.sqrt(values.size)
    return means, errors


def _quantiles(values: FloatArray, level: float) -> Interval:
    tail = (1.0 - require_fraction("level", level)) / 2.0
    low, high = np.quantile(values, [tail, 1.0 - tail])
    return Interval(float(low), float(high))


def _equal(values: FloatArray) -> str | None:
    return "all scores are equal: redrawing them shows no spread" if values.min() == values.max() else None
