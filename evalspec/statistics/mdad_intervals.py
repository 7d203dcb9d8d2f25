"""How far could an MDAD be off, had other models been judged and other samples drawn?

Models and trials are resampled, not pairs: pairs of one trial share models, half and sample, and pairs of one model share that model. A model that
is drawn twice counts twice in each pair with another model; a pair counts the product. The questions are not resampled: the interval does not
speak of other questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalspec.statistics.arguments import FloatArray, IntArray, require_count, require_fraction
from evalspec.statistics.mdad import Reference, supported_crossings

_WEIGHTS_AT_ONCE = 1 << 21


@dataclass(frozen=True, slots=True)
class Resampling:
    """How many resamples are taken, for intervals of which level."""

    draws: int = 400
    confidence: float = 0.95


@dataclass(frozen=True, slots=True)
class GapInterval:
    """Percentile interval of a gap; a bound is ``None`` where the curve does not reach its level in that share of resamples."""

    low: float | None
    high: float | None


def crossing_intervals(
    reference: Reference,
    outcomes: Sequence[NDArray[np.float32]],
    models: IntArray,
    rng: np.random.Generator,
    *,
    resampling: Resampling = Resampling(),
    rule: tuple[float, float] = (0.8, 30),
) -> tuple[GapInterval, ...]:
    """Bootstrap the gap at which each isotonic curve reaches its level, over models and trials together.

    Parameters
    ----------
    reference
        The pairs of every trial.
    outcomes
        What each pair counts, (T, P), for each of several samplers or sizes on these trials.
    models
        Shape (T, K): the model of each place of each trial, numbered from 0.
    rng
        Where the resamples come from.
    resampling
        Number of resamples and level of the interval.
    rule
        Agreement that counts as reached, and the least number of pairs there and beyond.

    Raises
    ------
    ValueError
        For impossible levels or numbers.

    References
    ----------
    Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapter 13 (percentiles). Snijders and Borgatti (1999), Connections 22,
    161-170 (resampling the vertices of which pairs are made).

    Examples
    --------
    >>> scores = np.tile(np.arange(11), (20, 1))
    >>> reference = Reference(scores, 10)
    >>> outcomes = [reference.outcomes(scores // 3)]  # a sample that sees differences of 3 and more, and some smaller ones
    >>> crossing_intervals(reference, outcomes, scores, np.random.default_rng(1), rule=(0.8, 1))
    (GapInterval(low=0.2, high=0.3),)
    """
    draws = require_count("draws", resampling.draws, minimum=1)
    tail = (1.0 - require_fraction("confidence", resampling.confidence)) / 2.0
    layout = _Layout(reference, outcomes, models)
    step = max(1, _WEIGHTS_AT_ONCE // layout.place.size)
    parts = [layout.crossings(min(step, draws - start), rule, rng) for start in range(0, draws, step)]
    places = np.sort(np.concatenate(parts, axis=1), axis=1)
    ends = [places[:, int(np.ceil(share * draws)) - 1] for share in (max(tail, 1.0 / draws), 1.0 - tail)]
    gaps = [*reference.gaps.tolist(), None]
    return tuple(GapInterval(gaps[low], gaps[high]) for low, high in zip(*(end.tolist() for end in ends), strict=True))


class _Layout:
    """Pairs sorted by bin, so that the sums of a bin are one matrix product over all resamples."""

    def __init__(self, reference: Reference, outcomes: Sequence[NDArray[np.float32]], models: IntArray) -> None:
        ranked = np.take_along_axis(models, reference.order, axis=1)
        order = np.argsort(reference.places, axis=None, kind="stable")
        self.place = reference.places.ravel()[order]
        self._first, self._second = (ranked[:, side].ravel()[order] for side in (reference.first, reference.second))
        self._trial = order // reference.first.size
        self._counts = np.stack([np.ones(order.size), *(values.ravel()[order] for values in outcomes)]).astype(np.float64)
        self._edges = np.searchsorted(self.place, np.arange(reference.gaps.size + 1))
        self._sizes = (int(models.max()) + 1, len(models))

    def crossings(self, draws: int, rule: tuple[float, float], rng: np.random.Generator) -> IntArray:
        """Return the bin of each curve's crossing in each resample, (curves, draws)."""
        model_times, trial_times = (_multiplicities(size, draws, rng) for size in self._sizes)
        weights = model_times[self._first] * model_times[self._second] * trial_times[self._trial]
        sums = np.stack(
            [self._counts[:, start:end] @ weights[start:end] for start, end in zip(self._edges[:-1], self._edges[1:], strict=True)], axis=-1
        )
        level, min_pairs = rule
        pairs = np.broadcast_to(sums[0], sums[1:].shape)
        return supported_crossings(sums[1:], pairs, level=level, min_pairs=min_pairs)


def _multiplicities(size: int, draws: int, rng: np.random.Generator) -> FloatArray:
    """Return how often each of ``size`` things is drawn in a resample of as many, (size, draws)."""
    return rng.multinomial(size, np.full(size, 1.0 / size), size=draws).T.astype(np.float64)
