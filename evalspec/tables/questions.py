"""How do the drawn questions stand in questions.parquet?  Each as far as its benchmark discloses it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalspec.artifacts.base import Artifact, Digest, FormatOne
from evalspec.artifacts.protocol import DrawnQuestion, Protocol, ProtocolBenchmark
from evalspec.artifacts.questions import Question, QuestionBank, QuestionSet
from evalspec.tables.parquet import table_from_bytes, table_to_bytes

if TYPE_CHECKING:
    import pyarrow as pa

Row = Mapping[str, Any]  # Any: a column holds texts, numbers or lists


class QuestionsHeader(Artifact):
    """The metadata of questions.parquet."""

    format: FormatOne = 1
    protocol_sha256: Digest


@dataclass(frozen=True, slots=True)
class QuestionTable:
    """What questions.parquet says: the questions that are disclosed in full, and which protocol drew them."""

    bank: QuestionBank
    protocol_sha256: str


def questions_to_parquet(protocol: Protocol, bank: QuestionBank) -> bytes:
    """Return the drawn questions in the protocol's order; raises ValueError when a disclosed one is not the bank's.

    full: everything; ids: id, digest, weight and labels (subject, cluster, flags); none: commitment, weight and labels.
    """
    import pyarrow as pa  # noqa: PLC0415 - costs half a second, and most commands read no table

    rows: list[Row] = []
    for benchmark in protocol.benchmarks:
        known = bank.benchmark(benchmark.id).by_id() if benchmark.disclosure == "full" else None
        rows += [_row(benchmark, drawn, None if known is None else _asked(benchmark, drawn, known)) for drawn in benchmark.questions]
    return table_to_bytes(pa.Table.from_pylist(rows, schema=_schema()), QuestionsHeader(protocol_sha256=protocol.digest()))


def questions_from_parquet(content: bytes, protocol: Protocol) -> QuestionTable:
    """Read the disclosed questions back; raises ValueError when the table does not list what the protocol drew."""
    table, header = table_from_bytes(content, schema=_schema())
    rows: list[Row] = table.to_pylist()
    sets, start = [], 0
    for benchmark in protocol.benchmarks:
        end = start + len(benchmark.questions)
        questions = _questions(benchmark, rows[start:end])
        if benchmark.disclosure == "full":
            sets.append(QuestionSet(benchmark.id, questions, benchmark.source, benchmark.source_sha256, benchmark.licence))
        start = end
    if start != len(rows):
        raise ValueError(f"the table has {len(rows)} rows; the protocol drew {start} questions")
    return QuestionTable(QuestionBank(tuple(sets)), QuestionsHeader.from_json(header).protocol_sha256)


def _schema() -> pa.Schema:
    import pyarrow as pa  # noqa: PLC0415 - as above

    return pa.schema(
        [
            pa.field("benchmark", pa.string(), nullable=False),
            pa.field("id", pa.string(), nullable=False),
            pa.field("subject", pa.string()),
            pa.field("sha256", pa.string()),
            pa.field("weight", pa.float64(), nullable=False),
            pa.field("stem", pa.string()),
            pa.field("choices", pa.list_(pa.string())),
            pa.field("answer", pa.int16()),
            pa.field("cluster", pa.string()),
            pa.field("flags", pa.list_(pa.string())),
        ]
    )


def _asked(benchmark: ProtocolBenchmark, drawn: DrawnQuestion, known: Mapping[str, Question]) -> Question:
    question = known.get(drawn.id)
    if question is None or question.digest() != drawn.sha256:
        raise ValueError(f"question '{drawn.id}' of benchmark '{benchmark.id}' is not the one that the protocol drew")
    return question


def _row(benchmark: ProtocolBenchmark, drawn: DrawnQuestion, question: Question | None) -> Row:
    return {
        "benchmark": benchmark.id,
        "id": drawn.id,
        "subject": drawn.subject,
        "sha256": None if benchmark.disclosure == "none" else drawn.sha256,
        "weight": drawn.weight,
        "stem": None if question is None else question.stem,
        "choices": None if question is None else list(question.choices),
        "answer": None if question is None else question.answer,
        "cluster": drawn.cluster,
        "flags": list(drawn.flags) or None,
    }


def _questions(benchmark: ProtocolBenchmark, rows: list[Row]) -> tuple[Question, ...]:
    """Return the questions of the rows where they are disclosed, after holding every row against the protocol."""
    questions = []
    for row, drawn in zip(rows, benchmark.questions, strict=False):
        question = None
        if benchmark.disclosure == "full" and row["stem"] is not None:
            labels = (row["subject"], row["cluster"], tuple(row["flags"] or ()))
            question = Question(row["id"], row["stem"], tuple(row["choices"]), row["answer"], *labels)
            questions.append(question)
        if row != _row(benchmark, drawn, question) or (question is not None and question.digest() != drawn.sha256):
            raise ValueError(f"question '{row['id']}' of benchmark '{benchmark.id}' is not the one that the protocol drew")
    if len(rows) < len(benchmark.questions) or (benchmark.disclosure == "full" and len(questions) < len(benchmark.questions)):
        raise ValueError(f"questions of benchmark '{benchmark.id}' are missing")
    return tuple(questions)
