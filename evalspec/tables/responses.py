"""How do responses stand in responses.parquet?  One row per benchmark, model, question and repeat, in this order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evalspec.artifacts.base import Artifact, Digest, FormatOne, Identifier
from evalspec.artifacts.protocol import Pool
from evalspec.artifacts.responses import AnswerTokens, BenchmarkResponses, Origin, Reason, Responses
from evalspec.artifacts.samples import SampleMethod
from evalspec.artifacts.scores import Score
from evalspec.artifacts.study import MissingRule
from evalspec.tables.parquet import MOST_BYTES, table_from_bytes, table_to_bytes

if TYPE_CHECKING:
    import pyarrow as pa

PLAIN_COLUMNS = ("benchmark", "model", "question", "repeat", "score", "reason", "subject", "weight")
REASONS = {reason.name.lower(): reason for reason in Reason if reason}
Cells = NDArray[Any]  # Any: a column holds texts, numbers or lists


class BenchmarkShape(Artifact):
    """What the rows of one benchmark do not say themselves."""

    benchmark: Identifier
    models: tuple[Identifier, ...]
    questions: int
    repeats: int
    choices: int | None
    missing: MissingRule
    strata: bool
    clustered: bool = False
    flagged: bool = False
    sample: SampleMethod = "all"
    pool: Pool | None = None
    distribution: int | None = None
    written: bool = False
    score: Score | None = None


class ResponsesHeader(Artifact):
    """The metadata of responses.parquet."""

    format: FormatOne = 1
    protocol_sha256: Digest
    benchmarks: tuple[BenchmarkShape, ...]
    origins: tuple[Origin, ...]


def responses_to_parquet(responses: Responses) -> bytes:
    """Return the table; the same responses give the same bytes."""
    import pyarrow as pa  # noqa: PLC0415 - costs half a second, and most commands read no table

    header = ResponsesHeader(
        protocol_sha256=responses.protocol_sha256,
        benchmarks=tuple(_shape(entry) for entry in responses.benchmarks),
        origins=responses.origins,
    )
    written = any(entry.texts is not None for entry in responses.benchmarks)
    tables = [_with_texts(_table(entry), entry) if written else _table(entry) for entry in responses.benchmarks]
    return table_to_bytes(pa.concat_tables(tables), header)


def responses_from_parquet(content: bytes) -> Responses:
    """Read `responses_to_parquet` back; raises ValueError when the table does not fit together."""
    table, written = table_from_bytes(content, schema=_schema(), optional=(_text_field(),))
    header = ResponsesHeader.from_json(written)
    rows = [len(shape.models) * shape.questions * shape.repeats for shape in header.benchmarks]
    if sum(rows) != table.num_rows:
        raise ValueError(f"the table has {table.num_rows} rows; its header speaks of {sum(rows)}")
    starts = np.cumsum([0, *rows])
    benchmarks = tuple(_benchmark(shape, table.slice(start, count)) for shape, start, count in zip(header.benchmarks, starts, rows, strict=False))
    return Responses(benchmarks, header.origins, header.protocol_sha256)


def _shape(entry: BenchmarkResponses) -> BenchmarkShape:
    _, questions, repeats = entry.scores.shape
    return BenchmarkShape(
        benchmark=entry.benchmark,
        models=entry.models,
        questions=questions,
        repeats=repeats,
        choices=None if entry.logprobs is None else entry.logprobs.shape[2],
        missing=entry.missing,
        strata=entry.strata,
        clustered=bool(entry.clusters),
        flagged=bool(entry.flags),
        sample=entry.sample,
        pool=entry.pool,
        distribution=None if entry.distributions is None else entry.distributions.tokens.shape[2],
        score=entry.score,
        written=entry.texts is not None,
    )


def _table(entry: BenchmarkResponses) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 - as above

    rows = entry.scores.size
    names = np.array([None, *REASONS], dtype=object)
    choices = entry.choices.ravel()
    keys = _keys(entry.models, entry.questions, entry.scores.shape[2])
    arrays = [
        pa.array([entry.benchmark] * rows, pa.string()),
        *(pa.array(keys[name]) for name in ("model", "question", "repeat")),
        pa.array(entry.scores.ravel(), pa.float64(), from_pandas=True),
        pa.array(names[entry.reasons.ravel()], pa.string()),
        pa.array(choices, pa.int16(), mask=choices < 0),
        _logprob_lists(entry),
        pa.array(_spread(np.array(entry.subjects, dtype=object), entry), pa.string()),
        pa.array(_spread(entry.weights, entry), pa.float64()),
        pa.array(_spread(np.array(entry.clusters, dtype=object), entry), pa.string()) if entry.clusters else pa.nulls(rows, pa.string()),
        _flag_lists(entry),
        _list_column(entry, None if entry.distributions is None else entry.distributions.tokens, pa.int32()),
        _list_column(entry, None if entry.distributions is None else entry.distributions.probabilities, pa.float64()),
    ]
    return pa.Table.from_arrays(arrays, schema=_schema())


def _with_texts(table: pa.Table, entry: BenchmarkResponses) -> pa.Table:
    """Return the table with a column of generated texts, which tables of runs that generate none do not have."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    texts = pa.nulls(table.num_rows, pa.string()) if entry.texts is None else pa.array(entry.texts.ravel(), pa.string())
    return table.append_column(_text_field(), texts)


def _text_field() -> pa.Field:
    import pyarrow as pa  # noqa: PLC0415 - as above

    return pa.field("text", pa.string())


def _schema() -> pa.Schema:
    import pyarrow as pa  # noqa: PLC0415 - as above

    return pa.schema(
        [
            *(pa.field(name, pa.string(), nullable=False) for name in ("benchmark", "model", "question")),
            pa.field("repeat", pa.int32(), nullable=False),
            pa.field("score", pa.float64()),
            pa.field("reason", pa.string()),
            pa.field("choice", pa.int16()),
            pa.field("logprobs", pa.list_(pa.float64())),
            pa.field("subject", pa.string()),
            pa.field("weight", pa.float64(), nullable=False),
            pa.field("cluster", pa.string()),
            pa.field("flags", pa.list_(pa.string())),
            pa.field("answer_tokens", pa.list_(pa.int32())),
            pa.field("answer_probabilities", pa.list_(pa.float64())),
        ]
    )


def _keys(models: tuple[str, ...], questions: tuple[str, ...], repeats: int) -> Mapping[str, Cells]:
    """Return the cells that say which response a row is: by model, then question, then repeat."""
    per_model = len(questions) * repeats
    return {
        "model": np.repeat(np.array(models, dtype=object), per_model),
        "question": np.tile(np.repeat(np.array(questions, dtype=object), repeats), len(models)),
        "repeat": np.tile(np.arange(repeats, dtype=np.int32), len(models) * len(questions)),
    }


def _spread(per_question: Cells, entry: BenchmarkResponses) -> Cells:
    models, _, repeats = entry.scores.shape
    return np.tile(np.repeat(per_question, repeats), models)


def _logprob_lists(entry: BenchmarkResponses) -> pa.Array:
    """Return a list for each row, as long as its question has choices; null where the model has no log-probabilities."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    if entry.logprobs is None:
        return pa.nulls(entry.scores.size, pa.list_(pa.float64()))
    width = entry.logprobs.shape[2]
    rows = np.repeat(entry.logprobs.reshape(-1, width), entry.scores.shape[2], axis=0)
    present = ~np.isnan(rows)
    lengths = np.where(present.any(axis=1), width - np.argmax(present[:, ::-1], axis=1), 0)
    kept = np.arange(width) < lengths[:, None]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    values = pa.array(rows[kept], pa.float64(), from_pandas=True)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=pa.array(lengths == 0))


def _list_column(entry: BenchmarkResponses, values: Cells | None, kind: pa.DataType) -> pa.Array:
    """Return a list for each row, without what is missing at its end (-1 or NaN); null where a row has nothing."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    if values is None:
        return pa.nulls(entry.scores.size, pa.list_(kind))
    rows = np.repeat(values.reshape(-1, values.shape[2]), entry.scores.shape[2], axis=0)
    kept = rows >= 0  # NaN is not
    offsets = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(rows[kept], kind), mask=pa.array(~kept.any(axis=1)))


def _flag_lists(entry: BenchmarkResponses) -> pa.Array:
    """Return the list of flags of each row; null where no question of the benchmark has any."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    models, questions, repeats = entry.scores.shape
    if not entry.flags:
        return pa.nulls(models * questions * repeats, pa.list_(pa.string()))
    lists = pa.array([list(flags) for flags in entry.flags], pa.list_(pa.string()))
    return lists.take(pa.array(_spread(np.arange(questions), entry)))


def _benchmark(shape: BenchmarkShape, table: pa.Table) -> BenchmarkResponses:
    dimensions = (len(shape.models), shape.questions, shape.repeats)
    cells = {name: table.column(name).to_numpy() for name in PLAIN_COLUMNS}
    first = slice(0, shape.questions * shape.repeats, shape.repeats)
    questions = tuple(cells["question"][first])
    expected = _keys(shape.models, questions, shape.repeats)
    if any(not np.array_equal(cells[name], expected[name]) for name in expected) or not np.all(cells["benchmark"] == shape.benchmark):
        raise ValueError(f"the rows of benchmark '{shape.benchmark}' are not in order or not complete")
    if not set(cells["reason"]) <= {None, *REASONS}:
        raise ValueError(f"benchmark '{shape.benchmark}' has a reason that is none of {', '.join(REASONS)}")
    reasons = np.array([REASONS[name] if name else Reason.NONE for name in cells["reason"]], dtype=np.int8)
    return BenchmarkResponses(
        benchmark=shape.benchmark,
        models=shape.models,
        questions=questions,
        subjects=tuple(cells["subject"][first]),
        weights=cells["weight"][first].astype(np.float64),
        scores=cells["score"].astype(np.float64).reshape(dimensions),
        reasons=reasons.reshape(dimensions),
        choices=table.column("choice").fill_null(-1).to_numpy().astype(np.int16).reshape(dimensions),
        logprobs=None if shape.choices is None else _logprobs(table, shape, shape.choices),
        missing=shape.missing,
        score=shape.score,
        strata=shape.strata,
        clusters=tuple(table.column("cluster").to_numpy()[first]) if shape.clustered else (),
        flags=_flags(table, first) if shape.flagged else (),
        sample=shape.sample,
        pool=shape.pool,
        distributions=None if shape.distribution is None else _distributions(table, shape, shape.distribution),
        texts=_texts(table).reshape(dimensions) if shape.written else None,
    )


def _texts(table: pa.Table) -> Cells:
    if "text" not in table.column_names:
        raise ValueError("its header speaks of generated texts, and it has none")
    return np.asarray(table.column("text").to_numpy())


def _flags(table: pa.Table, first: slice) -> tuple[tuple[str, ...], ...]:
    lists = table.column("flags").take(np.arange(first.start, first.stop, first.step))
    return tuple(tuple(flags) for flags in lists.to_pylist())


def _distributions(table: pa.Table, shape: BenchmarkShape, width: int) -> AnswerTokens:
    tokens, probabilities = _padded(table, "answer_tokens", shape, width, -1), _padded(table, "answer_probabilities", shape, width, np.nan)
    return AnswerTokens(tokens.astype(np.int32), probabilities)


def _logprobs(table: pa.Table, shape: BenchmarkShape, width: int) -> NDArray[np.float64]:
    return _padded(table, "logprobs", shape, width, np.nan)


def _padded(table: pa.Table, column: str, shape: BenchmarkShape, width: int, missing: float) -> NDArray[np.float64]:
    """Return a column of lists as an array (M, Q, width), filled up with `missing`; repeats of a question share its list."""
    import pyarrow.compute as pc  # noqa: PLC0415 - as above

    lists = table.column(column)
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    if np.any(lengths > width):
        raise ValueError(f"benchmark '{shape.benchmark}' has more entries of {column} in a row than its header says ({width})")
    if len(lengths) * width * 8 > MOST_BYTES:
        raise ValueError(f"benchmark '{shape.benchmark}' speaks of {width} {column} a row, which is more than is read")
    padded = np.full((len(lengths), width), missing)
    padded[np.arange(width) < lengths[:, None]] = pc.list_flatten(lists).to_numpy()
    return padded[:: shape.repeats].reshape(len(shape.models), shape.questions, width)
