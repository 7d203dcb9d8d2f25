"""What does a YAML syntax error mean in plain words?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from yaml.error import MarkedYAMLError

from evalspec.language.positions import Span


class Mark(Protocol):
    """A place as PyYAML gives it; line and column count from 0."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Wording:
    """Which of the parser's texts is meant, what we say instead, and whether the fault stands where the construct began."""

    problem: str
    message: str
    hint: str | None = None
    at_start: bool = False


COLON = "quote text that holds a colon followed by a space, and check that keys of one mapping begin in one column"
QUOTE = "put the same quote at the end of the text, or delete this one"
WORDINGS = (
    Wording(r"found character '\\t'", "a tab stands where YAML allows only spaces", "replace the tabs of this file by spaces"),
    Wording(r"found character '(.)' that cannot", "the character {0} cannot begin a value", "put the text in quotes"),
    Wording(r"mapping values are not allowed", "a colon stands where no key can be", COLON),
    Wording(r"sequence entries are not allowed", "a list entry cannot begin here", "begin the list on a line of its own, or write it as [a, b]"),
    Wording(r"could not find expected ':'", "this line is not of the form key: value", "write a colon and a space after the key", at_start=True),
    Wording(
        r"expected '[,?].*got '<stream end>'",
        "this bracket is never closed",
        "put the bracket that closes it at the end of the list or mapping",
        at_start=True,
    ),
    Wording(r"expected ',' or '(.)'.*on another line", "this bracket is not closed: {0} is missing", None, at_start=True),
    Wording(r"expected ',' or '(.)'", "a comma or {0} is missing here", None),
    Wording(r"quoted scalar.*unexpected end of stream", "this quote is never closed", QUOTE, at_start=True),
    Wording(r"quoted scalar.*unexpected document separator", "this quote is never closed", QUOTE, at_start=True),
    Wording(r"unknown escape character '(.*)'", "\\{0} is not an escape of double-quoted text", "write \\\\ for a backslash, or use single quotes"),
    Wording(r"escape sequence of", "this escape needs more hexadecimal digits", "write \\\\ for a backslash, or use single quotes"),
    Wording(
        r"block collection.*expected <block end>",
        "this line is not an entry of the list above",
        "begin entries with - in one column, and the keys of an entry in another",
    ),
    Wording(r"expected <block end>, but found '(?:<scalar>|,)'", "text follows a value that has ended", "put the whole text in one pair of quotes"),
    Wording(r"expected <block end>, but found '([\]}])'", "{0} closes nothing", None),
    Wording(r"expected <block end>", "this line does not fit its mapping", "check the indentation: keys of one mapping begin in one column"),
    Wording(r"expected the node content, but found '(.*)'", "a value is missing before {0}", None),
    Wording(r"tag", "tags (!) are not part of the study language", "delete the tag; put text in quotes"),
    Wording(r"incompatible YAML|directive", "YAML directives are not part of the study language", "delete the line that begins with %"),
    Wording(r"anchor|alias", "anchors and aliases are not part of the study language", "write the value out, or put text in quotes"),
    Wording(r"expected '<document start>'", "text follows the end of the document", "a study file holds one document"),
    Wording(r"block scalar", "the line after | or > is not understood", "write | or > alone, then the text indented below"),
)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where a syntax error stands, what it means, and how to mend it."""

    place: Span
    message: str
    hint: str | None = None


def explain(error: MarkedYAMLError) -> Explanation:
    """Return what a syntax error means in plain words."""
    apart = error.context_mark and error.problem_mark and error.context_mark.line != error.problem_mark.line
    told = f"{error.context or ''}: {error.problem or ''}{', on another line' if apart else ''}"
    for wording in WORDINGS:
        found = re.search(wording.problem, told)
        if found:
            mark = error.context_mark if wording.at_start and error.context_mark else error.problem_mark
            return Explanation(Span(*position(mark)), wording.message.format(*found.groups()), wording.hint)
    told = (error.problem or error.context or "").strip()
    return Explanation(Span(*position(error.problem_mark or error.context_mark)), f"not valid YAML: {told}")


def position(mark: Mark | None) -> tuple[int, int]:
    """Return line and column of a mark, counted from 1."""
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)
