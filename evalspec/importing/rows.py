"""Which rows does a question file hold, and on which line does each stand?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from evalspec.artifacts.base import JsonValue
from evalspec.errors import InputError, Location
from evalspec.tables.faults import Faults
from evalspec.tables.foreign import read_columns
from evalspec.tables.rows import LONGEST_LINE, Row, csv_rows, jsonl_rows

MOST_TEXT = 1 << 30
"""Characters of one file's questions, which are all read more than once."""

ENDINGS = (".jsonl", ".csv", ".parquet")


def read_rows(file: str, content: bytes, faults: Faults) -> tuple[Row, ...]:
    """Return the rows of JSONL, CSV or Parquet, told by the ending of the name; rows that cannot be read are noted as faults.

    Raises InputError for another ending and for a Parquet file that cannot be read at all.
    """
    ending = PurePath(file).suffix.lower()
    if ending not in ENDINGS:
        raise InputError(f"'{file}' is no question file that can be read", hint=f"its name must end in {', '.join(ENDINGS)}")
    reader = {".jsonl": jsonl_rows, ".csv": csv_rows, ".parquet": _parquet}[ending]
    return tuple(reader(file, content, faults))


def _parquet(file: str, content: bytes, faults: Faults) -> Iterator[Row]:
    columns = read_columns(file, content, faults)
    total = 0
    for number, cells in enumerate(zip(*columns.values(), strict=True), start=1):
        location, length = Location(file, number), sum(map(_length, cells))
        total += length
        if total > MOST_TEXT:
            faults.add(location, f"the rows down to here have more than {MOST_TEXT:,} characters, which is the most that is read")
            return
        if length > LONGEST_LINE:
            faults.add(location, f"the row has {length:,} characters; at most {LONGEST_LINE:,} are read")
        else:
            yield Row(location, dict(zip(columns, cells, strict=True)))


def _length(cell: JsonValue) -> int:
    """Return the characters of a cell; values may share one text, so that a small file can hold very many."""
    if isinstance(cell, str):
        return len(cell)
    if isinstance(cell, list | dict):
        return sum(map(_length, cell.values() if isinstance(cell, dict) else cell))
    return 0
