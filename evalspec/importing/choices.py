"""What can be chosen?  The choices of one row, from a list, a JSON list in a cell, texts with labels, or one column for each."""

from __future__ import annotations

from dataclasses import dataclass

from evalspec.artifacts.base import JsonValue
from evalspec.artifacts.questions import LETTERS
from evalspec.errors import counted
from evalspec.foreign import parse_json
from evalspec.tables.faults import Faults
from evalspec.tables.rows import Row

MOST_CHOICES = len(LETTERS)
ABOUT_DUPLICATES = "correct the question, or set 'duplicate_choices: keep' in the source to ask it as it stands"


@dataclass(frozen=True, slots=True)
class Choices:
    """The choices of one question in their order, and the labels that its answer may name them by."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]


def read_choices(row: Row, column: str | tuple[str, ...], faults: Faults, *, keep_duplicates: bool = False) -> Choices | None:
    """Return the choices of a row; None, with the faults noted, when they cannot be used."""
    cell, labels = (_from_columns(row, column), None) if isinstance(column, tuple) else _unwrapped(row, column, faults)
    if cell is None:
        return None
    if not isinstance(cell, list):
        faults.add(row.location, "the choices are not a list", hint='write a list of texts: ["first choice", "second choice"]')
        return None
    texts = tuple(text for text in cell if isinstance(text, str))
    if len(texts) < len(cell):
        position = next(place for place, text in enumerate(cell) if not isinstance(text, str))
        faults.add(row.location, f"choice {_name(position)} is not a text", hint="put numbers and truth values in quotes")
        return None
    if not _usable(texts, row, faults, keep_duplicates=keep_duplicates):
        return None
    return Choices(texts, labels if labels and len(labels) == len(texts) else tuple(LETTERS[: len(texts)]))


def _unwrapped(row: Row, column: str, faults: Faults) -> tuple[JsonValue, tuple[str, ...] | None]:
    cell = row.cells.get(column)
    labels = None
    if isinstance(cell, str) and cell.lstrip().startswith("["):
        try:
            cell = parse_json(cell)
        except ValueError as error:
            faults.add(row.location, f"the choices are {error}", hint='a cell holds them as a JSON list: ["first choice", "second choice"]')
            return None, None
    if isinstance(cell, dict) and isinstance(cell.get("text"), list):
        named = cell.get("label")
        labels = tuple(map(str, named)) if isinstance(named, list) else None
        cell = cell["text"]
    if cell is None or cell == "":
        faults.add(row.location, "the choices are missing")
        return None, None
    return cell, labels


def _from_columns(row: Row, columns: tuple[str, ...]) -> list[JsonValue]:
    """Return the choices in column order; empty columns at the end mean that this question has fewer."""
    cells = [row.cells.get(column) for column in columns]
    while cells and cells[-1] in (None, ""):
        cells.pop()
    return ["" if cell is None else cell for cell in cells]


def _usable(texts: tuple[str, ...], row: Row, faults: Faults, *, keep_duplicates: bool) -> bool:
    before = len(faults.found)
    if not 2 <= len(texts) <= MOST_CHOICES:
        faults.add(row.location, f"the question has {counted(len(texts), 'choice')}; it needs 2 to {MOST_CHOICES}")
    seen: dict[str, int] = {}
    for position, text in enumerate(text.strip() for text in texts):
        if not text:
            faults.add(row.location, f"choice {_name(position)} is empty")
        elif text in seen and not keep_duplicates:
            message = f"choices {_name(seen[text])} and {_name(position)} are the same{faults.quote(text)}"
            faults.add(row.location, message, hint=ABOUT_DUPLICATES)
        seen.setdefault(text, position)
    return len(faults.found) == before


def _name(position: int) -> str:
    return LETTERS[position] if position < len(LETTERS) else str(position + 1)
