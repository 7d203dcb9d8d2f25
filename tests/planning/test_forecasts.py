from __future__ import annotations

import numpy as np
import pytest

from evalspec.artifacts.protocol import BatchRule, DrawnQuestion, Pool, Protocol, ProtocolBenchmark
from evalspec.artifacts.samples import Sample, SampleAll, SampleSimple, SizeToDetect
from evalspec.artifacts.schedule import GateForecast
from evalspec.artifacts.study import AnalysisRequest, LetterScoring
from evalspec.artifacts.thresholds import Assumption, Check, Thresholds
from evalspec.planning.forecasts import CLUSTERED, NO_FORECAST, POINT_VALUE, WEIGHTED, approximate_bounds, forecast_gates, gate_warnings
from evalspec.protocols import CheckTest, PlannedLooks
from evalspec.statistics.floors import Floor, floor_questions
from evalspec.statistics.one_sided import LimitTest
from evalspec.statistics.one_sided_power import limit_power, limit_questions
from evalspec.statistics.paired_power import exact_power_favoured, questions_needed

DIFFERENCE = {"analysis": "pairs", "metric": "difference", "model": "a", "baseline": "b"}
ACCURACY = {"analysis": "accuracy", "metric": "accuracy", "model": "a"}
MCNEMAR = CheckTest("exact", 0.025)
NO_LOSS = CheckTest("score", 0.025, no_difference=True)
EXACT_FLOOR = CheckTest("clopper_pearson", 0.025)


def forecast(
    test: CheckTest | None, *, questions: int = 500, sample: Sample | None = None, design: dict[str, object] | None = None, **check: object
) -> GateForecast:
    (found,) = forecast_gates(planned(questions=questions, sample=sample, design=design, **check), {"c": test})
    return found


def planned(*, questions: int = 500, sample: Sample | None = None, design: dict[str, object] | None = None, **check: object) -> Protocol:
    weights = [2.0, 0.0] * (questions // 2) if design == {"weighted": True} else [1.0] * questions
    drawn = tuple(DrawnQuestion(id=f"q{place}", sha256="0" * 64, subject=f"s{place % 2}", weight=weight) for place, weight in enumerate(weights))
    benchmark = ProtocolBenchmark(
        id="x",
        source="x.jsonl",
        source_sha256="0" * 64,
        source_size=1000,
        sample=sample or SampleAll(),
        questions=drawn,
        strata="subject" if design == {"stratified": True} else None,
        clusters="subject" if design == {"clustered": True} else None,
        pool=Pool(size=1000) if design == {"pool": True} else None,
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
    assert found.power == limit_power(500, 0.2, 0.0, LimitTest(-0.05))
    assert found.needed == limit_questions(0.2, 0.0, LimitTest(-0.05)).questions
    declared = forecast(NO_LOSS, **DIFFERENCE, above=-0.05, assume=Assumption(difference=-0.01, discordance=0.1))
    assert (declared.truth, declared.truth_declared, declared.discordance_declared) == (-0.01, True, True)
    assert declared.power == limit_power(500, 0.1, -0.01, LimitTest(-0.05))


def test_the_discordance_is_the_check_s_the_analysis_s_or_the_sample_s_own() -> None:
    sample = SampleSimple(method="simple", size=SizeToDetect(detect=0.02, discordance=0.12))
    assert forecast(NO_LOSS, sample=sample, **DIFFERENCE, above=-0.05).discordance == 0.12
    of_analysis = CheckTest("score", 0.025, 0.15, no_difference=True)
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
    needed = limit_questions(0.2, 0.0, LimitTest(-0.02)).questions
    assert warning == (
        "check 'c' on 'x' will pass with a chance of 17 % only, if the true difference is 0 and 20 % of the questions are discordant (assumed); "
        f"80 % would need {needed:,} questions at alpha 0.025, more than the 1,000 of this source"
    )
    assert not list(gate_warnings((forecast(NO_LOSS, **DIFFERENCE, above=-0.1),)))


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
    found = forecast(CheckTest("score", 0.001, no_difference=True, looks=LOOKS), questions=300, **DIFFERENCE, above=-0.05)
    assert (found.n, found.alpha) == (300, 0.001)
    assert found.power == limit_power(300, 0.2, 0.0, LimitTest(-0.05, 0.001))
    assert found.last is not None
    assert (found.last.look, found.last.n, found.last.alpha) == (3, 900, 0.0245)
    assert found.last.power == limit_power(900, 0.2, 0.0, LimitTest(-0.05, 0.0245))
    assert found.needed == limit_questions(0.2, 0.0, LimitTest(-0.05, 0.0245)).questions
    assert list(gate_warnings((found,))) == []  # what this look cannot decide yet the last one will


def test_a_last_look_that_is_unlikely_to_decide_or_beyond_the_source_is_warned_of() -> None:
    few = CheckTest("score", 0.001, no_difference=True, looks=PlannedLooks(this=1, count=2, last_questions=500, last_alpha=0.0245))
    (warning,) = gate_warnings((forecast(few, questions=300, **DIFFERENCE, above=-0.05),))
    assert "will pass at the last of its 2 looks, of 500 questions at alpha 0.0245, with a chance of" in warning
    assert "questions at alpha 0.0245" in warning.split(";")[1]
    many = CheckTest("score", 0.001, no_difference=True, looks=PlannedLooks(this=1, count=2, last_questions=2000, last_alpha=0.0245))
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


@pytest.mark.parametrize(("design", "why"), [("stratified", "subjects are strata"), ("clustered", "clusters"), ("weighted", "weigh")])
def test_an_exact_bound_on_an_effective_number_of_questions_is_called_approximate(design: str, why: str) -> None:
    protocol = planned(design={design: True}, **ACCURACY, at_least=0.7)
    (warning,) = approximate_bounds(protocol, {"c": EXACT_FLOOR})
    assert warning.startswith("check 'c' on 'x' rests on a Clopper-Pearson bound on an effective number of questions")
    assert why in warning
    assert not list(approximate_bounds(protocol, {"c": CheckTest("wilson", 0.025)}))
    for exact in (None, {"pool": True}):
        assert not list(approximate_bounds(planned(design=exact, **ACCURACY, at_least=0.7), {"c": EXACT_FLOOR}))


def test_a_bound_of_one_subject_stands_on_its_own_questions() -> None:
    protocol = planned(design={"stratified": True}, **ACCURACY, subject="s0", at_least=0.7)
    assert not list(approximate_bounds(protocol, {"c": EXACT_FLOOR}))
