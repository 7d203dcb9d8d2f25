"""What is to be drawn, and how much of it has room on a page?"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from evalspec.reporting.curves import Curve, Mark, panel_heights

__all__ = ["GROUP_GAP", "GROUP_HEIGHT", "Content", "Reference", "Row", "by_page"]

GROUP_HEIGHT = 26
GROUP_GAP = 8
PAGE_HEIGHT = 1000.0
"""What a printed page has room for, in CSS pixels of a wide drawing; a drawing that is higher would be cut off."""


@dataclass(frozen=True, slots=True)
class Row:
    """A point with its interval under a group heading."""

    group: str
    label: str
    value: float | None
    low: float | None
    high: float | None
    muted: bool


@dataclass(frozen=True, slots=True)
class Reference:
    """A vertical line."""

    value: float
    label: str


@dataclass(slots=True)
class Content:
    """What is to be drawn."""

    caption: str = ""
    label: str = ""
    percent: bool = True
    whole: bool = False
    span: tuple[float, ...] = ()
    reach: tuple[float, ...] = ()
    across: str = ""
    logarithmic: bool = False
    rows: list[Row] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    label_room: int = 0


def by_page(content: Content, *, row_height: float) -> list[Content]:
    """Part a chart into what a page has room for; scales and the room for labels stay those of the whole."""
    return _panels_by_page(content) if content.curves else _rows_by_page(content, row_height)


def _rows_by_page(content: Content, row_height: float) -> list[Content]:
    numbers = [number for row in content.rows for number in (row.value, row.low, row.high) if number is not None]
    pages = _filled(content.rows, row_height, PAGE_HEIGHT)
    if len(pages) > 1:  # as many parts, about alike in height: they fit into what is left of a page sooner than one that takes it all
        whole = sum(row_height for _ in content.rows) + sum(GROUP_HEIGHT + GROUP_GAP for _ in {row.group for row in content.rows})
        even = _filled(content.rows, row_height, min(PAGE_HEIGHT, whole / len(pages) + row_height + GROUP_HEIGHT + GROUP_GAP))
        pages = even if len(even) == len(pages) else pages
    span = (min([*numbers, *content.span]), max([*numbers, *content.span])) if numbers else content.span
    longest = max((len(row.label) for row in content.rows), default=0)
    return [replace(content, rows=rows, span=span, label_room=longest) for rows in pages]


def _filled(rows: list[Row], row_height: float, most: float) -> list[list[Row]]:
    """Part rows so that no part is higher than `most`."""
    pages: list[list[Row]] = [[]]
    used, group = 0.0, ""
    for row in rows:
        height = row_height + (GROUP_HEIGHT + GROUP_GAP if row.group != group or not pages[-1] else 0)
        if pages[-1] and used + height > most:
            pages.append([])
            used, height = 0.0, row_height + GROUP_HEIGHT
        pages[-1].append(row)
        used, group = used + height, row.group
    return pages


def _panels_by_page(content: Content) -> list[Content]:
    numbers = [number for curve in content.curves for point in curve.points for number in (point.y, point.low, point.high) if number is not None]
    span = (min([*numbers, *content.span]), max([*numbers, *content.span]))
    positions = [point.x for curve in content.curves for point in curve.points]
    pages: list[list[str]] = [[]]
    used = 0.0
    for group, height in panel_heights(content.curves, values=content.label).items():
        if pages[-1] and used + height > PAGE_HEIGHT:
            pages.append([])
            used = 0.0
        pages[-1].append(group)
        used += height
    return [
        replace(
            content,
            span=span,
            reach=(min(positions), max(positions)),
            curves=[curve for curve in content.curves if curve.group in page],
            marks=[mark for mark in content.marks if mark.group in page],
        )
        for page in pages
    ]
