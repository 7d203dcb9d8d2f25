"""How is a number printed in a report?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from statistics import median_low
from types import MappingProxyType
from typing import Literal, Protocol

from evalspec.rounding import MINUS, MOST_DECIMALS, not_zero, rounded, signed

__all__ = ["STYLES", "Style", "decimals_apart", "decimals_from_interval", "decimals_of", "format_number"]

Style = Literal[
    "percent",
    "percent_bare",
    "points",
    "points_bare",
    "gap",
    "gap_bare",
    "level",
    "p",
    "p_equation",
    "p_log10",
    "count",
    "rank",
    "rank_bare",
    "index",
    "index_bare",
    "about",
    "plain",
    "ratio",
    "correlation",
    "log10",
    "score",
    "score_bare",
    "bytes",
    "seconds",
    "millions",
]

DEFAULT_DECIMALS = 1
MOST_P_DECIMALS = 12
LEAST_WRITTEN_OUT = 1e-6
"""Below it nobody counts the zeros, and written out at some length the number would be nothing but zeros."""
ROUNDING = 1e-9
"""A p-value or an index of 1 can be short of it by what summing it up leaves."""


class HasInterval(Protocol):
    """Anything with an interval that may be absent."""

    @property
    def low(self) -> float | None:
        """The lower bound."""

    @property
    def high(self) -> float | None:
        """The upper bound."""


def decimals_from_interval(low: float, high: float) -> int:
    """Return how many decimals of a percentage its interval supports: down to the second significant digit of the half-width.

    >>> decimals_from_interval(0.66, 0.74), decimals_from_interval(0.4, 0.8), decimals_from_interval(0.701, 0.709)
    (1, 0, 2)
    """
    half_width = abs(high - low) * 50
    if half_width == 0:
        return DEFAULT_DECIMALS
    return min(MOST_DECIMALS, max(0, 1 - math.floor(math.log10(half_width))))


def decimals_of(rows: Iterable[HasInterval]) -> int:
    """Return the decimals at which every row of one table is printed: those that the intervals of half of its rows support."""
    supported = [decimals_from_interval(row.low, row.high) for row in rows if row.low is not None and row.high is not None]
    return median_low(supported) if supported else DEFAULT_DECIMALS


def decimals_apart(observed: float, limit: float, *, decimals: int) -> int:
    """Return the least number of percentage decimals, from `decimals` on, at which two different values print differently.

    >>> decimals_apart(0.6996, 0.70, decimals=1)
    2
    """
    while observed != limit and decimals < 2 * MOST_DECIMALS and rounded(observed, 2, decimals) == rounded(limit, 2, decimals):
        decimals += 1
    return decimals


def format_number(value: float, style: Style, *, decimals: int = DEFAULT_DECIMALS, limit: float | None = None) -> str:
    """Return `value` as readers see it; `decimals` counts for `percent` and `points`, and grows until a different `limit` prints differently.

    What is not nothing is never printed as 0, what is not all never as 100 %, and a p-value above its limit never as one at or below it.

    >>> format_number(0.7018, "percent"), format_number(-0.019, "points"), format_number(0.975, "level")
    ('70.2 %', '−1.9 points', '97.5 %')
    >>> format_number(0.0719, "p_equation"), format_number(0.0, "p"), format_number(0.0504, "p", limit=0.05)
    ('p = 0.072', '< 0.0001', '0.0504')
    >>> format_number(4593.2, "about")
    'about 4,600'
    """
    if style in {"p", "p_equation"}:
        text = _p(value, limit)
        return text if style == "p" else f"p {text}" if text[0] in "<>" else f"p = {text}"
    return STYLES[style](value, decimals if limit is None else decimals_apart(value, limit, decimals=decimals))


def _percent(value: float, decimals: int) -> str:
    return f"{_percent_bare(value, decimals)} %"


def _percent_bare(value: float, decimals: int) -> str:
    smallest = f"{10**-decimals:.{decimals}f}"
    text = rounded(value, 2, decimals)
    if value > 0 and float(text) == 0:
        return f"< {smallest}"
    if value < 1 and float(text) == 100:
        return f"> {100 - float(smallest):.{decimals}f}"
    return not_zero(value, 2, decimals)


def _points(value: float, decimals: int) -> str:
    return f"{_points_bare(value, decimals)} points"


def _points_bare(value: float, decimals: int) -> str:
    return signed(value, 2, decimals)


def _gap(value: float, decimals: int) -> str:
    """Print a distance in points, which has no direction."""
    return f"{not_zero(value, 2, decimals)} points"


def _gap_bare(value: float, decimals: int) -> str:
    return not_zero(value, 2, decimals)


def _index(value: float, decimals: int) -> str:
    """Print a number between 0 and 1 as it is; `decimals` are those of a percentage, two of them whole ones, and grow until less is not 1."""
    places, less = decimals + 2, value < 1 - ROUNDING
    while less and places < MOST_DECIMALS and float(rounded(value, 0, places)) == 1:
        places += 1
    if less and float(rounded(value, 0, places)) == 1:
        return f"> {1 - 10**-places:.{places}f}"
    return not_zero(value, 0, places)


def _level(value: float, _decimals: int) -> str:
    """Print a confidence level, or a share of that kind, with two significant digits of what it is short of all."""
    short = (1 - value) * 100
    decimals = max(2, 1 - math.floor(math.log10(short))) if short > 0 else 2
    return f"{value * 100:.{decimals}f}".rstrip("0").rstrip(".") + " %"


def _p(value: float, limit: float | None) -> str:
    if value < 0.0001:
        return "< 0.0001"
    if value > 0.9995:
        return "1" if value > 1 - ROUNDING else "> 0.999"
    decimals = 4 if value < 0.01 else 3
    while limit is not None and decimals < MOST_P_DECIMALS and (value <= limit) != (float(f"{value:.{decimals}f}") <= limit):
        decimals += 1
    return f"{value:.{decimals}f}"


def _p_log10(value: float, _decimals: int) -> str:
    """Return the p-value whose base-10 logarithm is `value`, however small it is."""
    if value < -300:
        return "< 1e-300"
    return f"{10**value:.1e}" if value < -4 else _p(10**value, None)


def _log10(value: float, decimals: int) -> str:
    """Return the positive number whose base-10 logarithm is `value`, however large it is."""
    if value > 15:
        return f"1e{math.floor(value)}"
    return _count(float(f"{10**value:.2g}"), decimals) if value > 3 else _significant(10**value)


def _score(value: float, decimals: int) -> str:
    """Print a number in its own unit, which is no share."""
    text = f"{value:,.{decimals}f}"
    return text.removeprefix("-") if not float(text.replace(",", "")) else text.replace("-", MINUS)


def _count(value: float, _decimals: int) -> str:
    return f"{value:,.0f}".replace("-", MINUS)


def _about(value: float, decimals: int) -> str:
    return f"about {_count(float(f'{value:.2g}'), decimals)}"


def _plain(value: float, _decimals: int) -> str:
    if isinstance(value, int):
        return str(value).replace("-", MINUS)
    if 0 < abs(value) < LEAST_WRITTEN_OUT:
        return f"{value:.3g}".replace("-", MINUS, 1) if value < 0 else f"{value:.3g}"
    text = _significant(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _ratio(value: float, decimals: int) -> str:
    return _count(value, decimals) if value >= 1000 else _significant(value)


def _correlation(value: float, _decimals: int) -> str:
    text = f"{value:.2f}"
    if abs(value) < 1 and abs(float(text)) == 1:
        return "> 0.99" if value > 0 else f"< {MINUS}0.99"
    return text.removeprefix("-") if float(text) == 0 else text.replace("-", MINUS)


def _significant(value: float) -> str:
    """Return a number to three significant digits, without an exponent."""
    if value == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{float(f'{value:.3g}'):.{min(decimals, 15)}f}".replace("-", MINUS)


def _bytes(value: float, _decimals: int) -> str:
    for unit in ("bytes", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def _seconds(value: float, _decimals: int) -> str:
    if value < 1:
        return f"{value:.2f} s"
    if value < 120:
        return f"{value:.1f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"


def _millions(value: float, _decimals: int) -> str:
    for unit, name in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if value >= unit:
            return f"{f'{value / unit:.2f}'.rstrip('0').rstrip('.')} {name}"
    return f"{value:,.0f}"


STYLES: Mapping[str, Callable[[float, int], str]] = MappingProxyType(
    {
        "percent": _percent,
        "percent_bare": _percent_bare,
        "points": _points,
        "points_bare": _points_bare,
        "gap": _gap,
        "gap_bare": _gap_bare,
        "level": _level,
        "p_log10": _p_log10,
        "count": _count,
        "rank": _count,
        "rank_bare": _count,
        "index": _index,
        "index_bare": _index,
        "about": _about,
        "plain": _plain,
        "ratio": _ratio,
        "correlation": _correlation,
        "log10": _log10,
        "score": _score,
        "score_bare": _score,
        "bytes": _bytes,
        "seconds": _seconds,
        "millions": _millions,
    }
)
