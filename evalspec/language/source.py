"""What does the text say?  Strict YAML 1.2 to plain values, with the place of every key and value.

PyYAML's scanner and parser give events; the loop over them is ours and does not recurse. What YAML readers understand differently, or
what a study has no use for (anchors, tags, directives, further documents), is refused. All such faults are collected; only a syntax
error, or a text beyond the limits, stops.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import yaml
from yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, DocumentStartEvent, Event, MappingStartEvent, NodeEvent, ScalarEvent
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner

from evalspec.artifacts.base import JsonValue
from evalspec.errors import Diagnostic, StudyError
from evalspec.language.decoding import decode
from evalspec.language.positions import Page, Pointer, Source, Span
from evalspec.language.scalars import quoted, read_plain, shortened
from evalspec.language.syntax import Mark, explain, position

MAX_DEPTH = 40
MAX_NODES = 50_000
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def read_source(text: bytes, file: str) -> Source:
    """Return the values of a study file with their places; raises StudyError for text that cannot be read at all."""
    page = decode(text, file)
    builder = _Builder(page)
    for event in _events(page, builder.stop):
        builder.accept(event)
    return Source(page, builder.content, builder.keys, builder.values, tuple(builder.faults), frozenset(builder.faulty))


class _Events(Reader, Scanner, Parser):
    """PyYAML's own text to events, without its constructors."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)


def _events(page: Page, stop: Callable[[Span, str, str | None], StudyError]) -> Iterator[Event]:
    """Yield the parser's events; raises what `stop` returns where the syntax is broken."""
    parser = _Events("\n".join(page.lines))
    try:
        while parser.check_event():
            yield parser.get_event()  # type: ignore[no-untyped-call]
    except yaml.MarkedYAMLError as error:
        found = explain(error)
        raise stop(found.place, found.message, found.hint) from error
    except (ValueError, OverflowError) as error:  # PyYAML lets them through for an escape beyond Unicode and for huge version numbers
        raise stop(_start(parser.get_mark()), "this escape or version number is out of range", None) from error


@dataclass(slots=True)
class _Open:
    """A mapping or list whose end has not come yet; `container` is None where values are dropped."""

    pointer: Pointer
    container: dict[str, JsonValue] | list[JsonValue] | None
    keyed: bool
    lines: dict[str, int] = field(default_factory=dict)
    key: str | None = None
    key_read: bool = False


class _Builder:
    """Collects values, places and faults while events come in."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.content: JsonValue = None
        self.keys: dict[Pointer, Span] = {}
        self.values: dict[Pointer, Span] = {}
        self.faults: list[Diagnostic] = []
        self.faulty: set[Pointer] = set()
        self._open: list[_Open] = []
        self._nodes = 0
        self._documents = 0

    def accept(self, event: Event) -> None:
        """Take in one event."""
        if isinstance(event, DocumentStartEvent):
            self._start_document(event)
        elif isinstance(event, CollectionEndEvent):
            self._open.pop()
        elif isinstance(event, NodeEvent):
            self._count(event)
            parent = self._open[-1] if self._open else None
            if parent and parent.keyed and not parent.key_read:
                self._key(parent, event)
            else:
                self._value(parent, event)

    def stop(self, span: Span, message: str, hint: str | None) -> StudyError:
        """Return the error that ends reading, with the faults found so far."""
        self._fault(span, message, hint)
        return StudyError(self.faults)

    def _fault(self, span: Span, message: str, hint: str | None) -> None:
        self.faults.append(self.page.diagnostic(span, message, hint))

    def _start_document(self, event: DocumentStartEvent) -> None:
        self._documents += 1
        span = _start(event.start_mark, 3)
        if self._documents > 1:
            raise self.stop(span, "a second document begins here", "a study file holds one document: delete the line ---")
        if self.page.lines[span.line - 1].startswith("%"):
            self._fault(span, "YAML directives are not part of the study language", "delete the line that begins with %")

    def _count(self, event: NodeEvent) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise self.stop(self._span(event), f"a study may hold {MAX_NODES:,} values; here begins one more", "keep questions in files of their own")
        if len(self._open) >= MAX_DEPTH and isinstance(event, CollectionStartEvent):
            raise self.stop(
                self._span(event), f"this is nested deeper than {MAX_DEPTH} levels", "no part of a study needs that many: look for stray brackets"
            )

    def _key(self, parent: _Open, event: NodeEvent) -> None:
        parent.key_read, parent.key = True, None
        span = self._span(event)
        if not isinstance(event, ScalarEvent):
            self._refuse_key(parent, span, "a key must be a word", "write key: value")
            if isinstance(event, CollectionStartEvent):
                self._open.append(_Open(parent.pointer, None, keyed=isinstance(event, MappingStartEvent)))
            return
        self._refuse_properties(event)
        plain = read_plain(event.value) if event.implicit[0] else None
        if plain and plain.value == "<<":
            self._refuse_key(parent, span, "merge keys (<<) are not part of the study language", "write the keys out where they are needed")
        elif plain and not isinstance(plain.value, str):
            message = plain.refused or f"a key must be a word; {shortened(event.value) or 'nothing'} is not text"
            self._refuse_key(parent, span, message, f"write {quoted(shortened(event.value))} for the text")
        elif CONTROL.search(event.value):
            self._refuse_key(parent, span, "a key holds a control character", "leave it out")
        elif event.value in parent.lines:
            first = parent.lines[event.value]
            lines = f"in line {first}" if first == span.line else f"in lines {first} and {span.line}"
            self._fault(span, f'the key "{shortened(event.value)}" stands twice in one mapping, {lines}', "keep one of the two")
        else:
            self._start_key(parent, event.value, span)

    def _start_key(self, parent: _Open, key: str, span: Span) -> None:
        parent.lines[key] = span.line
        if parent.container is not None:
            parent.key = key
            self.keys[(*parent.pointer, key)] = span

    def _refuse_key(self, parent: _Open, span: Span, message: str, hint: str) -> None:
        """Report a key that cannot be; what the mapping lacks is then unknown, so the whole of it counts as faulty."""
        self._fault(span, message, hint)
        self.faulty.add(parent.pointer)

    def _value(self, parent: _Open | None, event: NodeEvent) -> None:
        pointer = _place(parent)
        if parent:
            parent.key_read = False
        value, refused = self._content(event, kept=pointer is not None)
        if pointer is not None:
            self.values[pointer] = self._span(event)
            self._attach(parent, pointer, value)
            if refused:
                self.faulty.add(pointer)
        if isinstance(event, CollectionStartEvent):
            container = value if pointer is not None and isinstance(value, dict | list) else None
            around = pointer if pointer is not None else parent.pointer if parent else ()
            self._open.append(_Open(around, container, keyed=isinstance(event, MappingStartEvent)))

    def _content(self, event: NodeEvent, *, kept: bool) -> tuple[JsonValue, bool]:
        """Return the value that an event stands for, and whether it was refused."""
        if isinstance(event, AliasEvent):
            if kept:  # below << the merge key is the fault
                self._fault(self._span(event), f"aliases (*{event.anchor}) are not part of the study language", "write the value out")
            return None, True
        tagged = self._refuse_properties(event)
        if isinstance(event, ScalarEvent):
            value, refused = self._scalar(event)
            return value, refused or tagged
        return ({} if isinstance(event, MappingStartEvent) else []), tagged

    def _attach(self, parent: _Open | None, pointer: Pointer, value: JsonValue) -> None:
        if parent is None:
            self.content = value
        elif isinstance(parent.container, list):
            parent.container.append(value)
        elif isinstance(parent.container, dict):
            parent.container[str(pointer[-1])] = value

    def _scalar(self, event: ScalarEvent) -> tuple[JsonValue, bool]:
        """Return the value of a scalar, and whether it was refused."""
        if event.implicit[0]:
            plain = read_plain(event.value)
            if plain.refused:
                self._fault(self._span(event), plain.refused, plain.hint)
            return plain.value, plain.refused is not None
        found = CONTROL.search(event.value)
        if found:
            self._fault(self._span(event), f"the text holds the control character U+{ord(found.group()):04X}", "leave it out")
        return event.value, found is not None

    def _refuse_properties(self, event: NodeEvent) -> bool:
        """Report an anchor or a tag; return whether there is a tag, which leaves the value unknown."""
        tagged = getattr(event, "tag", None) is not None
        if event.anchor:
            message = f"anchors (&{event.anchor}) are not part of the study language"
            self._fault(self._span(event), message, "delete it and write the value out where it is needed")
        if tagged:
            self._fault(self._span(event), "tags (!) are not part of the study language", 'delete the tag; put text in quotes, as in "1.10"')
        return tagged

    def _span(self, event: NodeEvent) -> Span:
        """Return the stretch of a scalar on its first line, or the place where a collection begins."""
        start = _start(event.start_mark)
        if isinstance(event, CollectionStartEvent):
            return start
        line, column = position(event.end_mark)
        last = column if line == start.line else len(self.page.lines[start.line - 1]) + 1
        return Span(start.line, start.column, max(1, last - start.column))


def _place(parent: _Open | None) -> Pointer | None:
    """Return where the next value stands, or None where it is dropped."""
    if parent is None:
        return ()
    if isinstance(parent.container, list):
        return (*parent.pointer, len(parent.container))
    if isinstance(parent.container, dict) and parent.key is not None:
        return (*parent.pointer, parent.key)
    return None


def _start(mark: Mark | None, length: int = 1) -> Span:
    line, column = position(mark)
    return Span(line, column, length)
