"""How is a number printed?  The only place where results are rounded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Literal, Protocol

__all__ = ["STYLES", "Style", "decimals_apart", "decimals_from_interval", "decimals_of", "format_number"]

Style = Literal[
    "percent",
    "percent_bare",
    "points",
    "points_bare",
    "level",
    "p",
    "p_equation",
    "p_log10",
    "count",
    "rank",
    "rank_bare",
    "about",
    "plain",
    "bytes",
    "seconds",
    "millions",
]

MINUS = "\N{MINUS SIGN}"
DEFAULT_DECIMALS = 1
MOST_DECIMALS = 4


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
    """Return the decimals at which every row of one table can be printed: the most that an interval of one of them supports."""
    return max((decimals_from_interval(row.low, row.high) for row in rows if row.low is not None and row.high is not None), default=DEFAULT_DECIMALS)


def decimals_apart(observed: float, limit: float, *, decimals: int) -> int:
    """Return the least number of percentage decimals, from `decimals` on, at which two different values print differently.

    >>> decimals_apart(0.6996, 0.70, decimals=1)
    2
    """
    while observed != limit and decimals < 2 * MOST_DECIMALS and f"{observed * 100:.{decimals}f}" == f"{limit * 100:.{decimals}f}":
        decimals += 1
    return decimals


def format_number(value: float, style: Style, *, decimals: int = DEFAULT_DECIMALS) -> str:
    """Return `value` as readers see it; `decimals` counts for `percent` and `points`.

    >>> format_number(0.7018, "percent"), format_number(-0.019, "points"), format_number(0.975, "level")
    ('70.2 %', '−1.9 points', '97.5 %')
    >>> format_number(0.0719, "p_equation"), format_number(0.0, "p")
    ('p = 0.072', '< 0.0001')
    >>> format_number(4593.2, "about")
    'about 4,600'
    """
    return STYLES[style](value, decimals)


def _percent(value: float, decimals: int) -> str:
    return f"{_percent_bare(value, decimals)} %"


def _percent_bare(value: float, decimals: int) -> str:
    return _unsigned_zero(value * 100, decimals)


def _points(value: float, decimals: int) -> str:
    return f"{_points_bare(value, decimals)} points"


def _points_bare(value: float, decimals: int) -> str:
    text = _unsigned_zero(value * 100, decimals)
    return text if text.startswith(MINUS) or float(text) == 0 else f"+{text}"


def _unsigned_zero(value: float, decimals: int) -> str:
    text = f"{value:.{decimals}f}"
    if float(text) == 0:
        return text.removeprefix("-")
    return text.replace("-", MINUS)


def _level(value: float, _decimals: int) -> str:
    return f"{value * 100:.2f}".rstrip("0").rstrip(".") + " %"


def _p(value: float, _decimals: int) -> str:
    if value < 0.0001:
        return "< 0.0001"
    if value < 0.01:
        return f"{value:.4f}"
    return "1" if value == 1 else "> 0.999" if value > 0.999 else f"{value:.3f}"


def _p_equation(value: float, decimals: int) -> str:
    text = _p(value, decimals)
    return f"p {text}" if text[0] in "<>" else f"p = {text}"


def _p_log10(value: float, _decimals: int) -> str:
    """Return the p-value whose base-10 logarithm is `value`, however small it is."""
    if value < -300:
        return "< 1e-300"
    return f"{10**value:.1e}" if value < -4 else _p(10**value, DEFAULT_DECIMALS)


def _count(value: float, _decimals: int) -> str:
    return f"{value:,.0f}".replace("-", MINUS)


def _about(value: float, decimals: int) -> str:
    return f"about {_count(float(f'{value:.2g}'), decimals)}"


def _plain(value: float, _decimals: int) -> str:
    if isinstance(value, int):
        return str(value).replace("-", MINUS)
    return f"{value:.3g}".replace("-", MINUS)


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
    if value >= 1e9:
        return f"{value / 1e9:.2f} billion"
    return f"{value / 1e6:.2f} million" if value >= 1e6 else f"{value:,.0f}"


STYLES: Mapping[str, Callable[[float, int], str]] = MappingProxyType(
    {
        "percent": _percent,
        "percent_bare": _percent_bare,
        "points": _points,
        "points_bare": _points_bare,
        "level": _level,
        "p": _p,
        "p_equation": _p_equation,
        "p_log10": _p_log10,
        "count": _count,
        "rank": _count,
        "rank_bare": _count,
        "about": _about,
        "plain": _plain,
        "bytes": _bytes,
        "seconds": _seconds,
        "millions": _millions,
    }
)
