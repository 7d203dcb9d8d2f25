"""What does a chart show, for those who hear it?  Its caption and its first values; all of them stand in the table beside it."""

from __future__ import annotations

from evalspec.errors import counted
from evalspec.reporting.chart_content import Content, Row
from evalspec.reporting.curves import Curve
from evalspec.reporting.numbers import format_number
from evalspec.rounding import MINUS

__all__ = ["in_words"]

SAID = 8
"""How many rows or curves are said: who wants them all goes to the table."""


def in_words(content: Content) -> str:
    """Return the text that stands for a chart."""
    said = [_row(row, content) for row in content.rows] or [_curve(curve, content) for curve in content.curves]
    more = f"; {len(said) - SAID} more" if len(said) > SAID else ""
    return " ".join(part for part in (content.caption, f"{'; '.join(said[:SAID])}{more}." if said else "") if part)


def _row(row: Row, content: Content) -> str:
    name = f"{row.group}, {row.label}" if row.group else row.label
    if row.value is None:
        return f"{name}: undefined"
    between = "" if row.low is None or row.high is None else f", from {_number(row.low, content)} to {_number(row.high, content)}"
    return f"{name}: {_number(row.value, content)}{between}"


def _curve(curve: Curve, content: Content) -> str:
    name = f"{curve.group}, {curve.label}" if curve.group and curve.group != curve.label else curve.label
    if not curve.joined:
        return f"{name}: {counted(len(curve.points), 'point')}"
    ends = dict.fromkeys((curve.points[0], curve.points[-1]))
    return f"{name}: " + ", then ".join(f"{_number(point.y, content)} at {point.x:,g}" for point in ends)


def _number(value: float, content: Content) -> str:
    if not content.percent:
        return f"{value:,.4g}".replace("-", MINUS)
    differences = any(reference.value == 0 for reference in content.references)
    return format_number(value, "points" if differences else "percent")
