"""How likely is a paired difference to clear its limit, and how many questions make that likely enough?

Model: each question is discordant with probability ``discordance`` (exactly one model correct), independently, and the first model's
accuracy is ``difference`` above the second's. Power is summed exactly over the tables that pass, so it is that of the test that is run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from evalspec.statistics.arguments import FloatArray, IntArray, bisect, require_count, require_fraction
from evalspec.statistics.binomials import cumulative, masses
from evalspec.statistics.one_sided import LimitTest, passing
from evalspec.statistics.paired_power import MOST_QUESTIONS, DetectableDifference, QuestionsNeeded
from evalspec.statistics.rejections import likely_discordant
from evalspec.statistics.sample_sizes import nam_questions, require_setting

CHECKED_AFTER = 8
"""After the first number of questions that reaches the power, so many more are looked at for a drop below it."""

SMOOTH = 100.0
"""Variance of the number of discordant questions above which power hardly jumps; below it, one more discordant question makes a long tooth."""


@dataclass(frozen=True, slots=True)
class LimitTable:
    """Fewest wins of the first model that pass, at each likely number of discordant questions; one more than it where none do."""

    discordant: IntArray
    wins: IntArray
    weights: FloatArray
    discordance: float
    both: bool

    @classmethod
    def of(cls, test: LimitTest, questions: int, discordance: float) -> LimitTable:
        """Tabulate a test at every number of discordant questions that is likely enough to matter.

        Raises
        ------
        ValueError
            Without a question.

        References
        ----------
        As `limit_power`.

        Examples
        --------
        >>> table = LimitTable.of(LimitTest(0.0, method="exact"), 20, 0.5)
        >>> dict(zip(table.discordant.tolist(), table.wins.tolist(), strict=True))[10]
        9
        """
        first, last = likely_discordant(require_count("questions", questions, minimum=1), discordance)
        m = np.arange(first, last + 1, dtype=np.int64)
        one_by_one = test.method == "exact" and test.limit
        wins = _wins_one_by_one(test, questions, m) if one_by_one else _wins_by_halving(test, questions, m)
        return cls(m, wins, masses(m, questions, discordance), discordance, test.both)

    def power(self, difference: float) -> float:
        """Probability of passing at this true difference.

        References
        ----------
        As `limit_power`.

        Examples
        --------
        >>> round(LimitTable.of(LimitTest(-0.05), 644, 0.2).power(0.0), 3)
        0.804
        """
        losing = max(0.0, 0.5 * (1.0 - difference / self.discordance))
        # At most so many losses as leave the wins that are needed.
        spare = self.discordant - self.wins
        passes = _at_most(spare, self.discordant, losing)
        if self.both:
            # Seen from the other model its wins must suffice too.
            passes = np.maximum(passes - _at_most(self.wins - 1, self.discordant, losing), 0.0)
        return min(1.0, float(self.weights @ passes))


def _passes(test: LimitTest, questions: int, wins: IntArray, discordant: IntArray) -> NDArray[np.bool_]:
    return passing(wins, discordant - wins, questions, test)


def _wins_by_halving(test: LimitTest, questions: int, discordant: IntArray) -> IntArray:
    """Halve at every eighth number first: one more discordant question asks for at most one more win, which brackets those between."""
    anchors = _halved(test, questions, discordant[::8], np.full(discordant[::8].shape, -1, dtype=np.int64), discordant[::8] + 1)
    before, beyond = np.repeat(anchors, 8)[: discordant.size], np.arange(discordant.size) % 8
    return _halved(test, questions, discordant, before - 1, before + beyond)


def _halved(test: LimitTest, questions: int, discordant: IntArray, low: IntArray, high: IntArray) -> IntArray:
    """Close in on the fewest wins that pass, from a number that fails and one that passes or exceeds all."""
    while np.any(high - low > 1):
        middle = (low + high) // 2
        # -1 wins, which only ever stand for "fewer than any", pass nothing.
        passed = _passes(test, questions, np.clip(middle, 0, discordant), discordant) & (middle >= 0)
        low, high = np.where(passed | (middle > discordant), (low, middle), (middle, high))
    return np.asarray(high)


def _wins_one_by_one(test: LimitTest, questions: int, discordant: IntArray) -> IntArray:
    """Use that one more discordant question asks for at most one more win, where a single table is slow to test."""
    wins = _wins_by_halving(test, questions, discordant[:1])
    for m in discordant[1:]:
        same = wins[-1:]
        enough = same[0] <= m and _passes(test, questions, same, np.array([m]))[0]
        wins = np.append(wins, same if enough else same + 1)
    return wins


def _at_most(losses: IntArray, discordant: IntArray, losing: float) -> FloatArray:
    return np.where(losses < 0, 0.0, 1.0) if losing == 0.0 else cumulative(losses, discordant, losing)


def limit_power(questions: int, discordance: float, difference: float, test: LimitTest) -> float:
    """Probability that the test passes: that it shows the difference above its limit.

    Parameters
    ----------
    questions
        Number of paired questions, at least 1.
    discordance, difference
        The model above; at ``difference`` equal to the limit this is the true size of the test.
    test
        The test that will be run.

    Raises
    ------
    ValueError
        For an impossible combination, such as a difference above the discordance.

    References
    ----------
    Tango (1998), Stat. Med. 17, 891-908; the sum over tables as Duffy (1984), Biometrics 40, 1005-1015.

    Examples
    --------
    >>> round(limit_power(644, 0.2, 0.0, LimitTest(-0.05)), 3)
    0.804
    """
    require_setting(discordance, difference)
    return LimitTable.of(test, questions, discordance).power(difference)


def limit_questions(discordance: float, difference: float, test: LimitTest, *, power: float = 0.8) -> QuestionsNeeded:
    """Find the number of questions from which `limit_power` is at least ``power``.

    Power is a sawtooth in the number of questions: after the first number that reaches it, as many more are looked at as a tooth is long.

    Raises
    ------
    ValueError
        When the true difference does not exceed the limit, or more than ``MOST_QUESTIONS`` would be needed.

    References
    ----------
    As `limit_power`; the search starts from Nam (1997), Biometrics 53, 1422-1430, doi:10.2307/2533508.

    Examples
    --------
    >>> limit_questions(0.2, 0.0, LimitTest(-0.05)).questions
    639
    """
    require_setting(discordance, difference)
    if difference <= test.limit or (test.both and difference >= -test.limit):
        between = f"between {test.limit:g} and {-test.limit:g}" if test.both else f"above {test.limit:g}"
        raise ValueError(f"no number of questions shows a difference of {difference:g} to lie {between}")
    # With two limits, half of the failures are on each side where the truth lies midway.
    start = nam_questions(discordance, -abs(difference) if test.both else difference, test.limit, power=power, alpha=test.alpha)
    if start > MOST_QUESTIONS:
        raise ValueError(f"a true difference of {difference:g} would need about {start:.3g} questions to clear {test.limit:g}")

    def reached(questions: int) -> float:
        return limit_power(questions, discordance, difference, test)

    needed = _first_reaching(reached, power, max(1, int(start)))
    ahead = CHECKED_AFTER
    if needed * discordance * (1.0 - discordance) < SMOOTH:
        # A lost question weighs as much as 1 / margin agreeing ones bring.
        ahead += math.ceil(1.0 / (min(difference, -difference if test.both else difference) - test.limit))
    later = [questions for questions in range(needed + 1, needed + ahead + 1) if reached(questions) < power]
    needed = max(later, default=needed - 1) + 1
    return QuestionsNeeded(needed, reached(needed))


def limit_detectable(questions: int, discordance: float, test: LimitTest, *, power: float = 0.8) -> DetectableDifference:
    """Find the smallest true difference that clears the limit with at least the wanted power; ``None`` when none does.

    Raises
    ------
    ValueError
        For impossible arguments.

    References
    ----------
    As `limit_power`.

    Examples
    --------
    >>> round(limit_detectable(644, 0.2, LimitTest(-0.05)).difference, 5)
    -0.00026
    """
    require_setting(discordance, 0.0)
    table = LimitTable.of(test, questions, discordance)
    most = table.power(discordance)
    if most < require_fraction("power", power):
        reason = (
            f"{questions} question(s) at a discordance of {discordance:g} clear the limit {test.limit:g} with a probability of {most:.3f} "
            f"at most; {power:g} was asked for"
        )
        return DetectableDifference(None, most, reason)
    low = max(test.limit, -discordance)
    # Half a step above the crossing, so that the power is reached and not only approached.
    found = bisect(lambda difference: table.power(difference) - power, low, discordance, tolerance=1e-9) + 1e-9
    return DetectableDifference(min(found, discordance), table.power(min(found, discordance)))


def _first_reaching(power_at: Callable[[int], float], wanted: float, start: int) -> int:
    """Smallest number that reaches the power, as if power only rose; probits are almost linear in the square root of the number."""
    low, high, guess, step = 0, 0, start, 0
    slope = 0.0
    while not high or high - low > 1:
        step += 1
        reached = power_at(guess)
        low, high = (low, guess) if reached >= wanted else (guess, high)
        probit = float(ndtri(min(max(reached, 1e-9), 1.0 - 1e-9)))
        slope = slope or max((ndtri(wanted) + 2.0) / math.sqrt(start), 1e-6)
        jump = int((math.sqrt(guess) + (float(ndtri(wanted)) - probit) / slope) ** 2)
        if step % 3 == 0:
            jump = (low + high) // 2 if high else 2 * low
        guess = max(low + 1, min(jump, high - 1)) if high else max(low + 1, jump)
    return high
