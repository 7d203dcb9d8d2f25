"""How is the study language explained?  A reference in Markdown, written from the grammar, so that the two cannot part."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from evalspec.language.grammar import build_grammar
from evalspec.language.limits import DESCRIPTIVE
from evalspec.language.patterns import PATTERNS
from evalspec.language.scaffold import scaffold
from evalspec.protocols import Catalogue

Definition = dict[str, Any]
"""A part of the JSON Schema (Any: schemas nest without end)."""

INTRODUCTION = """# The study language

<!-- Written by `evalspec.language.reference`; change the grammar or that module, then run `make golden`. -->

A study is a YAML file that says **what** is to be known: which models, which questions, which analyses, which limits. It says nothing about
the machine; devices, folders and keys are options of the command line or stand in `evalspec.toml`.

`evalspec validate study.yaml` names every fault at once, each with its line and column. `evalspec schema` prints the JSON Schema for editors;
with the first line `# yaml-language-server: $schema=evalspec.schema.json` an editor completes keys and marks faults while you type.

## How the text is read

- YAML 1.2, UTF-8, one document, at most 1 MiB, 50,000 values and 40 levels.
- `true` and `false` are the only truth values. The bare words `yes`, `no`, `on`, `off`, `y`, `n` are refused: other YAML readers disagree about them.
- `1e-3` is a number. Refused, with what to write instead: `010`, `1_000`, `1:30`, `.inf`, `.nan`. A date is text.
- A key stands once in its mapping. Anchors (`&`), aliases (`*`), merge keys (`<<`), tags (`!`), directives (`%`) and tabs are refused.
- Unknown keys are refused; a number is not text, so a version is written `"1.10"`.
- Paths are read from the folder of the study file. They may not leave the folder of the nearest `evalspec.toml` above it; without one, the git
  repository; without that, the study's folder. Absolute paths, `~`, and links that lead outside are refused.
- Ids have 1 to 64 characters: letters, digits, `.`, `_`, `-`; a letter or a digit comes first.

## Outcomes of a check

A check holds a bound of an interval against one limit: `low` for `at_least` and `above`, `high` for `at_most` and `below`. It **passes** when
the whole interval is on the right side, **fails** when the whole interval is on the wrong side, and is **inconclusive** between. With
`bound: value` the point value decides alone: two outcomes and no error control.
"""


def reference(catalogue: Catalogue) -> str:
    """Return the language reference over the given analyses, in Markdown."""
    schema = build_grammar(catalogue).schema()
    definitions: dict[str, Definition] = {"Study": schema, **_dict(schema["$defs"])}
    parts = [INTRODUCTION, *(_section(name, definitions, catalogue) for name in _reached(definitions))]
    parts.append(
        "## A whole study\n\nWhat `evalspec init` writes for two checkpoints:\n\n```yaml\n"
        + scaffold(("checkpoints/first", "checkpoints/second"))
        + "```\n"
    )
    return "\n".join(parts)


def _dict(value: Any) -> dict[str, Any]:  # Any: a part of a schema
    return value if isinstance(value, dict) else {}


def _reached(definitions: dict[str, Definition]) -> Iterator[str]:
    """Yield the names of definitions in the order in which a reader meets them."""
    waiting, met = ["Study"], set[str]()
    while waiting:
        name = waiting.pop(0)
        if name in met:
            continue
        met.add(name)
        yield name
        inner = [found for found in re.findall(r"#/\$defs/(\w+)", _text_of(definitions[name])) if found not in met]
        waiting = [*dict.fromkeys(inner), *waiting]


def _text_of(definition: Definition) -> str:
    """Return the keys of a definition as text, without the sorted tables that would spoil the order."""
    keys = {key: {name: part for name, part in schema.items() if name != "discriminator"} for key, schema in definition["properties"].items()}
    return json.dumps(keys)


def _section(name: str, definitions: dict[str, Definition], catalogue: Catalogue) -> str:
    definition = definitions[name]
    required = definition.get("required", ())
    lines = [f"## {_heading(name, definition)}", "", definition["description"], "", "| key | value | default | meaning |", "|---|---|---|---|"]
    for key, schema in definition["properties"].items():
        default = "**required**" if key in required else _default(schema)
        lines.append(f"| `{key}` | {_values(schema, definitions)} | {default} | {_cell(schema.get('description', ''))} |")
    kind = _kind(definition)
    if kind:
        metrics = ", ".join(f"`{metric}`" for metric in catalogue[kind].metrics if metric not in catalogue[kind].predictions)
        lines += ["", _checkable(kind, metrics)]
        lines += ["", *(f"- {source}" for source in catalogue[kind].sources)] if catalogue[kind].sources else []
    return "\n".join(lines) + "\n"


def _checkable(kind: str, metrics: str) -> str:
    if not metrics:
        return "It gives no estimate that a check can use."
    if kind == DESCRIPTIVE:
        return f"It only describes: no check can use its estimates, {metrics}."
    return f"Estimates that a check can use as `metric`: {metrics}."


def _heading(name: str, definition: Definition) -> str:
    kind = _kind(definition)
    return f"Analysis `{kind}`" if kind else re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).capitalize()


def _kind(definition: Definition) -> str | None:
    kind = definition["properties"].get("kind", {}).get("const")
    return kind if isinstance(kind, str) else None


def _default(schema: Definition) -> str:
    default = schema.get("default")
    return "" if default is None or isinstance(default, dict | list) else f"`{json.dumps(default).strip(chr(34))}`"


def _values(schema: Definition, definitions: dict[str, Definition]) -> str:
    """Return what may be written for a key, in a few words."""
    variants = [variant for variant in (schema.get("anyOf") or schema.get("oneOf") or ()) if variant.get("type") != "null"]
    if variants:
        return " or ".join(_values(variant, definitions) for variant in variants)
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        heading = _heading(name, definitions[name])
        return f"[{heading}](#{heading.lower().replace('`', '').replace(' ', '-')})"
    if "const" in schema or "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        entries = schema["prefixItems"] if "prefixItems" in schema else [schema["items"]]
        return f"list of {' and '.join(dict.fromkeys(_values(entry, definitions) for entry in entries))}"
    return _simple(schema)


def _simple(schema: Definition) -> str:
    words = {"string": "text", "integer": "whole number", "number": "number", "boolean": "`true` or `false`", "object": "mapping"}
    if schema.get("pattern") in PATTERNS and "refers_to" not in schema:
        return PATTERNS[schema["pattern"]].split(":")[0].removeprefix("a ")
    if "refers_to" in schema:
        return f"id of a {schema['refers_to']}".replace("a analysis", "an analysis")
    bounds = [
        f"{words_of} {schema[key]:g}"
        for key, words_of in (("minimum", "from"), ("exclusiveMinimum", "above"), ("maximum", "to"), ("exclusiveMaximum", "below"))
        if key in schema and abs(schema[key]) < 1e15
    ]
    return " ".join([words.get(schema.get("type", ""), "any value"), *bounds])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
