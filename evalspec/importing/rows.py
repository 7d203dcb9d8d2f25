"""Which rows does a question file hold, and on which line does each stand?"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from evalspec.artifacts.base import JsonValue
from evalspec.errors import InputError, Location
from evalspec.importing.faults import Faults

LONGEST_LINE = 1 << 20
"""Bytes in one line of JSONL, characters in one row of CSV."""

MOST_ROWS = 5_000_000
ENDINGS = (".jsonl", ".csv", ".parquet")


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its place (for Parquet the line is the row's number, counted from 1) and its cells by column."""

    location: Location
    cells: Mapping[str, JsonValue]


def read_rows(file: str, content: bytes, faults: Faults) -> tuple[Row, ...]:
    """Return the rows of JSONL, CSV or Parquet, told by the ending of the name; rows that cannot be read are noted as faults.

    Raises InputError for another ending and for a Parquet file that cannot be read at all.
    """
    ending = PurePath(file).suffix.lower()
    if ending not in ENDINGS:
        raise InputError(f"'{file}' is no question file that can be read", hint=f"its name must end in {', '.join(ENDINGS)}")
    reader = {".jsonl": _jsonl, ".csv": _csv, ".parquet": _parquet}[ending]
    return tuple(reader(file, content, faults))


def parse_json(text: str) -> JsonValue:
    """Return the JSON value of `text`, as strict as the standard; raises ValueError with what is wrong, and repeats no content."""
    try:
        value: JsonValue = json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at character {error.pos + 1}") from error
    except RecursionError as error:
        raise ValueError("lists or objects are nested too deeply") from error
    if "\\u" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ValueError("half of a character stands alone (a lone surrogate)") from error
    return value


def _distinct(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    cells = dict(pairs)
    if len(cells) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return cells


def _no_constant(name: str) -> JsonValue:
    raise ValueError(f"{name} is not a JSON value")


def _jsonl(file: str, content: bytes, faults: Faults) -> Iterator[Row]:
    for line, written in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        location = Location(file, line)
        if len(written) > LONGEST_LINE:
            faults.add(location, f"the line has {len(written):,} bytes; at most {LONGEST_LINE:,} are read")
        elif written.strip():
            cells = _json_object(written, location, faults)
            if cells is not None:
                yield Row(location, cells)


def _json_object(written: bytes, location: Location, faults: Faults) -> dict[str, JsonValue] | None:
    try:
        cells = parse_json(written.decode())
    except UnicodeDecodeError as error:
        faults.add(location, f"byte {error.start + 1} of the line is not UTF-8", hint="save the file as UTF-8")
    except ValueError as error:
        faults.add(location, str(error), hint="each line is one JSON object, and an object stands on one line")
    else:
        if isinstance(cells, dict):
            return cells
        faults.add(location, "a question is a JSON object; this line is another value", hint='write {"id": ..., "question": ..., ...}')
    return None


def _csv(file: str, content: bytes, faults: Faults) -> Iterator[Row]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        faults.add(Location(file, content.count(b"\n", 0, error.start) + 1), "the line is not UTF-8", hint="save the file as UTF-8")
        return
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    columns: list[str] | None = None
    location = Location(file, 1)
    try:
        for cells in reader:
            if columns is None:
                columns = cells
                _check_header(cells, location, faults)
            elif cells and _fits(cells, len(columns), location, faults):
                yield Row(location, dict(zip(columns, cells, strict=True)))
            location = Location(file, reader.line_num + 1)
    except csv.Error as error:
        faults.add(location, f"not CSV: {error}; nothing after this row was read", hint='put cells in "quotes" and write a quote inside as ""')


def _check_header(cells: list[str], location: Location, faults: Faults) -> None:
    for name in sorted({name for name in cells if cells.count(name) > 1}):
        faults.add(location, f"column '{name}' stands twice in the header")


def _fits(cells: list[str], columns: int, location: Location, faults: Faults) -> bool:
    length = sum(map(len, cells))
    if len(cells) != columns:
        faults.add(location, f"the row has {len(cells)} cells; the header has {columns}", hint="put quotes around cells that contain a comma")
    elif length > LONGEST_LINE:
        faults.add(location, f"the row has {length:,} characters; at most {LONGEST_LINE:,} are read")
    else:
        return True
    return False


def _parquet(file: str, content: bytes, _faults: Faults) -> Iterator[Row]:
    import pyarrow as pa  # noqa: PLC0415 - costs half a second, and most studies read JSONL
    import pyarrow.parquet as pq  # noqa: PLC0415 - as above

    try:
        table = pq.ParquetFile(pa.BufferReader(content))
        if table.metadata.num_rows > MOST_ROWS:
            raise InputError(f"{file} has {table.metadata.num_rows:,} rows; at most {MOST_ROWS:,} are read")
        rows: list[dict[str, Any]] = table.read().to_pylist()  # Any: cells of whatever type the file declares, checked where they are used
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{file} is not a Parquet file that can be read: {str(error).splitlines()[0]}") from error
    for number, cells in enumerate(rows, start=1):
        yield Row(Location(file, number), cells)
