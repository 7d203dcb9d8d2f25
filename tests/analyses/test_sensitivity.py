from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from evalspec.analyses.analyse import analyse
from evalspec.analyses.catalogue import built_in
from evalspec.analyses.sensitivity import ANALYSIS, SensitivityOptions, SensitivityResult, compute, estimates
from evalspec.artifacts.protocol import BatchRule, Protocol
from evalspec.artifacts.responses import BenchmarkResponses, Origin, Responses
from evalspec.artifacts.study import AnalysisRequest
from evalspec.artifacts.thresholds import Check, Thresholds
from evalspec.gating import gate
from evalspec.protocols import Context
from evalspec.testing import check_analysis, sample_responses

GAP = 0.5


def responses_of(scores: list[list[float]], **changes: object) -> Responses:
    array = np.array(scores, dtype=np.float64)[:, :, None]
    models, n = tuple("abcd"[: len(scores)]), array.shape[1]
    benchmark = BenchmarkResponses(
        benchmark="b",
        models=models,
        questions=tuple(f"q{index:03}" for index in range(n)),
        subjects=(None,) * n,
        weights=np.ones(n),
        scores=array,
        reasons=np.isnan(array).astype(np.int8) * 2,
        choices=np.full(array.shape, -1, dtype=np.int16),
        logprobs=None,
        missing="wrong",
    )
    origins = tuple(Origin(model=model, benchmark="b", route="scored_here", precision="float32", fragile_gap=GAP) for model in models)
    return Responses(benchmarks=(replace(benchmark, **changes),), origins=origins, protocol_sha256="0" * 64)


def computed(responses: Responses, **options: object) -> SensitivityResult:
    return compute(responses, SensitivityOptions(kind="sensitivity", **options), Context(rng=np.random.default_rng(0)))


def values(result: SensitivityResult, model: str = "a") -> dict[str, float | None]:
    return {row.case: row.value for row in result.accuracies if row.model == model}


NAN = float("nan")


def test_answers_that_are_missing_give_the_declared_rate_the_one_without_them_and_both_bounds() -> None:
    result = computed(responses_of([[1.0] * 80 + [0.0] * 10 + [NAN] * 10]))
    assert values(result) == pytest.approx(
        {"declared": 0.8, "missing_wrong": 0.8, "missing_left_out": 80 / 90, "missing_best": 0.9},
    )
    assert {row.case: row.n for row in result.accuracies}["missing_left_out"] == 90
    assert {row.case: row.touched for row in result.cases}["missing_worst"] == 10
    found = {one.metric: one.value for one in estimates(result)}
    assert found == pytest.approx({"lowest_accuracy": 0.8, "highest_accuracy": 0.9})


def test_the_worst_case_of_a_difference_turns_missing_answers_against_the_first_model() -> None:
    result = computed(responses_of([[1, 1, NAN, 0], [1, 0, 0, NAN]]), pairs=(("a", "b"),))
    found = {row.case: row.difference for row in result.differences}
    assert found == pytest.approx({"declared": 0.25, "missing_wrong": 0.25, "missing_left_out": 0.5, "missing_worst": 0.0, "missing_best": 0.5})


def test_questions_with_flags_are_left_out_and_places_are_counted_again() -> None:
    flags = (("wrong key",),) * 4 + ((),) * 6
    result = computed(responses_of([[1] * 4 + [1, 1, 1, 0, 0, 0], [0] * 4 + [1, 1, 1, 1, 1, 1]], flags=flags))
    assert values(result, "a") == pytest.approx({"declared": 0.7, "without_flagged": 0.5})
    assert values(result, "b") == pytest.approx({"declared": 0.6, "without_flagged": 1.0})
    places = {(row.model, row.case): row.place for row in result.accuracies}
    assert places == {("a", "declared"): 1, ("a", "without_flagged"): 2, ("b", "declared"): 2, ("b", "without_flagged"): 1}
    changes = {(row.model, row.case): row.change for row in result.accuracies}
    assert changes["a", "without_flagged"] == pytest.approx(-0.2)


def test_answers_that_other_arithmetic_could_turn_count_all_wrong_and_all_right() -> None:
    logprobs = np.log([[[0.5, 0.4, 0.1], [0.9, 0.05, 0.05], [0.4, 0.35, 0.25], [0.1, 0.8, 0.1]]])  # gaps in nats: .22, 2.9, .13, 2.1
    responses = responses_of([[1, 1, 0, 0]], logprobs=logprobs)
    assert values(computed(responses)) == pytest.approx({"declared": 0.5, "fragile_worst": 0.25, "fragile_best": 0.75})
    assert values(computed(responses, fragile_gap=0.15)) == pytest.approx({"declared": 0.5, "fragile_worst": 0.5, "fragile_best": 0.75})
    unknown = replace(responses, origins=(responses.origins[0].model_copy(update={"fragile_gap": None}),))
    assert set(values(computed(unknown))) == {"declared"}


def test_both_averages_are_shown_where_subjects_have_a_role() -> None:
    subjects = {"subjects": ("law",) * 6 + ("art",) * 2, "strata": True}
    result = computed(responses_of([[1, 1, 1, 1, 1, 0, 0, 1], [0, 1, 1, 1, 1, 0, 1, 1]], **subjects), pairs=(("a", "b"),))
    assert values(result) == pytest.approx({"declared": 0.75, "macro": (5 / 6 + 1 / 2) / 2})
    assert {row.case: row.difference for row in result.differences} == pytest.approx({"declared": 0.0, "macro": (1 / 6 - 1 / 2) / 2})
    assert {one.metric: one.value for one in estimates(result) if one.models == ("a",)}["lowest_accuracy"] == pytest.approx(0.75)


def test_where_no_rule_matters_only_the_declared_one_is_shown() -> None:
    assert [row.case for row in computed(responses_of([[1, 0, 1]])).cases] == ["declared"]


def protocol(*checks: Check) -> Protocol:
    requests = (
        AnalysisRequest(id="accuracy", kind="intervals", benchmarks=("b",), options={"kind": "intervals"}),
        AnalysisRequest(id="pairs", kind="mcnemar", benchmarks=("b",), options={"kind": "mcnemar", "family": "all_pairs"}),
        AnalysisRequest(id="rules", kind="sensitivity", benchmarks=("b",), options={"kind": "sensitivity"}),
    )
    return Protocol(
        study_sha256="0" * 64, seed=1, models=(), benchmarks=(), analyses=requests, thresholds=Thresholds(checks=checks), batch_rule=BatchRule()
    )


def test_checks_are_decided_again_by_their_own_analyses_under_each_rule() -> None:
    responses = responses_of([[1.0] * 80 + [0.0] * 10 + [NAN] * 10, [1.0] * 40 + [0.0] * 40 + [NAN] * 20])
    checks = (
        Check(id="floor", analysis="accuracy", metric="accuracy", model="a", at_least=0.75),
        Check(id="ahead", analysis="pairs", metric="difference", model="a", baseline="b", above=0.0),
        Check(id="ceiling", analysis="accuracy", metric="accuracy", model="b", at_most=0.55),
    )
    findings = analyse(responses, protocol(*checks), built_in(), responses_sha256="1" * 64, gate=gate)
    result = SensitivityResult.model_validate_json(json.dumps(findings.findings[2].result))
    outcomes = {(row.check, row.case): row.outcome for row in result.checks}
    assert outcomes["floor", "declared"] == gate(findings, Thresholds(checks=checks)).checks[0].outcome == "inconclusive"
    # Whatever rule is declared, a check passes only with missing answers against it.
    assert outcomes["floor", "missing_left_out"] == "inconclusive"
    assert outcomes["floor", "missing_worst"] == "inconclusive"
    assert (outcomes["ahead", "declared"], outcomes["ahead", "missing_worst"]) == ("passed", "passed")
    assert (outcomes["ceiling", "declared"], outcomes["ceiling", "missing_worst"]) == ("inconclusive", "inconclusive")
    assert not any(case in ("missing_best", "macro") for _, case in outcomes)


@pytest.mark.parametrize("case", ["missing_worst", "fragile_worst"])
def test_no_check_passes_in_a_worst_case_that_its_metric_does_not_know(case: str) -> None:
    uncertain = NAN if case == "missing_worst" else 1.0
    scores = [[1.0] * 60 + [0.0] * 38 + [uncertain] * 2, [0.0] * 30 + [1.0] * 70]
    logprobs = np.log(np.tile([0.9, 0.1], (2, 100, 1)))
    if case == "fragile_worst":
        logprobs[0, 98:] = np.log([0.5, 0.45])
    given = responses_of(scores, logprobs=logprobs)
    check = Check(id="detectable", analysis="able", metric="detectable_difference", model="a", baseline="b", at_most=0.9)
    power = AnalysisRequest(id="able", kind="power", benchmarks=("b",), options={"kind": "power"})
    plan = protocol(check)
    findings = analyse(given, plan.model_copy(update={"analyses": (*plan.analyses, power)}), built_in(), responses_sha256="1" * 64, gate=gate)
    result = SensitivityResult.model_validate_json(json.dumps(findings.findings[2].result))
    outcomes = {row.case: row.outcome for row in result.checks}
    assert outcomes["declared"] == ("inconclusive" if case == "missing_worst" else "passed")
    assert outcomes[case] == "inconclusive"


def test_without_a_gate_there_are_no_outcomes() -> None:
    assert computed(responses_of([[1, 0, NAN]])).checks == ()


@pytest.mark.parametrize("options", [{}, {"models": ["model-1"], "pairs": [["model-0", "model-2"]]}])
@pytest.mark.parametrize("made", [{}, {"clusters": 12}, {"repeats": 3}])
def test_it_passes_what_every_analysis_must_pass(options: dict[str, object], made: dict[str, int]) -> None:
    check_analysis(ANALYSIS, {"kind": "sensitivity", **options}, sample_responses(**made))
