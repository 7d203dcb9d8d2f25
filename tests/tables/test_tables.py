"""Responses and questions survive Parquet unchanged, give the same bytes each time, and hold nothing that is withheld."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalspec.artifacts.protocol import BatchRule, DrawnQuestion, Pool, Protocol, ProtocolBenchmark, ProtocolModel, RecordIdentity
from evalspec.artifacts.questions import Question, QuestionBank, QuestionSet
from evalspec.artifacts.responses import BenchmarkResponses, Origin, Reason, Responses
from evalspec.artifacts.samples import SampleAll
from evalspec.artifacts.study import LetterScoring
from evalspec.tables.disclosure import withheld
from evalspec.tables.questions import questions_from_parquet, questions_to_parquet
from evalspec.tables.responses import responses_from_parquet, responses_to_parquet

MODELS = ("first", "second")
DISCLOSURES = {"open": "full", "listed": "ids", "hidden": "none"}


def make_set(name: str) -> QuestionSet:
    choices = ("canary-choice", "other", "third")
    questions = tuple(
        Question(f"{name}-q{n}", f"canary-stem {n}", choices, n % 3, "art" if n % 2 else None, f"text {n // 2}", ("wrong key",) if n == 4 else ())
        for n in range(6)
    )
    return QuestionSet(name, questions, f"{name}.jsonl", "a" * 64)


BANK = QuestionBank(tuple(map(make_set, DISCLOSURES)))


def make_protocol() -> Protocol:
    return Protocol(
        study_sha256="b" * 64,
        seed=1,
        models=tuple(ProtocolModel(id=m, precision="float32", identity=RecordIdentity(sha256="c" * 64, model=m, origin="r.csv")) for m in MODELS),
        benchmarks=tuple(
            ProtocolBenchmark(
                id=question_set.benchmark,
                source=question_set.source,
                source_sha256=question_set.source_sha256,
                source_size=6,
                sample=SampleAll(),
                questions=tuple(
                    DrawnQuestion(
                        id=f"{n:064x}" if question_set.benchmark == "hidden" else question.id,
                        sha256=f"{n:064x}" if question_set.benchmark == "hidden" else question.digest(),
                        subject=question.subject,
                        cluster=question.cluster,
                        flags=question.flags,
                    )
                    for n, question in enumerate(question_set.questions)
                ),
                missing="wrong",
                scoring=LetterScoring(method="letter"),
                prompt="{question}",
                disclosure=DISCLOSURES[question_set.benchmark],  # type: ignore[arg-type]
            )
            for question_set in BANK.sets
        ),
        analyses=(),
        thresholds=None,
        batch_rule=BatchRule(),
    )


def make_responses(protocol: Protocol) -> Responses:
    rng = np.random.default_rng(1)
    benchmarks = []
    for benchmark in protocol.benchmarks:
        shape = (2, len(benchmark.questions), 1)
        benchmarks.append(
            BenchmarkResponses(
                benchmark=benchmark.id,
                models=MODELS,
                questions=tuple(question.id for question in benchmark.questions),
                subjects=tuple(question.subject for question in benchmark.questions),
                weights=np.array([question.weight for question in benchmark.questions]),
                scores=rng.integers(0, 2, shape).astype(float),
                reasons=np.zeros(shape, np.int8),
                choices=rng.integers(0, 3, shape).astype(np.int16),
                logprobs=rng.normal(size=(2, len(benchmark.questions), 3)),
                missing="wrong",
            )
        )
    origins = tuple(Origin(model=m, benchmark=b.id, route="recorded", precision="float32") for m in MODELS for b in protocol.benchmarks)
    return Responses(tuple(benchmarks), origins, protocol.digest())


def assert_equal(left: Responses, right: Responses) -> None:
    assert (left.origins, left.protocol_sha256, len(left.benchmarks)) == (right.origins, right.protocol_sha256, len(right.benchmarks))
    for one, other in zip(left.benchmarks, right.benchmarks, strict=True):
        for name in ("benchmark", "models", "questions", "subjects", "missing", "strata", "clusters", "flags", "sample", "pool"):
            assert getattr(one, name) == getattr(other, name)
        for name in ("weights", "scores", "reasons", "choices"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
            assert getattr(one, name).dtype == getattr(other, name).dtype
        assert (one.logprobs is None) == (other.logprobs is None)
        if one.logprobs is not None and other.logprobs is not None:
            np.testing.assert_array_equal(one.logprobs, other.logprobs)


@st.composite
def benchmark_responses(draw: st.DrawFn) -> BenchmarkResponses:
    m, q, k, c = (draw(st.integers(1, 3)) for _ in range(4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    reasons = rng.choice([reason.value for reason in Reason], (m, q, k)).astype(np.int8)
    logprobs = rng.choice([-1.5, -0.1, -np.inf, np.nan], (m, q, c))
    return BenchmarkResponses(
        benchmark="b",
        models=tuple(f"m{n}" for n in range(m)),
        questions=tuple(f"fräge {n}" for n in range(q)),
        subjects=tuple(draw(st.sampled_from(["art", "law", None])) for _ in range(q)),
        weights=rng.uniform(0.5, 1.5, q),
        scores=np.where(reasons == 0, rng.uniform(0, 1, (m, q, k)), np.nan),
        reasons=reasons,
        choices=rng.integers(-1, 4, (m, q, k)).astype(np.int16),
        logprobs=logprobs if draw(st.booleans()) else None,
        missing=draw(st.sampled_from(["error", "wrong", "complete_case"])),
        strata=draw(st.booleans()),
        clusters=tuple(f"text {n // 2}" for n in range(q)) if draw(st.booleans()) else (),
        flags=(("wrong key", "unclear"), *((),) * (q - 1)) if draw(st.booleans()) else (),
        sample=draw(st.sampled_from(["all", "simple", "stratified", "ids"])),
        pool=draw(st.sampled_from([None, Pool(size=90, subjects={"art": 40, "law": 50})])),
    )


@given(benchmark_responses())
@settings(max_examples=60, deadline=None)
def test_responses_read_back_equal_and_write_the_same_bytes_again(entry: BenchmarkResponses) -> None:
    responses = Responses((entry, replace(entry, benchmark="other")), (), "d" * 64)
    content = responses_to_parquet(responses)
    again = responses_from_parquet(content)
    assert_equal(responses, again)
    assert responses_to_parquet(again) == content


def test_the_table_can_be_read_with_any_parquet_reader() -> None:
    responses = make_responses(make_protocol())
    table = pq.read_table(io.BytesIO(responses_to_parquet(responses)))
    row: dict[str, Any] = table.slice(0, 1).to_pylist()[0]
    assert {name: row[name] for name in ("benchmark", "model", "question", "repeat", "reason", "weight")} == {
        "benchmark": "open", "model": "first", "question": "open-q0", "repeat": 0, "reason": None, "weight": 1.0,
    }  # fmt: skip
    assert table.num_rows == 2 * 18


def test_choices_and_logprobs_are_withheld_where_nothing_is_disclosed() -> None:
    protocol = make_protocol()
    kept = withheld(make_responses(protocol), protocol)
    assert kept.benchmark("hidden").logprobs is None
    assert np.all(kept.benchmark("hidden").choices == -1)
    assert kept.benchmark("listed").logprobs is not None
    np.testing.assert_array_equal(kept.benchmark("hidden").scores, make_responses(protocol).benchmark("hidden").scores)


def test_a_responses_table_that_was_changed_is_refused() -> None:
    responses = make_responses(make_protocol())
    table = pq.read_table(io.BytesIO(responses_to_parquet(responses)))

    def bytes_of(changed: Any) -> bytes:
        sink = io.BytesIO()
        pq.write_table(changed, sink)
        return sink.getvalue()

    turned = table.take(list(range(table.num_rows))[::-1])
    for content, why in (
        (b"no parquet", "not a Parquet file"),
        (bytes_of(table.slice(1)), "35 rows; its header speaks of 36"),
        (bytes_of(turned), "not in order or not complete"),
        (bytes_of(table.drop_columns(["weight"])), "not a table of evalspec"),
        (bytes_of(table.replace_schema_metadata(None)), "not a table of evalspec"),
    ):
        with pytest.raises(ValueError, match=why):
            responses_from_parquet(content)


def test_questions_read_back_where_they_are_disclosed() -> None:
    protocol = make_protocol()
    content = questions_to_parquet(protocol, BANK)
    table = questions_from_parquet(content, protocol)
    assert table.bank.sets == BANK.sets[:1]
    assert table.protocol_sha256 == protocol.digest()
    assert questions_to_parquet(protocol, BANK) == content


def test_questions_hold_only_what_is_disclosed() -> None:
    rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(questions_to_parquet(make_protocol(), BANK))).to_pylist()
    filled = {row["benchmark"]: {name for name, cell in row.items() if cell is not None} for row in rows if row["subject"]}
    assert filled == {
        "open": {"benchmark", "id", "subject", "sha256", "weight", "stem", "choices", "answer", "cluster"},
        "listed": {"benchmark", "id", "subject", "sha256", "weight", "cluster"},
        "hidden": {"benchmark", "id", "subject", "weight", "cluster"},
    }


def test_no_undisclosed_text_is_in_the_decompressed_bytes() -> None:
    protocol = make_protocol()
    hidden = protocol.model_copy(update={"benchmarks": protocol.benchmarks[1:]})
    content = questions_to_parquet(hidden, BANK)
    file = pq.ParquetFile(io.BytesIO(content))
    plain = io.BytesIO()
    pq.write_table(file.read(), plain, compression="none", use_dictionary=False)
    for bytes_ in (content, plain.getvalue()):
        assert b"canary" not in bytes_
        assert b"hidden-q" not in bytes_


def test_questions_of_another_draw_are_refused() -> None:
    protocol = make_protocol()
    content = questions_to_parquet(protocol, BANK)
    fewer = protocol.benchmarks[0].model_copy(update={"questions": protocol.benchmarks[0].questions[:5]})
    with pytest.raises(ValueError, match="is not the one that the protocol drew"):
        questions_from_parquet(content, protocol.model_copy(update={"benchmarks": protocol.benchmarks[::-1]}))
    with pytest.raises(ValueError, match=r"the table has 18 rows; the protocol drew 5"):
        questions_from_parquet(content, protocol.model_copy(update={"benchmarks": (fewer,)}))
    with pytest.raises(ValueError, match="are missing"):
        questions_from_parquet(content, protocol.model_copy(update={"benchmarks": (*protocol.benchmarks, protocol.benchmarks[2])}))
    changed = replace(BANK.sets[0], questions=(replace(BANK.sets[0].questions[0], answer=2), *BANK.sets[0].questions[1:]))
    with pytest.raises(ValueError, match="is not the one that the protocol drew"):
        questions_to_parquet(protocol, QuestionBank((changed, *BANK.sets[1:])))


def test_reading_tables_needs_no_torch() -> None:
    code = "import sys, evalspec.store, evalspec.tables.responses; sys.exit(bool({'torch', 'transformers', 'pyarrow'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
