"""Which difference can n paired questions detect, and how many questions does a difference need?

Model: each question is discordant with probability ``discordance`` (exactly one model correct), independently, and the first
model's accuracy is ``difference`` above the second's, so ``|difference| <= discordance``. Given m discordant questions the test
decides by the first model's share, which makes exact power a sum over m alone. Plan with the test that will be run and with the
alpha that it will be judged at (alpha divided by the family's size under Holm).
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from evalspec.statistics.arguments import require_count, require_fraction
from evalspec.statistics.mcnemar import Variant
from evalspec.statistics.rejections import PowerCurve, Rejections
from evalspec.statistics.sample_sizes import connor_questions, require_setting

MOST_QUESTIONS = 10_000_000
"""`questions_needed` refuses to look beyond this many."""


@dataclass(frozen=True, slots=True)
class PowerTarget:
    """The test that is planned: its variant, its two-sided alpha, and the power wanted."""

    power: float = 0.8
    alpha: float = 0.05
    test: Variant = "exact"

    def __post_init__(self) -> None:
        require_fraction("power", self.power)
        require_fraction("alpha", self.alpha)
        if self.power <= self.alpha:
            raise ValueError(f"power must exceed alpha ({self.alpha}); got {self.power}")


@dataclass(frozen=True, slots=True)
class DetectableDifference:
    """The smallest difference detected with the wanted power, and the power at it; or ``None`` with the reason."""

    difference: float | None
    power: float
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class QuestionsNeeded:
    """The number of questions from which power stays at or above its target, and the power there."""

    questions: int
    power: float


def exact_power(questions: int, discordance: float, difference: float, *, alpha: float = 0.05, test: Variant = "exact") -> float:
    """Probability that the two-sided McNemar test rejects, summed exactly over the number of discordant questions.

    Parameters
    ----------
    questions
        Number of paired questions, at least 1.
    discordance, difference
        The model above; ``discordance`` in (0, 1], the sign of ``difference`` does not matter.
    alpha
        Two-sided level at which the test is judged.
    test
        The exact or the mid-p McNemar test.

    Returns
    -------
    float
        Rejections in either direction are counted; at ``difference`` 0 this is the true size of the test.

    Raises
    ------
    ValueError
        For an impossible combination, such as a difference above the discordance.

    References
    ----------
    Duffy (1984), Biometrics 40, 1005-1015, doi:10.2307/2531151. Fay (2010), The R Journal 2(1), 53-58.

    Examples
    --------
    >>> round(exact_power(200, 0.2, 0.05), 4)
    0.2984
    """
    require_setting(discordance, difference)
    rejections = Rejections.around(require_count("questions", questions, minimum=1), discordance, alpha, test)
    return rejections.power(discordance, difference)


def exact_power_favoured(questions: int, discordance: float, difference: float, *, alpha: float = 0.05, test: Variant = "exact") -> float:
    """As `exact_power`, but counting only the rejections that favour the model which is truly better.

    Raises
    ------
    ValueError
        As `exact_power`.

    References
    ----------
    As `exact_power`.

    Examples
    --------
    >>> round(exact_power_favoured(100, 0.8, 0.2), 5)
    0.56931
    """
    require_setting(discordance, difference)
    rejections = Rejections.around(require_count("questions", questions, minimum=1), discordance, alpha, test)
    return rejections.power(discordance, difference, directions="favoured")


def detectable_difference(
    questions: int, discordance: float, *, power: float = 0.8, alpha: float = 0.05, test: Variant = "exact"
) -> DetectableDifference:
    """Find the smallest difference that the planned test detects with at least the wanted power.

    Parameters
    ----------
    questions
        Number of paired questions, at least 1.
    discordance
        Expected share of questions that exactly one model answers correctly, in (0, 1].
    power, alpha, test
        The plan; see `PowerTarget`.

    Returns
    -------
    DetectableDifference
        ``difference`` is ``None`` when even the largest possible one, equal to the discordance, is not detected often enough.

    Raises
    ------
    ValueError
        For impossible arguments.

    References
    ----------
    As `exact_power`. Power rises with the difference at fixed discordance, so the smallest one is unique.

    Examples
    --------
    >>> round(detectable_difference(2000, 0.2).difference, 4)
    0.0284
    """
    target = PowerTarget(power, alpha, test)
    require_setting(discordance, 0.0)
    rejections = Rejections.around(require_count("questions", questions, minimum=1), discordance, alpha, test)
    most = rejections.power(discordance, discordance)
    if most < target.power:
        reason = (
            f"{questions} question(s) at a discordance of {discordance:g} reach a power of {most:.3f} at most, "
            f"even when one model wins every discordant question; {target.power:g} was asked for"
        )
        return DetectableDifference(None, most, reason)
    difference = _smallest_difference(rejections, discordance, target.power)
    return DetectableDifference(difference, rejections.power(discordance, difference))


def _smallest_difference(rejections: Rejections, discordance: float, power: float) -> float:
    """Close in on the root by secants on the probit scale, where power is almost a straight line, inside a bracket."""
    low, high = 0.0, discordance
    wanted = float(ndtri(power))
    guess = min(2.8 * math.sqrt(discordance / rejections.questions), 0.9 * discordance)
    previous: tuple[float, float] | None = None
    for _ in range(60):
        reached = rejections.power(discordance, guess)
        low, high = (guess, high) if reached < power else (low, guess)
        if high - low <= 1e-9 or 0.0 <= reached - power <= 1e-7:
            break
        probit = float(ndtri(min(reached, 1.0 - 1e-16))) - wanted
        step = math.nan if previous is None else _secant(previous, (guess, probit))
        previous = (guess, probit)
        # Aim a hair above the root, so that the end of the bracket that satisfies the target closes in as well.
        step += 1e-8 * discordance
        guess = step if low < step < high else 0.5 * (low + high)
    return high


def _secant(first: tuple[float, float], second: tuple[float, float]) -> float:
    rise = second[1] - first[1]
    return second[0] - second[1] * (second[0] - first[0]) / rise if rise else math.nan


def questions_needed(discordance: float, difference: float, *, power: float = 0.8, alpha: float = 0.05, test: Variant = "exact") -> QuestionsNeeded:
    """Find the number of questions from which the planned test's power never drops below its target again.

    Exact power is a sawtooth in the number of questions; the first number that reaches the target can be a spike.

    Parameters
    ----------
    discordance, difference
        The model above; ``difference`` must not be 0.
    power, alpha, test
        The plan; see `PowerTarget`.

    Raises
    ------
    ValueError
        For impossible arguments, and when more than ``MOST_QUESTIONS`` would be needed.

    References
    ----------
    As `exact_power`.

    Examples
    --------
    >>> questions_needed(0.2, 0.05, test="mid_p").questions
    622
    """
    target = PowerTarget(power, alpha, test)
    start = connor_questions(discordance, difference, power=power, alpha=alpha)
    if start > MOST_QUESTIONS:
        raise ValueError(f"a difference of {difference:g} would need about {start:.3g} questions; the limit is {MOST_QUESTIONS:.0e}")
    curve = PowerCurve(discordance, difference, alpha, test)
    last_below = _crossing(curve, target.power, max(int(start), 1))
    smooth = last_below * discordance * (1.0 - discordance) >= 36.0
    if not smooth:
        # With few discordant questions, or nearly all, power still jumps from one number to the next.
        reach = 60 + int(10.0 * math.sqrt(last_below))
        around = np.arange(max(1, last_below - reach), last_below + reach)
        last_below = int(max(around[curve.at(around) < power], default=0))
    needed = last_below + 1
    return QuestionsNeeded(needed, exact_power(needed, discordance, difference, alpha=alpha, test=test))


def _crossing(curve: PowerCurve, power: float, start: int) -> int:
    """Largest number below the target, as if power only rose; 0 when one question is enough.

    On the probit scale power is almost a straight line in the square root of the number, of a slope known from the normal approximation.
    """
    slope = abs(curve.difference) / math.sqrt(max(curve.discordance - curve.difference**2, 1e-12))
    wanted, low, high, guess = float(ndtri(power)), 0, sys.maxsize, start
    step = 0
    while True:
        step += 1
        block = np.arange(max(1, guess - 2), guess + 3)
        reached = curve.at(block)
        below = reached < power
        low = max(low, int(max(block[below], default=0)))
        high = min(high, int(min(block[~below], default=sys.maxsize)))
        if high - low <= 1:
            return low
        probit = float(ndtri(np.clip(reached[-1], 1e-9, 1.0 - 1e-9)))
        guess = int(max(0.0, math.sqrt(block[-1]) + (wanted - probit) / slope) ** 2)
        if step % 3 == 0 or high - low <= 6:
            guess = 2 * low + 1 if high == sys.maxsize else (low + high) // 2  # halving ends the search where the line is no guide
        guess = min(max(guess, low + 3), high - 3) if high - low > 6 else guess
