"""Which columns does a table of recorded results hold?  CSV (also gzipped), JSONL or Parquet, read once, with its digest."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalspec.artifacts.base import sha256_hex
from evalspec.errors import InputError

ENDINGS = (".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".parquet")

Cell = Any  # whatever a Parquet column or a JSON value holds; readers of columns check what they need


@dataclass(frozen=True, slots=True)
class RecordedTable:
    """A table of results by column; `first_row` is the number that its first row has for a human: the line in a text file."""

    name: str
    sha256: str
    columns: Mapping[str, Sequence[Cell]]
    first_row: int

    @classmethod
    def read(cls, path: Path) -> RecordedTable:
        """Read a table; raises InputError when it is not there or not one of the known forms."""
        if not path.name.endswith(ENDINGS):
            raise InputError(f"'{path.name}' is no table of results that can be read", hint=f"the name must end in {', '.join(ENDINGS)}")
        try:
            content = path.read_bytes()
            unpacked = gzip.decompress(content) if path.name.endswith(".gz") else content
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"'{path.name}' cannot be read: {error}") from error
        ending = path.name.removesuffix(".gz").rsplit(".", 1)[-1]
        columns = {"csv": _csv, "jsonl": _jsonl, "parquet": _parquet}[ending](path.name, unpacked)
        return cls(path.name, sha256_hex(content), columns, {"csv": 2, "jsonl": 1, "parquet": 1}[ending])

    @property
    def length(self) -> int:
        """The number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def first_of(self, names: Sequence[str]) -> str | None:
        """Return the first of `names` that is a column."""
        return next((name for name in names if name in self.columns), None)


def _csv(name: str, content: bytes) -> dict[str, Sequence[Cell]]:
    try:
        rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"'{name}' is not CSV in UTF-8: {error}") from error
    if not rows:
        raise InputError(f"'{name}' is empty")
    header = rows[0]
    twice = sorted({column for column in header if header.count(column) > 1}) if len(set(header)) < len(header) else []
    if twice:
        raise InputError(f"'{name}': the column '{twice[0]}' stands twice in the header")
    for line, row in enumerate(rows[1:], start=2):
        if len(row) != len(header):
            raise InputError(f"'{name}', row {line}: {len(row)} cells; the header has {len(header)}")
    return dict(zip(header, zip(*rows[1:], strict=True), strict=True)) if len(rows) > 1 else dict.fromkeys(header, ())


def _jsonl(name: str, content: bytes) -> dict[str, Sequence[Cell]]:
    rows: list[dict[str, Cell]] = []
    for line, written in enumerate(content.split(b"\n"), start=1):
        if not written.strip():
            continue
        try:
            row = json.loads(written)
        except ValueError as error:
            raise InputError(f"'{name}', row {line}: not JSON: {error}") from error
        if not isinstance(row, dict):
            raise InputError(f"'{name}', row {line}: a JSON object is needed")
        rows.append(row)
    names = dict.fromkeys(key for row in rows for key in row)
    return {key: [row.get(key) for row in rows] for key in names}


def _parquet(name: str, content: bytes) -> dict[str, Sequence[Cell]]:
    import pyarrow as pa  # noqa: PLC0415 - costs half a second, and other forms do not need it
    import pyarrow.parquet as pq  # noqa: PLC0415 - as above

    try:
        table = pq.read_table(pa.BufferReader(content))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"'{name}' is not a Parquet file that can be read: {str(error).splitlines()[0]}") from error
    return {column: table.column(column).to_pylist() for column in table.column_names}
