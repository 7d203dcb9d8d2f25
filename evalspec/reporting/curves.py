"""How are curves drawn?  One panel per group under a shared horizontal axis; line patterns tell curves apart without colour."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from evalspec.protocols import Point
from evalspec.reporting.characters import neutralise
from evalspec.reporting.scales import log_ticks, nice_ticks, tick_label
from evalspec.reporting.svg import ACCENT, ACCENT_BAND, GRID, INK, MUTED, MUTED_BAND, SOFT, Words, circle, coordinate, line, polygon, polyline, words

__all__ = ["Curve", "CurveScales", "draw_curves"]

DASHES = ("", "7 4", "2 4", "9 3 2 3")
LABEL_HEIGHT = 18
HEADING_HEIGHT = 26
PANEL_GAP = 20
FEW_MARKS = 12  # curves of few points show each of them


@dataclass(frozen=True, slots=True)
class Curve:
    """A line through points under a group heading."""

    group: str
    label: str
    points: tuple[Point, ...]
    muted: bool


@dataclass(frozen=True, slots=True)
class CurveScales:
    """What the two axes of every panel say; `references` are labels of horizontal lines by their value."""

    caption: str
    values: str
    percent: bool
    span: tuple[float, ...]
    across: str
    logarithmic: bool
    references: Mapping[float, str]


def draw_curves(curves: Sequence[Curve], scales: CurveScales, *, narrow: bool) -> str:
    """Return the SVG of the curves, a panel per group in order of appearance."""
    drawing = _Panels(curves, scales, narrow=narrow)
    parts, y = [], 4.0
    for group in dict.fromkeys(curve.group for curve in curves):
        panel, y = drawing.panel(group, [curve for curve in curves if curve.group == group], y)
        parts += panel
        y += PANEL_GAP
    height = y - PANEL_GAP + (24 if scales.across else 4)
    if scales.across:
        parts.append(words((drawing.left + drawing.right) / 2, height - 6, scales.across, Words(fill=SOFT, size=12, anchor="middle")))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {drawing.width} {coordinate(height)}" width="{drawing.width}" '
        f'height="{coordinate(height)}" role="img" font-family="\'Source Sans 3\', system-ui, sans-serif">'
    )
    title = f"<title>{escape(neutralise(scales.caption))}</title>"  # first child: WeasyPrint takes the alternative text from there
    return "\n".join([head, title, *parts, "</svg>"])


class _Panels:
    """Panels of one size with the same two axes, in CSS pixels; coordinates grow downwards."""

    def __init__(self, curves: Sequence[Curve], scales: CurveScales, *, narrow: bool) -> None:
        self._scales = scales
        self._narrow = narrow
        self.width = 360 if narrow else 760
        self.left, self.right = 52.0, self.width - 20.0
        self._height = 150 if narrow else 190
        numbers = [number for curve in curves for point in curve.points for number in (point.y, point.low, point.high) if number is not None]
        numbers += [*scales.references, *scales.span]
        self._ticks = nice_ticks(min(numbers), max(numbers), most=6)
        self._signed = self._ticks[0] < 0
        positions = sorted({point.x for curve in curves for point in curve.points})
        self._first, self._last = positions[0], positions[-1]
        self._marks = self._positions(positions)

    def panel(self, group: str, curves: Sequence[Curve], y: float) -> tuple[list[str], float]:
        """Return one panel and where it ends, the labels of its horizontal axis included."""
        parts = []
        if group:
            parts.append(words(0, y + 15, group, Words(weight=600), room=self.width))
            y += HEADING_HEIGHT
        if self._scales.values:
            unit = ", in points" if self._signed and self._scales.percent else ""
            parts.append(words(0, y + 12, self._scales.values + unit, Words(fill=SOFT, size=12), room=self.width))
            y += LABEL_HEIGHT
        for number, curve in enumerate(curves):
            parts += self._key(curve, DASHES[number % len(DASHES)], y)
            y += LABEL_HEIGHT
        top, bottom = y + 8, y + 8 + self._height
        parts += self._grid(top, bottom)
        parts += [part for curve in curves for part in self._band(curve, top, bottom)]
        parts += [part for number, curve in enumerate(curves) for part in self._line(curve, DASHES[number % len(DASHES)], (top, bottom))]
        return parts, bottom + 20

    def _positions(self, positions: Sequence[float]) -> list[float]:
        """Choose the positions that get a tick: those of the points where they are few, round numbers otherwise, none too close to the next."""
        wanted: Sequence[float] = positions
        if len(positions) > FEW_MARKS:
            low, high = self._first, self._last
            wanted = log_ticks(low, high) if self._scales.logarithmic else [tick for tick in nice_ticks(low, high, most=8) if low <= tick <= high]
        chosen: list[float] = []
        for position in sorted(wanted, reverse=True):
            room = 7.0 * len(f"{position:,.10g}") + 8
            if not chosen or self._x(chosen[-1]) - self._x(position) >= room:
                chosen.append(position)
        return chosen[::-1]

    def _x(self, position: float) -> float:
        first, last, at = self._first, self._last, position
        if self._scales.logarithmic:
            first, last, at = math.log(first), math.log(last), math.log(at)
        share = 0.5 if first == last else (at - first) / (last - first)
        return self.left + 10 + share * (self.right - self.left - 20)

    def _y(self, value: float, top: float, bottom: float) -> float:
        first, last = self._ticks[0], self._ticks[-1]
        share = 0.5 if first == last else (value - first) / (last - first)
        return bottom - share * (bottom - top)

    def _grid(self, top: float, bottom: float) -> list[str]:
        parts = []
        step = self._ticks[1] - self._ticks[0] if len(self._ticks) > 1 else 1.0
        for tick in self._ticks:
            y = self._y(tick, top, bottom)
            parts.append(line((self.left, y), (self.right, y), GRID))
            label = tick_label(tick, step, percent=self._scales.percent, signed=self._signed)
            parts.append(words(self.left - 8, y + 4, label, Words(fill=SOFT, size=12, anchor="end")))
        for position in self._marks:
            x = self._x(position)
            parts.append(line((x, bottom), (x, bottom + 4), SOFT))
            parts.append(words(x, bottom + 17, f"{position:,.10g}", Words(fill=SOFT, size=12, anchor="middle")))
        for value, label in self._scales.references.items():
            y = self._y(value, top, bottom)
            parts.append(line((self.left, y), (self.right, y), SOFT, width=1.25, look=' stroke-dasharray="4 3"'))
            parts.append(words(self.right, y - 4, label, Words(fill=SOFT, size=12, anchor="end", halo=True)))
        return parts

    def _key(self, curve: Curve, dash: str, y: float) -> list[str]:
        sample = line((0, y + 9), (30, y + 9), MUTED if curve.muted else ACCENT, width=2.25, look=f' stroke-dasharray="{dash}"' if dash else "")
        return [sample, words(38, y + 13, curve.label, Words(fill=SOFT if curve.muted else INK), room=self.width - 38)]

    def _band(self, curve: Curve, top: float, bottom: float) -> list[str]:
        limits = [(self._x(point.x), point.low, point.high) for point in curve.points if point.low is not None and point.high is not None]
        if len(limits) < 2:
            return []
        upper = [(x, self._y(high, top, bottom)) for x, _, high in limits]
        lower = [(x, self._y(low, top, bottom)) for x, low, _ in reversed(limits)]
        return [polygon([*upper, *lower], MUTED_BAND if curve.muted else ACCENT_BAND)]

    def _line(self, curve: Curve, dash: str, panel: tuple[float, float]) -> list[str]:
        colour = MUTED if curve.muted else ACCENT
        places = [(self._x(point.x), self._y(point.y, *panel)) for point in curve.points]
        parts = [polyline(places, colour, dash=dash)] if len(places) > 1 else []
        if len(places) <= FEW_MARKS:
            parts += [circle(x, y, fill=colour, stroke=colour, radius=2.5) for x, y in places]
        return parts
