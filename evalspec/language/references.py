"""Does every id name something, and only one thing?"""

from __future__ import annotations

from collections.abc import Iterator

from evalspec.language.draft import Draft
from evalspec.language.faults import LISTS, Fault, name_of, suggestion
from evalspec.language.positions import Source
from evalspec.language.scalars import quoted
from evalspec.language.shapes import references


def duplicate_ids(draft: Draft, source: Source) -> Iterator[Fault]:
    """Yield a fault for every id that an earlier entry of the same list has."""
    for kind in LISTS:
        first: dict[str, int] = {}
        for pointer, entry in draft.entries(kind):
            identifier = entry.get("id")
            if not isinstance(identifier, str):
                continue
            line = source.span((*pointer, "id")).line
            if identifier in first:
                where = f"{'.'.join(map(str, LISTS[kind]))}, in lines {first[identifier]} and {line}"
                message = f"the id {quoted(identifier)} stands twice in {where}"
                yield Fault((*pointer, "id"), message, f"give this {kind} another id")
            first.setdefault(identifier, line)


def unknown_references(draft: Draft) -> Iterator[Fault]:
    """Yield a fault for every id that names no model, benchmark or analysis of the study."""
    for pointer, kind, identifier in references(draft.document, draft.content):
        known = draft.ids(kind)
        if known is not None and identifier not in known:
            where = name_of(pointer[:2] if pointer[0] == "analyses" else pointer[:3], draft.written)
            plural = LISTS[kind][-1]
            yield Fault(
                pointer,
                f"{where} names the {kind} {quoted(identifier)}, which the study does not have",
                suggestion(identifier, known, what=f"its {plural} are"),
            )


def repeated_benchmarks(draft: Draft) -> Iterator[Fault]:
    """Yield a fault for every benchmark that an analysis names twice."""
    for pointer, entry in draft.entries("analysis"):
        named = entry.get("benchmarks")
        for index, identifier in enumerate(named if isinstance(named, list) else ()):
            if isinstance(named, list) and isinstance(identifier, str) and named.index(identifier) < index:
                message = f"{name_of(pointer, draft.written)} names the benchmark {quoted(identifier)} twice"
                yield Fault((*pointer, "benchmarks", index), message, "name it once")
