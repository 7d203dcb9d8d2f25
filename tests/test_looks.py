from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evalspec.artifacts.protocol import BatchRule, DrawnQuestion, Protocol, ProtocolBenchmark
from evalspec.artifacts.responses import BenchmarkResponses, Responses
from evalspec.artifacts.samples import SampleAll
from evalspec.artifacts.study import AnalysisRequest, LetterScoring
from evalspec.artifacts.thresholds import Check, Thresholds
from evalspec.looks import LOOKS, count_looks

QUESTIONS = ("q0", "q1", "q2")


def protocol(*, source: str = "0", limit: float = 0.5, thresholds: bool = True) -> Protocol:
    benchmark = ProtocolBenchmark(
        id="x",
        source="x.jsonl",
        source_sha256=source * 64,
        source_size=3,
        sample=SampleAll(),
        questions=tuple(DrawnQuestion(id=question, sha256="0" * 64) for question in QUESTIONS),
        missing="wrong",
        scoring=LetterScoring(method="letter"),
        prompt="{question}",
        disclosure="full",
    )
    check = Check(id="c", analysis="accuracy", metric="accuracy", model="a", at_least=limit)
    return Protocol(
        study_sha256="0" * 64,
        seed=1,
        models=(),
        benchmarks=(benchmark,),
        analyses=(AnalysisRequest(id="accuracy", kind="intervals", benchmarks=("x",), options={}),),
        thresholds=Thresholds(checks=(check,)) if thresholds else None,
        batch_rule=BatchRule(),
    )


def responses(*scores: float, other: float = 1.0, questions: tuple[str, ...] = QUESTIONS) -> Responses:
    table = np.array([scores, [other] * len(scores)])
    benchmark = BenchmarkResponses(
        benchmark="x",
        models=("a", "b"),
        questions=questions,
        subjects=(None,) * len(questions),
        weights=np.ones(len(questions)),
        scores=table[:, :, None],
        reasons=np.zeros((*table.shape, 1), dtype=np.int8),
        choices=np.full((*table.shape, 1), -1, dtype=np.int16),
        logprobs=None,
        missing="wrong",
    )
    return Responses(benchmarks=(benchmark,), origins=(), protocol_sha256="0" * 64)


def test_other_answers_are_another_look_and_the_same_ones_are_not(tmp_path: Path) -> None:
    assert count_looks(tmp_path, protocol(), responses(1, 0, 1)) == 1
    assert count_looks(tmp_path, protocol(), responses(1, 0, 1)) == 1
    assert count_looks(tmp_path, protocol(), responses(1, 1, 1)) == 2
    assert count_looks(tmp_path, protocol(), responses(1, 0, 1)) == 2


def test_the_order_of_questions_and_models_that_no_check_names_make_no_look(tmp_path: Path) -> None:
    assert count_looks(tmp_path, protocol(), responses(1, 0, 0)) == 1
    assert count_looks(tmp_path, protocol(), responses(0, 0, 1, questions=QUESTIONS[::-1])) == 1
    assert count_looks(tmp_path, protocol(), responses(1, 0, 0, other=0.0)) == 1


def test_another_limit_or_other_questions_are_another_gate(tmp_path: Path) -> None:
    count_looks(tmp_path, protocol(), responses(1, 0, 1))
    assert count_looks(tmp_path, protocol(limit=0.6), responses(1, 1, 1)) == 1
    assert count_looks(tmp_path, protocol(source="1"), responses(1, 1, 1)) == 1


def test_a_study_without_thresholds_has_no_looks(tmp_path: Path) -> None:
    assert count_looks(tmp_path, protocol(thresholds=False), responses(1, 0, 1)) is None
    assert not (tmp_path / LOOKS).exists()


@pytest.mark.parametrize("content", ["not JSON", "{}"])
def test_a_record_that_cannot_be_read_is_begun_anew(tmp_path: Path, content: str) -> None:
    (tmp_path / LOOKS).write_text(content)
    assert count_looks(tmp_path / "new", protocol(), responses(1, 0, 1)) == 1
    assert count_looks(tmp_path, protocol(), responses(1, 0, 1)) == 1
    changed = responses(1, 0, 1).benchmarks[0]
    reasons = changed.reasons.copy()
    reasons[0, 0], scores = 2, changed.scores.copy()
    scores[0, 0] = np.nan
    missing = replace(responses(1, 0, 1), benchmarks=(replace(changed, scores=scores, reasons=reasons),))
    assert count_looks(tmp_path, protocol(), missing) == 2
