"""Where does every key and value of a study file stand?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from evalspec.artifacts.base import JsonValue
from evalspec.errors import Diagnostic, Location

MAX_EXCERPT = 240

Pointer = tuple[str | int, ...]
"""Where a value stands: keys and indexes from the top of the document."""

On = Literal["key", "value"]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one line; line and column count from 1."""

    line: int
    column: int
    length: int = 1


@dataclass(frozen=True, slots=True)
class Page:
    """A text file in lines, and the one way to point into it."""

    file: str
    lines: tuple[str, ...]

    def diagnostic(self, span: Span, message: str, hint: str | None = None) -> Diagnostic:
        """Return a fault with its place and the line of text that it stands on."""
        line = self.lines[span.line - 1] if span.line <= len(self.lines) else ""
        excerpt = line[: max(MAX_EXCERPT, span.column + 40)].replace("\t", " ") if span.column <= MAX_EXCERPT else None
        return Diagnostic(message, hint, Location(self.file, span.line, span.column), excerpt, min(span.length, MAX_EXCERPT))

    def text(self, span: Span) -> str:
        """Return the text of a span."""
        return self.lines[span.line - 1][span.column - 1 : span.column - 1 + span.length]


@dataclass(frozen=True, slots=True)
class Source:
    """A study file as plain values; `faulty` holds the places whose value is unknown because it was refused."""

    page: Page
    content: JsonValue
    keys: Mapping[Pointer, Span]
    values: Mapping[Pointer, Span]
    faults: tuple[Diagnostic, ...]
    faulty: frozenset[Pointer]

    def span(self, pointer: Pointer, *, on: On = "value") -> Span:
        """Return where a value or its key stands; for a place that is not in the text, where the nearest enclosing one stands."""
        first, second = (self.keys, self.values) if on == "key" else (self.values, self.keys)
        for length in range(len(pointer), -1, -1):
            found = first.get(pointer[:length]) or second.get(pointer[:length])
            if found:
                return found
        return Span(1, 1)

    def location(self, pointer: Pointer) -> Location:
        """Return the place of a value, or of the nearest enclosing one that is in the text."""
        span = self.span(pointer)
        return Location(self.page.file, span.line, span.column)
