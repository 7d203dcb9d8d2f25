"""Parquet of others: nothing in it is believed, what no reader uses is not read, and faults have their row."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evalspec.artifacts.study import Disclosure
from evalspec.errors import InputError
from evalspec.tables.faults import Faults
from evalspec.tables.foreign import Unread, read_columns
from evalspec.tables.rows import MOST_CELLS


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def read(table: pa.Table | bytes, disclosure: Disclosure = "full") -> tuple[dict[str, list[Any]], list[str]]:
    faults = Faults(disclosure)
    columns = read_columns("t.parquet", table if isinstance(table, bytes) else written(table), faults)
    return columns, [str(fault).splitlines()[0] for fault in faults.found]


def not_utf8(*texts: bytes) -> pa.Array:
    return pa.Array.from_buffers(pa.string(), len(texts), pa.array(texts, pa.binary()).buffers())


CELLS: dict[str, tuple[pa.Array, list[Any]]] = {
    "text": (pa.array(["a", None, "a"]), ["a", None, "a"]),
    "large text": (pa.array(["a", "b", None], pa.large_string()), ["a", "b", None]),
    "view": (pa.array(["a", "b", None], pa.string_view()), ["a", "b", None]),
    "category": (pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
    "number": (pa.array([1, None, 2**63 - 1]), [1, None, 2**63 - 1]),
    "half": (pa.array([0.5, 1.0, None], pa.float16()), [0.5, 1.0, None]),
    "decimal": (pa.array([Decimal("0.25"), None, Decimal(1)], pa.decimal128(9, 2)), [0.25, None, 1.0]),
    "truth": (pa.array([True, None, False]), [True, None, False]),
    "nothing": (pa.nulls(3), [None, None, None]),
    "list": (pa.array([["x", "y"], None, []]), [["x", "y"], None, []]),
    "fixed list": (pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float64(), 2)), [[1.0, 2.0], None, [3.0, 4.0]]),
    "nested list": (pa.array([[["x"], None], None, [["x", "y"]]]), [[["x"], None], None, [["x", "y"]]]),
    "object": (
        pa.array([{"text": ["x"], "label": "A"}, None, {"text": None, "label": "B"}]),
        [{"text": ["x"], "label": "A"}, None, {"text": None, "label": "B"}],
    ),
}


@pytest.mark.parametrize("name", CELLS)
def test_texts_numbers_truth_values_lists_and_objects_come_back(name: str) -> None:
    array, expected = CELLS[name]
    assert read(pa.table({"id": ["1", "2", "3"], name: array})) == ({"id": ["1", "2", "3"], name: expected}, [])


@pytest.mark.parametrize(
    "array",
    [
        pa.array([2**62], pa.timestamp("us")),
        pa.array([1], pa.timestamp("us", "Nowhere/Else")),
        pa.array([b"\xff"]),
        pa.array([1], pa.date32()),
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8())),
        pa.array([{"bytes": b"", "path": "x"}]),
    ],
    ids=lambda array: str(array.type),
)
def test_a_column_of_a_type_that_no_reader_uses_is_there_and_not_read(array: pa.Array) -> None:
    columns, faults = read(pa.table({"id": ["q"], "other": array}))
    assert (columns["id"], faults) == (["q"], [])
    assert [type(cell) for cell in columns["other"]] == [Unread]


def test_a_text_that_is_not_utf8_is_a_fault_at_its_row_wherever_it_stands() -> None:
    flat = pa.table({"id": not_utf8(b"a", b"b", b"\xff", b"c")})
    listed = pa.table({"choices": pa.ListArray.from_arrays(pa.array([0, 2, 4], pa.int32()), not_utf8(b"a", b"b", b"a", b"\xff"))})
    assert read(flat) == ({}, ["t.parquet:3:1: the text in column 'id' is not UTF-8"])
    assert read(listed) == ({}, ["t.parquet:2:1: the text in column 'choices' is not UTF-8"])
    assert read(flat, "none") == ({}, ["t.parquet:3:1: the text in column 1 is not UTF-8"])


def test_a_column_that_stands_twice_is_a_fault() -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["answer", "answer"])
    assert read(twice) == ({}, ["t.parquet:1:1: the column 'answer' stands twice in the header"])


def test_a_small_file_of_very_many_cells_is_refused_from_its_header() -> None:
    rows = MOST_CELLS // 2 + 1
    table = pa.table({name: pa.nulls(rows, pa.int8()) for name in ("a", "b")})
    content = written(table)
    assert len(content) < 100_000
    assert read(content) == ({}, [f"t.parquet:1:1: the file has {rows:,} rows of 2 columns; at most {MOST_CELLS:,} cells are read"])


def test_a_long_text_that_stands_in_every_row_is_in_memory_once() -> None:
    long = "x" * 1_000_000
    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * 50_000, pa.int32()), pa.array([long]))
    columns, faults = read(written(pa.table({"stem": repeated}), dictionary_pagesize_limit=1 << 28))
    assert faults == []
    assert len({id(cell) for cell in columns["stem"]}) <= 50_000 // (1 << 14) + 1


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"PAR1 nonsense PAR1", written(pa.table({"id": ["a"]}))[:-20], b"PAR1" + b"\0" * 100 + b"\xff\xff\xff\x7fPAR1"]
)
def test_what_is_no_parquet_is_refused_in_a_line(content: bytes) -> None:
    with pytest.raises(InputError, match=r"^t\.parquet is not a Parquet file that can be read"):
        read(content)


def test_odd_metadata_changes_nothing() -> None:
    for key in ("ARROW:schema", "pandas"):
        schema = pa.schema([pa.field("id", pa.string())], metadata={key: "{not what it should be"})
        assert read(written(pa.table({"id": ["q"]}).cast(schema), store_schema=key == "pandas")) == ({"id": ["q"]}, [])
