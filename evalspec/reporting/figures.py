"""How is a result drawn?  A small SVG surface for points with their intervals: same numbers, same bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal
from xml.sax.saxutils import escape

from evalspec.artifacts.report import Figure
from evalspec.reporting.characters import neutralise
from evalspec.reporting.numbers import MINUS

__all__ = ["Chart", "Width", "nice_ticks"]

Width = Literal["wide", "narrow"]

INK = "var(--ink, #1c2530)"
SOFT = "var(--ink-soft, #56616e)"
GRID = "var(--line, #dde3ea)"
MARK = "var(--accent, #0b6a8f)"
BAND = "var(--accent-band, #a9cfdf)"
MUTED = "var(--muted-mark, #8994a1)"
PAPER = "var(--paper, #ffffff)"
MUTED_BAND = "var(--muted-band, #dfe4e9)"

TEXT_SIZE = 13
CHARACTER_WIDTH = 6.4  # Source Sans 3 at 13 px, on the generous side: an estimate is enough to reserve room for a label


@dataclass(frozen=True, slots=True)
class _Row:
    group: str
    label: str
    value: float | None
    low: float | None
    high: float | None
    muted: bool


@dataclass(frozen=True, slots=True)
class _Reference:
    value: float
    label: str


@dataclass(frozen=True, slots=True)
class _Layout:
    """Sizes of one width in the user units of its view box; they are CSS pixels at its full size."""

    width: int
    left: float
    right: float
    row_height: int
    label_above: bool


class Chart:
    """Collects what an analysis draws (it is an `Axes`) and turns it into SVG."""

    def __init__(self) -> None:
        self._caption = ""
        self._label = ""
        self._percent = True
        self._rows: list[_Row] = []
        self._references: list[_Reference] = []

    def caption(self, text: str) -> None:
        """Set what the chart shows, in words that can stand for it."""
        self._caption = text

    def scale(self, label: str, *, percent: bool = True) -> None:
        """Name the horizontal axis and say whether its numbers are shown as percent."""
        self._label, self._percent = label, percent

    def interval(self, label: str, value: float | None, low: float | None, high: float | None, *, group: str = "", muted: bool = False) -> None:
        """Add a row: a point with its interval under a group heading; None draws the row as undefined, `muted` less strongly."""
        self._rows.append(_Row(group, label, value, low, high, muted))

    def reference(self, value: float, label: str) -> None:
        """Draw a vertical line at `value`; a line at 0 makes the axis one of differences, in signed points."""
        self._references.append(_Reference(value, label))

    @property
    def empty(self) -> bool:
        """Whether there is no row to draw."""
        return not self._rows

    def draw(self, width: Width) -> Figure:
        """Return the drawing: `wide` for desks and paper, `narrow` for phones with each label above its mark."""
        return Figure(svg=_Drawing(self, self._layout(width)).svg(), drawn={
            "caption": self._caption,
            "axis": self._label,
            "rows": [{"group": row.group, "label": row.label, "value": row.value, "low": row.low, "high": row.high} for row in self._rows],
            "references": [{"value": reference.value, "label": reference.label} for reference in self._references],
        })

    def _layout(self, width: Width) -> _Layout:
        if width == "narrow":
            return _Layout(width=360, left=8, right=14, row_height=40, label_above=True)
        longest = max((len(row.label) for row in self._rows), default=0)
        return _Layout(width=760, left=min(280.0, max(96.0, longest * CHARACTER_WIDTH + 18)), right=28, row_height=27, label_above=False)


def nice_ticks(low: float, high: float, *, most: int) -> tuple[float, ...]:
    """Return at most `most` round numbers (steps of 1, 2, 2.5 or 5 times a power of ten) that enclose low and high.

    >>> nice_ticks(0.22, 0.71, most=7)
    (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
    """
    span = max(high - low, 1e-9)
    power = math.floor(math.log10(span)) - 1
    for exponent in (power, power + 1, power + 2):
        for factor in (1, 2, 2.5, 5):
            step = factor * 10.0**exponent
            first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
            if last - first + 1 <= most:
                return tuple(round(index * step, 10) for index in range(first, last + 1))
    raise AssertionError("a step of 50 times the span needs two ticks")


class _Drawing:
    """One chart at one width; coordinates grow downwards."""

    def __init__(self, chart: Chart, layout: _Layout) -> None:
        self._chart = chart
        self._layout = layout
        self._parts: list[str] = []
        self._ticks = self._choose_ticks()

    def svg(self) -> str:
        top = 6.0 + 16 * len(self._chart._references)
        bottom = self._rows(top)
        height = bottom + (44 if self._chart._label else 26)
        grid = self._grid(top, bottom)
        references = self._reference_lines(top, bottom)
        caption = escape(neutralise(self._chart._caption))
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self._layout.width} {_n(height)}" width="{self._layout.width}" '
            f'height="{_n(height)}" role="img" font-family="\'Source Sans 3\', system-ui, sans-serif" font-size="{TEXT_SIZE}">'
        )
        return "\n".join([head, f"<title>{caption}</title>", *grid, *references, *self._parts, "</svg>"])

    def _choose_ticks(self) -> tuple[float, ...]:
        numbers = [number for row in self._chart._rows for number in (row.value, row.low, row.high) if number is not None]
        numbers += [reference.value for reference in self._chart._references]
        low, high = (min(numbers), max(numbers)) if numbers else (0.0, 1.0)
        return nice_ticks(low, high, most=6 if self._layout.label_above else 9)

    def _x(self, value: float) -> float:
        first, last = self._ticks[0], self._ticks[-1]
        share = 0.5 if last == first else (value - first) / (last - first)
        return self._layout.left + share * (self._layout.width - self._layout.left - self._layout.right)

    def _rows(self, top: float) -> float:
        y, group = top, ""
        for row in self._chart._rows:
            if row.group != group:
                group = row.group
                y += 8 if y > top else 0
                self._parts.append(_text(0, y + 17, group, fill=INK, weight=600, room=self._layout.width, halo=self._layout.label_above))
                y += 26
            self._row(row, y)
            y += self._layout.row_height
        return y + 4

    def _row(self, row: _Row, y: float) -> None:
        colour, band = (MUTED, MUTED_BAND) if row.muted else (MARK, BAND)
        ink = SOFT if row.muted else INK
        if self._layout.label_above:
            centre = y + 28
            self._parts.append(_text(0, y + 15, row.label, fill=ink, room=self._layout.width, halo=True))
        else:
            centre = y + self._layout.row_height / 2
            self._parts.append(_text(0, centre + 4.5, row.label, fill=ink, room=self._layout.left - 10))
        if row.low is not None and row.high is not None:
            self._parts.append(_line(self._x(row.low), centre, self._x(row.high), centre, colour=band, width=7, cap="round"))
        if row.value is not None:
            inside = PAPER if row.muted else colour
            self._parts.append(
                f'<circle cx="{_n(self._x(row.value))}" cy="{_n(centre)}" r="4.5" style="fill:{inside};stroke:{colour}" stroke-width="2"/>'
            )
        else:
            self._parts.append(_text(self._layout.left + 4, centre + 4.5, "undefined", fill=SOFT, style="italic"))

    def _grid(self, top: float, bottom: float) -> list[str]:
        parts = []
        for tick in self._ticks:
            x = self._x(tick)
            anchor = "start" if x < 20 else "end" if x > self._layout.width - 20 else "middle"
            parts.append(_line(x, top, x, bottom, colour=GRID, width=1))
            parts.append(_text(x if anchor == "middle" else 0 if anchor == "start" else self._layout.width, bottom + 16,
                               self._tick_label(tick), fill=SOFT, size=12, anchor=anchor))
        if self._chart._label:
            middle = self._layout.left + (self._layout.width - self._layout.left - self._layout.right) / 2
            unit = ", in points" if self._signed() and self._chart._percent else ""
            parts.append(_text(middle, bottom + 35, self._chart._label + unit, fill=SOFT, size=12, anchor="middle"))
        return parts

    def _reference_lines(self, top: float, bottom: float) -> list[str]:
        parts = []
        for position, reference in enumerate(self._chart._references):
            x, y = self._x(reference.value), 12.0 + 16 * position
            anchor = "start" if x < self._layout.width / 3 else "end" if x > self._layout.width * 2 / 3 else "middle"
            parts.append(_line(x, y + 4, x, bottom, colour=SOFT, width=1.25, dash="4 3"))
            parts.append(_text(x, y, reference.label, fill=SOFT, size=12, anchor=anchor))
        return parts

    def _tick_label(self, tick: float) -> str:
        step = self._ticks[1] - self._ticks[0] if len(self._ticks) > 1 else 1.0
        shown, step = (tick * 100, step * 100) if self._chart._percent else (tick, step)
        decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step < 1 or round(step) == round(step, 9) else 1
        text = f"{abs(shown):.{decimals}f}"
        sign = MINUS if shown < 0 else "+" if shown > 0 and self._signed() else ""
        return f"{sign}{text}" if self._signed() or not self._chart._percent else f"{sign}{text} %"

    def _signed(self) -> bool:
        return self._ticks[0] < 0 or any(reference.value == 0 for reference in self._chart._references)


def _line(x1: float, y1: float, x2: float, y2: float, *, colour: str, width: float, cap: str = "butt", dash: str = "") -> str:
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}" style="stroke:{colour}" '
        f'stroke-width="{width}" stroke-linecap="{cap}"{dashes}/>'
    )


def _text(
    x: float, y: float, text: str, *, fill: str, weight: int = 400, size: int = TEXT_SIZE, anchor: str = "start", style: str = "normal", room: float = 0,
    halo: bool = False,
) -> str:
    most = int(room / CHARACTER_WIDTH) if room else len(text)
    shown = text if len(text) <= most else text[: most - 1] + "…"
    edge = f";stroke:{PAPER};stroke-width:4px;paint-order:stroke" if halo else ""
    return (
        f'<text x="{_n(x)}" y="{_n(y)}" style="fill:{fill}{edge}" font-size="{size}" font-weight="{weight}" '
        f'font-style="{style}" text-anchor="{anchor}">{escape(neutralise(shown))}</text>'
    )


def _n(number: float) -> str:
    """Return a coordinate to a tenth of a pixel, without needless zeros."""
    return f"{number:.1f}".removesuffix(".0").replace("-0", "0") if abs(number) < 0.05 else f"{number:.1f}".removesuffix(".0")
