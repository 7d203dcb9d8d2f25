from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalspec.artifacts.findings import Estimate, Finding, Findings
from evalspec.artifacts.study import AnalysisRequest, Check, Thresholds
from evalspec.gating import NOT_COMPARED, TEST_OPEN, UNDEFINED, gate

ACCURACY = {"analysis": "acc", "metric": "accuracy", "benchmark": "b", "method": "wilson", "n": 100, "confidence_level": 0.95}


def estimate(value: float | None, low: float | None, high: float | None, **fields: object) -> Estimate:
    reason = "no scores" if value is None else None
    return Estimate(**{**ACCURACY, "models": ("m",), "value": value, "low": low, "high": high, "undefined": reason, **fields})


def difference(value: float, low: float, high: float, *, separated: bool) -> Estimate:
    return estimate(value, low, high, metric="difference", models=("m", "n"), unit="difference", separated=separated)


def outcome(found: Estimate, **check: object) -> tuple[str, str]:
    request = AnalysisRequest(id="acc", kind="intervals", benchmarks=("b",), options={})
    findings = Findings(
        protocol_sha256="0" * 64, responses_sha256="0" * 64, summaries=(), findings=(Finding(request=request, estimates=(found,), result={}),)
    )
    checks = (Check(**{"id": "c", "analysis": "acc", "metric": found.metric, "model": "m", **check}),)
    verdict = gate(findings, Thresholds(checks=checks))
    assert verdict.overall == verdict.checks[0].outcome
    return verdict.checks[0].outcome, verdict.checks[0].why


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ({"at_least": 0.60}, "passed"),
        ({"at_least": 0.65}, "passed"),
        ({"above": 0.65}, "inconclusive"),
        ({"at_least": 0.70}, "inconclusive"),
        ({"at_least": 0.75}, "inconclusive"),
        ({"above": 0.75}, "failed"),
        ({"at_least": 0.80}, "failed"),
        ({"at_most": 0.75}, "passed"),
        ({"below": 0.75}, "inconclusive"),
        ({"at_most": 0.65}, "inconclusive"),
        ({"below": 0.65}, "failed"),
        ({"at_least": 0.70, "bound": "value"}, "passed"),
        ({"at_least": 0.71, "bound": "value"}, "failed"),
    ],
)
def test_an_interval_of_65_to_75_percent_against(limit: dict[str, object], expected: str) -> None:
    assert outcome(estimate(0.70, 0.65, 0.75), **limit)[0] == expected


def test_a_difference_is_turned_round_when_the_check_names_the_models_the_other_way() -> None:
    found = estimate(0.05, 0.01, 0.09, metric="difference", models=("n", "m"), unit="difference")
    assert outcome(found, baseline="n", below=-0.005)[0] == "passed"


@pytest.mark.parametrize(
    ("value", "separated", "limit", "expected"),
    [
        (0.05, True, {"above": 0.0}, "passed"),
        (0.05, False, {"above": 0.0}, "inconclusive"),
        (-0.05, True, {"above": 0.0}, "failed"),
        (-0.05, True, {"below": 0.0}, "passed"),
    ],
)
def test_at_zero_the_adjusted_test_decides(value: float, separated: bool, limit: dict[str, object], expected: str) -> None:
    assert outcome(difference(value, value - 0.01, value + 0.01, separated=separated), baseline="n", **limit)[0] == expected


def test_not_significant_never_passes_a_check_at_zero() -> None:
    assert outcome(difference(0.001, 0.0005, 0.002, separated=False), baseline="n", above=0.0) == ("inconclusive", TEST_OPEN)


def test_an_undefined_or_absent_estimate_is_inconclusive_never_passed() -> None:
    assert outcome(estimate(None, None, None), at_least=0.0) == ("inconclusive", UNDEFINED)
    assert outcome(estimate(0.9, 0.8, 1.0), model="other", at_least=0.1) == ("inconclusive", NOT_COMPARED)


RANK = {"passed": 0, "inconclusive": 1, "failed": 2}


@given(st.lists(st.floats(0, 1), min_size=3, max_size=3), st.floats(0, 1), st.floats(0, 1))
def test_a_gate_is_monotone_in_its_limit(bounds: list[float], first: float, second: float) -> None:
    low, value, high = sorted(bounds)
    easy, hard = sorted((first, second))
    found = estimate(value, low, high)
    assert RANK[outcome(found, at_least=easy)[0]] <= RANK[outcome(found, at_least=hard)[0]]
    assert RANK[outcome(found, at_most=hard)[0]] <= RANK[outcome(found, at_most=easy)[0]]


@pytest.mark.parametrize(
    ("limits", "overall"),
    [((0.5, 0.6), "passed"), ((0.5, 0.7), "inconclusive"), ((0.7, 0.9), "failed")],
)
def test_every_check_must_pass(limits: tuple[float, float], overall: str) -> None:
    request = AnalysisRequest(id="acc", kind="intervals", benchmarks=("b",), options={})
    finding = Finding(request=request, estimates=(estimate(0.70, 0.65, 0.75),), result={})
    findings = Findings(protocol_sha256="0" * 64, responses_sha256="0" * 64, summaries=(), findings=(finding,))
    checks = tuple(Check(id=f"c{limit}", analysis="acc", metric="accuracy", model="m", at_least=limit) for limit in limits)
    assert gate(findings, Thresholds(checks=checks)).overall == overall


def test_without_thresholds_nothing_is_passed_or_failed() -> None:
    findings = Findings(protocol_sha256="0" * 64, responses_sha256="0" * 64, summaries=(), findings=())
    assert gate(findings, None).overall is None
