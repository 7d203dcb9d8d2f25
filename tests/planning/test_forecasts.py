from __future__ import annotations

import numpy as np
import pytest

from evalspec.artifacts.protocol import BatchRule, DrawnQuestion, Pool, Protocol, ProtocolBenchmark
from evalspec.artifacts.samples import Sample, SampleAll, SampleSimple, SizeToDetect
from evalspec.artifacts.schedule import GateForecast
from evalspec.artifacts.scores import Score
from evalspec.artifacts.study import AnalysisRequest, LetterScoring
from evalspec.artifacts.thresholds import Assumption, Check, Thresholds
from evalspec.planning.forecasts import (
    APPROXIMATE,
    BOUNDS,
    CLUSTERED,
    KEPT,
    NO_FORECAST,
    POINT_VALUE,
    WEIGHTED,
    approximate_bounds,
    forecast_gates,
    gate_warnings,
)
from evalspec.protocols import CheckTest, PlannedLooks
from evalspec.statistics.floors import Floor, floor_questions
from evalspec.statistics.guarantees import guarantee
from evalspec.statistics.one_sided import LimitTest
from evalspec.statistics.one_sided_power import limit_power, limit_questions
from evalspec.statistics.paired_power import exact_power_favoured, questions_needed

DIFFERENCE = {"analysis": "pairs", "metric": "difference", "model": "a", "baseline": "b"}
ACCURACY = {"analysis": "accuracy", "metric": "accuracy", "model": "a"}
MCNEMAR = CheckTest("exact", 0.025)
NO_LOSS = CheckTest("fay_lumbard", 0.025, no_difference=True)
EXACT_FLOOR = CheckTest("clopper_pearson", 0.025)


def forecast(
    test: CheckTest | None, *, questions: int = 500, sample: Sample | None = None, design: dict[str, object] | None = None, **check: object
) -> GateForecast:
    (found,) = forecast_gates(planned(questions=questions, sample=sample, design=design, **check), {"c": test})
    return found


def planned(*, questions: int = 500, sample: Sample | None = None, design: dict[str, object] | None = None, **check: object) -> Protocol:
    design = design or {}
    weights = [2.0, 0.0] * (questions // 2) if "weighted" in design else [1.0] * questions
    drawn = tuple(DrawnQuestion(id=f"q{place}", sha256="0" * 64, subject=f"s{place % 2}", weight=weight) for place, weight in enumerate(weights))
    benchmark = ProtocolBenchmark(
        id="x",
        source="x.jsonl",
        source_sha256="0" * 64,
        source_size=1000,
        sample=sample or SampleAll(),
        questions=drawn,
        strata="subject" if "stratified" in design else None,
        clusters="subject" if "clustered" in design else None,
        pool=Pool(size=1000) if "pool" in design else None,
        score=design.get("score"),
        missing="wrong",
        scoring=LetterScoring(method="letter"),
        prompt="{question}",
        disclosure="full",
    )
    return Protocol(
        study_sha256="0" * 64,
        seed=1,
        models=(),
        benchmarks=(benchmark,),
        analyses=tuple(AnalysisRequest(id=name, kind=name, benchmarks=("x",), options={}) for name in ("pairs", "accuracy")),
        thresholds=Thresholds(checks=(Check(**{"id": "c", **check}),)),
        batch_rule=BatchRule(),
    )


def test_a_margin_is_planned_for_no_difference_unless_the_check_declares_another() -> None:
    found = forecast(NO_LOSS, **DIFFERENCE, above=-0.05)
    assert (found.truth, found.truth_declared, found.discordance, found.discordance_declared) == (0.0, False, 0.2, False)
    assert found.power == limit_power(500, 0.2, 0.0, LimitTest(-0.05, method="exact"))
    assert found.needed == limit_questions(0.2, 0.0, LimitTest(-0.05, method="exact")).questions
    declared = forecast(NO_LOSS, **DIFFERENCE, above=-0.05, assume=Assumption(difference=-0.01, discordance=0.1))
    assert (declared.truth, declared.truth_declared, declared.discordance_declared) == (-0.01, True, True)
    assert declared.power == limit_power(500, 0.1, -0.01, LimitTest(-0.05, method="exact"))


def test_the_discordance_is_the_check_s_the_analysis_s_or_the_sample_s_own() -> None:
    sample = SampleSimple(method="simple", size=SizeToDetect(detect=0.02, discordance=0.12))
    assert forecast(NO_LOSS, sample=sample, **DIFFERENCE, above=-0.05).discordance == 0.12
    of_analysis = CheckTest("fay_lumbard", 0.025, 0.15, no_difference=True)
    assert forecast(of_analysis, sample=sample, **DIFFERENCE, above=-0.05).discordance == 0.15
    assert forecast(of_analysis, sample=sample, **DIFFERENCE, above=-0.05, assume=Assumption(discordance=0.3)).discordance == 0.3


def test_a_gain_needs_a_declared_difference_before_power_is_stated() -> None:
    undeclared = forecast(MCNEMAR, **DIFFERENCE, above=0.0)
    assert (undeclared.power, undeclared.needed, undeclared.truth) == (None, None, None)
    assert undeclared.smallest == pytest.approx(0.057, abs=0.003)
    found = forecast(MCNEMAR, **DIFFERENCE, above=0.0, assume=Assumption(difference=0.05, discordance=0.2))
    assert found.power == exact_power_favoured(500, 0.2, 0.05)
    assert found.needed == questions_needed(0.2, 0.05).questions


def test_an_upper_limit_is_the_lower_one_seen_from_the_other_model() -> None:
    upper = forecast(NO_LOSS, **DIFFERENCE, below=0.05, assume=Assumption(difference=0.01, discordance=0.1))
    lower = forecast(NO_LOSS, **DIFFERENCE, above=-0.05, assume=Assumption(difference=-0.01, discordance=0.1))
    assert (upper.power, upper.needed) == (lower.power, lower.needed)
    assert upper.smallest == -(lower.smallest or 0.0)


def test_a_floor_says_which_true_accuracy_passes_and_with_a_declared_one_its_power() -> None:
    undeclared = forecast(EXACT_FLOOR, **ACCURACY, at_least=0.7)
    assert undeclared.power is None
    assert undeclared.smallest == pytest.approx(0.756, abs=0.004)
    floor = Floor(0.7, method="clopper_pearson")
    found = forecast(EXACT_FLOOR, **ACCURACY, at_least=0.7, assume=Assumption(accuracy=0.73))
    assert found.power == pytest.approx(float(floor.power(np.array([500]), 0.73)[0]))
    assert found.needed == floor_questions(0.73, floor).questions
    ceiling = forecast(EXACT_FLOOR, **ACCURACY, at_most=0.3, assume=Assumption(accuracy=0.27))
    assert (ceiling.power, ceiling.needed) == (pytest.approx(found.power), found.needed)


def test_a_floor_that_even_perfect_answers_do_not_clear_is_warned_of() -> None:
    found = forecast(EXACT_FLOOR, questions=30, **ACCURACY, at_least=0.9)
    (warning,) = gate_warnings((found,))
    assert warning == "check 'c' on 'x' cannot pass on 30 questions: even 30 right answers of 30 leave the bound on the other side of 0.9"


def test_a_gate_that_is_unlikely_to_decide_is_warned_of_with_its_power_and_what_it_needs() -> None:
    (warning,) = gate_warnings((forecast(NO_LOSS, **DIFFERENCE, above=-0.02),))
    needed = limit_questions(0.2, 0.0, LimitTest(-0.02, method="exact")).questions
    assert warning == (
        "check 'c' on 'x' will pass with a chance of 14 % only, if the true difference is 0 and 20 % of the questions are discordant (assumed); "
        f"80 % would need {needed:,} questions at alpha 0.025, more than the 1,000 of this source"
    )
    assert not list(gate_warnings((forecast(NO_LOSS, **DIFFERENCE, above=-0.1),)))


def test_a_gate_on_an_approximate_bound_is_warned_of_with_what_to_take_instead() -> None:
    (warning,) = gate_warnings((forecast(CheckTest("score", 0.025, no_difference=True), **DIFFERENCE, above=-0.1),))
    assert warning == (
        "check 'c' on 'x' rests on Tango's score bound, which keeps its error rate approximately only; noninferiority by method exact kept it "
        "wherever it was computed"
    )


def test_one_subject_has_its_own_number_of_questions() -> None:
    assert forecast(EXACT_FLOOR, **ACCURACY, at_least=0.7, subject="s0").n == 250


@pytest.mark.parametrize(
    ("test", "design", "check", "reason"),
    [
        (MCNEMAR, {"clustered": True}, {**DIFFERENCE, "above": 0.0}, CLUSTERED),
        (MCNEMAR, {"weighted": True}, {**DIFFERENCE, "above": 0.0}, WEIGHTED),
        (MCNEMAR, None, {**DIFFERENCE, "above": 0.0, "bound": "value"}, POINT_VALUE),
        (None, None, {**DIFFERENCE, "above": 0.0}, NO_FORECAST),
        (CheckTest("somebody_s_own", 0.05), None, {**DIFFERENCE, "above": 0.0}, NO_FORECAST),
        (MCNEMAR, None, {**DIFFERENCE, "above": 0.0, "assume": Assumption(difference=0.5)}, "discordance"),
        (EXACT_FLOOR, None, {**ACCURACY, "at_least": 0.0}, "always or never"),
    ],
)
def test_where_power_is_not_known_the_reason_is_given(
    test: CheckTest | None, design: dict[str, object] | None, check: dict[str, object], reason: str
) -> None:
    found = forecast(test, design=design, **check)
    assert found.power is None
    assert reason in (found.undefined or "")
    assert not list(gate_warnings((found,)))


LOOKS = PlannedLooks(this=1, count=3, last_questions=900, last_alpha=0.0245)


def test_planned_looks_are_planned_for_the_last_one_at_its_alpha() -> None:
    found = forecast(CheckTest("fay_lumbard", 0.001, no_difference=True, looks=LOOKS), questions=300, **DIFFERENCE, above=-0.05)
    assert (found.n, found.alpha) == (300, 0.001)
    assert found.power == limit_power(300, 0.2, 0.0, LimitTest(-0.05, 0.001, "exact"))
    assert found.last is not None
    assert (found.last.look, found.last.n, found.last.alpha) == (3, 900, 0.0245)
    assert found.last.power == limit_power(900, 0.2, 0.0, LimitTest(-0.05, 0.0245, "exact"))
    assert found.needed == limit_questions(0.2, 0.0, LimitTest(-0.05, 0.0245, "exact")).questions
    assert list(gate_warnings((found,))) == []  # what this look cannot decide yet the last one will


def test_a_last_look_that_is_unlikely_to_decide_or_beyond_the_source_is_warned_of() -> None:
    few = CheckTest("fay_lumbard", 0.001, no_difference=True, looks=PlannedLooks(this=1, count=2, last_questions=500, last_alpha=0.0245))
    (warning,) = gate_warnings((forecast(few, questions=300, **DIFFERENCE, above=-0.05),))
    assert "will pass at the last of its 2 looks, of 500 questions at alpha 0.0245, with a chance of" in warning
    assert "questions at alpha 0.0245" in warning.split(";")[1]
    many = CheckTest("fay_lumbard", 0.001, no_difference=True, looks=PlannedLooks(this=1, count=2, last_questions=2000, last_alpha=0.0245))
    (warning,) = gate_warnings((forecast(many, questions=300, **DIFFERENCE, above=-0.05),))
    assert warning.endswith("plans its last look at 2,000 questions, more than the 1,000 of this source")


def test_an_alpha_that_all_subjects_share_is_divided_among_them() -> None:
    shared = CheckTest("exact", 0.025, shared_by_subjects=True)
    found = forecast(shared, **DIFFERENCE, subject="s0", above=0.0, assume=Assumption(difference=0.08, discordance=0.2))
    assert (found.subject, found.n, found.alpha) == ("s0", 250, 0.0125)
    assert found.power == exact_power_favoured(250, 0.2, 0.08, alpha=0.025)


@pytest.mark.parametrize("method", ["wilson", "jeffreys"])
def test_a_bound_that_keeps_its_error_rate_approximately_is_called_that(method: str) -> None:
    check = {**ACCURACY, "at_least": 0.7, "assume": Assumption(accuracy=0.9)}
    (warning,) = gate_warnings((forecast(CheckTest(method, 0.025), **check),))
    assert "keeps its error rate approximately only" in warning
    assert list(gate_warnings((forecast(EXACT_FLOOR, **check),))) == []


@pytest.mark.parametrize(("design", "why"), [("stratified", "subjects are strata"), ("weighted", "weigh")])
def test_an_exact_bound_on_an_effective_number_of_questions_is_called_approximate(design: str, why: str) -> None:
    protocol = planned(design={design: True}, **ACCURACY, at_least=0.7)
    (warning,) = approximate_bounds(protocol, {"c": EXACT_FLOOR})
    assert warning.startswith("check 'c' on 'x' rests on a Clopper-Pearson bound on an effective number of questions")
    assert why in warning
    assert not list(approximate_bounds(protocol, {"c": CheckTest("wilson", 0.025)}))
    for exact in (None, {"pool": True}):
        assert not list(approximate_bounds(planned(design=exact, **ACCURACY, at_least=0.7), {"c": EXACT_FLOOR}))


OTHER_SCORES = {"score": Score(unit="share of true sentences", polarity="higher_is_better")}


@pytest.mark.parametrize("test", [EXACT_FLOOR, CheckTest("fay_lumbard", 0.025)])
def test_a_bound_of_clusters_and_of_other_scores_says_what_its_guarantee_is(test: CheckTest) -> None:
    clustered = next(iter(approximate_bounds(planned(design={"clustered": True}, **ACCURACY, at_least=0.7), {"c": test})))
    assert clustered == (
        "check 'c' on 'x' rests on Gaffke's bound, since questions come in clusters; it keeps its error rate by a conjecture that calculation "
        "supports, without known counterexample for clusters that are independent draws, whose sizes say nothing about their scores"
    )
    unequal = next(iter(approximate_bounds(planned(questions=3, design={"clustered": True}, **ACCURACY, at_least=0.7), {"c": test})))
    assert unequal == f"{clustered}; where they differ in size and every question counts the same, calculation alone supports it"
    (scored,) = approximate_bounds(planned(design=OTHER_SCORES, **ACCURACY, at_least=0.7), {"c": test})
    assert scored.endswith(
        "since scores are not right or wrong; it keeps its error rate by a conjecture that calculation supports, without known counterexample"
    )


@pytest.mark.parametrize(
    ("test", "check", "told"),
    [
        (EXACT_FLOOR, {**ACCURACY, "at_least": 0.7}, "right answers alone with 2 clusters: that takes at least 11, of one size"),
        (EXACT_FLOOR, {**ACCURACY, "at_most": 0.3}, "wrong answers alone with 2 clusters: that takes at least 11, of one size"),
        (NO_LOSS, {**DIFFERENCE, "above": -0.05}, "models that do not differ on any question with 2 clusters: that takes at least 72, of one size"),
        (EXACT_FLOOR, {**ACCURACY, "at_least": 0.1}, None),
        (NO_LOSS, {**DIFFERENCE, "above": 0.0}, None),
        (CheckTest("fay_lumbard", 0.025), {**DIFFERENCE, "above": -0.05}, None),
    ],
)
def test_too_few_clusters_for_any_answers_that_could_be_expected_are_warned_of(test: CheckTest, check: dict[str, object], told: str | None) -> None:
    warnings = list(approximate_bounds(planned(design={"clustered": True}, **check), {"c": test}))[1:]
    assert warnings == ([] if told is None else [f"check 'c' on 'x' is not cleared by {told}"])
    assert not [warning for warning in approximate_bounds(planned(**check), {"c": test}) if "is not cleared" in warning]


def test_a_plan_calls_a_bound_what_the_statistics_call_it() -> None:
    assert {guarantee(method) for method in APPROXIMATE} == {"approximate"}
    assert {guarantee(method) for method in BOUNDS} == set(KEPT)
    assert guarantee(EXACT_FLOOR.test) == "exact"


def test_a_score_test_of_clusters_is_student_s_and_another_is_named() -> None:
    score = CheckTest("score", 0.025)
    (warning,) = approximate_bounds(planned(design={"clustered": True}, **DIFFERENCE, above=-0.05), {"c": score})
    assert "Student's t test, since questions come in clusters" in warning
    assert "noninferiority by method exact takes Gaffke's bound there" in warning
    assert not list(approximate_bounds(planned(design={"stratified": True}, **DIFFERENCE, above=-0.05), {"c": score}))


def test_a_bound_of_other_scores_in_strata_is_student_s() -> None:
    (warning,) = approximate_bounds(planned(design={"stratified": True, **OTHER_SCORES}, **ACCURACY, at_least=0.7), {"c": EXACT_FLOOR})
    assert "Student's interval of a mean, since scores are not right or wrong and subjects are strata" in warning


def test_a_bound_of_one_subject_stands_on_its_own_questions() -> None:
    protocol = planned(design={"stratified": True}, **ACCURACY, subject="s0", at_least=0.7)
    assert not list(approximate_bounds(protocol, {"c": EXACT_FLOOR}))


@pytest.mark.parametrize("variant", ["exact", "mid_p"])
def test_a_test_of_whole_clusters_says_what_it_assumes(variant: str) -> None:
    test = CheckTest(variant, 0.025)
    (warning,) = approximate_bounds(planned(design={"clustered": True}, **DIFFERENCE, above=0.0), {"c": test})
    assert warning == (
        "check 'c' on 'x' rests on a test that flips the signs of whole clusters, since questions come in clusters; it keeps its error rate "
        "approximately, and not where one model varies much more between clusters than the other; noninferiority by method exact takes Gaffke's "
        "bound there"
    )
    (fractional,) = approximate_bounds(planned(design=OTHER_SCORES, **DIFFERENCE, above=0.0), {"c": test})
    assert "rests on Student's t test" in fractional
    assert not list(approximate_bounds(planned(**DIFFERENCE, above=0.0), {"c": test}))
