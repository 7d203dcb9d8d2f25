"""What of the study is sound enough to be checked against the rest of it?"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from evalspec.artifacts.base import JsonValue
from evalspec.language.faults import LISTS, lookup
from evalspec.language.grammar import OWN_KEYS
from evalspec.language.positions import Pointer
from evalspec.protocols import AnyAnalysis, Catalogue

Entry = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Draft:
    """The study as written, without the values that are known to be wrong: checks between its parts see only sound values."""

    content: JsonValue
    written: JsonValue
    document: type[BaseModel]
    catalogue: Catalogue

    def entries(self, kind: str) -> Iterator[tuple[Pointer, Entry]]:
        """Yield place and content of every sound entry of one list."""
        entries = lookup(self.content, LISTS[kind])
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, dict):
                yield (*LISTS[kind], index), entry

    def ids(self, kind: str) -> tuple[str, ...] | None:
        """Return the ids that one list declares, also those of faulty entries; None when some are not known."""
        entries = lookup(self.written, LISTS[kind])
        if not isinstance(entries, list):
            return None
        ids = tuple(entry.get("id") if isinstance(entry, dict) else None for entry in entries)
        known = tuple(identifier for identifier in ids if isinstance(identifier, str))
        return known if len(known) == len(ids) and known else None

    def find(self, kind: str, identifier: JsonValue) -> Entry | None:
        """Return the entry of that id, if it is sound so far and the only one."""
        found = [entry for _, entry in self.entries(kind) if entry.get("id") == identifier]
        return found[0] if isinstance(identifier, str) and len(found) == 1 else None

    def analysis(self, entry: Entry) -> AnyAnalysis | None:
        """Return the analysis that an entry of `analyses` asks for, if its kind is sound."""
        kind = entry.get("kind")
        return self.catalogue.get(kind) if isinstance(kind, str) else None

    def benchmarks_of(self, analysis: Entry) -> tuple[str, ...] | None:
        """Return the ids of the benchmarks that an analysis speaks of; None when they are not known."""
        named = analysis.get("benchmarks")
        if named is None:
            return self.ids("benchmark")
        if not isinstance(named, list):
            return None
        ids = tuple(identifier for identifier in named if isinstance(identifier, str))
        return ids if len(ids) == len(named) else None


def options_of(analysis: AnyAnalysis, entry: Entry) -> BaseModel | None:
    """Return the options that an entry of `analyses` gives its analysis; None where they are faulty."""
    own: dict[str, Any] = {key: value for key, value in entry.items() if key not in OWN_KEYS}
    try:
        options: BaseModel = analysis.options.model_validate_json(json.dumps(own))
    except ValidationError:
        return None
    return options


def in_clusters(benchmark: Entry) -> bool:
    """Return whether an entry of `benchmarks` declares clusters: its subjects, or a field of their own."""
    return "clusters" in (lookup(benchmark, ("groups", "subject")), lookup(benchmark, ("groups", "cluster")))


def without(content: JsonValue, faulty: Iterable[Pointer]) -> JsonValue:
    """Return a copy of `content` without the values at these places; a list keeps its length, with None in their stead."""
    return _copy(content, (), frozenset(faulty))


def _copy(value: JsonValue, pointer: Pointer, faulty: AbstractSet[Pointer]) -> JsonValue:
    if pointer in faulty:
        return None
    if isinstance(value, dict):
        return {key: _copy(inner, (*pointer, key), faulty) for key, inner in value.items() if (*pointer, key) not in faulty}
    if isinstance(value, list):
        return [_copy(inner, (*pointer, index), faulty) for index, inner in enumerate(value)]
    return value
