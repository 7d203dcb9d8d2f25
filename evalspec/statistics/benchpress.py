"""Which scores would models have on benchmarks that they were not run on, as far as a table of other scores tells?

Scores of a percentage or a fraction are turned to logits, every benchmark is standardised, and `evalspec.statistics.benchpress_als` fills the empty
cells from several starts, whose mean is the prediction. Assumptions as stated there. Without declared scales the published rule tells them from
the scores, which a single mistyped score can overturn.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from evalspec.statistics.arguments import FloatArray, IntArray
from evalspec.statistics.benchpress_als import PENALTY, SWEEPS, Cells, als

PUBLISHED_SEEDS = tuple(range(42, 52))
"""The starts of the published fit."""

AUDIT_SEEDS = tuple(range(42, 142))
"""The same and ninety more, after which other starts move few predictions."""

PERCENT = 100.0
"""The highest score of a percentage."""

EDGE = 0.005
"""Shares nearer to 0 or 1 than this are moved here before their logit is taken."""

FLAT = 1e-8
"""A spread below this counts as none, and the benchmark is not scaled."""


@dataclass(frozen=True, slots=True)
class Method:
    """How tables are completed: from which ``seeds``, and on which scales.

    ``tops`` (D,) is each benchmark's highest possible score, 100 for percentages, 1 for fractions, NaN where there is none; None lets the published
    rule tell from the known scores.
    """

    seeds: tuple[int, ...]
    tops: FloatArray | None = None

    def tops_of(self, scores: FloatArray) -> FloatArray:
        """Return each benchmark's highest possible score, given the known scores."""
        return published_tops(scores) if self.tops is None else self.tops


@dataclass(frozen=True, slots=True)
class Standard:
    """How scores are standardised: each benchmark's highest possible score, and mean and spread after the logit, all (D,)."""

    tops: FloatArray
    mean: FloatArray
    spread: FloatArray

    @classmethod
    def of(cls, scores: FloatArray, tops: FloatArray) -> Standard:
        """Return the standard of the known scores, (N, D) with NaN where there is none; NaN for a benchmark without any."""
        levels = logits(scores, tops)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of benchmarks without a score, whose mean is NaN
            mean, spread = np.nanmean(levels, axis=0), np.nanstd(levels, axis=0)
        return cls(tops, mean, np.where(spread < FLAT, 1.0, spread))

    def standardised(self, scores: FloatArray) -> FloatArray:
        """Return standardised scores, (..., D)."""
        return np.asarray((logits(scores, self.tops) - self.mean) / self.spread)

    def scores(self, standardised: FloatArray) -> FloatArray:
        """Return scores from standardised ones, (..., D)."""
        levels = standardised * self.spread + self.mean
        return np.where(np.isnan(self.tops), levels, self.tops * expit(levels))

    def kept(self, benchmarks: IntArray) -> Standard:
        """Return the standard of these benchmarks, which may repeat."""
        return Standard(self.tops[benchmarks], self.mean[benchmarks], self.spread[benchmarks])


@dataclass(frozen=True, slots=True)
class Predictions:
    """Predicted scores, and how far the starts lie apart in their own: standard deviation, and ninth less first decile; of one shape.

    NaN on a benchmark without a known score.
    """

    value: FloatArray
    spread: FloatArray
    span: FloatArray

    @classmethod
    def of(cls, tables: FloatArray, standard: Standard) -> Predictions:
        """Return what starts predict together, from their standardised tables (S, ..., D)."""
        each = standard.scores(tables)
        low, high = np.quantile(each, [0.1, 0.9], axis=0)
        return cls(standard.scores(tables.mean(axis=0)), each.std(axis=0), high - low)


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted table: the standard of its known scores, and the standardised tables that its starts completed, (S, N, D)."""

    standard: Standard
    tables: FloatArray

    def at(self, models: IntArray, benchmarks: IntArray) -> Predictions:
        """Return the predictions of single cells, (K,)."""
        return Predictions.of(self.tables[:, models, benchmarks], self.standard.kept(benchmarks))


def logits(scores: FloatArray, tops: FloatArray) -> FloatArray:
    """Turn scores with a highest possible value to logits, kept half a percent away from both ends; others are given back.

    References
    ----------
    Zeng and Papailiopoulos (2026), arXiv:2606.24020.

    Examples
    --------
    >>> logits(np.array([[50.0, 1400.0]]), np.array([100.0, np.nan])).tolist()
    [[0.0, 1400.0]]
    """
    shares = np.clip(scores / tops, EDGE, 1.0 - EDGE)
    return np.where(np.isnan(tops), scores, logit(shares))


def published_tops(scores: FloatArray) -> FloatArray:
    """Tell percentages as the published code does: by known scores that all lie between -1 and 101.

    References
    ----------
    The code released with Zeng and Papailiopoulos (2026), arXiv:2606.24020.

    Examples
    --------
    >>> published_tops(np.array([[70.0, 1400.0], [np.nan, 1300.0]])).tolist()
    [100.0, nan]
    """
    known = ~np.isnan(scores)
    outside = known & ((scores < -1.0) | (scores > 101.0))
    return np.where(known.any(axis=0) & ~outside.any(axis=0), PERCENT, np.nan)


def fit(scores: FloatArray, method: Method) -> Fit:
    """Fit a table of N models on D benchmarks, NaN where there is no score, from every start.

    References
    ----------
    Zeng and Papailiopoulos (2026), arXiv:2606.24020.

    Examples
    --------
    >>> table = np.array([[90.0, 70.0], [80.0, 60.0], [70.0, np.nan]])
    >>> float(fit(table, Method(PUBLISHED_SEEDS)).at(np.array([2]), np.array([1])).value[0].round(1))
    60.1
    """
    standard = Standard.of(scores, method.tops_of(scores))
    return Fit(standard, als(cells_of(scores, standard), method.seeds).completed())


def complete(scores: FloatArray, method: Method) -> FloatArray:
    """Fill the empty cells of a table, (N, D); known scores stay as they are, and benchmarks without one stay NaN.

    References
    ----------
    Zeng and Papailiopoulos (2026), arXiv:2606.24020. Tests hold the published method to a reference made with the released code.

    Examples
    --------
    >>> table = np.array([[90.0, 70.0], [80.0, 60.0], [70.0, np.nan]])
    >>> complete(table, Method(PUBLISHED_SEEDS)).round(1).tolist()
    [[90.0, 70.0], [80.0, 60.0], [70.0, 60.1]]
    """
    fitted = fit(scores, method)
    return np.where(np.isnan(scores), fitted.standard.scores(fitted.tables.mean(axis=0)), scores)


def between_starts(scores: FloatArray, method: Method, blocks: int) -> FloatArray:
    """Return how far predictions move when a fit begins elsewhere: their standard deviation over blocks of as many other starts, (N, D).

    The first block is the method's own; each further one takes the seeds that follow.

    References
    ----------
    None; a check of how much of a prediction is owed to where the fit began.

    Examples
    --------
    >>> table = np.array([[90.0, 70.0], [80.0, 60.0], [70.0, np.nan]])
    >>> between_starts(table, Method((42, 43)), 2).shape
    (3, 2)
    """
    count = len(method.seeds)
    predicted = []
    for block in range(blocks):
        fitted = fit(scores, Method(tuple(seed + block * count for seed in method.seeds), method.tops))
        predicted.append(fitted.standard.scores(fitted.tables.mean(axis=0)))
    return np.asarray(np.std(predicted, axis=0))


def cells_of(scores: FloatArray, standard: Standard) -> Cells:
    """Return the known cells of a table, standardised.

    Examples
    --------
    >>> table = np.array([[90.0], [np.nan]])
    >>> cells_of(table, Standard.of(table, published_tops(table))).known.tolist()
    [[1.0], [0.0]]
    """
    known = ~np.isnan(scores)
    return Cells(known.astype(np.float64), np.where(known, standard.standardised(scores), 0.0))


def additive(scores: FloatArray, tops: FloatArray) -> FloatArray:
    """Predict every cell from what is usual for its model and for its benchmark alone: the same fit without factors, (N, D).

    References
    ----------
    Tukey (1977), Exploratory Data Analysis, chapter 10 (two-way tables); penalised as `evalspec.statistics.benchpress_als.als`.

    Examples
    --------
    >>> table = np.array([[90.0, 70.0], [80.0, 60.0], [70.0, np.nan]])
    >>> float(additive(table, published_tops(table))[2, 1].round(1))
    57.2
    """
    standard = Standard.of(scores, tops)
    cells = cells_of(scores, standard)
    if not cells.known.any():
        return np.full(scores.shape, np.nan)
    of_models, of_benchmarks = cells.known.sum(axis=1), cells.known.sum(axis=0)
    level, benchmarks = float(cells.values.sum() / cells.known.sum()), np.zeros(scores.shape[1])
    models = np.zeros(scores.shape[0])
    for _ in range(SWEEPS):
        models = (cells.values.sum(axis=1) - level * of_models - cells.known @ benchmarks) / (of_models + PENALTY)
        benchmarks = (cells.values.sum(axis=0) - level * of_benchmarks - models @ cells.known) / (of_benchmarks + PENALTY)
        level = float((cells.values.sum() - of_models @ models - of_benchmarks @ benchmarks) / cells.known.sum())
    return standard.scores(level + models[:, None] + benchmarks)


def medians(scores: FloatArray) -> FloatArray:
    """Return each benchmark's median known score, (D,); NaN where there is none.

    Examples
    --------
    >>> medians(np.array([[90.0, np.nan], [70.0, np.nan]])).tolist()
    [80.0, nan]
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of benchmarks without a score
        return np.asarray(np.nanmedian(scores, axis=0))


def spreads(scores: FloatArray) -> FloatArray:
    """Return the standard deviation of each benchmark's known scores, (D,); NaN where there is none.

    Examples
    --------
    >>> spreads(np.array([[90.0, np.nan], [70.0, np.nan]])).tolist()
    [10.0, nan]
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of benchmarks without a score
        return np.asarray(np.nanstd(scores, axis=0))
