"""What does the text of a trust file hold, and what is wrong with its form?  Every fault at once, with its place and how it is mended."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from evalspec.artifacts.base import JsonValue
from evalspec.errors import Diagnostic, Location, SigningError, in_file_order
from evalspec.signing.files import printable

SHAPE_HINT = "see docs/verification.md for the form of a trust file"
DEPTH_LIMIT = 8
LONGEST_SHOWN = 60
LONGEST_EXCERPT = 240
FIELDS: Mapping[str, str] = {
    "name": "your own name for the signer, 1 to 200 characters",
    "fingerprint": "SHA256: and 44 characters, as `evalspec keygen` prints it",
    "certificate": "the content of signer.crt, as a block of text",
    "valid_from": "a time with its zone, such as '2026-11-29T00:00:00Z'",
    "valid_until": "a time with its zone, such as '2031-11-29T00:00:00Z'",
    "revoked_at": "a time with its zone, such as '2027-03-01T00:00:00Z'; leave it out where the key was not revoked",
}
"""What an entry may say, and how."""

Loc = Sequence[str | int]


class TrustText:
    """The text of a trust file, its values, and where each of them stands. Raises SigningError with every fault that YAML itself has no word for."""

    def __init__(self, path: Path, text: str) -> None:
        """Read the text; every scalar in it is text too."""
        self._path, self._lines = path, text.splitlines()
        self._refuse(self._odd_events(text))
        try:
            self._top = yaml.compose(text, Loader=yaml.BaseLoader)
        except yaml.YAMLError as error:
            raise SigningError(self._of_yaml(error)) from error
        self._refuse(self._odd_keys(self._top))
        self.content = _plain(self._top)

    def refused(self, error: ValidationError) -> SigningError:
        """Return the faults of the form, in our own words."""
        found = [(one["type"], one["loc"], str(one.get("ctx", {}).get("error", ""))) for one in error.errors(include_url=False)]
        entries = _lookup(self.content, ("signers",))  # those that are not right are not counted, which is no fault of its own
        return SigningError(in_file_order(self._worded(*one) for one in found if not (entries and one[:2] == ("too_short", ("signers",)))))

    def fault(self, loc: Loc, message: str, hint: str = SHAPE_HINT, *, key: bool = False) -> Diagnostic:
        """Return a fault at a value, or at its key; at the nearest thing around it where it is not written."""
        return self._at(_mark(self._top, loc, key=key), message, hint)

    def _at(self, mark: Any, message: str, hint: str = SHAPE_HINT) -> Diagnostic:  # Any: one of two kinds of marks that PyYAML has
        line, column = (mark.line, mark.column) if mark else (0, 0)
        excerpt = printable(self._lines[line][:LONGEST_EXCERPT]) if line < len(self._lines) and column < LONGEST_EXCERPT else None
        return Diagnostic(f"the trust file is not right: {message}", hint, Location(str(self._path), line + 1, column + 1), excerpt)

    def _of_yaml(self, error: yaml.YAMLError) -> Diagnostic:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or getattr(error, "reason", None) or "it ends or begins where it may not"
        return self._at(mark, f"it is not YAML: {printable(str(reason))}")

    def _refuse(self, found: Iterator[Diagnostic]) -> None:
        if faults := tuple(found):
            raise SigningError(faults)

    def _odd_events(self, text: str) -> Iterator[Diagnostic]:
        """Yield what YAML allows and a trust file does not have."""
        depth = 0
        try:
            for event in yaml.parse(text, Loader=yaml.BaseLoader):
                mark = event.start_mark
                if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) or getattr(event, "tag", None):
                    yield self._at(mark, "anchors, aliases and tags are not allowed", "write the value itself")
                if isinstance(event, yaml.ScalarEvent) and any("\ud800" <= character <= "\udfff" for character in event.value):
                    yield self._at(mark, "half a surrogate pair is no character")
                depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
                if depth > DEPTH_LIMIT:
                    yield self._at(mark, f"it is nested deeper than {DEPTH_LIMIT} levels")
                    return
        except yaml.YAMLError as error:
            yield self._of_yaml(error)
        except (ValueError, OverflowError):  # PyYAML makes any number a character, such as that of \\UFFFFFFFF
            yield self._at(None, "an escape in it stands for no character")

    def _odd_keys(self, node: yaml.Node | None) -> Iterator[Diagnostic]:
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    yield self._at(key.start_mark, "a key must be a word")
                elif key.value in seen:
                    yield self._at(key.start_mark, f"the key {key.value!r} stands twice", "keep one of them")
                else:
                    seen.add(key.value)
                yield from self._odd_keys(value)
        elif isinstance(node, yaml.SequenceNode):
            for item in node.value:
                yield from self._odd_keys(item)

    def _worded(self, kind: str, loc: Loc, reason: str) -> Diagnostic:
        """Say in our own words what pydantic found."""
        if len(loc) < 3:
            return self._worded_above(kind, loc, reason)
        entry, field = f"entry {int(loc[1]) + 1}", str(loc[2])
        value = _lookup(self.content, loc[:3])
        if kind == "missing":
            return self.fault(loc, f"{entry} has no {field!r}", f"add {field}: {FIELDS[field]}")
        if kind == "extra_forbidden":
            close = difflib.get_close_matches(field, FIELDS, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"an entry may have {', '.join(FIELDS)}"
            return self.fault(loc[:3], f"{entry} has {printable(field)!r}, which no entry has", hint, key=True)
        why = f": {reason}" if reason else ""
        return self.fault(loc[:3], f"{field!r} of {entry} cannot be {_shown(value)}{why}", f"allowed is {FIELDS[field]}")

    def _worded_above(self, kind: str, loc: Loc, reason: str) -> Diagnostic:
        """Say what is wrong with the file as a whole, with its list, or with an entry as a whole."""
        if reason:
            return self.fault(loc, f"entry {int(loc[1]) + 1}: {reason}" if len(loc) == 2 else reason)
        if kind == "extra_forbidden":
            return self.fault(loc, f"it has {printable(str(loc[0]))!r}, which no trust file has", "all there is is a list under `signers`", key=True)
        if not loc or kind == "missing":
            return self.fault((), f"it must be a list under `signers`, not {_shown(self.content)}")
        if len(loc) == 1:
            told = "it names no signer" if kind == "too_short" else f"'signers' must be a list of entries, not {_shown(_lookup(self.content, loc))}"
            return self.fault(loc, told)
        return self.fault(loc, f"entry {int(loc[1]) + 1} must be a mapping of {', '.join(FIELDS)}, not {_shown(_lookup(self.content, loc))}")


def _plain(node: yaml.Node | None) -> Any:  # Any: JSON, which the recursion cannot tell mypy
    """Return the value of a node whose keys are words; its depth was limited before."""
    if isinstance(node, yaml.MappingNode):
        return {key.value: _plain(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item) for item in node.value]
    return None if node is None else node.value


def _mark(node: yaml.Node | None, loc: Loc, *, key: bool) -> yaml.Mark | None:
    mark = node.start_mark if node is not None else None
    for step in loc:
        if isinstance(node, yaml.MappingNode) and (found := next((pair for pair in node.value if pair[0].value == step), None)):
            node, mark = found[1], found[0 if key else 1].start_mark
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            mark = node.start_mark
        else:
            break
    return mark


def _lookup(content: JsonValue, loc: Loc) -> JsonValue:
    for step in loc:
        if isinstance(content, dict) and isinstance(step, str):
            content = content.get(step)
        elif isinstance(content, list) and isinstance(step, int):
            content = content[step]
    return content


def _shown(value: JsonValue) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = str(value or "").strip()
    return f"'{printable(text[:LONGEST_SHOWN])}{'…' if len(text) > LONGEST_SHOWN else ''}'" if text else "empty"
