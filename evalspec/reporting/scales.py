"""Which numbers stand along an axis, and how are they written?"""

from __future__ import annotations

import math

from evalspec.rounding import MINUS

__all__ = ["log_ticks", "nice_ticks", "tick_label"]


def nice_ticks(low: float, high: float, *, most: int, whole: bool = False) -> tuple[float, ...]:
    """Return at most `most` round numbers (steps of 1, 2, 2.5 or 5 times a power of ten, or `whole` steps) that enclose low and high.

    >>> nice_ticks(0.22, 0.71, most=7)
    (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
    >>> nice_ticks(1, 3, most=9, whole=True)
    (1.0, 2.0, 3.0)
    """
    power = math.floor(math.log10(max(high - low, 1.0 if whole else 1e-9))) - 1
    for exponent in (power, power + 1, power + 2):
        for factor in (1, 2, 2.5, 5):
            step = factor * 10.0**exponent
            if whole and step % 1:
                continue
            first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
            if last - first + 1 <= most:
                return tuple(round(index * step, 10) for index in range(first, last + 1))
    raise AssertionError("a step of 50 times the span needs two ticks")


def log_ticks(low: float, high: float) -> tuple[float, ...]:
    """Return 1, 2 and 5 times the powers of ten from low to high, both above 0.

    >>> log_ticks(30, 1200)
    (50.0, 100.0, 200.0, 500.0, 1000.0)
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    candidates = (factor * 10.0**power for power in powers for factor in (1, 2, 5))
    return tuple(tick for tick in candidates if low <= tick <= high)


def tick_label(tick: float, step: float, *, percent: bool, signed: bool) -> str:
    """Return a tick's number with as many decimals as its step needs; `signed` marks differences, which are in points and not in percent.

    >>> tick_label(0.25, 0.05, percent=True, signed=False), tick_label(0.25, 0.05, percent=True, signed=True)
    ('25 %', '+25')
    """
    factor = 100 if percent else 1
    shown, apart = tick * factor, step * factor
    decimals = next((digits for digits in range(6) if abs(round(apart, digits) - apart) < 1e-9), 6)
    text = f"{abs(shown):.{decimals}f}"
    sign = MINUS if shown < 0 else "+" if shown > 0 and signed else ""
    return f"{sign}{text} %" if percent and not signed else f"{sign}{text}"
