"""What is wrong with a table that somebody else wrote?  Every fault with its line, collected before anything is raised."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import get_args

from evalspec.artifacts.study import Disclosure
from evalspec.errors import Diagnostic, InputError, Location, counted, in_file_order

SHOWN = 50
"""Faults shown in full; the rest is counted."""

MOST = 10_000
"""Faults after which nothing more is read."""

LONGEST_QUOTE = 60
LISTED = 20


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults of one source, and how much of its content a message may repeat.

    Messages reach the console: under `disclosure: ids` they hold no text, choice or key, under `none` no id either. The names of columns
    are content too, because those of a file without a header are its first row.
    """

    disclosure: Disclosure = "full"
    found: list[Diagnostic] = field(default_factory=list)

    def add(self, location: Location, message: str, *, hint: str | None = None) -> None:
        """Note one fault; raises InputError when there are too many to go on."""
        self.found.append(Diagnostic(message, hint, location))
        if len(self.found) >= MOST:
            self.raise_if_any()

    def quote(self, text: object) -> str:
        """Return a space and a piece of the content in quotes, or nothing when it is not disclosed."""
        return f" {_shortened(text)}" if self.disclosure == "full" else ""

    def quote_id(self, identifier: object) -> str:
        """Return a space and a question's id in quotes, or nothing when it is not disclosed."""
        return f" {_shortened(identifier)}" if self.disclosure != "none" else ""

    def list_columns(self, names: Sequence[str]) -> str:
        """Name the columns of a file; of one that is not disclosed only their number."""
        if self.disclosure != "full":
            return f"the file has {counted(len(names), 'column')}"
        listed = ", ".join(_shortened(name)[1:-1] for name in names[:LISTED])
        return f"its columns are {listed}" + (", ..." if len(names) > LISTED else "")

    def raise_if_any(self) -> None:
        """Raise InputError with the faults in file order: the first ones in full, then how many more there are."""
        if self.found:
            raise InputError(self._listed())

    def _listed(self) -> Iterator[Diagnostic]:
        in_order = in_file_order(self.found)
        yield from in_order[:SHOWN]
        if len(in_order) > SHOWN:
            yield Diagnostic(f"and {len(in_order) - SHOWN:,} more" + ("; what follows was not read" if len(in_order) >= MOST else ""))


def strictest(disclosures: Iterable[Disclosure]) -> Disclosure:
    """Return the one of `disclosures` that shows least; a table that several benchmarks share may show no more."""
    from_full_to_none: tuple[Disclosure, ...] = get_args(Disclosure)
    return max(disclosures, key=from_full_to_none.index, default="none")


def _shortened(text: object) -> str:
    written = text if isinstance(text, str) else repr(text)
    kept = written if len(written) <= LONGEST_QUOTE else written[: LONGEST_QUOTE - 1] + "…"
    return "'" + "".join(mark if mark.isprintable() else "\N{REPLACEMENT CHARACTER}" for mark in kept) + "'"
