"""What is wrong with a question file?  Every fault with its line, collected before anything is raised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from evalspec.artifacts.study import Disclosure
from evalspec.errors import Diagnostic, InputError, Location

SHOWN = 50
"""Faults shown in full; the rest is counted."""

LONGEST_QUOTE = 60


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults of one source, and how much of its content a message may repeat.

    Messages reach the console: under `disclosure: ids` they hold no text, choice or key, under `none` no id either.
    """

    disclosure: Disclosure = "full"
    found: list[Diagnostic] = field(default_factory=list)

    def add(self, location: Location, message: str, *, hint: str | None = None) -> None:
        """Note one fault."""
        self.found.append(Diagnostic(message, hint, location))

    def quote(self, text: object) -> str:
        """Return a space and a piece of the content in quotes, or nothing when it is not disclosed."""
        return f" {_shortened(text)}" if self.disclosure == "full" else ""

    def quote_id(self, identifier: object) -> str:
        """Return a space and a question's id in quotes, or nothing when it is not disclosed."""
        return f" {_shortened(identifier)}" if self.disclosure != "none" else ""

    def raise_if_any(self) -> None:
        """Raise InputError with the faults in file order: the first ones in full, then how many more there are."""
        if self.found:
            raise InputError(self._listed())

    def _listed(self) -> Iterator[Diagnostic]:
        in_order = sorted(self.found, key=lambda fault: fault.location or Location("", 0))
        yield from in_order[:SHOWN]
        if len(in_order) > SHOWN:
            yield Diagnostic(f"and {len(in_order) - SHOWN} more")


def _shortened(text: object) -> str:
    written = text if isinstance(text, str) else repr(text)
    kept = written if len(written) <= LONGEST_QUOTE else written[: LONGEST_QUOTE - 1] + "…"
    return "'" + "".join(mark if mark.isprintable() else "\N{REPLACEMENT CHARACTER}" for mark in kept) + "'"
