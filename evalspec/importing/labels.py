"""What is said about a question beside what is asked: its subject, its cluster, and its known problems?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evalspec.artifacts.base import JsonValue
from evalspec.foreign import parse_json
from evalspec.importing.columns import Columns
from evalspec.tables.faults import Faults
from evalspec.tables.rows import Row

LONGEST_NAME = 200
NO_FLAG = ("", "ok")
"""What a cell says about a question without a known problem, in any mixture of capitals."""


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of one question."""

    subject: str | None = None
    cluster: str | None = None
    flags: tuple[str, ...] = ()


def read_labels(row: Row, columns: Columns, faults: Faults) -> Labels:
    """Return the labels of a row; those that cannot be read are noted as faults and left out."""
    return Labels(
        subject=_name(row, columns.subject, "subject", faults),
        cluster=_name(row, columns.cluster, "cluster", faults),
        flags=tuple(dict.fromkeys(_flags(row, columns.flags, faults))),
    )


def _name(row: Row, column: str | None, part: str, faults: Faults) -> str | None:
    cell = row.cells.get(column) if column else None
    if isinstance(cell, int) and not isinstance(cell, bool) and part == "cluster":
        cell = str(cell)
    if cell is None or cell == "":
        return None
    return cell if _usable(cell, part, row, faults) and isinstance(cell, str) else None


def _flags(row: Row, column: str | None, faults: Faults) -> Iterator[str]:
    cell = row.cells.get(column) if column else None
    if isinstance(cell, str) and cell.lstrip().startswith("["):
        try:
            cell = parse_json(cell)
        except ValueError as error:
            faults.add(row.location, f"the flags are {error}", hint="write one flag as text, or several as a JSON list of texts")
            return
    for flag in cell if isinstance(cell, list) else [cell]:
        if flag is not None and _usable(flag, "flag", row, faults) and isinstance(flag, str) and flag.strip().casefold() not in NO_FLAG:
            yield flag.strip()


def _usable(cell: JsonValue, part: str, row: Row, faults: Faults) -> bool:
    if not isinstance(cell, str):
        faults.add(row.location, f"the {part} is not a text", hint="put numbers in quotes")
    elif part != "flag" and not cell.strip():
        faults.add(row.location, f"the {part} is missing")
    elif len(cell) > LONGEST_NAME or not cell.isprintable():
        faults.add(row.location, f"the {part} is longer than {LONGEST_NAME} characters or holds characters that cannot be printed")
    else:
        return True
    return False
