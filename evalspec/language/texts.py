"""Can answers be generated and read as a study asks?"""

from __future__ import annotations

from collections.abc import Iterator

from evalspec.artifacts.base import JsonValue
from evalspec.language.draft import Draft
from evalspec.language.faults import Fault, lookup, name_of
from evalspec.language.positions import Pointer
from evalspec.pattern_check import groups_of, pattern_fault

SYNTAX = "patterns are written as for RE2, which never goes back in a text: without look-ahead, look-behind and back-references"
MANY_GROUPS = "the pattern cannot be used: it has more than one group, so that it is not said which of them is the answer"


def generated_texts(draft: Draft) -> Iterator[Fault]:
    """Yield the faults of benchmarks whose answers are generated: repeats that cannot differ, and patterns that are none."""
    for pointer, benchmark in draft.entries("benchmark"):
        scoring, place = benchmark.get("scoring"), (*pointer, "scoring")
        if not isinstance(scoring, dict) or scoring.get("method") != "sampled":
            continue
        repeats = scoring.get("repeats", 1)
        if isinstance(repeats, int) and repeats > 1 and lookup(draft.written, (*place, "temperature")) in {None, 0}:
            message = f"{name_of(pointer, draft.written)} asks {repeats} times at temperature 0, and gets the same text each time"
            yield Fault((*place, "repeats"), message, "write a temperature above 0, such as temperature: 1.0, or repeats: 1")
        for where, pattern in _patterns(scoring):
            fault = pattern_fault(pattern)
            if fault is not None:
                yield Fault((*place, *where), f"the pattern cannot be used: {fault}", SYNTAX)
            elif where[0] == "extract" and groups_of(pattern) > 1:
                yield Fault((*place, *where), MANY_GROUPS, "write (?:...) for groups that only hold together")


def _patterns(scoring: dict[str, JsonValue]) -> Iterator[tuple[Pointer, str]]:
    """Yield every pattern with its place."""
    for key in ("extract", "refusals"):
        entries = scoring.get(key)
        for index in range(len(entries) if isinstance(entries, list) else 0):
            where: Pointer = (key, index, "pattern") if key == "extract" else (key, index)
            pattern = lookup(scoring, where)
            if isinstance(pattern, str) and 0 < len(pattern) <= 500:
                yield where, pattern
