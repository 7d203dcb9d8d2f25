"""How does a table become bytes?  The same content gives the same bytes; facts about the whole table stand in the schema's metadata."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from evalspec.artifacts.base import Artifact, canonical_json

if TYPE_CHECKING:
    import pyarrow as pa

METADATA = b"evalspec"
ROWS_PER_GROUP = 1 << 17


def table_to_bytes(table: pa.Table, header: Artifact) -> bytes:
    """Return a table as Parquet, with `header` as JSON in its metadata; no clock and no path are in it."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - costs half a second, and most commands read no table

    sink = io.BytesIO()
    described = table.replace_schema_metadata({METADATA: canonical_json(header.model_dump(mode="json"))})
    pq.write_table(described.combine_chunks(), sink, compression="zstd", compression_level=3, row_group_size=ROWS_PER_GROUP, version="2.6")
    return sink.getvalue()


def table_from_bytes(content: bytes, *, schema: pa.Schema) -> tuple[pa.Table, bytes]:
    """Return the table and its header's JSON; raises ValueError when the bytes are no such table."""
    import pyarrow as pa  # noqa: PLC0415 - as above
    import pyarrow.parquet as pq  # noqa: PLC0415 - as above

    try:
        table = pq.ParquetFile(pa.BufferReader(content)).read().combine_chunks()
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"it is not a Parquet file: {str(error).splitlines()[0]}") from error
    header = (table.schema.metadata or {}).get(METADATA)
    if header is None or not table.schema.remove_metadata().equals(schema):
        raise ValueError(f"it is not a table of evalspec with the columns {', '.join(schema.names)}")
    return table, header
