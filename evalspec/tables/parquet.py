"""How does a table become bytes?  The same content gives the same bytes; facts about the whole table stand in the schema's metadata."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from evalspec.artifacts.base import Artifact, canonical_json

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

METADATA = b"evalspec"
ROWS_PER_GROUP = 1 << 17
MOST_ROWS = 50_000_000
"""More than 400 models on 14,000 questions with eight repeats."""

MOST_BYTES = 1 << 33


class Opened(NamedTuple):
    """A Parquet file, and the schema that its writer gave it."""

    file: pq.ParquetFile
    schema: pa.Schema


def table_to_bytes(table: pa.Table, header: Artifact) -> bytes:
    """Return a table as Parquet, with `header` as JSON in its metadata; no clock and no path are in it."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - costs half a second, and most commands read no table

    sink = io.BytesIO()
    described = table.replace_schema_metadata({METADATA: canonical_json(header.model_dump(mode="json"))})
    pq.write_table(described.combine_chunks(), sink, compression="zstd", compression_level=3, row_group_size=ROWS_PER_GROUP, version="2.6")
    return sink.getvalue()


def table_from_bytes(content: bytes, *, schema: pa.Schema, optional: Sequence[pa.Field] = ()) -> tuple[pa.Table, bytes]:
    """Return the table and its header's JSON; raises ValueError when the bytes are no such table. Nothing is read before the schema fits.

    Behind the columns of the schema, all `optional` ones may stand or none.
    """
    import pyarrow as pa  # noqa: PLC0415 - as above

    try:
        opened, written = open_lean(content)
        header = (written.metadata or {}).get(METADATA)
        fitting = (schema, pa.schema([*schema, *optional]))
        if header is None or not any(written.remove_metadata().equals(one) for one in fitting):
            raise ValueError(f"it is not a table of evalspec with the columns {', '.join(schema.names)}")
        if opened.metadata.num_rows > MOST_ROWS:
            raise ValueError(f"it has {opened.metadata.num_rows:,} rows; at most {MOST_ROWS:,} are read")
        lean = opened.read()
        size = sum(unpacked_size(chunk) for column in lean.columns for chunk in column.chunks)
        if size > MOST_BYTES:
            raise ValueError(f"it unpacks to {size:,} bytes; at most {MOST_BYTES:,} are read")
        table = lean.cast(written).combine_chunks()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ArithmeticError, LookupError, TypeError, MemoryError) as error:
        raise ValueError(f"it is not a Parquet file: {(str(error).splitlines() or [type(error).__name__])[0]}") from error
    return table, header


def open_lean(content: bytes) -> Opened:
    """Open Parquet so that equal texts will be kept once, however often they occur; pyarrow's errors are for the caller."""
    import pyarrow as pa  # noqa: PLC0415 - as above
    import pyarrow.parquet as pq  # noqa: PLC0415 - as above

    opened = pq.ParquetFile(pa.BufferReader(content))
    columns = map(opened.schema.column, range(len(opened.schema)))
    texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
    return Opened(pq.ParquetFile(pa.BufferReader(content), read_dictionary=texts), opened.schema_arrow)


def unpacked_size(array: pa.Array) -> int:
    """Return the bytes of an array with every text written out."""
    import pyarrow.compute as pc  # noqa: PLC0415 - as above
    from pyarrow import types  # noqa: PLC0415 - as above

    if types.is_dictionary(array.type):
        return int(pc.sum(pc.binary_length(array.dictionary).take(array.indices)).as_py() or 0)
    return unpacked_size(array.flatten()) if types.is_list(array.type) else int(array.nbytes)
