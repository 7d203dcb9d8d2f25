"""Between which limits does a predicted score lie, and how often did such limits hold what was hidden?

How far the starts of the fit lie apart says how hard a cell is. Held-out errors, in units of that, give the factor at which the wanted share of
them is held (split conformal prediction). Assumption: the cells of the model to be predicted are as hard, in these units, as the held-out cells of
other models. Cells of one model are alike, so every rate here is computed with factors from other models alone. A share of 0.9 holds over all
cells together; it is less for some kinds of models and benchmarks, which `coverage` shows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalspec.statistics.arguments import FloatArray, require_fraction
from evalspec.statistics.benchpress import PERCENT
from evalspec.statistics.benchpress_folds import HeldOut

SHARE_OF_SPREAD = 0.05
"""What stands for a point on a scale without a highest score: a twentieth of the spread of its known scores, as a point is of a usual percentage."""

WEAK = -1.0
"""Models whose mean standardised score lies below are harder to predict, and get a factor of their own."""

FEWEST_WEAK = 3
"""With fewer other models than this of that kind, the factor of all models is taken."""

LOW_COVERAGE = 0.8
"""Models and benchmarks whose cells are held less often than this are counted."""


@dataclass(frozen=True, slots=True)
class Factors:
    """By how much the difficulty of a cell is multiplied to give half the width of its interval: of weak models, and of all others."""

    weak: float
    other: float

    def at(self, strength: FloatArray) -> FloatArray:
        """Return the factors of models of this strength."""
        return np.where(strength < WEAK, self.weak, self.other)


@dataclass(frozen=True, slots=True)
class HeldIntervals:
    """Intervals of held-out cells by factors from other models alone, (K,): limits, cut at the ends of the scale, and difficulty in points."""

    low: FloatArray
    high: FloatArray
    difficulty: FloatArray


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often intervals held hidden scores, and how well difficulty tells large errors from small ones.

    ``thirds`` are the shares among the easiest, the middle and the hardest third of the cells; ``weak`` that of weak models, None without any;
    ``unbounded`` that on scales without a highest score, None without any. ``rank_correlation`` is Spearman's, of difficulty and error;
    ``easiest_fifth`` the median error of the fifth of the cells that seem easiest. ``low_models`` and ``low_benchmarks`` count those below 0.8.
    """

    share: float
    median_width: float
    thirds: tuple[float, float, float]
    weak: float | None
    unbounded: float | None
    rank_correlation: float | None
    easiest_fifth: float
    low_models: int
    low_benchmarks: int


def points(tops: FloatArray, apart: FloatArray) -> FloatArray:
    """Return what one point is on each scale: a hundredth of the highest score, else a twentieth of the spread of its known scores.

    Examples
    --------
    >>> points(np.array([100.0, 1.0, np.nan]), np.array([20.0, 0.2, 60.0])).tolist()
    [1.0, 0.01, 3.0]
    """
    return np.where(np.isnan(tops), SHARE_OF_SPREAD * apart, tops / PERCENT)


def conformal_factor(ratios: FloatArray, level: float) -> float | None:
    """Return the smallest factor that holds a further ratio with this probability: that of rank ceil((n + 1) level) among n.

    None where there are too few for such a rank.

    References
    ----------
    Lei, G'Sell, Rinaldo, Tibshirani and Wasserman (2018), J. Am. Stat. Assoc. 113, 1094-1111, doi:10.1080/01621459.2017.1307116, section 2.2 and
    5.2 (errors in units of their difficulty).

    Examples
    --------
    >>> conformal_factor(np.arange(1.0, 10.0), 0.9), conformal_factor(np.arange(1.0, 9.0), 0.9)
    (9.0, None)
    """
    rank = math.ceil((len(ratios) + 1) * require_fraction("level", level) - 1e-9)
    return float(np.partition(ratios, rank - 1)[rank - 1]) if rank <= len(ratios) else None


def factors(held: HeldOut, difficulty: FloatArray, level: float, *, without: int | None = None) -> Factors:
    """Return the factors that hold the wanted share of held-out scores, apart for weak models; ``without`` leaves one model's cells out.

    Raises
    ------
    ValueError
        When there are too few held-out cells for the level.

    References
    ----------
    Vovk, Gammerman and Shafer (2005), Algorithmic Learning in a Random World, section 4.5 (a factor for each kind of case).

    Examples
    --------
    >>> one = HeldOut(*(np.arange(40),) * 3, *(np.arange(40.0),) * 2, *(np.ones(40),) * 3, np.zeros(40), np.ones(40))
    >>> factors(one, np.ones(40), 0.9).other
    0.0
    """
    used = ~np.isnan(held.error)
    if without is not None:
        used &= held.models != without
    weak = used & (held.strength < WEAK)
    ratios = held.error / difficulty
    of_all = conformal_factor(ratios[used], level)
    if of_all is None:
        raise ValueError(f"{int(used.sum())} held-out cells are too few for intervals at level {level}")
    own = conformal_factor(ratios[weak], level) if len(np.unique(held.models[weak])) >= FEWEST_WEAK else None
    other = conformal_factor(ratios[used & ~weak], level)
    return Factors(of_all if own is None else own, of_all if own is None or other is None else other)


def limits(value: FloatArray, half_width: FloatArray, tops: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return interval limits about predictions, cut at 0 and the highest score where the scale has one.

    Examples
    --------
    >>> low, high = limits(np.array([95.0, 1400.0]), np.array([10.0, 50.0]), np.array([100.0, np.nan]))
    >>> low.tolist(), high.tolist()
    ([85.0, 1350.0], [100.0, 1450.0])
    """
    low, high = value - half_width, value + half_width
    bounded = ~np.isnan(tops)
    return np.where(bounded, np.maximum(low, 0.0), low), np.where(bounded, np.minimum(high, tops), high)


def held_intervals(held: HeldOut, tops: FloatArray, level: float) -> HeldIntervals:
    """Return the intervals of all held-out cells, each by factors from the cells of other models.

    Parameters
    ----------
    held
        Held-out cells.
    tops
        Highest scores of the benchmarks, (D,).
    level
        The wanted share.

    References
    ----------
    As `conformal_factor` and `factors`.

    Examples
    --------
    >>> one = HeldOut(np.arange(40), *(np.zeros(40, dtype=int),) * 2, *(np.arange(40.0),) * 2, *(np.ones(40),) * 3, np.zeros(40), np.ones(40))
    >>> float(held_intervals(one, np.array([100.0]), 0.9).low[7])
    7.0
    """
    point = points(tops[held.benchmarks], held.apart)
    difficulty = held.spread + point
    half = np.empty(len(difficulty))
    for model in np.unique(held.models):
        own = held.models == model
        half[own] = difficulty[own] * factors(held, difficulty, level, without=int(model)).at(held.strength[own])
    low, high = limits(held.predicted, half, tops[held.benchmarks])
    return HeldIntervals(low, high, difficulty / point)


def coverage(held: HeldOut, intervals: HeldIntervals, tops: FloatArray) -> Coverage:
    """Say how often the intervals held the hidden scores: over all, and over kinds of cells.

    References
    ----------
    Barber, Candes, Ramdas and Tibshirani (2021), Inf. Inference 10, 455-482, doi:10.1093/imaiai/iaaa017 (why the share of a kind can be lower).

    Examples
    --------
    >>> one = HeldOut(np.arange(40), *(np.zeros(40, dtype=int),) * 2, *(np.arange(40.0),) * 2, *(np.ones(40),) * 3, np.zeros(40), np.ones(40))
    >>> coverage(one, held_intervals(one, np.array([100.0]), 0.9), np.array([100.0])).share
    1.0
    """
    found = ~np.isnan(held.error)
    held = held.kept(found)
    low, high, difficulty = (side[found] for side in (intervals.low, intervals.high, intervals.difficulty))
    inside = (low <= held.actual) & (held.actual <= high)
    cuts = np.quantile(difficulty, [0.2, 1 / 3, 2 / 3])
    third = np.digitize(difficulty, cuts[1:])
    point = points(tops[held.benchmarks], held.apart)
    return Coverage(
        share=float(inside.mean()),
        median_width=float(np.median((high - low) / point)),
        thirds=(_share(inside, third == 0) or 0.0, _share(inside, third == 1) or 0.0, _share(inside, third == 2) or 0.0),
        weak=_share(inside, held.strength < WEAK),
        unbounded=_share(inside, np.isnan(tops[held.benchmarks])),
        rank_correlation=rank_correlation(difficulty, held.error / point),
        easiest_fifth=float(np.median((held.error / point)[difficulty <= cuts[0]])),
        low_models=_low(inside, held.models),
        low_benchmarks=_low(inside, held.benchmarks),
    )


def rank_correlation(first: FloatArray, second: FloatArray) -> float | None:
    """Return Spearman's rank correlation of pairs without a NaN; None where one of the two does not vary.

    References
    ----------
    Spearman (1904), Am. J. Psychol. 15, 72-101, doi:10.2307/1412159.

    Examples
    --------
    >>> rank_correlation(np.array([1.0, 2.0, 5.0]), np.array([3.0, 4.0, 9.0]))
    1.0
    """
    from scipy.stats import rankdata  # noqa: PLC0415 - scipy.stats takes long to import

    both = ~np.isnan(first) & ~np.isnan(second)
    one, other = rankdata(first[both]), rankdata(second[both])
    return round(float(np.corrcoef(one, other)[0, 1]), 15) if np.ptp(one) > 0 and np.ptp(other) > 0 else None


def _share(inside: NDArray[np.bool_], chosen: NDArray[np.bool_]) -> float | None:
    return float(inside[chosen].mean()) if chosen.any() else None


def _low(inside: NDArray[np.bool_], groups: NDArray[np.int64]) -> int:
    return sum(float(inside[groups == group].mean()) < LOW_COVERAGE for group in np.unique(groups))
