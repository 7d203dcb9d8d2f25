"""What does a plain word of YAML 1.2 stand for?  The core schema, less the spellings that other YAML versions read differently."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from evalspec.artifacts.base import JsonValue

MAX_DIGITS = 100

CONSTANTS: dict[str, bool | None] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
WHOLE_NUMBERS = ((re.compile(r"[-+]?[0-9]+"), 10), (re.compile(r"0o[0-7]+"), 8), (re.compile(r"0x[0-9a-fA-F]+"), 16))
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")

BARE_WORDS = {word: word in ("y", "yes", "on") for word in ("y", "yes", "on", "n", "no", "off")}
LEADING_ZERO = re.compile(r"[-+]?0[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?")
UNDERSCORES = re.compile(r"[-+]?[0-9][0-9_]*_[0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?")
SEXAGESIMAL = re.compile(r"[-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?")
NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


@dataclass(frozen=True, slots=True)
class PlainScalar:
    """The value of an unquoted word, or why it is refused and what to write instead."""

    value: JsonValue = None
    refused: str | None = None
    hint: str | None = None


def read_plain(text: str) -> PlainScalar:
    """Return what an unquoted scalar stands for in the YAML 1.2 core schema; ambiguous spellings are refused with a hint."""
    if text in CONSTANTS:
        return PlainScalar(CONSTANTS[text])
    for pattern, base in WHOLE_NUMBERS:
        if pattern.fullmatch(text):
            return _refusal(text) or _whole(text, base)
    if FLOAT.fullmatch(text):
        return _refusal(text) or _real(text)
    return _refusal(text) or PlainScalar(text)


def shortened(text: str, *, length: int = 60) -> str:
    """Return `text`, cut where it is too long for a message."""
    return text if len(text) <= length else text[: length - 3] + "..."


def quoted(text: str) -> str:
    """Return `text` as a double-quoted YAML string, for hints."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _refusal(text: str) -> PlainScalar | None:
    """Return why a spelling is refused, if other YAML readers would take it for something else."""
    short, as_text = shortened(text), f"{quoted(shortened(text))} for the text"
    if text.lower() in BARE_WORDS and text in (text.lower(), text.upper(), text.capitalize()):
        meaning = "true" if BARE_WORDS[text.lower()] else "false"
        return _refused(f"the bare word {text} is text in some YAML readers and {meaning} in others", f"write {as_text}, or {meaning}")
    if NOT_FINITE.fullmatch(text):
        return _refused(f"{text} is not a number that a study can use", f"write a finite number, or {as_text}")
    if LEADING_ZERO.fullmatch(text):
        without = shortened(re.sub(r"^([-+]?)0+(?=[0-9])", r"\1", text))
        return _refused(f"{short} begins with a zero, which makes it octal in some YAML readers", f"write {without}, or {as_text}")
    if SEXAGESIMAL.fullmatch(text):
        return _refused(f"{short} is a number to base 60 in some YAML readers", f"write {as_text}")
    if UNDERSCORES.fullmatch(text):
        return _refused(f"{short} is a number in some YAML readers and text in others", f"write {shortened(text.replace('_', ''))}, or {as_text}")
    return None


def _whole(text: str, base: int) -> PlainScalar:
    if len(text) > MAX_DIGITS:
        return _refused(f"a number of {len(text)} characters is too long (at most {MAX_DIGITS})", "put it in quotes if it is text")
    return PlainScalar(int(text, base))


def _real(text: str) -> PlainScalar:
    value = float(text)
    if not math.isfinite(value):
        return _refused(f"the number {shortened(text)} is too large", "put it in quotes if it is text")
    return PlainScalar(value + 0.0)  # -0.0 is the number 0, and would be printed as another one


def _refused(message: str, hint: str) -> PlainScalar:
    return PlainScalar(refused=message, hint=hint)
