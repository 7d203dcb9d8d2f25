"""What stands in the columns of a Parquet file that somebody else wrote?

Nothing in the file is believed: its schema and its sizes are looked at before a row is read, texts are kept once however often they occur,
and columns of types that no reader uses are not read at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalspec.errors import InputError, Location
from evalspec.foreign import LARGEST_FILE
from evalspec.tables.faults import Faults
from evalspec.tables.parquet import open_lean
from evalspec.tables.rows import MOST_CELLS, check_cells, check_columns

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ROWS_AT_ONCE = 1 << 14

Cell = Any  # whatever a Parquet column or a JSON value holds; readers of columns check what they need


@dataclass(frozen=True, slots=True)
class Unread:
    """A cell of a column whose type no reader uses, such as a date: it is no text, no number and no list."""

    type: str

    def __repr__(self) -> str:
        return f"<{self.type}>"


class _NotText(ValueError):
    """A text that is not UTF-8; `place` is its row in the column, as far as that is known."""

    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.place = place


def read_columns(file: str, content: bytes, faults: Faults) -> dict[str, list[Cell]]:
    """Return the cells by column, none where a fault was noted; raises InputError for what is no Parquet file that can be read."""
    import pyarrow as pa  # noqa: PLC0415 - costs half a second, and most studies read no Parquet

    start = Location(file, 1)
    try:
        opened, schema = open_lean(content)
        if not check_columns(schema.names, start, faults) or not check_cells(opened.metadata.num_rows, len(schema), start, faults):
            return {}
        _check_sizes(file, opened)
        return _read(file, opened, schema, faults)
    except (pa.ArrowException, OSError, ValueError, ArithmeticError, LookupError, TypeError, MemoryError, RecursionError) as error:
        told = (str(error).splitlines() or [type(error).__name__])[0]
        shown = f": {told}" if faults.disclosure == "full" else ""
        raise InputError(f"{file} is not a Parquet file that can be read{shown}", hint="write it anew, or as JSONL") from error


def _check_sizes(file: str, opened: pq.ParquetFile) -> None:
    groups = [opened.metadata.row_group(number) for number in range(opened.metadata.num_row_groups)]
    chunks = [group.column(number) for group in groups for number in range(group.num_columns)]
    size, values = sum(chunk.total_uncompressed_size for chunk in chunks), sum(chunk.num_values for chunk in chunks)
    if size > LARGEST_FILE:
        raise InputError(f"{file} unpacks to {size:,} bytes; at most {LARGEST_FILE:,} are read")
    if values > MOST_CELLS:
        raise InputError(f"{file} has {values:,} values; at most {MOST_CELLS:,} are read")


def _read(file: str, opened: pq.ParquetFile, schema: pa.Schema, faults: Faults) -> dict[str, list[Cell]]:
    read = [field.name for field in schema if _is_used(field.type)]
    cells: dict[str, list[Cell]] = {name: [] for name in schema.names}
    size = rows = 0
    for batch in opened.iter_batches(batch_size=ROWS_AT_ONCE, columns=read):
        size += batch.nbytes
        if size > LARGEST_FILE:
            raise InputError(f"{file} unpacks to more than {LARGEST_FILE:,} bytes, which is the most that is read")
        for name in read:
            try:
                cells[name] += _cells(batch.column(name))
            except _NotText as error:
                column = f" '{name}'" if faults.disclosure == "full" else f" {schema.get_field_index(name) + 1}"
                faults.add(Location(file, rows + error.place + 1), f"the text in column{column} is not UTF-8", hint="write the file anew from texts")
                return {}
        rows += batch.num_rows
    return {name: cells[name] if name in read else [Unread(str(schema.field(name).type))] * rows for name in schema.names}


def _is_used(kind: pa.DataType) -> bool:
    """Return whether cells of a type are texts, numbers, truth values, or lists and objects of these."""
    from pyarrow import types  # noqa: PLC0415 - as above

    if types.is_dictionary(kind) or types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _is_used(kind.value_type)
    if types.is_struct(kind):
        return all(_is_used(kind.field(number).type) for number in range(kind.num_fields))
    tests = (
        types.is_string,
        types.is_large_string,
        types.is_string_view,
        types.is_boolean,
        types.is_integer,
        types.is_floating,
        types.is_decimal,
        types.is_null,
    )
    return any(test(kind) for test in tests)


def _cells(array: pa.Array) -> list[Cell]:
    """Return the values of an array; equal texts of a dictionary are one text in memory."""
    import pyarrow as pa  # noqa: PLC0415 - as above
    from pyarrow import types  # noqa: PLC0415 - as above

    kind = array.type
    if types.is_dictionary(kind):
        return _looked_up(array)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return list(_lists(array))
    if types.is_struct(kind):
        names = [kind.field(number).name for number in range(kind.num_fields)]
        rows = zip(*map(_cells, array.flatten()), strict=True) if names else iter([()] * len(array))
        return [dict(zip(names, row, strict=True)) if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]
    if types.is_decimal(kind) or types.is_float16(kind):
        return _cells(array.cast(pa.float64()))
    try:
        return list(array.to_pylist())
    except UnicodeDecodeError as error:
        raise _NotText(_first_that_is_no_text(array)) from error


def _looked_up(array: pa.Array) -> list[Cell]:
    places = array.indices.to_pylist()
    try:
        words = _cells(array.dictionary)
    except _NotText as error:
        raise _NotText(places.index(error.place) if error.place in places else 0) from error
    return [None if place is None else words[place] for place in places]


def _lists(array: pa.Array) -> Iterator[list[Cell] | None]:
    import pyarrow.compute as pc  # noqa: PLC0415 - as above

    lengths: Sequence[int | None] = pc.list_value_length(array).to_pylist()
    try:
        inner = _cells(array.flatten())
    except _NotText as error:
        raise _NotText(_list_of(error.place, lengths)) from error
    start = 0
    for length in lengths:
        yield None if length is None else inner[start : start + length]
        start += length or 0


def _list_of(place: int, lengths: Sequence[int | None]) -> int:
    """Return which list holds the value at `place` of all values."""
    end = 0
    for row, length in enumerate(lengths):
        end += length or 0
        if place < end:
            return row
    return 0


def _first_that_is_no_text(array: pa.Array) -> int:
    for place in range(len(array)):
        try:
            array[place].as_py()
        except UnicodeDecodeError:
            return place
    return 0
