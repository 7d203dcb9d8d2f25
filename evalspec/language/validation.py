"""Does what is written fit the grammar?"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from pydantic import ValidationError

from evalspec.artifacts.base import JsonValue, sha256_hex
from evalspec.artifacts.study import API_VERSIONS, Study
from evalspec.language.faults import Fault, closest, lookup, shown
from evalspec.language.grammar import OWN_KEYS, Grammar
from evalspec.language.positions import Pointer, Source
from evalspec.language.wording import fault_of
from evalspec.protocols import Catalogue

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


def study_of(text: bytes, content: JsonValue, grammar: Grammar, catalogue: Catalogue) -> Study:
    """Return the study with defaults filled in, those of a gate where a check holds a bound of an analysis; `content` has no fault."""
    document = grammar.document.model_validate_json(json.dumps(content), by_alias=True, by_name=False)
    plain = document.model_dump(mode="json", by_alias=True)
    benchmarks = [benchmark["id"] for benchmark in plain["benchmarks"]]
    checks = (plain["thresholds"] or {"checks": []})["checks"]
    bounded = {check["analysis"] for check in checks if check["bound"] != "value"}
    plain["analyses"] = [
        {
            "id": entry["id"],
            "kind": entry["kind"],
            "benchmarks": entry["benchmarks"] or benchmarks,
            "options": _options(entry, lookup(content, ("analyses", place)), catalogue if entry["id"] in bounded else {}),
            "planned": not entry["exploratory"],
        }
        for place, entry in enumerate(plain["analyses"])
    ]
    return Study.model_validate_json(json.dumps({**plain, "source_sha256": sha256_hex(text)}))


def _options(entry: Mapping[str, JsonValue], written: JsonValue, bounded: Catalogue) -> dict[str, JsonValue]:
    """Return the options of an analysis; where a bound of it decides, those left open take the defaults of a gate."""
    options = {key: value for key, value in entry.items() if key not in OWN_KEYS}
    defaults = bounded[str(entry["kind"])].gate_defaults if bounded else {}
    return options | {key: value for key, value in defaults.items() if isinstance(written, dict) and key not in written}


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
