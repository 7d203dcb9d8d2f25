"""Does what is written fit the grammar?"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from pydantic import ValidationError

from evalspec.artifacts.base import JsonValue, sha256_hex
from evalspec.artifacts.study import API_VERSIONS, Study
from evalspec.language.faults import Fault, closest, lookup, shown
from evalspec.language.grammar import OWN_KEYS, Grammar
from evalspec.language.positions import Pointer, Source
from evalspec.language.wording import fault_of

FIRST_STUDY = "evalspec init DIR writes a first study"


def version_faults(source: Source) -> tuple[Fault, ...]:
    """Return why the rest is not read at all: no mapping, or a version of the language that is not ours."""
    supported = f"supported: {', '.join(API_VERSIONS)}"
    content = source.content
    if () in source.faulty or ("apiVersion",) in source.faulty:
        return ()
    if content is None:
        return (Fault((), "the study is empty", FIRST_STUDY),)
    if not isinstance(content, dict):
        return (Fault((), f"a study is a mapping of keys to values, not {shown(content)}", FIRST_STUDY),)
    if "apiVersion" not in content:
        close = closest("apiVersion", content)
        told = f'; it has "{close}"' if close else ""
        return (Fault(("apiVersion",), f'the study has no "apiVersion"{told}', f"add apiVersion: {API_VERSIONS[0]}; {supported}", "key"),)
    if content["apiVersion"] not in API_VERSIONS:
        written = shown(content["apiVersion"])
        return (Fault(("apiVersion",), f'"apiVersion" is {written}, which this version of evalspec does not read', supported),)
    return ()


def grammar_faults(grammar: Grammar, source: Source) -> tuple[Fault, ...]:
    """Return the faults of the grammar, one per place, without those that only follow from others."""
    found: dict[tuple[Pointer, str], Fault] = {}
    for fault in _faults(grammar, source.content):
        if not any(fault.pointer[:length] in source.faulty for length in range(len(fault.pointer) + 1)):
            found.setdefault((fault.pointer, fault.on), fault)
    unknown = [fault.pointer for fault in found.values() if fault.on == "key" and _is_written(fault.pointer, source.content)]
    return tuple(fault for fault in found.values() if not _is_misspelt(fault, unknown, source.content))


def study_of(text: bytes, content: JsonValue, grammar: Grammar) -> Study:
    """Return the study with defaults filled in; `content` has no fault."""
    document = grammar.document.model_validate_json(json.dumps(content), by_alias=True, by_name=False)
    plain = document.model_dump(mode="json", by_alias=True)
    benchmarks = [benchmark["id"] for benchmark in plain["benchmarks"]]
    plain["analyses"] = [
        {
            "id": entry["id"],
            "kind": entry["kind"],
            "benchmarks": entry["benchmarks"] or benchmarks,
            "options": {key: value for key, value in entry.items() if key not in OWN_KEYS},
            "planned": not entry["exploratory"],
        }
        for entry in plain["analyses"]
    ]
    return Study.model_validate_json(json.dumps({**plain, "source_sha256": sha256_hex(text)}))


def _faults(grammar: Grammar, content: JsonValue) -> Iterator[Fault]:
    try:
        grammar.document.model_validate_json(json.dumps(content), by_alias=True, by_name=False)
    except ValidationError as error:
        for told in error.errors(include_url=False):
            fault = fault_of(told, grammar.document, content)
            if fault:
                yield fault


def _is_written(pointer: Pointer, content: JsonValue) -> bool:
    parent = lookup(content, pointer[:-1])
    return isinstance(parent, dict) and pointer[-1] in parent


def _is_misspelt(fault: Fault, unknown: Iterable[Pointer], content: JsonValue) -> bool:
    """Return whether a key is missing only because it is there under a wrong name, which is a fault of its own."""
    if fault.on != "key" or not fault.pointer or _is_written(fault.pointer, content):
        return False
    key = str(fault.pointer[-1])
    return any(pointer[:-1] == fault.pointer[:-1] and closest(str(pointer[-1]), [key]) for pointer in unknown)
