from __future__ import annotations

import numpy as np
import pytest

from evalspec.artifacts.samples import Sample, SampleSimple, SampleStratified, SizeToDetect
from evalspec.artifacts.schedule import GateForecast
from evalspec.artifacts.thresholds import Assumption
from evalspec.planning.forecasts import CLUSTERED, NO_FORECAST, POINT_VALUE, POOLED, WEIGHTED, forecast_gates, gate_warnings
from evalspec.protocols import CheckTest, PlannedLooks
from evalspec.statistics.finite_pools import pool_clopper_pearson
from evalspec.statistics.floors import Floor, floor_questions
from evalspec.statistics.one_sided import LimitTest
from evalspec.statistics.one_sided_power import limit_power, limit_questions
from evalspec.statistics.paired_power import exact_power_favoured, questions_needed

from .checks import ACCURACY, DIFFERENCE, EXACT_FLOOR, MCNEMAR, NO_LOSS, planned


def forecast(
    test: CheckTest | None, *, questions: int = 500, sample: Sample | None = None, design: dict[str, object] | None = None, **check: object
) -> GateForecast:
    (found,) = forecast_gates(planned(questions=questions, sample=sample, design=design, **check), {"c": test})
    return found


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
    told = "at an alpha of 0.025 even 30 right answers of 30 leave the bound on the other side of 0.9"
    assert warning == f"check 'c' on 'x' cannot pass at its planned alpha on 30 questions: {told}"


def test_a_gate_that_is_unlikely_to_decide_is_warned_of_with_its_power_and_what_it_needs() -> None:
    (warning,) = gate_warnings((forecast(NO_LOSS, **DIFFERENCE, above=-0.02),))
    needed = limit_questions(0.2, 0.0, LimitTest(-0.02, method="exact")).questions
    assert warning == (
        "check 'c' on 'x' will pass with a chance of 14 % only, if the true difference is 0 and 20 % of the questions are discordant (assumed); "
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
        (EXACT_FLOOR, None, {**ACCURACY, "above": 0.0}, "a single right answer clears a limit of 0"),
        (EXACT_FLOOR, None, {**ACCURACY, "below": 1.0}, "a single wrong answer clears a limit of 1"),
    ],
)
def test_where_power_is_not_known_the_reason_is_given(
    test: CheckTest | None, design: dict[str, object] | None, check: dict[str, object], reason: str
) -> None:
    found = forecast(test, design=design, **check)
    assert found.power is None
    assert reason in (found.undefined or "")
    assert not list(gate_warnings((found,)))


@pytest.mark.parametrize(("limit", "named"), [({"at_least": 1.0}, "1"), ({"at_most": 0.0}, "0")])
def test_a_limit_that_no_bound_comes_to_is_warned_of(limit: dict[str, float], named: str) -> None:
    (warning,) = gate_warnings((forecast(EXACT_FLOOR, **ACCURACY, **limit),))
    assert warning == (
        f"check 'c' on 'x' cannot pass at its planned alpha on 500 questions, the chance is 0 %: no bound comes to {named}, whatever the answers"
    )


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        (-0.05, "models that do not differ on any question with 2 clusters: that takes at least 72"),
        (0.0, None),
    ],
)
def test_a_forecast_of_clusters_knows_whether_even_no_difference_would_pass(limit: float, told: str | None) -> None:
    found = forecast(NO_LOSS, design={"clustered": True}, **DIFFERENCE, above=limit)
    assert (found.undefined, found.why_not) == (CLUSTERED, told and f"it is not cleared by {told}, of one size, at an alpha of 0.025")
    assert not list(gate_warnings((found,)))  # it is warned of with what the bound rests on


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


@pytest.mark.parametrize(
    ("test", "check"),
    [
        (CheckTest("wilson", 0.025), {**ACCURACY, "at_least": 0.8, "assume": Assumption(accuracy=0.82)}),
        (MCNEMAR, {**DIFFERENCE, "above": 0.0, "assume": Assumption(difference=0.01, discordance=0.2)}),
    ],
    ids=["accuracy", "difference"],
)
@pytest.mark.parametrize("questions", [40, 990])
def test_a_part_of_a_pool_is_not_forecast_as_draws_from_an_endless_one(test: CheckTest, check: dict[str, object], questions: int) -> None:
    found = forecast(test, questions=questions, sample=SampleSimple(method="simple", size=questions), design={"pool": True}, **check)
    assert (found.undefined, found.power, found.needed, found.why_not) == (POOLED, None, None, None)
    assert not list(gate_warnings((found,)))


def test_a_small_part_of_a_pool_and_a_bound_that_passes_over_it_are_forecast() -> None:
    sample, floor = SampleSimple(method="simple", size=50), {**ACCURACY, "at_least": 0.7, "assume": Assumption(accuracy=0.9)}
    assert forecast(EXACT_FLOOR, questions=50, sample=sample, design={"pool": True}, **floor) == forecast(EXACT_FLOOR, questions=50, **floor)
    few = SampleSimple(method="simple", size=10)
    assert forecast(MCNEMAR, questions=10, sample=few, design={"pool": True}, **DIFFERENCE, above=0.0).why_not
    stratified = SampleStratified(method="stratified", by="subject", size=500)
    for test, check in ((NO_LOSS, {**DIFFERENCE, "above": -0.05}), (EXACT_FLOOR, floor)):
        assert forecast(test, sample=stratified, design={"pool": True, "stratified": True}, **check) == forecast(test, **check)


@pytest.mark.parametrize("method", ["clopper_pearson", "wilson"])
@pytest.mark.parametrize("limit", [{"at_least": 0.998}, {"at_most": 0.002}])
def test_a_part_of_a_pool_cannot_pass_where_its_own_bound_falls_short_with_the_best_answers(method: str, limit: dict[str, float]) -> None:
    def found(questions: int) -> GateForecast:
        sample = SampleSimple(method="simple", size=questions)
        return forecast(CheckTest(method, 0.025), questions=questions, sample=sample, design={"pool": True}, **ACCURACY, **limit)

    assert "leave the bound on the other side" in (found(100).why_not or "")
    assert (found(990).undefined, found(990).why_not) == (POOLED, None)
    endless = CheckTest(method, 0.025)
    assert forecast(endless, questions=990, **ACCURACY, **limit).why_not


def test_nearly_all_of_a_pool_can_show_that_all_of_it_is_right() -> None:
    sample = SampleSimple(method="simple", size=990)
    whole = forecast(EXACT_FLOOR, questions=990, sample=sample, design={"pool": True}, **ACCURACY, at_least=1.0)
    assert pool_clopper_pearson(990, questions=990, pool=1000).low == 1.0
    assert (whole.undefined, whole.why_not) == (POOLED, None)
