"""What is wrong at a place of the study, and how do messages call that place?"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evalspec.artifacts.base import JsonValue
from evalspec.language.positions import On, Pointer
from evalspec.language.scalars import quoted, shortened

LISTED = 12
LISTS: Mapping[str, Pointer] = {"model": ("models",), "benchmark": ("benchmarks",), "analysis": ("analyses",), "check": ("thresholds", "checks")}
"""The lists whose entries have ids, by what one entry is called."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong at a value, or at its key; `sound` when each value is right by itself and only does not fit the others."""

    pointer: Pointer
    message: str
    hint: str | None = None
    on: On = "value"
    sound: bool = False


def name_of(pointer: Pointer, content: JsonValue) -> str:
    """Return what a place is called in messages: the study, `"seed"`, `model "a"`, `"source.path" of model "a"`."""
    entry, rest = _split(pointer)
    name = _entry_name(entry, content) if entry else "the study"
    if not rest:
        return name
    return f'"{_dotted(rest)}" of {name}' if entry else f'"{_dotted(rest)}"'


def lookup(content: JsonValue, pointer: Pointer) -> JsonValue:
    """Return the value at a place; None where there is none."""
    for step in pointer:
        if isinstance(content, dict) and isinstance(step, str):
            content = content.get(step)
        elif isinstance(content, list) and isinstance(step, int) and step < len(content):
            content = content[step]
        else:
            return None
    return content


def closest(written: str, allowed: Iterable[str]) -> str | None:
    """Return the allowed word that looks most like what was written, if one does."""
    plain = {word.lower().replace("-", "_"): word for word in allowed}
    close = difflib.get_close_matches(written.lower().replace("-", "_"), plain, n=1, cutoff=0.6)
    return plain[close[0]] if close else None


def suggestion(written: str, allowed: Iterable[str], *, what: str = "allowed here") -> str | None:
    """Return "did you mean" with the closest of the allowed words, or the list of them; None where nothing is allowed."""
    words = tuple(dict.fromkeys(allowed))
    close = closest(written, words)
    if close:
        return f'did you mean "{close}"?'
    if not words:
        return None
    more = f" and {len(words) - LISTED} more" if len(words) > LISTED else ""
    return f"{what}: {', '.join(words[:LISTED])}{more}"


def shown(value: JsonValue) -> str:
    """Return a value as messages show it."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {shortened(str(value))}"
        case str():
            return f"the text {quoted(shortened(' '.join(value.split())))}"
        case list():
            return "a list"
        case _:
            return "a mapping"


def _split(pointer: Pointer) -> tuple[Pointer, Pointer]:
    """Split a place into the entry with an id that it lies in, if it lies in one, and the rest."""
    for parent in LISTS.values():
        if pointer[: len(parent)] == parent and len(pointer) > len(parent):
            return pointer[: len(parent) + 1], pointer[len(parent) + 1 :]
    return (), pointer


def _entry_name(entry: Pointer, content: JsonValue) -> str:
    singular = next(kind for kind, parent in LISTS.items() if parent == entry[:-1])
    identifier = lookup(content, (*entry, "id"))
    if isinstance(identifier, str) and identifier:
        return f'{singular} "{shortened(identifier)}"'
    return f"{singular} {int(entry[-1]) + 1}"


def _dotted(steps: Pointer) -> str:
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return shortened(text)
