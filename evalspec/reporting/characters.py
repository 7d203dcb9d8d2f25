"""Which characters may stand in a report?  Others are shown as ‹U+XXXX›, so that nothing invisible changes what a reader sees."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container
from functools import lru_cache

from markupsafe import Markup

__all__ = ["finalize", "neutralise", "replace_absent"]

_BEYOND_ASCII = re.compile(r"[^\t\n\x20-\x7e]")

# Controls, format characters (bidi, zero width, soft hyphen, tags), lone surrogates, private and unassigned code points, line separators.
_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

# Unicode's Default_Ignorable_Code_Point that are letters or marks by category, without the emoji variation selectors.
_UNSEEN_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")


def neutralise(text: str) -> str:
    """Return `text` with every character that is not seen replaced by its code point; tab and line feed stay."""
    return _BEYOND_ASCII.sub(lambda match: _visible(match[0]), text)


def replace_absent(text: str, present: Container[int]) -> str:
    """Return `text` with every character whose code point is not in `present` replaced by its code point."""
    return _BEYOND_ASCII.sub(lambda match: match[0] if ord(match[0]) in present else _code_point(match[0]), text)


def finalize(value: object) -> object:
    """Neutralise whatever a template prints; markup stays markup."""
    if isinstance(value, Markup):
        return Markup(neutralise(value))  # noqa: S704 - replacing characters by ‹U+XXXX› adds no markup
    return neutralise(value) if isinstance(value, str) else value


@lru_cache(maxsize=4096)
def _visible(character: str) -> str:
    if unicodedata.category(character) in _UNSEEN_CATEGORIES or character in _UNSEEN_LETTERS:
        return _code_point(character)
    return character


def _code_point(character: str) -> str:
    return f"‹U+{ord(character):04X}›"
