"""From which gap on does a small sample of questions rank two models the right way round?

The minimum detectable ability difference (MDAD) is the smallest gap, on a reference set of questions, at which a sample agrees with the
reference in a wanted share of pairs of models. It is a statement about rankings, not about tests: a gap that is ranked the right way round in
80 % of pairs need not be detected by any test. Assumption: pairs of models are alike but for their gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalspec.statistics.arguments import FloatArray, IntArray, as_floats, require_fraction
from evalspec.statistics.isotonic import isotonic, rising_crossings

Ties = Literal["wrong", "half"]

LEVEL_TOLERANCE = 1e-9
"""Estimates closer than this are the same number, added up in another order."""


@dataclass(frozen=True, slots=True)
class Bins:
    """How gaps are grouped: ``width`` in hundredths of a point; from its left edge on, or ``centred`` on multiples of the width."""

    width: int = 50
    centred: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.width <= 10_000:
            raise ValueError(f"width must lie between 1 and 10,000 hundredths of a point; got {self.width}")

    def places(self, gaps: IntArray, units: int) -> IntArray:
        """Return the bin of each gap, whole multiples of ``1 / units``: in whole numbers, so that no gap slips into the bin below.

        Examples
        --------
        >>> Bins().places(np.array([0, 29, 30, 57]), 200).tolist()
        [0, 29, 30, 57]
        """
        if self.centred:
            return (20_000 * gaps + units * self.width) // (2 * units * self.width)
        return (10_000 * gaps) // (units * self.width)

    def gaps(self, count: int) -> FloatArray:
        """Return the gap that stands for each of the first bins, as a proportion: its left edge, or its centre."""
        return np.arange(count) * self.width / 10_000


@dataclass(frozen=True, slots=True, eq=False)
class AgreementCurve:
    """How often a sample ranks pairs as the reference does, by gap and trial.

    Attributes
    ----------
    gaps
        Shape (B,): the gap that stands for each bin.
    pairs
        Shape (T, B): pairs of each trial whose gap on the reference falls into each bin.
    right
        Shape (T, B): how many of them the sample ranks as the reference does; a pair that counts half adds 0.5.
    """

    gaps: FloatArray
    pairs: FloatArray
    right: FloatArray

    @property
    def agreement(self) -> float:
        """Share of all pairs of all trials that are ranked as on the reference."""
        return float(self.right.sum() / self.pairs.sum())

    def of_bins(self) -> FloatArray:
        """Return the agreement of each bin, NaN where it is empty, shape (B,)."""
        pairs = self.pairs.sum(axis=0)
        return np.asarray(np.divide(self.right.sum(axis=0), pairs, out=np.full(pairs.size, np.nan), where=pairs > 0))

    def rising(self) -> FloatArray:
        """Return the isotonic fit to the agreement, NaN where a bin is empty, shape (B,)."""
        pairs, fitted = self.pairs.sum(axis=0), np.full(self.gaps.size, np.nan)
        held = pairs > 0
        fitted[held] = isotonic(self.of_bins()[held], pairs[held])
        return fitted


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where a curve reaches its level: the gap, the agreement there, and the pairs and trials that it rests on; ``None`` when it never does."""

    gap: float | None
    agreement: float | None = None
    pairs: int = 0
    trials: int = 0


NOT_REACHED = Crossing(None)


class Reference:
    """The models of every trial, ranked by their scores on a reference set of questions.

    Parameters
    ----------
    totals
        Shape (T, K): the score of each model of each trial on the reference, as a whole multiple of ``1 / units``.
    units
        What a perfect score comes to.
    bins
        How gaps are grouped.

    Raises
    ------
    ValueError
        When a trial has fewer than two models, or a total is no possible score.

    References
    ----------
    Yauney, Warraich and Swayamdipta (2026), ICLR, arXiv:2510.08730.

    Examples
    --------
    >>> reference = Reference(np.array([[8, 5, 5]]), 10)
    >>> float(reference.curve([[0.9, 0.5, 0.4]]).right.sum())  # two pairs in order; the pair that is level counts half
    2.5
    """

    def __init__(self, totals: IntArray, units: int, bins: Bins | None = None) -> None:
        if totals.ndim != 2 or totals.shape[1] < 2:
            raise ValueError(f"totals must be (trials, models), at least 2 models; got shape {totals.shape}")
        if totals.min() < 0 or totals.max() > units:
            raise ValueError(f"totals must lie between 0 and {units}; got {totals.min()} to {totals.max()}")
        self.order = np.argsort(-totals, axis=1, kind="stable")
        self.first, self.second = np.triu_indices(totals.shape[1], 1)
        ranked = np.take_along_axis(totals, self.order, axis=1)
        gaps = ranked[:, self.first] - ranked[:, self.second]
        grouping = bins or Bins()
        self.places = grouping.places(gaps, units)
        self.gaps = grouping.gaps(int(self.places.max()) + 1)
        self.level = np.flatnonzero(gaps == 0)
        self._cells = (self.places + np.arange(len(totals))[:, None] * self.gaps.size).ravel()
        self._pairs = np.bincount(self._cells, minlength=len(totals) * self.gaps.size).reshape(len(totals), -1).astype(np.float64)

    def outcomes(self, estimates: ArrayLike, ties: Ties = "wrong") -> NDArray[np.float32]:
        """Return what each pair counts, (T, P): 1 where estimates of shape (T, K) rank it as the reference does, 0 or 0.5 where they tie.

        A pair that is level on the reference has no right order: it counts half, however it comes out, and as a tie where it ties.
        """
        first, second = self._sides(estimates)
        counts = (first > second + LEVEL_TOLERANCE).astype(np.float32)
        if ties == "half":
            counts[np.abs(first - second) <= LEVEL_TOLERANCE] = 0.5
        if self.level.size:
            tied = np.abs(first.flat[self.level] - second.flat[self.level]) <= LEVEL_TOLERANCE
            counts.flat[self.level] = np.where(tied & (ties == "wrong"), 0.0, 0.5)
        return counts

    def curve(self, estimates: ArrayLike, ties: Ties = "wrong") -> AgreementCurve:
        """Return the agreement curve of a sample's estimates, shape (T, K)."""
        return self.curve_of(self.outcomes(estimates, ties))

    def curve_of(self, outcomes: NDArray[np.float32]) -> AgreementCurve:
        """Return the agreement curve of what each pair counts."""
        right = np.bincount(self._cells, outcomes.ravel(), minlength=self._pairs.size).astype(np.float64)
        return AgreementCurve(self.gaps, self._pairs, right.reshape(self._pairs.shape))

    def rank_correlation(self, estimates: ArrayLike) -> float | None:
        """Return the mean over trials of Kendall's tau-b between estimates and reference; ``None`` where a trial has none.

        References
        ----------
        Kendall (1945), Biometrika 33, 239-251 (ties).
        """
        first, second = self._sides(estimates)
        ahead, behind = first > second + LEVEL_TOLERANCE, second > first + LEVEL_TOLERANCE
        untied = ahead.sum(axis=1) + behind.sum(axis=1)
        ahead.flat[self.level] = behind.flat[self.level] = False
        unlevel = self.first.size - np.bincount(self.level // self.first.size, minlength=len(first))
        if not (untied.all() and unlevel.all()):
            return None
        return float(np.mean((ahead.sum(axis=1) - behind.sum(axis=1)) / np.sqrt(untied * unlevel)))

    def _sides(self, estimates: ArrayLike) -> tuple[FloatArray, FloatArray]:
        ranked = np.take_along_axis(as_floats("estimates", estimates), self.order, axis=1)
        return ranked[:, self.first], ranked[:, self.second]


def first_crossing(curve: AgreementCurve, *, level: float = 0.8, min_pairs: int = 30) -> Crossing:
    """Find the smallest gap whose bin reaches ``level``: MDAD as published, but for the least number of pairs and for "not reached".

    Later bins may fall below the level again, so noise draws it down; `rising_crossing` stands beside it for that.

    Raises
    ------
    ValueError
        When the level is impossible.

    References
    ----------
    Yauney, Warraich and Swayamdipta (2026), ICLR, arXiv:2510.08730.

    Examples
    --------
    >>> curve = AgreementCurve(np.array([0.0, 0.005, 0.01]), np.array([[40.0, 40, 40]]), np.array([[20.0, 33, 30]]))
    >>> first_crossing(curve).gap
    0.005
    """
    require_fraction("level", level)
    pairs, agreement = curve.pairs.sum(axis=0), curve.of_bins()
    reached = np.flatnonzero((pairs >= max(1, min_pairs)) & (agreement >= level))
    if not reached.size:
        return NOT_REACHED
    place = int(reached[0])
    return Crossing(float(curve.gaps[place]), float(agreement[place]), int(pairs[place]), int(np.sum(curve.pairs[:, place] > 0)))


def rising_crossing(curve: AgreementCurve, *, level: float = 0.8, min_pairs: int = 30) -> Crossing:
    """Find the smallest gap at which the isotonic fit reaches ``level``, with at least ``min_pairs`` pairs there and beyond.

    ``pairs`` and ``trials`` count those of the pooled bins that decide.

    Raises
    ------
    ValueError
        When the level is impossible.

    References
    ----------
    Ayer, Brunk, Ewing, Reid and Silverman (1955), Ann. Math. Stat. 26, 641-647, doi:10.1214/aoms/1177728423.

    Examples
    --------
    >>> curve = AgreementCurve(np.array([0.0, 0.005, 0.01]), np.array([[40.0, 40, 40]]), np.array([[20.0, 33, 30]]))
    >>> rising_crossing(curve).gap is None
    True
    """
    require_fraction("level", level)
    pairs = curve.pairs.sum(axis=0)
    place = int(supported_crossings(curve.right.sum(axis=0), pairs, level=level, min_pairs=min_pairs))
    if place == pairs.size:
        return NOT_REACHED
    fitted = curve.rising()
    block = np.abs(fitted - fitted[place]) <= LEVEL_TOLERANCE
    trials = int(np.sum(curve.pairs[:, block].sum(axis=1) > 0))
    return Crossing(float(curve.gaps[place]), float(fitted[place]), int(pairs[block].sum()), trials)


def supported_crossings(right: FloatArray, pairs: FloatArray, *, level: float, min_pairs: float) -> IntArray:
    """Find the bin in which each isotonic fit reaches ``level``, along the last axis; the number of bins where too few pairs lie there and beyond.

    Examples
    --------
    >>> supported_crossings(np.array([[20.0, 36, 8]]), np.array([[40.0, 40, 10]]), level=0.8, min_pairs=30).tolist()
    [1]
    """
    places = rising_crossings(right, pairs, level)
    beyond = np.cumsum(pairs[..., ::-1], axis=-1)[..., ::-1]
    support = np.take_along_axis(beyond, np.minimum(places, pairs.shape[-1] - 1)[..., None], axis=-1)[..., 0]
    return np.where(support >= max(1, min_pairs), places, pairs.shape[-1])
