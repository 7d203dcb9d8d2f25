"""Which rows does a JSONL or CSV file hold, and on which line does each stand?"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evalspec.artifacts.base import JsonValue
from evalspec.errors import Location, counted
from evalspec.foreign import parse_json
from evalspec.tables.faults import Faults

LONGEST_LINE = 1 << 20
"""Bytes in one line of JSONL, characters in one row of other tables."""

MOST_ROWS = 5_000_000
MOST_COLUMNS = 20_000
MOST_CELLS = 50_000_000
"""Rows times columns of one table."""

QUOTED = re.compile(rb'"[^"]*"')
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SEPARATORS = {b";": "semicolons", b"\t": "tabs"}
"""What stands between cells in files that are called CSV and are none, by name."""


ONE_A_LINE = "each line is one JSON object, and an object stands on one line"


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its place (for Parquet the line is the row's number, counted from 1) and its cells by column."""

    location: Location
    cells: Mapping[str, JsonValue]


def jsonl_rows(file: str, content: bytes, faults: Faults, *, constant: Callable[[str], JsonValue] | None = None) -> Iterator[Row]:
    """Yield the objects of a JSONL file; lines that hold none are noted as faults. `constant` reads NaN and infinities, as in `parse_json`."""
    if _is_too_long(file, content, faults):
        return
    begun = False
    for line, ended in enumerate(io.BytesIO(content.removeprefix(BYTE_ORDER_MARK)), start=1):
        written = ended.removesuffix(b"\n")
        location = Location(file, line)
        if not begun and _is_one_document(written):
            faults.add(location, "the file is one JSON list or object over many lines; nothing of it was read", hint=ONE_A_LINE)
            return
        begun = begun or bool(written.strip())
        if len(written) > LONGEST_LINE:
            faults.add(location, f"the line has {len(written):,} bytes; at most {LONGEST_LINE:,} are read")
        elif written.strip():
            cells = _json_object(written, location, faults, constant)
            if cells is not None:
                yield Row(location, cells)


def csv_rows(file: str, content: bytes, faults: Faults) -> Iterator[Row]:
    """Yield the rows of a CSV file by the columns of its header; rows that do not fit it are noted as faults."""
    if _is_too_long(file, content, faults):
        return
    try:
        content.decode()
    except UnicodeDecodeError as error:
        faults.add(Location(file, content.count(b"\n", 0, error.start) + 1), "the line is not UTF-8", hint="save the file as UTF-8")
        return
    reader = csv.reader(io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline=""), strict=True)
    columns: list[str] | None = None
    location = Location(file, 1)
    try:
        for number, cells in enumerate(reader):
            if number > MOST_ROWS:
                faults.add(location, f"the file has more than {MOST_ROWS:,} rows, which is the most that is read")
                return
            if columns is None:
                columns = cells
                if not _is_header(cells, content, location, faults):
                    return
            elif cells and _fits(cells, len(columns), location, faults):
                yield Row(location, dict(zip(columns, cells, strict=True)))
            location = Location(file, reader.line_num + 1)
    except csv.Error as error:
        faults.add(location, f"not CSV: {error}; nothing after this row was read", hint='put cells in "quotes" and write a quote inside as ""')


def check_columns(names: Sequence[str], location: Location, faults: Faults) -> bool:
    """Return whether a table can have these columns; notes as a fault that there are too many, and each that stands twice."""
    if len(names) > MOST_COLUMNS:
        faults.add(location, f"the file has {len(names):,} columns; at most {MOST_COLUMNS:,} are read")
        return False
    for name, times in Counter(names).items():
        if times > 1:
            faults.add(location, f"the column{faults.quote(name)} stands twice in the header", hint="keep one of the two, or give one another name")
    return len(set(names)) == len(names)


def check_cells(rows: int, columns: int, location: Location, faults: Faults) -> bool:
    """Return whether a table of so many rows and columns is read; notes a fault where it is too large."""
    if rows * columns > MOST_CELLS:
        faults.add(location, f"the file has {rows:,} rows of {columns:,} columns; at most {MOST_CELLS:,} cells are read")
        return False
    return True


def _is_too_long(file: str, content: bytes, faults: Faults) -> bool:
    """Return whether a text has more lines or values than are read, and note it as a fault; values are told by the commas between them."""
    for mark, most, named in ((b"\n", MOST_ROWS, "lines"), (b",", MOST_CELLS, "commas")):
        count = content.count(mark)
        if count > most:
            faults.add(Location(file, 1), f"the file has {count:,} {named}; at most {most:,} are read")
            return True
    return False


def _is_one_document(first: bytes) -> bool:
    """Return whether the first line that is written begins a list, or an object that goes on below, of which each line would be a fault."""
    return first.lstrip().startswith(b"[") or first.strip() == b"{"


def _json_object(written: bytes, location: Location, faults: Faults, constant: Callable[[str], JsonValue] | None) -> dict[str, JsonValue] | None:
    try:
        cells = parse_json(written.decode(), constant=constant)
    except UnicodeDecodeError as error:
        faults.add(location, f"byte {error.start + 1} of the line is not UTF-8", hint="save the file as UTF-8")
    except ValueError as error:
        faults.add(location, str(error), hint=ONE_A_LINE)
    else:
        if isinstance(cells, dict):
            return cells
        faults.add(location, "a row is a JSON object; this line is another value", hint='write {"id": ..., ...}')
    return None


def _is_header(cells: list[str], content: bytes, location: Location, faults: Faults) -> bool:
    """Return whether rows can be read below these names; notes as a fault what stands against it."""
    if len(cells) > MOST_COLUMNS:
        return check_columns(cells, location, faults)
    unquoted = (QUOTED.sub(b"", content[:LONGEST_LINE]).splitlines() or [b""])[0]
    for separator, named in SEPARATORS.items():
        columns = 1 + unquoted.count(separator)
        if columns > len(cells):
            message = f"read with commas the header has {counted(len(cells), 'column')}, read with {named} {columns}"
            faults.add(location, message, hint=f"save the file as CSV with commas between cells, in UTF-8: {named} are not read as separators")
            return False
    check_columns(cells, location, faults)
    return True


def _fits(cells: list[str], columns: int, location: Location, faults: Faults) -> bool:
    length = sum(map(len, cells))
    if len(cells) != columns:
        told = f"the row has {counted(len(cells), 'cell')}; the header has {columns}"
        faults.add(location, told, hint="put quotes around cells that contain a comma")
    elif length > LONGEST_LINE:
        faults.add(location, f"the row has {length:,} characters; at most {LONGEST_LINE:,} are read")
    else:
        return True
    return False
