"""How are lines and words written as SVG?  Elements as text, coloured through the page's variables, with a plain colour to fall back on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from xml.sax.saxutils import escape

from evalspec.reporting.characters import neutralise

__all__ = [
    "ACCENT",
    "ACCENT_BAND",
    "CHARACTER_WIDTH",
    "GRID",
    "INK",
    "MUTED",
    "MUTED_BAND",
    "PAPER",
    "SOFT",
    "Words",
    "circle",
    "coordinate",
    "dots",
    "drawing",
    "ground",
    "line",
    "polygon",
    "polyline",
    "words",
]

INK = "var(--ink, #1c2530)"
SOFT = "var(--ink-soft, #56616e)"
GRID = "var(--line, #dde3ea)"
ACCENT = "var(--accent, #0b6a8f)"
ACCENT_BAND = "var(--accent-band, #a9cfdf)"
MUTED = "var(--muted-mark, #8994a1)"
MUTED_BAND = "var(--muted-band, #dfe4e9)"
PAPER = "var(--paper, #ffffff)"

CHARACTER_WIDTH = 6.4  # Source Sans 3 at 13 px, on the generous side: an estimate is enough to reserve room for a label


@dataclass(frozen=True, slots=True)
class Words:
    """How words look; `halo` keeps lines that cross them away, on screens alone: a printed page would draw it over the words."""

    fill: str = INK
    size: int = 13
    weight: int = 400
    style: Literal["normal", "italic"] = "normal"
    anchor: Literal["start", "middle", "end"] = "start"
    halo: bool = False


def drawing(width: float, height: float, described: str, parts: Sequence[str]) -> str:
    """Return a whole drawing of its elements; `described` is the text that stands for it."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {coordinate(width)} {coordinate(height)}" width="{coordinate(width)}" '
        f'height="{coordinate(height)}" role="img" font-family="\'Source Sans 3\', system-ui, sans-serif">'
    )
    title = f"<title>{escape(neutralise(described))}</title>"  # first child: WeasyPrint takes the alternative text from there
    return "\n".join([head, title, *parts, "</svg>"])


def words(x: float, y: float, text: str, look: Words, *, room: float | None = None) -> str:
    """Return a text element, cut to `room` where that is given."""
    most = len(text) if room is None else int(room / CHARACTER_WIDTH)
    shown = text if len(text) <= most else text[: most - 1] + "…"
    halo = ' class="halo"' if look.halo else ""
    return (
        f'<text{halo} x="{coordinate(x)}" y="{coordinate(y)}" style="fill:{look.fill}" font-size="{look.size}" font-weight="{look.weight}" '
        f'font-style="{look.style}" text-anchor="{look.anchor}">{escape(neutralise(shown))}</text>'
    )


def ground(x: float, y: float, text: str, *, room: float) -> str:
    """Return paper below words whose baseline is at `y`, so that lines drawn before them do not cross them, in print either."""
    width = min((len(text) + 1) * CHARACTER_WIDTH, room)
    return f'<rect x="{coordinate(x)}" y="{coordinate(y - 13)}" width="{coordinate(width)}" height="18" style="fill:{PAPER}"/>'


def line(start: tuple[float, float], end: tuple[float, float], colour: str, *, width: float = 1, look: str = "") -> str:
    """Return a straight line; `look` holds further attributes."""
    (x1, y1), (x2, y2) = start, end
    places = f'x1="{coordinate(x1)}" y1="{coordinate(y1)}" x2="{coordinate(x2)}" y2="{coordinate(y2)}"'
    return f'<line {places} style="stroke:{colour}" stroke-width="{width}"{look}/>'


def circle(x: float, y: float, *, fill: str, stroke: str, radius: float = 4.5) -> str:
    """Return the mark of a point."""
    return f'<circle cx="{coordinate(x)}" cy="{coordinate(y)}" r="{radius}" style="fill:{fill};stroke:{stroke}" stroke-width="2"/>'


def dots(places: Sequence[tuple[float, float]], colour: str, *, width: float = 4) -> str:
    """Return a cloud of points as one path; where they lie close, they add up."""
    path = "".join(f"M{coordinate(x)} {coordinate(y)}h.01" for x, y in places)
    return f'<path d="{path}" style="fill:none;stroke:{colour};stroke-opacity:0.5" stroke-width="{width:g}" stroke-linecap="round"/>'


def polyline(places: Sequence[tuple[float, float]], colour: str, *, dash: str = "") -> str:
    """Return a line through places, dashed where a pattern is given."""
    pattern = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<polyline points="{_points(places)}" style="fill:none;stroke:{colour}" stroke-width="2.25" stroke-linejoin="round"{pattern}/>'


def polygon(places: Sequence[tuple[float, float]], colour: str) -> str:
    """Return an area without an edge, such as the band about a curve."""
    return f'<polygon points="{_points(places)}" style="fill:{colour};fill-opacity:0.7;stroke:none"/>'


def _points(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{coordinate(x)},{coordinate(y)}" for x, y in places)


def coordinate(number: float) -> str:
    """Return a coordinate to a tenth of a pixel, without needless zeros.

    >>> coordinate(12.04), coordinate(12.96), coordinate(-0.01)
    ('12', '13', '0')
    """
    text = f"{number:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text
