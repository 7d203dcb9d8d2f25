from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from evalspec.artifacts.findings import Estimate, Finding, Findings, StricterBounds
from evalspec.artifacts.schedule import GateForecast
from evalspec.artifacts.study import AnalysisRequest
from evalspec.artifacts.thresholds import Check, Thresholds
from evalspec.artifacts.verdict import Verdict
from evalspec.conclusion import describe
from evalspec.gating import (
    ANY_LOOK,
    CORRECTED,
    FRACTIONAL,
    LAST_LOOK,
    MEANS,
    NO_BOUND,
    NO_E_VALUE,
    NOT_COMPARED,
    ONE_LOOK,
    PLANNED_LOOK,
    RULE_ALL,
    RULE_ANY,
    RULE_VALUE,
    SINGLE_LOOK,
    TEST_OPEN,
    UNDEFINED,
    gate,
)
from evalspec.statistics.designs import MeanMethod
from evalspec.statistics.gaffke import GaffkeMethod

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


def test_a_value_without_an_interval_is_not_called_undefined_and_never_passes() -> None:
    assert outcome(estimate(0.9, None, None), at_least=0.5) == ("inconclusive", NO_BOUND)


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


def verdict_of(*estimates: Estimate, require: str = "all", forecasts: tuple[GateForecast, ...] = (), limit: float = 0.6) -> Verdict:
    requests = {given.analysis: tuple(other for other in estimates if other.analysis == given.analysis) for given in estimates}

    def finding(name: str, group: tuple[Estimate, ...]) -> Finding:
        asked = AnalysisRequest(id=name, kind="intervals", benchmarks=tuple(one.benchmark for one in group), options={})
        return Finding(request=asked, estimates=group, result={})

    found = tuple(finding(name, group) for name, group in requests.items())
    checks = tuple(Check(id=name, analysis=name, metric=group[0].metric, model="m", at_least=limit) for name, group in requests.items())
    findings = Findings(protocol_sha256="0" * 64, responses_sha256="0" * 64, summaries=(), findings=found)
    return gate(findings, Thresholds(require=require, checks=checks), forecasts)


def bounded(name: str, *lows: float, high: float = 0.9) -> Estimate:
    """An estimate whose lower bound is lows[0] at its own error rate, lows[1] at half of it, lows[2] at a third, and so on."""
    stricter = tuple(StricterBounds(divisor=divisor, low=low, high=high) for divisor, low in enumerate(lows[1:], start=2))
    return estimate(0.7, lows[0], high, analysis=name, stricter=stricter)


def test_one_passed_check_is_enough_where_any_is() -> None:
    verdict = verdict_of(bounded("a", 0.65, 0.64, 0.63), bounded("b", 0.5, 0.4, 0.3), bounded("c", 0.5, 0.4, 0.3), require="any")
    assert [result.outcome for result in verdict.checks] == ["passed", "inconclusive", "inconclusive"]
    assert verdict.overall == "passed"
    assert verdict.rule == RULE_ANY


def test_a_check_that_passes_only_without_the_correction_does_not_pass() -> None:
    verdict = verdict_of(bounded("a", 0.65, 0.61, 0.59), bounded("b", 0.5, 0.4, 0.3), bounded("c", 0.5, 0.4, 0.3), require="any")
    assert (verdict.checks[0].outcome, verdict.checks[0].why, verdict.checks[0].divisor) == ("inconclusive", CORRECTED, 3)
    assert verdict.overall == "inconclusive"


def test_holm_s_steps_ease_the_correction_once_others_have_passed() -> None:
    verdict = verdict_of(bounded("a", 0.65, 0.64, 0.63), bounded("b", 0.65, 0.61, 0.59), bounded("c", 0.61, 0.4, 0.3), require="any")
    assert [result.outcome for result in verdict.checks] == ["passed", "passed", "passed"]


@pytest.mark.usefixtures("quick_garbage")
@settings(deadline=None)  # a busy machine
@given(st.lists(st.floats(1e-4, 1.0), min_size=1, max_size=6))
def test_the_steps_are_those_of_holm_s_p_values(p_values: list[float]) -> None:
    # A check passes at alpha / d exactly where its p-value is at most that; alpha is 0.05 here.
    estimates = [bounded(f"a{place}", *(0.7 if p <= 0.05 / d else 0.1 for d in range(1, len(p_values) + 1))) for place, p in enumerate(p_values)]
    outcomes = [result.outcome == "passed" for result in verdict_of(*estimates, require="any").checks]
    assert outcomes == [adjusted <= 0.05 for adjusted in multipletests(p_values, alpha=0.05, method="holm")[1]]


def test_a_check_without_bounds_at_the_corrected_rate_does_not_pass() -> None:
    verdict = verdict_of(estimate(0.7, 0.65, 0.75, analysis="a"), estimate(0.7, 0.65, 0.75, analysis="b"), require="any")
    assert verdict.overall == "inconclusive"


def test_a_check_on_two_benchmarks_passes_only_on_both_even_where_any_check_is_enough() -> None:
    one, other = bounded("a", 0.65, 0.64), bounded("a", 0.5, 0.4).model_copy(update={"benchmark": "second"})
    verdict = verdict_of(one, other, bounded("b", 0.5, 0.4), require="any")
    assert [result.outcome for result in verdict.checks] == ["passed", "inconclusive", "inconclusive"]
    assert verdict.overall == "inconclusive"


def test_if_every_check_fails_the_whole_fails_where_any_is_enough() -> None:
    failed = [bounded(name, 0.1, 0.05, high=0.5) for name in ("a", "b")]
    assert verdict_of(*failed, require="any").overall == "failed"
    assert verdict_of(failed[0], bounded("b", 0.5, 0.4), require="any").overall == "inconclusive"


def test_a_one_sided_bound_passes_or_stays_open_and_fails_only_with_its_opposite() -> None:
    lower = {"sides": "lower", "confidence_level": 0.975}
    assert outcome(estimate(0.7, 0.65, None, **lower), at_least=0.6)[0] == "passed"
    assert outcome(estimate(0.7, 0.65, None, **lower), at_least=0.9)[0] == "inconclusive"
    assert outcome(estimate(0.7, 0.65, 0.75, **lower), at_least=0.9)[0] == "failed"
    assert outcome(estimate(0.7, 0.65, None, **lower), at_most=0.9) == ("inconclusive", NO_BOUND)


def test_an_undecided_check_says_what_it_needs_and_what_another_look_costs() -> None:
    forecast = GateForecast(
        check="acc", benchmark="b", n=100, source_size=300, limit=0.65, truth=0.7, truth_declared=True, alpha=0.025, needed=654, power=0.2
    )
    verdict = verdict_of(estimate(0.7, 0.65, 0.75), forecasts=(forecast,), limit=0.7)
    assert verdict.checks[0].forecast == forecast
    assert verdict.checks[0].advice == ONE_LOOK
    assert "with a true value of 0.7 (declared), 80 % power at alpha 0.025 needs 654 questions, more than the 300 of this source" in describe(verdict)
    looked = [
        ({}, SINGLE_LOOK),
        ({"look": 1, "looks": 1}, SINGLE_LOOK),
        ({"look": 1, "looks": 3}, PLANNED_LOOK),
        ({"look": 3, "looks": 3}, LAST_LOOK),
        ({"anytime": True}, ANY_LOOK),
        ({"anytime": True, "value": None, "low": None, "high": None, "undefined": "the e-value needs right and wrong answers"}, NO_E_VALUE),
    ]
    for fields, advice in looked:
        found = estimate(0.7, 0.65, 0.75, metric="difference", unit="difference").model_copy(update=fields)
        assert verdict_of(found, limit=0.7).checks[0].advice == advice
    assert verdict_of(estimate(0.7, 0.65, 0.75), limit=0.6).checks[0].advice is None


def test_every_undecided_check_says_that_another_look_needs_alpha_spending_or_an_e_value() -> None:
    for advice in (ONE_LOOK, SINGLE_LOOK):
        assert "another look, which raises the chance of a false pass" in advice
        assert "alpha spending" in advice
        assert "e-value" in advice
    assert "declared spending" in PLANNED_LOOK
    assert "declared alpha spending" in LAST_LOOK
    assert "declared e-value" in ANY_LOOK
    console = describe(verdict_of(estimate(0.7, 0.65, 0.75), limit=0.7))
    assert ONE_LOOK in console
    assert "the questions needed cannot be stated: nothing was forecast for this check" in console


def test_the_advice_of_another_look_speaks_of_the_check_itself() -> None:
    assert "nothing holds it down for this check" in SINGLE_LOOK
    assert "unless" not in SINGLE_LOOK, "what another analysis declared covers its own checks alone"


def test_a_forecast_for_right_and_wrong_answers_says_nothing_about_fractional_scores() -> None:
    forecast = GateForecast(check="acc", benchmark="b", n=100, source_size=300, limit=0.7, truth=0.8, needed=654, power=0.2, smallest=0.85)
    told = verdict_of(estimate(0.7, 0.65, 0.75, method="t"), forecasts=(forecast,), limit=0.7).checks[0].forecast
    assert told is not None
    assert (told.needed, told.power, told.smallest, told.undefined) == (None, None, None, FRACTIONAL)
    assert verdict_of(estimate(0.7, 0.65, 0.75), forecasts=(forecast,), limit=0.7).checks[0].forecast == forecast
    assert (*get_args(MeanMethod), *get_args(GaffkeMethod)) == MEANS


def test_a_value_alone_takes_the_error_control_from_the_whole() -> None:
    request = AnalysisRequest(id="acc", kind="intervals", benchmarks=("b",), options={})
    finding = Finding(request=request, estimates=(estimate(0.7, 0.65, 0.75),), result={})
    findings = Findings(protocol_sha256="0" * 64, responses_sha256="0" * 64, summaries=(), findings=(finding,))
    checks = (Check(id="c", analysis="acc", metric="accuracy", model="m", at_least=0.6, bound="value"),)
    assert gate(findings, Thresholds(checks=checks)).rule == f"{RULE_ALL} {RULE_VALUE}"


def test_a_detectable_difference_is_of_both_models_in_whichever_order() -> None:
    found = estimate(0.03, 0.028, 0.032, metric="detectable_difference", models=("n", "m"))
    assert outcome(found, baseline="n", at_most=0.04)[0] == "passed"
