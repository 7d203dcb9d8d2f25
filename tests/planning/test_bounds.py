from __future__ import annotations

from dataclasses import replace

import pytest

from evalspec.artifacts.scores import Score
from evalspec.artifacts.study import SampledScoring
from evalspec.artifacts.thresholds import Assumption
from evalspec.planning.bounds import BOUNDS, KEPT, guarantee_warnings
from evalspec.protocols import CheckTest
from evalspec.statistics.guarantees import guarantee

from .checks import ACCURACY, DIFFERENCE, EXACT_FLOOR, NO_LOSS, RANK, planned


@pytest.mark.parametrize("method", ["wilson", "jeffreys"])
def test_a_bound_that_keeps_its_error_rate_approximately_is_called_that(method: str) -> None:
    check = {**ACCURACY, "at_least": 0.7, "assume": Assumption(accuracy=0.9)}
    kept, instead = "clopper_pearson keeps it at every size", "clopper_pearson takes Gaffke's bound there"
    for design, macro, better in (
        (None, False, kept),
        ({"stratified": True}, False, kept),
        ({"stratified": True}, True, instead),
        ({"clustered": True}, False, instead),
        ({"weighted": True}, False, instead),
    ):
        (warning,) = guarantee_warnings(planned(design=design, **check), {"c": CheckTest(method, 0.025, macro=macro)})
        assert warning.endswith(f"keeps its error rate approximately only; {better}")
    assert not list(guarantee_warnings(planned(**check), {"c": EXACT_FLOOR}))


def test_a_bound_of_questions_that_weigh_differently_rests_on_calculation() -> None:
    (warning,) = guarantee_warnings(planned(design={"weighted": True}, **ACCURACY, at_least=0.7), {"c": EXACT_FLOOR})
    assert warning == (
        "check 'c' on 'x' rests on Gaffke's bound, since questions weigh differently; it keeps its error rate by a conjecture that calculation "
        "supports, without known counterexample where questions weigh alike; where they do not, calculation alone supports it"
    )
    (macro,) = guarantee_warnings(planned(design={"stratified": True}, **ACCURACY, at_least=0.7), {"c": replace(EXACT_FLOOR, macro=True)})
    assert macro == warning
    for exact in (None, {"pool": True}, {"stratified": True}, {"stratified": True, "pool": True}):
        assert not list(guarantee_warnings(planned(design=exact, **ACCURACY, at_least=0.7), {"c": EXACT_FLOOR}))


OTHER_SCORES = {"score": Score(unit="share of true sentences", polarity="higher_is_better")}


@pytest.mark.parametrize("test", [EXACT_FLOOR, CheckTest("fay_lumbard", 0.025)])
def test_a_bound_of_clusters_and_of_other_scores_says_what_its_guarantee_is(test: CheckTest) -> None:
    clustered = next(iter(guarantee_warnings(planned(design={"clustered": True}, **ACCURACY, at_least=0.7), {"c": test})))
    assert clustered == (
        "check 'c' on 'x' rests on Gaffke's bound, since questions come in clusters; it keeps its error rate by a conjecture that calculation "
        "supports, without known counterexample for clusters that are independent draws, whose sizes say nothing about their scores"
    )
    unequal = next(iter(guarantee_warnings(planned(questions=3, design={"clustered": True}, **ACCURACY, at_least=0.7), {"c": test})))
    assert unequal == f"{clustered}; where they differ in size and every question counts the same, calculation alone supports it"
    (scored,) = guarantee_warnings(planned(design=OTHER_SCORES, **ACCURACY, at_least=0.7), {"c": test})
    assert scored.endswith(
        "since scores are not right or wrong; it keeps its error rate by a conjecture that calculation supports, without known counterexample"
    )


@pytest.mark.parametrize(
    ("test", "check", "told"),
    [
        (EXACT_FLOOR, {**ACCURACY, "at_least": 0.7}, "right answers alone with 2 clusters: that takes at least 11"),
        (EXACT_FLOOR, {**ACCURACY, "at_most": 0.3}, "wrong answers alone with 2 clusters: that takes at least 11"),
        (NO_LOSS, {**DIFFERENCE, "above": -0.05}, "models that do not differ on any question with 2 clusters: that takes at least 72"),
        (EXACT_FLOOR, {**ACCURACY, "at_least": 0.1}, None),
        (NO_LOSS, {**DIFFERENCE, "above": 0.0}, None),
        (CheckTest("fay_lumbard", 0.025), {**DIFFERENCE, "above": -0.05}, None),
    ],
)
def test_too_few_clusters_for_any_answers_that_could_be_expected_are_warned_of(test: CheckTest, check: dict[str, object], told: str | None) -> None:
    warnings = list(guarantee_warnings(planned(design={"clustered": True}, **check), {"c": test}))[1:]
    assert warnings == ([] if told is None else [f"check 'c' on 'x' is not cleared by {told}, of one size, at an alpha of 0.025"])
    assert not [warning for warning in guarantee_warnings(planned(**check), {"c": test}) if "is not cleared" in warning]


def test_a_plan_calls_a_bound_what_the_statistics_call_it() -> None:
    assert {guarantee(method) for method in ("wilson", "jeffreys", "score", "mid_p")} == {"approximate"}
    assert {guarantee(method) for method in BOUNDS} == set(KEPT)
    assert guarantee(EXACT_FLOOR.test) == "exact"


def test_a_score_test_of_clusters_is_student_s_and_another_is_named() -> None:
    score = CheckTest("score", 0.025)
    (warning,) = guarantee_warnings(planned(design={"clustered": True}, **DIFFERENCE, above=-0.05), {"c": score})
    assert "Student's t test, since questions come in clusters" in warning
    assert "method exact takes Gaffke's bound there" in warning
    (warning,) = guarantee_warnings(planned(design={"stratified": True}, **DIFFERENCE, above=-0.05), {"c": score})
    assert warning == (
        "check 'c' on 'x' rests on Tango's score bound, which keeps its error rate approximately only; method exact kept it wherever it was computed"
    )


def test_a_bound_of_other_scores_in_strata_passes_over_them() -> None:
    (weighted,) = guarantee_warnings(planned(design={"weighted": True, **OTHER_SCORES}, **ACCURACY, at_least=0.7), {"c": EXACT_FLOOR})
    assert "Gaffke's bound, since questions weigh differently" in weighted
    (strata,) = guarantee_warnings(planned(design={"stratified": True, **OTHER_SCORES}, **ACCURACY, at_least=0.7), {"c": EXACT_FLOOR})
    assert "Gaffke's bound, since scores are not right or wrong" in strata


def test_averages_over_repeats_are_no_right_and_wrong_answers() -> None:
    repeated = {"scoring": SampledScoring(method="sampled", temperature=0.7, repeats=4)}
    (warning,) = guarantee_warnings(planned(design=repeated, **ACCURACY, at_least=0.7), {"c": EXACT_FLOOR})
    assert "Gaffke's bound, since answers are averaged over repeats" in warning


def test_a_bound_of_one_subject_stands_on_its_own_questions() -> None:
    protocol = planned(design={"stratified": True}, **ACCURACY, subject="s0", at_least=0.7)
    assert not list(guarantee_warnings(protocol, {"c": EXACT_FLOOR}))


@pytest.mark.parametrize("variant", ["exact", "mid_p"])
def test_a_test_of_whole_clusters_says_what_it_assumes(variant: str) -> None:
    test = CheckTest(variant, 0.025)
    (warning,) = guarantee_warnings(planned(design={"clustered": True}, **DIFFERENCE, above=0.0), {"c": test})
    assert warning == (
        "check 'c' on 'x' rests on a test that flips the signs of whole clusters, since questions come in clusters; it keeps its error rate "
        "approximately, and not where one model varies much more between clusters than the other; method exact takes Gaffke's bound there"
    )
    (fractional,) = guarantee_warnings(planned(design=OTHER_SCORES, **DIFFERENCE, above=0.0), {"c": test})
    assert "rests on Student's t test" in fractional
    assert bool(list(guarantee_warnings(planned(**DIFFERENCE, above=0.0), {"c": test}))) == (variant == "mid_p")


@pytest.mark.parametrize("test", [CheckTest("exact", 0.025, exact_means=True), CheckTest("ranks_exact", 0.05, exact_means=True)])
def test_an_exact_test_of_clusters_is_gaffke_s(test: CheckTest) -> None:
    (warning,) = guarantee_warnings(planned(design={"clustered": True}, **DIFFERENCE, above=0.0), {"c": test})
    assert "rests on Gaffke's bound, since questions come in clusters" in warning
    (fractional,) = guarantee_warnings(planned(design=OTHER_SCORES, **DIFFERENCE, above=0.0), {"c": test})
    assert "rests on Gaffke's bound, since scores are not right or wrong" in fractional
    assert not list(guarantee_warnings(planned(**DIFFERENCE, above=0.0), {"c": test}))


def test_differences_of_subjects_are_told_how_they_ask_for_the_bound() -> None:
    check = {**DIFFERENCE, "analysis": "subgroups", "subject": "s0", "above": 0.0}
    (warning,) = guarantee_warnings(planned(design={"clustered": True}, **check), {"c": CheckTest("exact", 0.025)})
    assert warning.endswith("method clopper_pearson takes Gaffke's bound there")


@pytest.mark.parametrize("design", [None, {"clustered": True}, OTHER_SCORES])
def test_ranks_by_max_t_are_called_approximate(design: dict[str, object] | None) -> None:
    (warning,) = guarantee_warnings(planned(design=design, **ACCURACY, at_most=2), {"c": CheckTest("ranks_max_t", 0.05)})
    assert "rests on ranks by max-T, which keeps its error rate approximately only; method exact" in warning


def test_ranks_by_two_sided_tests_are_said_not_to_cover_separations_the_wrong_way_round() -> None:
    (warning,) = guarantee_warnings(planned(**ACCURACY, at_most=2), {"c": CheckTest("ranks_holm", 0.05)})
    assert "rests on ranks by two-sided tests and Holm's method, which keeps its error rate approximately only" in warning
    assert "method exact covers separations the wrong way round too" in warning
    assert not list(guarantee_warnings(planned(**ACCURACY, at_most=2), {"c": CheckTest("ranks_exact", 0.05, exact_means=True)}))


def test_a_value_alone_and_chosen_questions_have_no_error_rate_to_speak_of() -> None:
    test = {"c": CheckTest("wilson", 0.025)}
    assert not list(guarantee_warnings(planned(**ACCURACY, at_least=0.7, bound="value"), test))
    assert not list(guarantee_warnings(planned(**ACCURACY, at_least=0.7), {"c": None}))


def test_a_check_of_the_article_s_recipe_is_told_of_another_analysis() -> None:
    (warning,) = guarantee_warnings(planned(**{**DIFFERENCE, "analysis": "article_compat"}, above=0.01), {"c": CheckTest("score", 0.025)})
    assert warning.endswith("approximately only; noninferiority by method exact kept it wherever it was computed")


@pytest.mark.parametrize("alpha", [0.05, 0.0125])
def test_ranks_of_too_few_questions_for_any_separation_are_warned_of(alpha: float) -> None:
    rank, fewest = CheckTest("ranks_exact", alpha, exact_means=True, directions=12), {0.05: 8, 0.0125: 10}[alpha]
    assert 2.0**-fewest <= alpha / 12 < 2.0 ** (1 - fewest)
    (warning,) = guarantee_warnings(planned(questions=fewest - 1, **RANK), {"c": rank})
    assert warning == (
        f"check 'c' on 'x' rests on ranks, and at an alpha of {alpha} {fewest - 1} questions separate no two models, unless some answer alike "
        f"throughout: 12 directions of pairs are tested together, which takes at least {fewest}"
    )
    assert not list(guarantee_warnings(planned(questions=fewest, **RANK), {"c": rank}))
    for design in ({"pool": True}, {"clustered": True}, OTHER_SCORES):
        assert not [one for one in guarantee_warnings(planned(questions=2, design=design, **RANK), {"c": rank}) if "separate no two" in one]
