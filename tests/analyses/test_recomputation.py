from __future__ import annotations

import pytest

from evalspec.analyses.analyse import analyse, random_stream
from evalspec.analyses.catalogue import built_in, catalogue
from evalspec.analyses.recomputation import Recomputation, compare
from evalspec.artifacts.findings import Findings
from evalspec.artifacts.protocol import BatchRule, Protocol
from evalspec.artifacts.study import AnalysisRequest
from evalspec.artifacts.thresholds import Check, Thresholds
from evalspec.artifacts.verdict import Verdict
from evalspec.errors import AnalysisError
from evalspec.gating import gate
from evalspec.testing import sample_responses

RESPONSES = sample_responses()
REQUESTS = (
    AnalysisRequest(id="accuracy", kind="intervals", benchmarks=("first", "second"), options={"kind": "intervals"}),
    AnalysisRequest(id="pairs", kind="mcnemar", benchmarks=("first",), options={"kind": "mcnemar", "family": "all_pairs"}, planned=False),
)
CHECK = Check(id="floor", analysis="accuracy", metric="accuracy", model="model-0", at_least=0.2)


def protocol(requests: tuple[AnalysisRequest, ...] = REQUESTS) -> Protocol:
    return Protocol(
        study_sha256="1" * 64, seed=7, models=(), benchmarks=(), analyses=requests, thresholds=Thresholds(checks=(CHECK,)), batch_rule=BatchRule()
    )


def computed(requests: tuple[AnalysisRequest, ...] = REQUESTS) -> tuple[Findings, Verdict]:
    findings = analyse(RESPONSES, protocol(requests), built_in(), responses_sha256="2" * 64)
    return findings, gate(findings, protocol().thresholds)


def test_the_same_responses_give_the_same_findings_and_verdict() -> None:
    assert compare(computed(), computed(), catalogue()).state == "recomputed"


def test_findings_read_back_to_equal_values() -> None:
    findings, verdict = computed()
    assert Findings.from_json(findings.to_json()) == findings
    assert Verdict.from_json(verdict.to_json()) == verdict
    for finding in findings.findings:
        result = built_in()[finding.request.kind].result
        typed = result.model_validate(finding.result, strict=False)
        assert result.model_validate_json(typed.model_dump_json()) == typed


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("findings", 0, "estimates", "columns", "value", 1), 0.9),
        (("findings", 1, "result", "rows", "columns", "only_first", 0), 3),
        (("findings", 0, "estimates", "columns", "n", 0), 999),
    ],
)
def test_an_edited_number_is_named_with_its_path(place: tuple[str | int, ...], value: float) -> None:
    findings, verdict = computed()
    content = findings.model_dump(mode="json")
    target = content
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value
    edited = Findings.model_validate(content, strict=False)
    found = compare((edited, verdict), (findings, verdict), catalogue())
    assert found.state == "differs"
    assert [divergence.path for divergence in found.divergences] == ["/" + "/".join(map(str, place))]
    assert "findings.json/" in str(found.divergences[0])


def test_real_numbers_may_differ_within_the_tolerance_of_their_analysis_only() -> None:
    findings, verdict = computed()
    estimate = findings.findings[0].estimates[0]
    for factor, state in ((1 + 1e-12, "recomputed"), (1 + 1e-6, "differs")):
        moved = estimate.model_copy(update={"value": estimate.value * factor})
        finding = findings.findings[0].model_copy(update={"estimates": (moved, *findings.findings[0].estimates[1:])})
        edited = findings.model_copy(update={"findings": (finding, *findings.findings[1:])})
        assert compare((edited, verdict), (findings, verdict), catalogue()).state == state


def test_a_changed_verdict_is_found_even_where_the_findings_agree() -> None:
    findings, verdict = computed()
    lying = verdict.model_copy(update={"overall": "failed" if verdict.overall == "passed" else "passed"})
    assert [divergence.path for divergence in compare((findings, lying), (findings, verdict), catalogue()).divergences] == ["/overall"]


def test_another_edition_may_give_its_reasons_in_other_words_and_nothing_else() -> None:
    findings, verdict = computed()

    def found(*, edition: str = "", **changes: object) -> Recomputation:
        told = verdict.model_copy(update={"checks": (verdict.checks[0].model_copy(update=changes), *verdict.checks[1:])})
        return compare((findings, told), (findings, verdict), catalogue(), edition=edition)

    older = "written by evalspec 0.0.1"
    assert found(why="as an older version put it").state == "differs"
    reworded = found(edition=older, why="as an older version put it")
    assert (reworded.state, [one.path for one in reworded.reworded]) == ("recomputed", ["/checks/0/why"])
    assert reworded.describe().endswith("reasons in other words, written by evalspec 0.0.1: verdict.json/checks/0/why")
    assert [one.path for one in found(edition=older, why="in other words", outcome="inconclusive").divergences] == ["/checks/0/outcome"]
    assert verdict.checks[0].advice is None
    assert found(edition=older, advice="where none was due").state == "differs"


def test_estimates_carry_the_study_s_id_and_plan_and_basis() -> None:
    estimates = computed()[0].estimates()
    assert {estimate.analysis for estimate in estimates} == {"accuracy", "pairs"}
    assert {estimate.planned for estimate in estimates if estimate.analysis == "pairs"} == {False}
    assert {estimate.basis for estimate in estimates} == {"replayed"}


def test_an_analysis_more_moves_no_other_s_random_numbers() -> None:
    assert random_stream(1, "a").random() == random_stream(1, "a").random()
    assert random_stream(1, "a").random() != random_stream(1, "b").random()
    assert random_stream(1, "a").random() != random_stream(2, "a").random()


def test_a_kind_that_is_not_installed_is_named() -> None:
    unknown = AnalysisRequest(id="x", kind="palmistry", benchmarks=("first",), options={})
    with pytest.raises(AnalysisError, match=r"palmistry.*intervals, mcnemar"):
        computed((unknown,))
