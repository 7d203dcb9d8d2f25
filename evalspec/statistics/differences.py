"""By how much do two models differ on the same questions, and between which limits?

Assumption of every function here: questions are independent draws, and both models answered each of them. Differences are
first minus second, as proportions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike

from evalspec.statistics.arguments import IntArray, bisect, require_binary, require_count, two_sided_z
from evalspec.statistics.proportions import Interval, wilson
from evalspec.statistics.restricted_shares import restricted_only_second

EDGE = 1.0 - 1e-9
"""Limits are looked for between -EDGE and EDGE: nearer to 1 the variance under the null hypothesis drowns in rounding."""


@dataclass(frozen=True, slots=True)
class PairedCounts:
    """How many questions both models answered correctly, only the first, only the second, or neither."""

    both: int
    only_first: int
    only_second: int
    neither: int

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, require_count(field.name, getattr(self, field.name)))
        if self.questions == 0:
            raise ValueError("a comparison needs at least 1 question; all four counts are 0")

    @classmethod
    def from_scores(cls, first: ArrayLike, second: ArrayLike) -> PairedCounts:
        """Count the four cells from two aligned arrays of 0/1 scores.

        Parameters
        ----------
        first, second
            Scores of shape (Q,), question by question in the same order.

        Raises
        ------
        ValueError
            When shapes differ, or a score is missing or fractional: decide about missing answers before, and compare fractional
            scores by their means.

        Examples
        --------
        >>> PairedCounts.from_scores([1, 1, 0, 0], [1, 0, 0, 0])
        PairedCounts(both=1, only_first=1, only_second=0, neither=2)
        """
        a, b = require_binary("first", first), require_binary("second", second)
        if a.ndim != 1 or a.shape != b.shape:
            raise ValueError(f"first and second must be one-dimensional and of one length; got {a.shape} and {b.shape}")
        cells = (a & b, a & ~b, ~a & b, ~a & ~b)
        return cls(*(int(np.count_nonzero(cell)) for cell in cells))

    @property
    def questions(self) -> int:
        """Number of questions compared."""
        return self.both + self.only_first + self.only_second + self.neither

    @property
    def discordant(self) -> int:
        """Number of questions that exactly one model answered correctly."""
        return self.only_first + self.only_second

    @property
    def discordance(self) -> float:
        """Share of questions that exactly one model answered correctly."""
        return self.discordant / self.questions

    @property
    def first_correct(self) -> int:
        """Number of questions that the first model answered correctly."""
        return self.both + self.only_first

    @property
    def second_correct(self) -> int:
        """Number of questions that the second model answered correctly."""
        return self.both + self.only_second

    def swapped(self) -> PairedCounts:
        """Give the same comparison with the models in the other order.

        Examples
        --------
        >>> PairedCounts(4, 3, 2, 1).swapped()
        PairedCounts(both=4, only_first=2, only_second=3, neither=1)
        """
        return PairedCounts(self.both, self.only_second, self.only_first, self.neither)


def only_first_matrix(scores: ArrayLike) -> IntArray:
    """Count, for every ordered pair of models, the questions that the first answered correctly and the second did not.

    Parameters
    ----------
    scores
        0/1 scores of shape (M, Q).

    Returns
    -------
    ndarray
        Shape (M, M); entry (i, j) is the count of "only i" in the pair (i, j), entry (j, i) that of "only j".

    Raises
    ------
    ValueError
        When the array is not two-dimensional or a score is missing or fractional.

    Examples
    --------
    >>> only_first_matrix([[1, 1, 0], [0, 1, 1]])
    array([[0, 1],
           [1, 0]])
    """
    correct = require_binary("scores", scores)
    if correct.ndim != 2:
        raise ValueError(f"scores must be (models, questions); got shape {correct.shape}")
    # float64 products of 0/1 are exact below 2**53 and use the fast matrix product.
    right = correct.astype(np.float64)
    return np.rint(right @ (1.0 - right).T).astype(np.int64)


def paired_difference(counts: PairedCounts) -> float:
    """Accuracy of the first model minus that of the second.

    Examples
    --------
    >>> paired_difference(PairedCounts(1217, 219, 182, 382))
    0.0185
    """
    return (counts.only_first - counts.only_second) / counts.questions


def tango_statistic(counts: PairedCounts, null_difference: float) -> float:
    """Tango's score statistic for H0: the difference equals ``null_difference``.

    Parameters
    ----------
    counts
        The paired 2x2 table.
    null_difference
        Difference under the null hypothesis, strictly between -1 and 1.

    Returns
    -------
    float
        Standard normal under H0 in large samples; its square at 0 is McNemar's chi-square. 0 where the models never disagree and
        ``null_difference`` is 0; infinite where H0 cannot have given the counts.

    Raises
    ------
    ValueError
        When ``null_difference`` is not strictly between -1 and 1.

    References
    ----------
    Tango (1998), Stat. Med. 17, 891-908, doi:10.1002/(SICI)1097-0258(19980430)17:8<891::AID-SIM780>3.0.CO;2-B.

    Examples
    --------
    >>> round(tango_statistic(PairedCounts(1217, 219, 182, 382), 0.0) ** 2, 4)
    3.414
    """
    if not -1.0 < null_difference < 1.0:
        raise ValueError(f"null_difference must lie strictly between -1 and 1; got {null_difference!r}")
    n, delta = counts.questions, null_difference
    only_second = restricted_only_second(counts.only_first / n, counts.only_second / n, delta)
    variance = n * (2.0 * only_second + delta * (1.0 - delta))
    excess = counts.only_first - counts.only_second - n * delta
    if variance > 0.0:
        return excess / math.sqrt(variance)
    return 0.0 if excess == 0.0 else math.copysign(math.inf, excess)


def tango(counts: PairedCounts, *, level: float = 0.95) -> Interval:
    """Tango's score interval of a paired difference: the default for two models on the same 0/1 questions.

    Parameters
    ----------
    counts
        The paired 2x2 table.
    level
        Two-sided confidence level, in (0, 1).

    Returns
    -------
    Interval
        The differences that `tango_statistic` does not reject; informative also when the models never disagree.

    Raises
    ------
    ValueError
        For an impossible level.

    References
    ----------
    Tango (1998), Stat. Med. 17, 891-908. Fagerland, Lydersen and Laake (2014), Stat. Med. 33, 2850-2875, doi:10.1002/sim.6148.

    Examples
    --------
    >>> interval = tango(PairedCounts(1217, 219, 182, 382))
    >>> round(interval.low, 6), round(interval.high, 6)
    (-0.001128, 0.038198)
    """
    z = two_sided_z(level)
    estimate = paired_difference(counts)
    # The statistic falls through 0 at the estimate as the null difference rises from -1 to 1.
    inner = min(max(estimate, -EDGE), EDGE)
    low = -1.0 if estimate <= -EDGE else bisect(lambda delta: tango_statistic(counts, delta) - z, -EDGE, inner)
    high = 1.0 if estimate >= EDGE else bisect(lambda delta: tango_statistic(counts, delta) + z, inner, EDGE)
    return Interval(low, high)


def newcombe_paired(counts: PairedCounts, *, level: float = 0.95) -> Interval:
    """Newcombe's hybrid score interval of a paired difference (his method 10): closed form, close to Tango's.

    Parameters
    ----------
    counts
        The paired 2x2 table.
    level
        Two-sided confidence level, in (0, 1).

    Raises
    ------
    ValueError
        For an impossible level.

    References
    ----------
    Newcombe (1998), Stat. Med. 17, 2635-2650, doi:10.1002/(SICI)1097-0258(19981130)17:22<2635::AID-SIM954>3.0.CO;2-C.

    Examples
    --------
    >>> interval = newcombe_paired(PairedCounts(1217, 219, 182, 382))
    >>> round(interval.low, 6), round(interval.high, 6)
    (-0.001135, 0.038123)
    """
    n, estimate = counts.questions, paired_difference(counts)
    first, second = counts.first_correct, counts.second_correct
    limits_first, limits_second = wilson(first, n, level=level), wilson(second, n, level=level)
    phi = _corrected_phi(counts)
    p1, p2 = first / n, second / n
    below = _hypotenuse(p1 - limits_first.low, limits_second.high - p2, phi)
    above = _hypotenuse(limits_first.high - p1, p2 - limits_second.low, phi)
    return Interval(max(-1.0, estimate - below), min(1.0, estimate + above))


def _corrected_phi(counts: PairedCounts) -> float:
    """Phi coefficient with Newcombe's continuity correction, which only ever weakens a positive association."""
    n = counts.questions
    margins = counts.first_correct * counts.second_correct * (n - counts.first_correct) * (n - counts.second_correct)
    if margins == 0:
        return 0.0
    determinant = counts.both * counts.neither - counts.only_first * counts.only_second
    corrected = max(determinant - n / 2.0, 0.0) if determinant > 0 else float(determinant)
    return corrected / math.sqrt(margins)


def _hypotenuse(first: float, second: float, correlation: float) -> float:
    return math.sqrt(max(first * first - 2.0 * correlation * first * second + second * second, 0.0))
