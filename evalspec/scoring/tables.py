"""Which columns does a table of recorded results hold?  CSV (also gzipped), JSONL or Parquet, read once, with its digest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evalspec.artifacts.base import sha256_hex
from evalspec.artifacts.study import Disclosure
from evalspec.errors import InputError, Location
from evalspec.foreign import read_file, unpack
from evalspec.tables.faults import Faults
from evalspec.tables.foreign import Cell, read_columns
from evalspec.tables.rows import Row, check_cells, check_columns, csv_rows, jsonl_rows

ENDINGS = (".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".parquet")


@dataclass(frozen=True, slots=True)
class RecordedTable:
    """A table of results by column; `lines` is where each row stands: its line in a text file, its number in Parquet.

    `disclosure` says how much of it messages may repeat: as much as every benchmark that it may hold answers to allows. `declared` are columns
    that the study reads parts of questions from, with the part, wherever they stand.
    """

    name: str
    sha256: str
    columns: Mapping[str, Sequence[Cell]]
    lines: Sequence[int]
    disclosure: Disclosure = "none"
    declared: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, disclosure: Disclosure = "none", *, written: str | None = None) -> RecordedTable:
        """Read a table, told by its path as `written`; raises InputError with every fault when it is not there, of no known form, or too large."""
        name = written or path.name
        if not name.lower().endswith(ENDINGS):
            raise InputError(f"'{name}' is no table of results that can be read", hint=f"the name must end in {', '.join(ENDINGS)}")
        content = read_file(path, name=name)
        unpacked = unpack(content, name=name) if name.lower().endswith(".gz") else content
        ending = name.lower().removesuffix(".gz").rsplit(".", 1)[-1]
        faults = Faults(disclosure)
        if ending == "parquet":
            columns: Mapping[str, Sequence[Cell]] = read_columns(name, unpacked, faults)
            lines: Sequence[int] = range(1, 1 + len(next(iter(columns.values()), ())))
        else:
            rows = tuple(csv_rows(name, unpacked, faults) if ending == "csv" else jsonl_rows(name, unpacked, faults, constant=float))
            columns, lines = _by_column(name, rows, faults), [row.location.line for row in rows]
        faults.raise_if_any()
        if not lines:
            raise InputError(f"'{name}' is empty: it holds no row of results")
        return cls(name, sha256_hex(content), columns, lines, disclosure)

    @property
    def length(self) -> int:
        """The number of rows."""
        return len(self.lines)

    def first_of(self, names: Sequence[str]) -> str | None:
        """Return the first of `names` that is a column."""
        return next((name for name in names if name in self.columns), None)

    def place(self, row: int) -> Location:
        """Return where a row stands."""
        return Location(self.name, self.lines[row])

    def faults(self) -> Faults:
        """Return a new list of faults that repeats no more of the table than may be shown."""
        return Faults(self.disclosure)


def _by_column(name: str, rows: Sequence[Row], faults: Faults) -> dict[str, list[Cell]]:
    names = list(dict.fromkeys(key for row in rows for key in row.cells))
    start = Location(name, 1)
    if not check_columns(names, start, faults) or not check_cells(len(rows), len(names), start, faults):
        return {}
    return {key: [row.cells.get(key) for row in rows] for key in names}
