"""What numbers does a page show, and are they those of the files that it names?

A page is a pure function of a run's files and of the sources that composed it, so that it can be composed again and held against the signed one.
Coordinates of drawings may differ by what another processor's rounding moves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from html.parser import HTMLParser

from evalspec.artifacts.base import JsonValue
from evalspec.reporting.documents import Documents, length_of

__all__ = ["PageFault", "ShownNumber", "number_faults", "shown_numbers", "text_faults"]

ROUNDED = 0.11
"""How far a coordinate, which is written to a tenth of a pixel, may move."""

AROUND = 60
MOST_LINES = 20
LONGEST = 300

_DRAWING = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
_NUMBER = re.compile(r'<data value="([^"]*)" data-(path|count-of)="([^"]*)">([^<]*)</data>')
_TAG = re.compile(r"<[^>]*>")
_COORDINATE = re.compile(r"-?\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class ShownNumber:
    """A number of a page: the place in the files that it names, `counted` where it is how many entries stand there, its value and its words."""

    path: str
    counted: bool
    value: str
    text: str


@dataclass(frozen=True, slots=True)
class PageFault:
    """A place of a page that is not as the files have it: the address that a number names, or a line."""

    place: str
    shown: str
    stands: str

    def __str__(self) -> str:
        place, shown, stands = (text if len(text) <= LONGEST else f"{text[:LONGEST]}…" for text in (self.place, self.shown, self.stands))
        return f"differs at report.html, {place}: the page has {shown}, the files have {stands}"


def shown_numbers(html: str) -> tuple[ShownNumber, ...]:
    """Return every `<data value>` of a page, in order."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return tuple(reader.numbers)


def number_faults(numbers: Sequence[ShownNumber], documents: Documents) -> Iterator[PageFault]:
    """Yield every number that is not the one at the place that it names."""
    for number in numbers:
        place = f"{number.path}, counted" if number.counted else number.path or "a number that names no place"
        try:
            found = documents.find(number.path).value
            stands: JsonValue = length_of(found) if number.counted else found
        except (KeyError, TypeError):
            yield PageFault(place, number.value, "nothing there")
            continue
        if not _is(number.value, stands):
            yield PageFault(place, number.value, json.dumps(stands))


def text_faults(signed: str, composed: str) -> Iterator[PageFault]:
    """Yield where a page reads otherwise than the one that its files compose to: its numbers with their words first, then other lines."""
    if signed == composed:
        return
    first, second = _NUMBER.findall(signed), _NUMBER.findall(composed)
    if len(first) != len(second):
        yield PageFault("its numbers", f"{len(first):,}", f"{len(second):,}")
    for place, (one, other) in enumerate(zip(first, second, strict=False), start=1):
        if one != other:
            named, meant = unescape(one[2]), unescape(other[2])
            where = meant if one[1:3] == other[1:3] else f"number {place}, which names {named} and not {meant}"
            yield PageFault(where, f"{one[0]} as {unescape(one[3])!r}", f"{other[0]} as {unescape(other[3])!r}")
    yield from _lines(_settled(_NUMBER.sub("<data>", signed), composed), _NUMBER.sub("<data>", composed))


def _lines(signed: str, composed: str) -> Iterator[PageFault]:
    """Yield the lines that differ, the first ones; where lines were added or taken away, the first of them alone."""
    first, second = signed.split("\n"), composed.split("\n")
    places = [place for place, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]]
    if len(first) != len(second):
        place = places[0] if places else min(len(first), len(second))
        yield PageFault(f"line {place + 1}", _excerpt(first, second, place), _excerpt(second, first, place))
        return
    for place in places[:MOST_LINES]:
        yield PageFault(f"line {place + 1}", _excerpt(first, second, place), _excerpt(second, first, place))
    if len(places) > MOST_LINES:
        yield PageFault(f"{len(places) - MOST_LINES} more lines", "other text", "other text")


def _excerpt(lines: Sequence[str], others: Sequence[str], place: int) -> str:
    """Return a line about where it first differs from the other one."""
    if place >= len(lines):
        return "its end"
    line, other = lines[place], others[place] if place < len(others) else ""
    start = next((index for index, pair in enumerate(zip(line, other, strict=False)) if pair[0] != pair[1]), min(len(line), len(other)))
    return repr(line[max(0, start - AROUND) : start + AROUND])


def _settled(page: str, composed: str) -> str:
    """Return a page with every drawing that is alike but for rounding put as it is composed."""
    drawn = iter(_DRAWING.findall(composed))

    def settle(match: re.Match[str]) -> str:
        other = next(drawn, "")
        return other if _same_drawing(match[0], other) else match[0]

    return _DRAWING.sub(settle, page)


def _same_drawing(first: str, second: str) -> bool:
    """Return whether two drawings are equal but for coordinates that lie close together; words in them must be the same."""
    if _TAG.sub("<>", first) != _TAG.sub("<>", second):
        return False
    return all(_same_tag(*pair) for pair in zip(_TAG.findall(first), _TAG.findall(second), strict=True))


def _same_tag(first: str, second: str) -> bool:
    if first == second:
        return True
    if _COORDINATE.sub("#", first) != _COORDINATE.sub("#", second):
        return False
    pairs = zip(_COORDINATE.findall(first), _COORDINATE.findall(second), strict=True)
    return all(one == other or abs(float(one) - float(other)) <= ROUNDED for one, other in pairs)


def _is(written: str, value: JsonValue) -> bool:
    """Return whether a number is written as `value` is, which is exact: what JSON writes of a number, it reads back."""
    return isinstance(value, int | float) and not isinstance(value, bool) and written == json.dumps(value)


class _Reader(HTMLParser):
    """Collects the numbers of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: list[ShownNumber] = []
        self._open: dict[str, str | None] | None = None
        self._text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "data":
            self._finish()
            self._open = dict(attrs)

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "data":
            self._finish()

    def close(self) -> None:
        super().close()
        self._finish()

    def _finish(self) -> None:
        if self._open is not None:
            given, counted = self._open, "data-count-of" in self._open
            path = given.get("data-count-of" if counted else "data-path") or ""
            self.numbers.append(ShownNumber(path, counted, given.get("value") or "", "".join(self._text)))
        self._open, self._text = None, []
