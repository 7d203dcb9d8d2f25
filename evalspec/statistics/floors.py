"""How likely is a share to clear a floor, and how many questions make that likely enough?

Model: each question is answered correctly with the same probability, independently. A floor is cleared when the lower bound of an interval
lies at or above it. A ceiling is a floor for the share of wrong answers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, ndtri

from evalspec.statistics.arguments import FloatArray, IntArray, require_count, require_fraction, require_one_sided
from evalspec.statistics.paired_power import MOST_QUESTIONS, QuestionsNeeded
from evalspec.statistics.proportions import ProportionMethod


@dataclass(frozen=True, slots=True)
class Floor:
    """A floor, the interval whose lower bound must clear it, and the share of errors of that bound on its one side."""

    limit: float
    alpha: float = 0.025
    method: ProportionMethod = "wilson"

    def __post_init__(self) -> None:
        require_fraction("limit", self.limit)
        require_one_sided(self.alpha)

    def successes_needed(self, questions: IntArray) -> IntArray:
        """Fewest right answers of so many questions that clear the floor; one more than there are questions where none do.

        References
        ----------
        As the interval of that bound in `evalspec.statistics.proportions`.

        Examples
        --------
        >>> Floor(0.7, method="clopper_pearson").successes_needed(np.array([5, 100]))
        array([ 6, 80])
        """
        low, high = np.zeros_like(questions), questions + 1
        while np.any(high - low > 1):
            middle = (low + high) // 2
            cleared = self._cleared(middle, questions)
            low, high = np.where(cleared, (low, middle), (middle, high))
        return np.asarray(high)

    def power(self, questions: IntArray, truth: float) -> FloatArray:
        """Probability of clearing the floor when each answer is right with probability ``truth``.

        References
        ----------
        NIST Digital Library of Mathematical Functions, 8.17.5: a binomial tail is an incomplete beta function.

        Examples
        --------
        >>> Floor(0.7).power(np.array([100, 1000]), 0.75).round(3)
        array([0.211, 0.941])
        """
        needed = self.successes_needed(questions)
        possible = needed <= questions
        tail = betainc(np.where(possible, needed, 1), np.where(possible, questions - needed + 1.0, 1.0), truth)
        return np.asarray(np.where(possible, tail, 0.0))

    def _cleared(self, successes: IntArray, questions: IntArray) -> NDArray[np.bool_]:
        """Whether at least one right answer and so many more clear the floor: the test that the bound inverts rejects a truth at the floor."""
        k, n = successes.astype(np.float64), questions.astype(np.float64)
        if self.method == "wilson":
            return np.asarray(k / n - self.limit >= -ndtri(self.alpha) * np.sqrt(self.limit * (1.0 - self.limit) / n))
        if self.method == "jeffreys":
            return np.asarray(betainc(k + 0.5, n - k + 0.5, self.limit) <= self.alpha)
        return np.asarray(betainc(k, n - k + 1.0, self.limit) <= self.alpha)


def floor_truth_needed(questions: int, floor: Floor, *, power: float = 0.8) -> float | None:
    """Smallest true share that clears the floor with this probability; ``None`` when even all right answers do not clear it.

    Raises
    ------
    ValueError
        Without a question, or for an impossible power.

    References
    ----------
    As `Floor.power`, inverted in the true share.

    Examples
    --------
    >>> round(floor_truth_needed(1000, Floor(0.7)), 4)
    0.7401
    >>> floor_truth_needed(5, Floor(0.7, method="clopper_pearson")) is None
    True
    """
    n = require_count("questions", questions, minimum=1)
    needed = int(floor.successes_needed(np.array([n]))[0])
    return None if needed > n else float(betaincinv(needed, n - needed + 1.0, require_fraction("power", power)))


def floor_questions(truth: float, floor: Floor, *, power: float = 0.8) -> QuestionsNeeded:
    """Find the number of questions from which the floor is cleared with at least this probability.

    The probability is a sawtooth in the number of questions; the last number below the target is looked for as far as the normal
    approximation leaves it in doubt.

    Raises
    ------
    ValueError
        When the true share does not exceed the floor, or more than ``MOST_QUESTIONS`` would be needed.

    References
    ----------
    Brown, Cai and DasGupta (2001), Stat. Sci. 16, 101-133, doi:10.1214/ss/1009213286 (coverage oscillates in the number of trials).

    Examples
    --------
    >>> floor_questions(0.75, Floor(0.7)).questions
    654
    """
    require_fraction("truth", truth)
    if truth <= floor.limit:
        raise ValueError(f"no number of questions shows a true share of {truth:g} to lie above {floor.limit:g}")
    root = -ndtri(floor.alpha) * math.sqrt(floor.limit * (1.0 - floor.limit)) + ndtri(require_fraction("power", power)) * math.sqrt(
        truth * (1.0 - truth)
    )
    start = (root / (truth - floor.limit)) ** 2
    if start > MOST_QUESTIONS:
        raise ValueError(f"a true share of {truth:g} would need about {start:.3g} questions to clear {floor.limit:g}")
    # One answer more or less moves the power by its probability: the teeth reach as far as two answers do, and skewness a little further.
    reach = int(4.0 / (truth - floor.limit)) + 30
    around = np.arange(max(1, int(start) - reach), int(start) + reach)
    below = around[floor.power(around, truth) < power]
    needed = int(max(below, default=around[0] - 1)) + 1
    return QuestionsNeeded(needed, float(floor.power(np.array([needed]), truth)[0]))
