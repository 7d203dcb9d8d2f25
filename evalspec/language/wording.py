"""What do the grammar's faults mean in plain words?  Our own text for every kind of fault that pydantic reports."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from evalspec.artifacts.base import JsonValue
from evalspec.language.faults import Fault, closest, lookup, name_of, shown, suggestion
from evalspec.language.patterns import PATTERN_HINTS, PATTERNS
from evalspec.language.positions import Pointer
from evalspec.language.scalars import quoted, shortened
from evalspec.language.shapes import Shape, pointer_of, shape_at
from evalspec.language.vocabulary import DESCRIPTIONS, EXAMPLES

TYPES = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "finite_number": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
}
BOUNDS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
NUMERIC = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?")
WORD = re.compile(r"`(\w+)")


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault as pydantic gives it, at its place in the study."""

    error: ErrorDetails
    pointer: Pointer
    content: JsonValue
    root: type[BaseModel]

    @property
    def value(self) -> JsonValue:
        """What is written there."""
        return lookup(self.content, self.pointer)

    @property
    def limits(self) -> Mapping[str, Any]:  # Any: pydantic's context holds numbers, texts and exceptions
        """What pydantic says about the limit that was missed."""
        return self.error.get("ctx", {})

    @property
    def shape(self) -> Shape | None:
        """What the grammar has at the place."""
        return shape_at(self.root, self.pointer, self.content)

    @property
    def name(self) -> str:
        """What the value is called in messages."""
        return name_of(self.pointer, self.content)


def fault_of(error: ErrorDetails, root: type[BaseModel], content: JsonValue) -> Fault | None:
    """Return a fault of the grammar in plain words; None for one that only follows from others."""
    problem = Problem(error, pointer_of(root, error["loc"], content), content, root)
    return WORDINGS.get(error["type"], _other)(problem)


def _missing(problem: Problem) -> Fault | None:
    key = problem.pointer[-1]
    if isinstance(key, int):
        return Fault(problem.pointer[:-1], f"{name_of(problem.pointer[:-1], problem.content)} must have at least {key + 1} entries")
    parent = shape_at(problem.root, problem.pointer[:-1], problem.content)
    if parent and _stands_for_several(parent, lookup(problem.content, problem.pointer[:-1])):
        return None  # which of them is meant is not known
    return Fault(
        problem.pointer, f'{name_of(problem.pointer[:-1], problem.content)} has no "{key}"', _example(parent.model if parent else None, key), "key"
    )


def _stands_for_several(shape: Shape, value: JsonValue) -> bool:
    """Return whether a mapping has the keys of several variants of which it may be one, such as `path` and `hub`."""
    return shape.key is None and isinstance(value, dict) and len(set(shape.variants) & set(value)) > 1


def _unknown_key(problem: Problem) -> Fault:
    parent = shape_at(problem.root, problem.pointer[:-1], problem.content)
    key = str(problem.pointer[-1])
    present = lookup(problem.content, problem.pointer[:-1])
    if parent and key in parent.variants and _stands_for_several(parent, present):
        where = name_of(problem.pointer[:-1], problem.content)
        return Fault(problem.pointer, f"{where} has both {parent.tag} and {key}", "keep one of the two", "key")
    free = [name for name in parent.keys if not isinstance(present, dict) or name not in present] if parent else []
    hint = suggestion(key, free, what="also allowed here")
    return Fault(problem.pointer, f'unknown key "{key}" in {name_of(problem.pointer[:-1], problem.content)}', hint, "key")


def _wrong_type(problem: Problem) -> Fault | None:
    wanted = TYPES[problem.error["type"]]
    if wanted == "a list" and _repeats_its_neighbour(problem):
        return None
    return _of_type(problem, wanted)


def _repeats_its_neighbour(problem: Problem) -> bool:
    """Return whether the entry before has the same fault, as in [a, b] for [[a, b]]."""
    *around, place = problem.pointer
    return isinstance(place, int) and place > 0 and _is_plain(lookup(problem.content, (*around, place - 1)))


def _is_plain(value: JsonValue) -> bool:
    return isinstance(value, str | int | float)


def _of_type(problem: Problem, wanted: str) -> Fault:
    if problem.value is None:
        return Fault(problem.pointer, f"{problem.name} is empty; it must be {wanted}", _how_to_fill(problem))
    return Fault(problem.pointer, f"{problem.name} must be {wanted}, not {shown(problem.value)}", _type_hint(wanted, problem))


def _how_to_fill(problem: Problem) -> str:
    last = problem.pointer[-1]
    if isinstance(last, int):
        return "write a value, or delete the entry"
    parent = shape_at(problem.root, problem.pointer[:-1], problem.content)
    return "write a value" if parent is None or last in parent.required else "write a value, or delete the key"


def _type_hint(wanted: str, problem: Problem) -> str | None:
    value = problem.value
    if wanted == "text" and isinstance(value, int | float):
        return "put it in quotes"
    if isinstance(value, str) and "number" in wanted:
        bare = value.replace(",", "").replace("_", "").strip()
        percent = bare.removesuffix("%")
        if bare.endswith("%") and NUMERIC.fullmatch(percent):
            return f"write the proportion: {float(percent) / 100:g}"
        return f"write {bare}" if NUMERIC.fullmatch(bare) else None
    if wanted == "a list":
        return _bracketed(problem) if _is_plain(value) else "begin every entry with -"
    return None


def _bracketed(problem: Problem) -> str:
    """Say how plain values become a list, or the lists of a list that they stand in without brackets of their own."""
    *around, place = problem.pointer
    entries = lookup(problem.content, tuple(around))
    kinds = get_args(problem.shape.type) if problem.shape else ()
    if not isinstance(place, int) or not isinstance(entries, list) or not all(map(_is_plain, entries)):
        return "write lists in a list, as in [[a, b]]" if kinds and get_origin(kinds[0]) is tuple else f"write [{problem.value}]"
    size = len(kinds) if kinds and Ellipsis not in kinds else len(entries)
    lists = [f"[{', '.join(map(str, entries[start : start + size]))}]" for start in range(0, len(entries), size)]
    return f"write [{', '.join(lists)}]"


def _out_of_range(problem: Problem) -> Fault:
    key, words = BOUNDS[problem.error["type"]]
    limit = problem.limits[key]
    number = f"{limit:,}" if isinstance(limit, int) else f"{limit:g}"
    return Fault(problem.pointer, f"{problem.name} must be {words} {number}, not {json.dumps(problem.value)}", _as_proportion(problem.value, limit))


def _as_proportion(value: JsonValue, most: float) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or most != 1 or not 1 < value <= 100:
        return None
    return f"proportions are written between 0 and 1: {value / 100:g} for {value:g} %"


def _not_among(problem: Problem) -> Fault:
    words = re.findall(r"'((?:[^'\\]|\\.)*)'|(-?\d+)", str(problem.limits["expected"]))
    allowed = [text or number for text, number in words]
    listed = " or ".join([", ".join(allowed[:-1]), allowed[-1]] if len(allowed) > 1 else allowed)
    close = closest(problem.value, allowed) if isinstance(problem.value, str) else None
    hint = f'did you mean "{close}"?' if close else None
    return Fault(problem.pointer, f"{problem.name} must be {listed}, not {shown(problem.value)}", hint)


def _unknown_variant(problem: Problem) -> Fault:
    shape = problem.shape
    variants = shape.variants if shape else ()
    if shape and shape.key:
        pointer = (*problem.pointer, shape.key)
        written = lookup(problem.content, pointer)
        what = f"unknown {shape.key} {quoted(written)}" if isinstance(written, str) else f'"{shape.key}" must be text, not {shown(written)}'
        hint = suggestion(written, variants, what="there are") if isinstance(written, str) else None
        return Fault(pointer, f"{what} of {problem.name}" if len(problem.pointer) > 1 else what, hint)
    return _no_variant(problem)


def _no_variant(problem: Problem) -> Fault:
    shape = problem.shape
    variants = shape.variants if shape else ()
    if not isinstance(problem.value, dict):
        return _of_type(problem, TYPES["model_type"])
    if shape and shape.key:
        return _no_choice(problem, shape.key, variants)
    close = next((close for key in problem.value if (close := closest(key, variants))), None)
    hint = f'did you mean "{close}"?' if close else None
    written = f"; it has {', '.join(problem.value)}" if problem.value else ""
    return Fault(problem.pointer, f"{problem.name} must have one of the keys {', '.join(variants)}{written}", hint, "key")


def _no_choice(problem: Problem, key: str, variants: tuple[str, ...]) -> Fault:
    """Word that the key which chooses among variants is not there, at the key that may stand for it."""
    written = closest(key, problem.value) if isinstance(problem.value, dict) else None
    if written:
        return Fault((*problem.pointer, written), f'unknown key "{written}" in {problem.name}', f'did you mean "{key}"?', "key")
    return Fault((*problem.pointer, key), f'{problem.name} has no "{key}"', f"there are: {', '.join(variants)}", "key")


def _length_of_list(problem: Problem) -> Fault | None:
    least, most = problem.limits.get("min_length"), problem.limits.get("max_length")
    length = len(problem.value) if isinstance(problem.value, list) else 0
    if least is not None and length < least:
        return Fault(problem.pointer, f"{problem.name} must have at least {least} {'entry' if least == 1 else 'entries'}, not {length}")
    if most is not None and length > most:
        return Fault(problem.pointer, f"{problem.name} must have at most {most} {'entry' if most == 1 else 'entries'}, not {length}")
    return None  # pydantic counts only the entries that are right


def _length_of_text(problem: Problem) -> Fault:
    least, most = problem.limits.get("min_length"), problem.limits.get("max_length")
    length = len(str(problem.value))
    if most is not None:
        return Fault(problem.pointer, f"{problem.name} has {length:,} characters; at most {most:,} are allowed")
    return Fault(problem.pointer, f"{problem.name} must not be empty" if length == 0 else f"{problem.name} must have at least {least} characters")


def _pattern(problem: Problem) -> Fault | None:
    shape = problem.shape
    if shape and shape.refers_to:
        return None  # no such id exists, which the check of references says better
    pattern = str(problem.limits["pattern"])
    wanted = PATTERNS.get(pattern, f"of the form {pattern}")
    got = quoted(shortened(str(problem.value)))
    return Fault(problem.pointer, f"{problem.name} must be {wanted}; got {got}", PATTERN_HINTS.get(pattern))


def _own_check(problem: Problem) -> Fault:
    """Word a fault that an analysis's options report themselves; it stands at the first key of the entry that the text names."""
    told = str(problem.limits["error"])
    value = problem.value
    named = next((word for word in WORD.findall(told) if isinstance(value, dict) and word in value), None)
    pointer = (*problem.pointer, named) if named else problem.pointer
    return Fault(pointer, f"{name_of(problem.pointer, problem.content)}: {told}", None, "key" if named else "value", sound=True)


def _other(problem: Problem) -> Fault:
    told = problem.error["msg"]
    return Fault(problem.pointer, f"{problem.name}: {told[:1].lower()}{told[1:]}")


def _example(model: type[BaseModel] | None, key: str) -> str | None:
    """Return how a missing key may be written, or what it means."""
    if model is None:
        return None
    name = {"StudyDocument": "Study"}.get(model.__name__, model.__name__)
    names = [f"{owner}.{key}" for owner in (name, "Analysis" if name.endswith("Analysis") else name)]
    for known in names:
        if known in EXAMPLES and not isinstance(EXAMPLES[known], list | dict):
            example = EXAMPLES[known]
            return (
                f"add, for example, {key}: {quoted(example) if isinstance(example, str) and ' ' in example else json.dumps(example).strip(chr(34))}"
            )
    field = model.model_fields.get(key)
    told = next((DESCRIPTIONS[known] for known in names if known in DESCRIPTIONS), field.description if field else None)
    return f"{key}: {told}" if told else None


WORDINGS: Mapping[str, Callable[[Problem], Fault | None]] = {
    "missing": _missing,
    "extra_forbidden": _unknown_key,
    **dict.fromkeys(TYPES, _wrong_type),
    **dict.fromkeys(BOUNDS, _out_of_range),
    "literal_error": _not_among,
    "enum": _not_among,
    "union_tag_invalid": _unknown_variant,
    "union_tag_not_found": _no_variant,
    "too_short": _length_of_list,
    "too_long": _length_of_list,
    "string_too_short": _length_of_text,
    "string_too_long": _length_of_text,
    "string_pattern_mismatch": _pattern,
    "value_error": _own_check,
    "assertion_error": _own_check,
}
