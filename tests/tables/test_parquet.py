"""Our own Parquet from somebody else's hands: nothing is read before its schema and its sizes fit."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evalspec.artifacts.base import Artifact
from evalspec.tables.parquet import MOST_BYTES, MOST_ROWS, table_from_bytes, table_to_bytes

SCHEMA = pa.schema([pa.field("id", pa.string()), pa.field("words", pa.list_(pa.string())), pa.field("number", pa.int16())])


class Header(Artifact):
    """The metadata of the table."""

    said: str = "so"


def forged(table: pa.Table) -> bytes:
    """Return a table as another writer can make it: what is a dictionary here is one in the file alone, where its column has texts."""
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, table.schema, store_schema=False, dictionary_pagesize_limit=1 << 28) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"evalspec": "{}"})
    return sink.getvalue()


def repeated(text: str, rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.nulls(rows, pa.int32()).fill_null(0), pa.array([text]))


def test_a_table_comes_back_with_its_header() -> None:
    table = pa.table({"id": ["a", None], "words": [["x", "x"], None], "number": [1, None]}, schema=SCHEMA)
    read, header = table_from_bytes(table_to_bytes(table, Header()), schema=SCHEMA)
    assert (read.to_pylist(), header) == (table.to_pylist(), b'{\n  "said": "so"\n}\n')


def test_a_table_with_other_columns_is_refused_before_its_rows_are_read() -> None:
    content = forged(pa.table({"id": repeated("x" * 1_000_000, 1_000_000)}))
    assert len(content) < 1_000_000
    with pytest.raises(ValueError, match="not a table of evalspec with the columns id, words, number"):
        table_from_bytes(content, schema=SCHEMA)


def test_a_table_of_very_many_rows_is_refused_before_they_are_read() -> None:
    schema = pa.schema([pa.field("number", pa.int16())])
    content = forged(pa.table({"number": pa.nulls(MOST_ROWS + 1, pa.int16())}))
    with pytest.raises(ValueError, match=f"it has {MOST_ROWS + 1:,} rows; at most {MOST_ROWS:,} are read"):
        table_from_bytes(content, schema=schema)


@pytest.mark.parametrize("name", ["id", "words"])
def test_a_small_file_of_very_much_text_is_refused_before_it_is_written_out(name: str) -> None:
    rows = 10_000
    texts = repeated("x" * 1_000_000, rows)
    columns = {"id": texts, "words": pa.ListArray.from_arrays(pa.array(range(rows + 1), pa.int32()), texts)}
    schema = pa.schema([pa.field("id", pa.string()) if name == "id" else pa.field("words", pa.list_(pa.field("element", pa.string())))])
    with pytest.raises(ValueError, match=rf"it unpacks to [0-9,]+ bytes; at most {MOST_BYTES:,} are read"):
        table_from_bytes(forged(pa.table({name: columns[name]})), schema=schema)


def test_a_text_that_is_not_utf8_is_refused() -> None:
    broken = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"], pa.binary()).buffers())
    with pytest.raises(ValueError, match=r"(?i)utf"):
        table_from_bytes(forged(pa.table({"id": broken})), schema=pa.schema([pa.field("id", pa.string())]))
