"""Whatever rule is declared for missing answers, a check passes only with every one of them counted against it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evalspec.analyses.analyse import analyse
from evalspec.analyses.catalogue import built_in
from evalspec.analyses.worst_cases import NOT_ORDERED
from evalspec.artifacts.base import JsonValue
from evalspec.artifacts.findings import Findings
from evalspec.artifacts.protocol import BatchRule, Protocol
from evalspec.artifacts.responses import BenchmarkResponses, Origin, Reason, Responses
from evalspec.artifacts.scores import Score
from evalspec.artifacts.study import AnalysisRequest
from evalspec.artifacts.thresholds import Check, Thresholds
from evalspec.artifacts.verdict import CheckResult, Verdict
from evalspec.conclusion import describe
from evalspec.gating import ALSO_MISSING, CORRECTED, MISSING_OPEN, MISSING_UNKNOWN, RULE_MISSING, RULE_VALUE, TEST_OPEN, TEST_RIGHT_ALONE, gate

NAN = float("nan")
LESS = Score(unit="share of toxic sentences", polarity="lower_is_better")


def responses(scores: dict[str, list[float]], **changes: object) -> Responses:
    array = np.array(list(scores.values()), dtype=np.float64)[:, :, None]
    n = array.shape[1]
    benchmark = BenchmarkResponses(
        benchmark="b",
        models=tuple(scores),
        questions=tuple(f"q{index:03}" for index in range(n)),
        subjects=(None,) * n,
        weights=np.ones(n),
        scores=array,
        reasons=np.where(np.isnan(array), Reason.UNDETERMINED, Reason.NONE).astype(np.int8),
        choices=np.full(array.shape, -1, dtype=np.int16),
        logprobs=None,
        missing="complete_case",
    )
    origins = tuple(Origin(model=model, benchmark="b", route="recorded", precision="float32") for model in scores)
    return Responses(benchmarks=(replace(benchmark, **changes),), origins=origins, protocol_sha256="0" * 64)


def judged(given: Responses, options: dict[str, JsonValue], *checks: Check, require: str = "all") -> tuple[Findings, Verdict]:
    request = AnalysisRequest(id="it", kind=str(options["kind"]), benchmarks=("b",), options=options)
    plan = Protocol(
        study_sha256="0" * 64,
        seed=1,
        models=(),
        benchmarks=(),
        analyses=(request,),
        thresholds=Thresholds(require=require, checks=checks),
        batch_rule=BatchRule(),
    )
    findings = analyse(given, plan, built_in(), responses_sha256="0" * 64, gate=gate)
    assert Findings.from_json(findings.to_json()) == findings
    return findings, gate(findings, plan.thresholds)


def only(given: Responses, options: dict[str, JsonValue], **check: object) -> CheckResult:
    asked = Check(**{"id": "c", "analysis": "it", "metric": "difference", "model": "new", **check})
    return judged(given, options, asked)[1].checks[0]


AHEAD = {"new": [1.0] * 80 + [NAN] * 20, "old": [1.0] * 60 + [0.0] * 20 + [1.0] * 20}
"""Ahead by 20 of the 80 questions that both answered, and by nothing if all that is missing is wrong."""

PAIRS: dict[str, JsonValue] = {"kind": "mcnemar", "family": "named", "pairs": [["new", "old"]]}
FLOOR = {"new": [1.0] * 80 + [0.0] * 5 + [NAN] * 15}


@pytest.mark.parametrize("limit", [0.0, 0.05])
def test_answers_left_out_do_not_make_a_difference_pass(limit: float) -> None:
    result = only(responses(AHEAD), PAIRS, baseline="old", above=limit)
    assert result.observed is not None
    assert result.settled is not None
    assert result.observed.value == pytest.approx(0.25)
    assert (result.missing, result.settled.value, result.settled.n) == (20, 0.0, 100)
    assert result.outcome == "inconclusive"
    assert result.why.startswith(MISSING_OPEN)


def test_a_difference_named_the_other_way_round_is_settled_against_the_same_claim() -> None:
    turned: dict[str, JsonValue] = {"kind": "mcnemar", "family": "named", "pairs": [["old", "new"]]}
    assert only(responses(AHEAD), turned, baseline="old", above=0.0) == only(responses(AHEAD), PAIRS, baseline="old", above=0.0)


def test_missing_answers_of_the_baseline_count_as_right_though_the_study_counts_them_as_wrong() -> None:
    scores = {"new": [1.0] * 80 + [0.0] * 20, "old": [1.0] * 60 + [NAN] * 20 + [0.0] * 20}
    result = only(responses(scores, missing="wrong"), PAIRS, baseline="old", above=0.0)
    assert (result.missing, result.outcome) == (20, "inconclusive")


def test_a_claim_that_a_model_is_worse_is_settled_in_its_favour() -> None:
    scores = {"new": [1.0] * 40 + [NAN] * 20 + [0.0] * 40, "old": [1.0] * 60 + [0.0] * 40}
    result = only(responses(scores, missing="wrong"), PAIRS, baseline="old", below=0.0)
    assert result.settled is not None
    assert (result.observed and result.observed.value, result.settled.value, result.outcome) == (-0.2, 0.0, "inconclusive")


@pytest.mark.parametrize("bound", ["low", "value"])
def test_a_floor_is_cleared_only_with_missing_answers_wrong(bound: str) -> None:
    check = {"metric": "accuracy", "at_least": 0.85, "bound": bound}
    result = only(responses(FLOOR), {"kind": "intervals"}, **check)
    assert result.settled is not None
    assert (result.missing, result.settled.value, result.outcome) == (15, 0.8, "inconclusive")
    answered = only(responses({"new": [1.0] * 80 + [0.0] * 5}), {"kind": "intervals"}, **check)
    assert (answered.missing, answered.settled, answered.outcome) == (0, None, "passed")


def test_a_ceiling_is_kept_only_with_missing_answers_right() -> None:
    scores = {"new": [1.0] * 10 + [0.0] * 75 + [NAN] * 15}
    result = only(responses(scores, missing="wrong"), {"kind": "intervals"}, metric="accuracy", at_most=0.2)
    assert result.settled is not None
    assert (result.settled.value, result.outcome) == (0.25, "inconclusive")


def test_where_less_is_better_a_ceiling_is_kept_only_with_missing_answers_at_their_worst() -> None:
    scores = {"new": [0.1] * 45 + [0.2] * 45 + [NAN] * 10}
    result = only(responses(scores, score=LESS), {"kind": "intervals"}, metric="accuracy", at_most=0.2)
    assert result.settled is not None
    assert result.settled.value == pytest.approx(0.235)
    assert result.outcome == "inconclusive"
    floor = only(responses(scores, score=LESS), {"kind": "intervals"}, metric="accuracy", at_least=0.12)
    assert floor.settled is not None
    assert floor.settled.value == pytest.approx(0.135)


def test_where_less_is_better_a_difference_and_a_rank_are_settled_against_the_model_that_claims_them() -> None:
    scores = {"new": [0.1, 0.2] * 40 + [NAN] * 20, "old": [0.3, 0.3, 0.4, 0.4] * 25}
    difference = only(responses(scores, score=LESS), PAIRS, baseline="old", below=0.0)
    assert difference.settled is not None
    assert (difference.observed and difference.observed.value, difference.settled.value) == pytest.approx((-0.2, -0.03))
    assert difference.outcome == "inconclusive"
    rank = only(responses(scores, score=LESS), {"kind": "tiers"}, metric="rank", at_most=1)
    assert (rank.missing, rank.outcome) == (20, "inconclusive")


def test_a_check_that_passes_with_missing_answers_against_it_passes_and_says_so() -> None:
    result = only(responses(FLOOR), {"kind": "intervals"}, metric="accuracy", at_least=0.6)
    assert (result.outcome, result.missing) == ("passed", 15)
    assert result.why.endswith(ALSO_MISSING)


def test_in_one_subject_only_its_own_missing_answers_count() -> None:
    subjects = ("a",) * 50 + ("z",) * 50
    scores = {"new": [1.0] * 40 + [NAN] * 10 + [1.0] * 50, "old": [0.0] * 10 + [1.0] * 40 + [0.0] * 50}
    given = responses(scores, subjects=subjects, strata=True)
    options: dict[str, JsonValue] = {"kind": "subgroups", "model": "new", "baseline": "old"}
    of_a = only(given, options, baseline="old", subject="a", above=0.0)
    assert of_a.observed is not None
    assert of_a.observed.separated
    assert (of_a.missing, of_a.outcome) == (10, "inconclusive")
    of_z = only(given, options, baseline="old", subject="z", above=0.0)
    assert (of_z.missing, of_z.outcome) == (0, "passed")
    floor = only(given, {"kind": "intervals"}, metric="accuracy", subject="a", at_least=0.9)
    assert (floor.missing, floor.outcome) == (10, "inconclusive")


def test_a_rank_is_settled_against_the_model_that_claims_it() -> None:
    scores = {"new": [1.0] * 60 + [NAN] * 40, "old": [1.0] * 60 + [0.0] * 40, "last": [0.0] * 100}
    result = only(responses(scores), {"kind": "tiers"}, metric="rank", at_most=2)
    assert (result.missing, result.outcome) == (40, "passed")
    better = {"new": [1.0] * 60 + [NAN] * 40, "old": [0.0] * 30 + [1.0] * 30 + [1.0] * 40, "last": [0.0] * 100}
    result = only(responses(better), {"kind": "tiers"}, metric="rank", at_most=1)
    assert result.observed is not None
    assert (result.observed.high, result.outcome) == (1, "inconclusive")


def test_a_margin_whose_analysis_settles_missing_answers_itself_is_decided_as_before() -> None:
    options: dict[str, JsonValue] = {"kind": "noninferiority", "candidate": "new", "baseline": "old", "margin": 0.1}
    scores = {"new": [1.0] * 95 + [NAN] * 2 + [0.0] * 3, "old": [1.0] * 95 + [0.0] * 5}
    result = only(responses(scores), options, baseline="old", above=-0.1)
    assert result.observed is not None
    assert result.settled is not None
    assert (result.missing, result.outcome) == (2, "passed")
    assert (result.observed.low, result.observed.value) == (result.settled.low, result.settled.value)


def test_a_metric_without_a_known_worst_case_cannot_pass_on_missing_answers() -> None:
    scores = {"new": [1.0] * 60 + [0.0] * 38 + [NAN] * 2, "old": [0.0] * 30 + [1.0] * 70}
    check = {"metric": "detectable_difference", "baseline": "old", "at_most": 0.9}
    result = only(responses(scores, missing="wrong"), {"kind": "power"}, **check)
    assert (result.missing, result.settled, result.outcome) == (2, None, "inconclusive")
    assert result.why == MISSING_UNKNOWN + NOT_ORDERED
    assert "it does not" not in result.why, "nothing was computed that could say so"
    assert only(responses({**scores, "new": [1.0] * 60 + [0.0] * 40}), {"kind": "power"}, **check).outcome == "passed"


def test_where_any_check_is_enough_missing_answers_count_against_each_at_its_corrected_rate() -> None:
    checks = tuple(Check(id=f"c{limit}", analysis="it", metric="accuracy", model="new", at_least=limit) for limit in (0.85, 0.68))
    findings, verdict = judged(responses(FLOOR), {"kind": "intervals"}, *checks, require="any")
    assert [result.outcome for result in verdict.checks] == ["inconclusive", "passed"]
    assert all(len(entry.estimate.stricter) == 2 for entry in findings.findings[0].settled if entry.estimate)


def test_a_worse_fill_of_a_third_model_does_not_move_a_check_of_two() -> None:
    scores = {"new": [1.0] * 90 + [0.0] * 10, "old": [1.0] * 50 + [0.0] * 50, "third": [NAN] * 100}
    result = only(responses(scores), {"kind": "mcnemar", "family": "vs_baseline", "baseline": "old"}, baseline="old", above=0.0)
    assert (result.missing, result.settled, result.outcome) == (0, None, "passed")


def test_console_and_rule_name_the_missing_answers() -> None:
    asked = Check(id="c", analysis="it", metric="accuracy", model="new", at_least=0.85, bound="value")
    verdict = judged(responses(FLOOR), {"kind": "intervals"}, asked)[1]
    assert "with the 15 missing answers counted against it: 0.8, interval" in describe(verdict)
    assert RULE_MISSING in verdict.rule
    assert verdict.rule.endswith(RULE_VALUE)


def test_more_answers_that_are_missing_never_help_a_check() -> None:
    rank = {"passed": 0, "inconclusive": 1, "failed": 2}
    complete = [1.0] * 80 + [0.0] * 20
    outcomes = []
    for gone in (0, 2, 5, 10, 20):
        given = responses({"new": [1.0] * (80 - gone) + [NAN] * gone + [0.0] * 20})
        outcomes.append(rank[only(given, {"kind": "intervals"}, metric="accuracy", at_least=0.7).outcome])
    assert outcomes == sorted(outcomes)
    assert rank[only(responses({"new": complete}), {"kind": "intervals"}, metric="accuracy", at_least=0.7).outcome] == outcomes[0] == 0


def discordant(ahead: int, behind: int) -> tuple[list[float], list[float]]:
    """Answers of two models to 100 questions."""
    same = 100 - ahead - behind
    return [1.0] * ahead + [0.0] * behind + [1.0] * same, [0.0] * ahead + [1.0] * behind + [1.0] * same


def test_any_of_several_checks_of_a_family_is_corrected_for_the_checks_and_not_for_the_family_as_well() -> None:
    new, old = discordant(15, 4)  # p = 0.019: after Holm 0.096 among five comparisons, 0.038 among two checks
    scores = {"old": old, "new": new, **{f"same-{index}": old for index in range(4)}}
    options: dict[str, JsonValue] = {"kind": "mcnemar", "family": "vs_baseline", "baseline": "old"}
    checks = [Check(id=name, analysis="it", metric="difference", model=name, baseline="old", above=0.0) for name in ("new", "same-1")]
    verdict = judged(responses(scores), options, *checks, require="any")[1]
    assert [(result.outcome, result.why) for result in verdict.checks] == [("passed", TEST_RIGHT_ALONE), ("inconclusive", TEST_OPEN)]
    assert verdict.overall == "passed"
    assert verdict.checks[0].observed is not None
    assert verdict.checks[0].observed.p_adjusted == pytest.approx(5 * 0.0192, abs=1e-3)
    assert judged(responses(scores), options, checks[0])[1].overall == "inconclusive"


def test_with_more_checks_than_the_p_value_bears_none_passes() -> None:
    new, old = discordant(15, 4)
    scores = {"old": old, "new": new, "same-1": old, "same-2": old}
    options: dict[str, JsonValue] = {"kind": "mcnemar", "family": "vs_baseline", "baseline": "old"}
    checks = [Check(id=name, analysis="it", metric="difference", model=name, baseline="old", above=0.0) for name in ("new", "same-1", "same-2")]
    first = judged(responses(scores), options, *checks, require="any")[1].checks[0]
    assert (first.outcome, first.why, first.divisor) == ("inconclusive", CORRECTED, 3)


def test_ranks_that_hold_all_together_count_as_one_check() -> None:
    new, old = discordant(14, 4)  # p = 0.031: separated at 0.05 and not at half of it
    scores = {"new": new, "old": old, "last": [0.0] * 100}
    checks = [Check(id=name, analysis="it", metric="rank", model=name, at_most=1) for name in ("new", "old")]
    verdict = judged(responses(scores), {"kind": "tiers"}, *checks, require="any")[1]
    assert [(result.outcome, result.divisor) for result in verdict.checks] == [("passed", 1), ("failed", 1)]
    beside = [*checks, Check(id="other", analysis="it", metric="rank", model="last", at_most=1)]
    assert judged(responses(scores), {"kind": "tiers"}, *beside, require="any")[1].checks[0].outcome == "passed"
