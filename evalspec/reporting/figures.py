"""How is a result drawn?  A small SVG surface for points with their intervals and for curves: same numbers, same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Literal

from evalspec.artifacts.report import Figure
from evalspec.protocols import Point
from evalspec.reporting.chart_content import GROUP_GAP, GROUP_HEIGHT, Content, Reference, Row, by_page
from evalspec.reporting.chart_words import in_words
from evalspec.reporting.curves import Curve, CurveScales, Mark, draw_curves
from evalspec.reporting.scales import nice_ticks, tick_label
from evalspec.reporting.svg import (
    ACCENT,
    ACCENT_BAND,
    CHARACTER_WIDTH,
    GRID,
    INK,
    MUTED,
    MUTED_BAND,
    PAPER,
    SOFT,
    Words,
    circle,
    drawing,
    ground,
    line,
    words,
)

__all__ = ["Chart", "Width", "nice_ticks"]

Width = Literal["wide", "narrow"]

REFERENCE_HEIGHT = 16
WIDEST_LABELS = 340


class Chart:
    """Collects what an analysis draws (it is an `Axes`) and turns it into SVG."""

    def __init__(self, content: Content | None = None) -> None:
        self._content = content or Content()

    def caption(self, text: str) -> None:
        """Set what the chart shows, in words that can stand for it."""
        self._content.caption = text

    def scale(self, label: str, *, percent: bool = True, whole: bool = False, span: tuple[float, float] | None = None) -> None:
        """Name the axis of values (horizontal for rows, vertical for curves); say whether they are shown as percent, or are whole numbers.

        The axis reaches at least over `span`.
        """
        self._content.label, self._content.percent, self._content.whole, self._content.span = label, percent, whole, span or ()

    def interval(self, label: str, value: float | None, low: float | None, high: float | None, *, group: str = "", muted: bool = False) -> None:
        """Add a row: a point with its interval under a group heading; None draws the row as undefined, `muted` less strongly."""
        self._content.rows.append(Row(group, label, value, low, high, muted))

    def reference(self, value: float, label: str) -> None:
        """Draw a line at `value` of the axis of values; a line at 0 makes the axis one of differences, in signed points."""
        self._content.references.append(Reference(value, label))

    def across(self, label: str, *, logarithmic: bool = False) -> None:
        """Name the axis along which curves run, such as a number of questions."""
        self._content.across, self._content.logarithmic = label, logarithmic

    def curve(self, label: str, points: Sequence[Point], *, group: str = "", muted: bool = False) -> None:
        """Add a curve to the panel under a group heading, with its band where points have one; `muted` draws it less strongly."""
        if points:
            self._content.curves.append(Curve(group, label, tuple(points), muted))

    def mark(self, x: float, y: float, *, group: str = "") -> None:
        """Mark a point in the panel under a group heading, with a line from it to the axis along which curves run."""
        self._content.marks.append(Mark(group, x, y))

    def scatter(self, label: str, points: Sequence[Point], *, group: str = "", muted: bool = False) -> None:
        """Add a cloud of points to the panel under a group heading, which has a curve too; `muted` draws it less strongly."""
        if points:
            self._content.curves.append(Curve(group, label, tuple(points), muted, joined=False))

    @property
    def empty(self) -> bool:
        """Whether there is no row and no curve to draw."""
        return not self._content.rows and not self._content.curves

    def parts(self) -> tuple[Chart, ...]:
        """Return the charts, each of which fits a page when drawn wide, that together show this one, on one scale and with the same captions."""
        pieces = by_page(self._content, row_height=_Drawing(self._content, "wide").row_height)
        captions = [f"{self._content.caption} Part {number} of {len(pieces)}." for number in range(1, len(pieces) + 1)]
        return (self,) if len(pieces) < 2 else tuple(Chart(replace(piece, caption=told)) for piece, told in zip(pieces, captions, strict=True))

    def draw(self, width: Width) -> Figure:
        """Return the drawing: `wide` for desks and paper, `narrow` for phones with each label above its mark.

        Raises ValueError when it was given both rows and curves.
        """
        content = self._content
        if content.curves:
            return self._draw_curves(width)
        return Figure(
            svg=_Drawing(content, width).svg(),
            drawn={
                "caption": content.caption,
                "axis": content.label,
                "rows": [{"group": row.group, "label": row.label, "value": row.value, "low": row.low, "high": row.high} for row in content.rows],
                "references": [{"value": reference.value, "label": reference.label} for reference in content.references],
            },
        )

    def _draw_curves(self, width: Width) -> Figure:
        content = self._content
        if content.rows:
            raise ValueError("a chart shows rows or curves, not both")
        scales = CurveScales(
            words=in_words(content),
            values=content.label,
            percent=content.percent,
            span=content.span,
            across=content.across,
            logarithmic=content.logarithmic,
            references={one.value: one.label for one in content.references},
            marks=content.marks,
            reach=content.reach,
        )
        return Figure(
            svg=draw_curves(content.curves, scales, narrow=width == "narrow"),
            drawn={
                "caption": content.caption,
                "axis": content.label,
                "across": content.across,
                "curves": [asdict(curve) for curve in content.curves],
                "references": [asdict(reference) for reference in content.references],
                **({"marks": [asdict(mark) for mark in content.marks]} if content.marks else {}),
            },
        )


class _Drawing:
    """One chart at one width, in CSS pixels at its full size; coordinates grow downwards."""

    def __init__(self, content: Content, width: Width) -> None:
        self._content = content
        self._narrow = width == "narrow"
        self._width = 360 if self._narrow else 760
        longest = max((len(row.label) for row in content.rows), default=0)
        longest = max(longest, content.label_room)
        beside = longest * CHARACTER_WIDTH + 18
        self._above = self._narrow or beside > WIDEST_LABELS
        self._left = 8.0 if self._above else max(96.0, beside)
        self._right = self._width - (14.0 if self._narrow else 28.0)
        self.row_height = 40 if self._above else 27
        self._ticks = self._choose_ticks()
        self._signed = self._ticks[0] < 0 or any(reference.value == 0 for reference in content.references)

    def svg(self) -> str:
        top = 6.0 + REFERENCE_HEIGHT * len(self._content.references)
        rows, bottom = self._rows(top)
        height = bottom + (44 if self._content.label else 26)
        return drawing(self._width, height, in_words(self._content), [*self._grid(top, bottom), *self._references(bottom), *rows])

    def _choose_ticks(self) -> tuple[float, ...]:
        numbers = [number for row in self._content.rows for number in (row.value, row.low, row.high) if number is not None]
        numbers += [*(reference.value for reference in self._content.references), *self._content.span]
        low, high = (min(numbers), max(numbers)) if numbers else (0.0, 1.0)
        return nice_ticks(low, high, most=6 if self._narrow else 9, whole=self._content.whole)

    def _x(self, value: float) -> float:
        first, last = self._ticks[0], self._ticks[-1]
        share = 0.5 if last == first else (value - first) / (last - first)
        return self._left + share * (self._right - self._left)

    def _rows(self, top: float) -> tuple[list[str], float]:
        """Return the rows with their headings, and where they end."""
        parts, y, group = [], top, ""
        for row in self._content.rows:
            if row.group != group:
                group = row.group
                y += GROUP_GAP if y > top else 0
                parts += self._label(y + 17, group, Words(weight=600, halo=self._narrow), room=self._width)
                y += GROUP_HEIGHT
            parts += self._row(row, y)
            y += self.row_height
        return parts, y + 4

    def _row(self, row: Row, y: float) -> list[str]:
        colour, band = (MUTED, MUTED_BAND) if row.muted else (ACCENT, ACCENT_BAND)
        look = Words(fill=SOFT if row.muted else INK, halo=self._narrow)
        centre = y + (28 if self._above else self.row_height / 2)
        baseline, room = (y + 15, float(self._width)) if self._above else (centre + 4.5, self._left - 10)
        parts = self._label(baseline, row.label, look, room=room)
        if row.low is not None and row.high is not None:
            parts.append(line((self._x(row.low), centre), (self._x(row.high), centre), band, width=7, look=' stroke-linecap="round"'))
        if row.value is None:
            parts.append(words(self._left + 4, centre + 4.5, "undefined", Words(fill=SOFT, style="italic")))
        else:
            parts.append(circle(self._x(row.value), centre, fill=PAPER if row.muted else colour, stroke=colour))
        return parts

    def _label(self, baseline: float, text: str, look: Words, *, room: float) -> list[str]:
        """Return a label at the left edge; where labels stand above their marks, lines of the axis would cross it."""
        below = [ground(0, baseline, text, room=room)] if self._above and not self._narrow and text else []
        return [*below, words(0, baseline, text, look, room=room)]

    def _grid(self, top: float, bottom: float) -> list[str]:
        parts = []
        for tick in self._ticks:
            x = self._x(tick)
            parts.append(line((x, top), (x, bottom), GRID))
            if x < 20:
                parts.append(words(0, bottom + 16, self._tick_label(tick), Words(fill=SOFT, size=12)))
            elif x > self._width - 20:
                parts.append(words(self._width, bottom + 16, self._tick_label(tick), Words(fill=SOFT, size=12, anchor="end")))
            else:
                parts.append(words(x, bottom + 16, self._tick_label(tick), Words(fill=SOFT, size=12, anchor="middle")))
        if self._content.label:
            unit = ", in points" if self._signed and self._content.percent else ""
            look = Words(fill=SOFT, size=12, anchor="middle")
            parts.append(words((self._left + self._right) / 2, bottom + 35, self._content.label + unit, look))
        return parts

    def _references(self, bottom: float) -> list[str]:
        parts = []
        for position, reference in enumerate(self._content.references):
            x, y = self._x(reference.value), 12.0 + REFERENCE_HEIGHT * position
            anchor: Literal["start", "middle", "end"] = "start" if x < self._width / 3 else "end" if x > self._width * 2 / 3 else "middle"
            parts.append(line((x, y + 4), (x, bottom), SOFT, width=1.25, look=' stroke-dasharray="4 3"'))
            parts.append(words(x, y, reference.label, Words(fill=SOFT, size=12, anchor=anchor)))
        return parts

    def _tick_label(self, tick: float) -> str:
        step = self._ticks[1] - self._ticks[0] if len(self._ticks) > 1 else 1.0
        return tick_label(tick, step, percent=self._content.percent, signed=self._signed)
