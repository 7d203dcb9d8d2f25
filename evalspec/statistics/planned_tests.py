"""What can a paired test show that will be run once the answers are there: with which power, from how many questions, from which difference?

One face for McNemar's tests, which decide whether two models differ, and for one-sided tests against a limit.

Model: as `evalspec.statistics.paired_power`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from evalspec.statistics.mcnemar import Variant
from evalspec.statistics.one_sided import LimitTest, Method
from evalspec.statistics.one_sided_power import limit_detectable, limit_power, limit_questions
from evalspec.statistics.paired_power import DetectableDifference, QuestionsNeeded, detectable_difference, exact_power_favoured, questions_needed

TestName = Literal["exact", "mid_p", "score", "fay_lumbard", "e_value"]
METHODS: dict[str, Method] = {"score": "score", "fay_lumbard": "exact", "e_value": "e_value"}
VARIANTS: dict[str, Variant] = {"exact": "exact", "mid_p": "mid_p"}


@dataclass(frozen=True, slots=True)
class PlannedTest:
    """A test of whether the difference, first minus second, lies above ``limit``, one-sided at ``alpha``.

    `exact` and `mid_p` are McNemar's, whose limit is 0; two-sided they have twice the alpha. With ``both`` the difference must also lie
    below the opposite limit.
    """

    test: TestName
    alpha: float
    limit: float = 0.0
    both: bool = False

    def __post_init__(self) -> None:
        if self.test not in get_args(TestName):
            raise ValueError(f"test must be one of {', '.join(get_args(TestName))}; got {self.test!r}")
        if self.test in VARIANTS and (self.limit or self.both):
            raise ValueError(f"McNemar's tests are against a difference of 0; got the limit {self.limit:g}")

    def power(self, questions: int, discordance: float, difference: float) -> float:
        """Probability of showing the difference above the limit when it truly is ``difference``.

        Raises
        ------
        ValueError
            For an impossible combination.

        References
        ----------
        As `exact_power_favoured` and `limit_power`.

        Examples
        --------
        >>> round(PlannedTest("exact", 0.025).power(200, 0.2, 0.05), 4)
        0.2982
        >>> round(PlannedTest("score", 0.025, -0.05).power(644, 0.2, 0.0), 4)
        0.8041
        """
        if self.test not in VARIANTS:
            return limit_power(questions, discordance, difference, self._limit_test)
        if difference <= 0.0:
            raise ValueError(f"the power of showing a gain needs a true gain; got {difference!r}")
        return exact_power_favoured(questions, discordance, difference, alpha=2.0 * self.alpha, test=VARIANTS[self.test])

    def questions(self, discordance: float, difference: float, *, power: float = 0.8) -> QuestionsNeeded:
        """Number of questions from which the power stays at or above its target.

        Raises
        ------
        ValueError
            When no number of questions does, or too many are needed.

        References
        ----------
        As `questions_needed` and `limit_questions`.

        Examples
        --------
        >>> PlannedTest("mid_p", 0.025).questions(0.2, 0.05).questions
        622
        """
        if self.test not in VARIANTS:
            return limit_questions(discordance, difference, self._limit_test, power=power)
        if difference <= 0.0:
            raise ValueError(f"no number of questions shows a difference of {difference:g} to lie above 0")
        return questions_needed(discordance, difference, power=power, alpha=2.0 * self.alpha, test=VARIANTS[self.test])

    def detectable(self, questions: int, discordance: float, *, power: float = 0.8) -> DetectableDifference:
        """Smallest true difference that is shown to lie above the limit with this power; ``None`` where none is.

        Raises
        ------
        ValueError
            For impossible arguments, and with two limits, where there is no smallest one.

        References
        ----------
        As `detectable_difference` and `limit_detectable`.

        Examples
        --------
        >>> round(PlannedTest("exact", 0.025).detectable(2000, 0.2).difference, 4)
        0.0284
        """
        if self.both:
            raise ValueError("between two limits there is no smallest difference")
        if self.test not in VARIANTS:
            return limit_detectable(questions, discordance, self._limit_test, power=power)
        return detectable_difference(questions, discordance, power=power, alpha=2.0 * self.alpha, test=VARIANTS[self.test])

    @property
    def _limit_test(self) -> LimitTest:
        return LimitTest(self.limit, self.alpha, METHODS[self.test], self.both)
