"""How are curves drawn?  One panel per group under a shared horizontal axis; line patterns tell curves apart without colour."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalspec.protocols import Point
from evalspec.reporting.scales import log_ticks, nice_ticks, tick_label
from evalspec.reporting.svg import (
    ACCENT,
    ACCENT_BAND,
    GRID,
    INK,
    MUTED,
    MUTED_BAND,
    SOFT,
    Words,
    circle,
    dots,
    drawing,
    line,
    polygon,
    polyline,
    words,
)

__all__ = ["Curve", "CurveScales", "Mark", "draw_curves", "panel_heights"]

DASHES = ("", "7 4", "2 4", "9 3 2 3")
LABEL_HEIGHT = 18
HEADING_HEIGHT = 26
PANEL_GAP = 20
PANEL_MARGINS = 8, 20  # above the axis up, and below the axis across for its numbers
STRAIGHT = 2  # points of a line that others are read against
FEW_MARKS = 12  # curves of few points show each of them


@dataclass(frozen=True, slots=True)
class Curve:
    """A line through points under a group heading, or a cloud of points that are not `joined`."""

    group: str
    label: str
    points: tuple[Point, ...]
    muted: bool
    joined: bool = True


@dataclass(frozen=True, slots=True)
class Mark:
    """A point of a panel that a line joins with the axis across."""

    group: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class CurveScales:
    """What the axes of every panel say, and `words` in place of the drawing; `references` label horizontal lines by value, `marks` are points.

    The axes reach over all values of `span` and `reach`, up and across, and over the curves.
    """

    words: str
    values: str
    percent: bool
    span: tuple[float, ...]
    across: str
    logarithmic: bool
    references: Mapping[float, str]
    marks: Sequence[Mark] = ()
    reach: tuple[float, ...] = ()


def draw_curves(curves: Sequence[Curve], scales: CurveScales, *, narrow: bool) -> str:
    """Return the SVG of the curves, a panel per group in order of appearance."""
    panels = _Panels(curves, scales, narrow=narrow)
    parts, y = [], 4.0
    for group in dict.fromkeys(curve.group for curve in curves):
        panel, y = panels.panel(group, [curve for curve in curves if curve.group == group], y)
        parts += panel
        y += PANEL_GAP
    height = y - PANEL_GAP + (24 if scales.across else 4)
    if scales.across:
        parts.append(words((panels.left + panels.right) / 2, height - 6, scales.across, Words(fill=SOFT, size=12, anchor="middle")))
    return drawing(panels.width, height, scales.words, parts)


def panel_heights(curves: Sequence[Curve], *, values: str) -> dict[str, float]:
    """Return how high the panel of each group is where all curves are drawn wide, the gap below it included, in CSS pixels."""
    keys = Counter(curve.group for curve in curves)
    shared = sum(PANEL_MARGINS) + PANEL_GAP + _axis_height(curves, narrow=False) + (LABEL_HEIGHT if values else 0)
    named = 0 if _is_plane(curves) else LABEL_HEIGHT
    return {group: shared + (HEADING_HEIGHT if group else 0) + named * count for group, count in keys.items()}


def _is_plane(curves: Sequence[Curve]) -> bool:
    """Whether the curves are single points: places in a plane, each with its name beside it."""
    return all(len(curve.points) == 1 for curve in curves)


def _axis_height(curves: Sequence[Curve], *, narrow: bool) -> float:
    """Return how high the axis up is; two panels of lines with clouds behind them share a page, a cloud about one straight line has it alone."""
    clouds = not all(curve.joined for curve in curves)
    if clouds and any(curve.joined and len(curve.points) > STRAIGHT for curve in curves):
        return 260 if narrow else 300
    if clouds or _is_plane(curves):
        return 300 if narrow else 420
    return 150 if narrow else 190


class _Panels:
    """Panels of one size with the same two axes, in CSS pixels; coordinates grow downwards."""

    def __init__(self, curves: Sequence[Curve], scales: CurveScales, *, narrow: bool) -> None:
        self._scales = scales
        self._narrow = narrow
        self.width = 360 if narrow else 760
        self.left, self.right = 52.0, self.width - 20.0
        self._plane, self._height = _is_plane(curves), _axis_height(curves, narrow=narrow)
        numbers = [number for curve in curves for point in curve.points for number in (point.y, point.low, point.high) if number is not None]
        numbers += [*scales.references, *scales.span]
        self._ticks = nice_ticks(min(numbers), max(numbers), most=6)
        self._signed = self._ticks[0] < 0
        positions = sorted({point.x for curve in curves for point in curve.points} | set(scales.reach))
        ticks = nice_ticks(positions[0], positions[-1], most=6) if self._plane else tuple(positions)
        self._first, self._last = ticks[0], ticks[-1]
        self._marks = list(ticks) if self._plane else self._positions(positions)

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
        for number, curve in enumerate(() if self._plane else curves):
            parts += self._key(curve, DASHES[number % len(DASHES)], y)
            y += LABEL_HEIGHT
        above, below = PANEL_MARGINS
        top, bottom = y + above, y + above + self._height
        parts += self._grid(top, bottom)
        parts += [part for curve in curves for part in self._band(curve, top, bottom)]
        parts += [part for number, curve in enumerate(curves) for part in self._line(curve, DASHES[number % len(DASHES)], (top, bottom))]
        parts += [part for mark in self._scales.marks if mark.group == group for part in self._mark(mark, top, bottom)]
        return parts, bottom + below

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

    def _mark(self, mark: Mark, top: float, bottom: float) -> list[str]:
        x, y = self._x(mark.x), self._y(mark.y, top, bottom)
        return [line((x, y), (x, bottom), INK, look=' stroke-dasharray="2 3"'), circle(x, y, fill=INK, stroke=INK, radius=4)]

    def _key(self, curve: Curve, dash: str, y: float) -> list[str]:
        colour, pattern = MUTED if curve.muted else ACCENT, f' stroke-dasharray="{dash}"' if dash and curve.joined else ""
        sample = line((0, y + 9), (30, y + 9), colour, width=2.25, look=pattern) if curve.joined else dots([(10, y + 9), (20, y + 9)], colour)
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
        if not curve.joined:
            return [dots(places, colour, width=4 if curve.muted else 5.5)]
        parts = [polyline(places, colour, dash=dash)] if len(places) > 1 else []
        if self._plane:
            (x, y), right = places[0], places[0][0] > self.width / 2
            look = Words(fill=SOFT if curve.muted else INK, size=12, anchor="end" if right else "start", halo=True)
            parts.append(words(x - 7 if right else x + 7, y + 4, curve.label, look))
        if len(places) <= FEW_MARKS:
            parts += [circle(x, y, fill=colour, stroke=colour, radius=2.5) for x, y in places]
        return parts
