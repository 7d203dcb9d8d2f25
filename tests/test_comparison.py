"""Nothing that two studies, or two protocols, say otherwise of the same thing goes unsaid."""

from __future__ import annotations

from typing import Any

import pytest

from evalspec.artifacts.protocol import BatchRule, DrawnQuestion, Protocol, ProtocolBenchmark
from evalspec.artifacts.samples import SampleAll
from evalspec.artifacts.sources import QuestionFile, RecordedResponses
from evalspec.artifacts.study import AnalysisRequest, Benchmark, LetterScoring, Model, Study
from evalspec.comparison import benchmark_changes, study_changes

ASKED = ProtocolBenchmark(
    id="facts",
    source="questions.jsonl",
    source_sha256="1" * 64,
    source_size=2,
    sample=SampleAll(),
    questions=tuple(DrawnQuestion(id=f"q{number}", sha256=f"{number}" * 64, subject="maths") for number in (1, 2)),
    missing="wrong",
    scoring=LetterScoring(method="letter"),
    prompt="{question}",
    disclosure="full",
)
STUDY = Study(
    apiVersion="evalspec/v1",
    title="t",
    seed=1,
    models=(Model(id="candidate", source=RecordedResponses(responses="t.csv")),),
    benchmarks=(Benchmark(id="facts", source=QuestionFile(file="questions.jsonl"), scoring=LetterScoring(method="letter")),),
    analyses=(AnalysisRequest(id="accuracy", kind="intervals", benchmarks=("facts",), options={}),),
    source_sha256="0" * 64,
)
OTHERWISE = "otherwise"
PARTS = ("source_sha256", "models", "benchmarks")


def protocol_of(benchmark: ProtocolBenchmark) -> Protocol:
    return Protocol(
        study_sha256="0" * 64, seed=1, models=(), benchmarks=(benchmark,), analyses=STUDY.analyses, thresholds=None, batch_rule=BatchRule()
    )


def differs(other: ProtocolBenchmark) -> tuple[str, ...]:
    (change,) = benchmark_changes(protocol_of(ASKED), protocol_of(other))
    return change.differs


def dumped() -> dict[str, Any]:
    return STUDY.model_dump(mode="json", by_alias=True)


@pytest.mark.parametrize("field", sorted(ProtocolBenchmark.model_fields.keys() - {"id", "questions"}))
def test_a_benchmark_differs_in_each_of_its_fields(field: str) -> None:
    assert differs(ASKED.model_copy(update={field: OTHERWISE})) == (field,)


@pytest.mark.parametrize("field", sorted(DrawnQuestion.model_fields.keys() - {"id", "sha256"}))
def test_what_is_said_of_questions_that_both_asked_differs(field: str) -> None:
    changed = ASKED.questions[0].model_copy(update={field: OTHERWISE})
    assert differs(ASKED.model_copy(update={"questions": (changed, *ASKED.questions[1:])})) == (f"questions.{field}",)


def test_other_questions_are_counted_and_no_difference_of_the_benchmark() -> None:
    changed = ASKED.questions[0].model_copy(update={"sha256": "9" * 64})
    (change,) = benchmark_changes(protocol_of(ASKED), protocol_of(ASKED.model_copy(update={"questions": (changed, ASKED.questions[1])})))
    assert (change.common, change.differs) == (1, ())


@pytest.mark.parametrize("field", sorted((field.alias or name) for name, field in Study.model_fields.items() if name not in PARTS))
def test_a_study_differs_in_each_of_its_fields(field: str) -> None:
    other = dumped() | {field: OTHERWISE}
    assert f"/{field}" in {"/" + change.path.split("/")[1] for change in study_changes(dumped(), other)}


@pytest.mark.parametrize(("part", "entry"), [("models", "candidate"), ("benchmarks", "facts"), ("analyses", "accuracy")])
def test_an_entry_differs_in_each_of_its_fields_also_in_one_that_is_not_there_yet(part: str, entry: str) -> None:
    for field in [*(dumped()[part][0].keys() - {"id"}), "later"]:
        other = dumped()
        other[part][0][field] = OTHERWISE
        told = list(study_changes(dumped(), other))
        assert told, field
        assert all(change.path.startswith(f"/{part}/{entry}/{field}") for change in told)


def test_a_model_that_one_study_alone_has_is_told_with_the_models() -> None:
    other = dumped()
    other["models"].append({**other["models"][0], "id": "other"})
    assert not list(study_changes(dumped(), other))
