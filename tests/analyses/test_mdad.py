from __future__ import annotations

import math
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from evalspec.analyses.mdad import ANALYSIS, compute, plot
from evalspec.analyses.mdad_results import MdadOptions, MdadResult, MdadRow, SamplerName
from evalspec.analyses.mdad_rows import CLUSTERED, FEW_QUESTIONS, FEW_SOURCES, NO_COMMON, NO_STRATA, ONE_MODEL, WEIGHTED
from evalspec.artifacts.responses import Responses
from evalspec.protocols import Context
from evalspec.reporting.figures import Chart
from evalspec.statistics.mdad_closed_form import PairSpread, rankable_gap
from evalspec.statistics.samplers import SAMPLERS
from evalspec.testing import check_analysis, sample_responses

from .tables import article_like, rendered, responses_of


def graded(models: int = 30, questions: int = 240, seed: int = 3) -> NDArray[np.float64]:
    """Models of rising accuracy, from one third to two thirds."""
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(0.0, 0.15, questions)
    return (rng.random((models, questions)) < np.linspace(0.33, 0.67, models)[:, None] + difficulty).astype(np.float64)


def computed(responses: Responses | None = None, seed: int = 1, **options: object) -> MdadResult:
    given = {"sizes": (10, 40), "trials": 10, "targets": 12, "resamples": 100, **options}
    return compute(responses or responses_of(graded()), MdadOptions(kind="mdad", **given), Context(rng=np.random.default_rng(seed)))


def row_of(result: MdadResult, sampler: str = "uniform", questions: int = 40) -> MdadRow:
    return next(row for row in result.rows if (row.sampler, row.questions) == (sampler, questions))


def test_more_questions_rank_smaller_gaps_and_more_of_the_study_s_pairs() -> None:
    rows = computed(sizes=(10, 20, 40, 120), trials=40).rows
    gaps = [math.inf if row.seen.rising.gap is None else row.seen.rising.gap for row in rows]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] == 0.005  # the whole half is asked and ranks itself: a bin of level pairs alone lies below
    assert rows[-1].error == pytest.approx(0.0, abs=1e-12)
    assert rows[-1].seen.below < 0.06
    assert [row.seen.agreement for row in rows] == sorted(row.seen.agreement for row in rows)


def test_the_fresh_half_asks_for_larger_gaps_than_the_half_that_was_sampled() -> None:
    row = row_of(computed(sizes=(120,), trials=40), questions=120)
    assert row.seen.rising.gap == 0.005
    assert row.fresh.rising.gap is None or row.fresh.rising.gap > 0.02
    assert row.fresh.agreement < row.seen.agreement == pytest.approx(1.0, abs=0.03)  # level pairs count half


def test_a_curve_that_only_a_few_pairs_carry_over_the_level_is_said_not_to_reach_it_for_that() -> None:
    result = computed(responses_of(graded()[[0, 29]]), sizes=(40,), trials=4)
    reached = row_of(result).seen
    text = rendered(ANALYSIS, responses_of(graded()[[0, 29]]), {"kind": "mdad", "sizes": [40], "trials": 4, "resamples": 100})
    assert max(point.rising for point in reached.curve) >= 0.8
    assert reached.rising.gap is None
    assert "no gap that at least 30 pairs have, or exceed, is ranked so reliably" in text
    chart = Chart()
    plot(result, chart)
    assert "reached and which at least 30 pairs have or exceed" in chart.draw("wide").drawn["caption"]


def test_not_reached_is_a_state_of_its_own_and_never_a_number() -> None:
    alike = (np.random.default_rng(1).random((8, 60)) < 0.5).astype(float)
    row = row_of(computed(responses_of(alike), sizes=(5,)), questions=5)
    for reached in (row.seen.first, row.seen.rising, row.fresh.rising):
        assert (reached.gap, reached.undefined, reached.pairs) == (None, "not reached", 0)
    assert row.seen.below is None
    assert "not reached" in rendered(ANALYSIS, responses_of(alike), {"kind": "mdad", "sizes": [5], "trials": 5})


def test_the_share_below_is_that_of_the_study_s_pairs_on_all_questions() -> None:
    scores = graded()
    row = row_of(computed(responses_of(scores), trials=30))
    means = scores.mean(axis=1)
    gaps = [abs(means[i] - means[j]) for i in range(30) for j in range(i)]
    assert row.seen.rising.gap is not None
    assert row.seen.below == pytest.approx(np.mean(np.array(gaps) < row.seen.rising.gap - 1e-9))


def test_the_formula_stands_beside_simple_samples_alone() -> None:
    scores = graded()
    result = computed(responses_of(scores), samplers=("uniform", "confidence_strata"))
    assert row_of(result).formula == pytest.approx(rankable_gap(40, 120, PairSpread.of(scores).near))
    assert row_of(result, "confidence_strata").formula is None


def test_two_models_have_a_formula_where_bins_are_nearly_empty() -> None:
    scores = graded(2, 60)
    row = row_of(computed(responses_of(scores), sizes=(30,), min_pairs=10_000), questions=30)
    assert row.seen.first.gap is None
    assert row.formula is not None


def test_published_forms_are_computed_beside_and_marked() -> None:
    strata = tuple("abc"[0 if place < 140 else 1 if place < 200 else 2] for place in range(240))
    result = computed(responses_of(graded(), subjects=strata, strata=True), samplers=("uniform", "stratified_equal", "stratified_proportional"))
    assert [row_of(result, name).published_estimate for name in ("uniform", "stratified_equal", "stratified_proportional")] == [False, True, True]
    uniform = row_of(result)
    assert uniform.seen.published.gap is not None
    assert uniform.seen.first.gap is None or uniform.seen.published.gap <= uniform.seen.first.gap
    assert result.benchmarks[0].strata == 3


def test_ties_are_wrong_or_half_as_declared_and_the_published_number_keeps_its_rule() -> None:
    wrong, half = (row_of(computed(ties=ties), questions=10) for ties in ("wrong", "half"))
    assert half.seen.agreement > wrong.seen.agreement + 0.03
    assert half.seen.published == wrong.seen.published
    assert half.formula < wrong.formula


def test_bins_can_be_wider_and_centred() -> None:
    wide = row_of(computed(bin_width=0.02))
    assert {round(one.gap / 0.02, 9) % 1 for one in wide.seen.curve} == {0.0}
    centred = row_of(computed(bins="centred"))
    assert sum(one.pairs for one in centred.seen.curve) == sum(one.pairs for one in wide.seen.curve) == 10 * 66


def test_only_named_models_are_judged() -> None:
    result = computed(models=("m3", "m9", "m20"), samplers=("confidence_strata",))
    about = result.benchmarks[0]
    assert (about.models, about.targets, about.sources, about.pairs) == (30, 3, 27, 3)


def test_samplers_that_look_judge_at_most_half_of_the_models() -> None:
    assert computed(targets=50).benchmarks[0].targets == 30
    about = computed(targets=50, samplers=("uniform", "anchor_points")).benchmarks[0]
    assert (about.targets, about.sources, about.looks_at) == (15, 15, "scores")
    few = computed(responses_of(graded(3)), samplers=("uniform", "anchor_points"))
    assert row_of(few, "anchor_points").undefined == FEW_SOURCES
    assert row_of(few).seen is not None


def with_probabilities(scores: NDArray[np.float64], seed: int = 4) -> Responses:
    """Scores with the choices and the log-probabilities of four options that led to them; the right one is the third."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(*scores.shape, 4))
    best = np.where(scores == 1, 2, rng.choice([0, 1, 3], scores.shape))
    np.put_along_axis(logits, best[:, :, None], logits.max(axis=2, keepdims=True) + 0.5, axis=2)
    logs = logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))
    return responses_of(scores, logprobs=logs, choices=best[:, :, None].astype(np.int16))


def test_samplers_look_at_the_confidence_in_the_right_choice_where_there_are_probabilities() -> None:
    responses = with_probabilities(graded())
    result = computed(responses, samplers=("anchor_points",))
    assert result.benchmarks[0].looks_at == "confidence"
    assert row_of(result, "anchor_points").published_estimate
    logs = responses.benchmarks[0].logprobs.copy()
    logs[0, 0] = np.nan
    partly = replace(responses, benchmarks=(replace(responses.benchmarks[0], logprobs=logs),))
    assert computed(partly, samplers=("anchor_points",)).benchmarks[0].looks_at == "scores"


def test_a_question_that_nobody_answered_right_has_no_known_choice_and_breaks_nothing() -> None:
    scores = graded()
    scores[:, :5] = 0.0
    assert row_of(computed(with_probabilities(scores), samplers=("confidence_strata",)), "confidence_strata").seen is not None


def test_questions_without_a_score_from_every_model_are_left_out_and_counted() -> None:
    scores = graded()
    scores[0, :7] = np.nan
    about = computed(responses_of(scores, missing="complete_case")).benchmarks[0]
    assert (about.n, about.dropped, about.seen, about.fresh) == (233, 7, 116, 117)


@pytest.mark.parametrize(
    ("fields", "scores", "reason"),
    [
        ({}, graded(1), ONE_MODEL),
        ({"clusters": tuple("ab" * 120)}, graded(), CLUSTERED),
        ({"weights": np.linspace(0.5, 1.5, 240)}, graded(), WEIGHTED),
        ({"missing": "complete_case"}, np.array([[1.0, np.nan], [np.nan, 1.0]]), NO_COMMON),
        ({"strata": True, "subjects": (*("a",) * 239, "b")}, graded(), FEW_QUESTIONS),
    ],
)
def test_what_cannot_be_halved_is_refused_with_its_reason(fields: dict[str, object], scores: NDArray[np.float64], reason: str) -> None:
    result = computed(responses_of(scores, **fields))
    assert (result.benchmarks[0].undefined, result.rows) == (reason, ())


def test_sizes_and_samplers_that_do_not_fit_are_named_in_their_row() -> None:
    result = computed(sizes=(10, 121), samplers=("uniform", "stratified_equal"))
    assert row_of(result, questions=121).undefined == "the half that is sampled has 120 questions"
    assert row_of(result, "stratified_equal", 10).undefined == NO_STRATA
    assert row_of(result, questions=10).seen is not None


def test_the_default_sizes_end_at_half_of_the_questions() -> None:
    assert [row.questions for row in computed(sizes=()).rows] == [10, 25, 50, 100]
    assert [row.questions for row in computed(responses_of(graded(5, 12)), sizes=()).rows] == [6]


def test_fractional_scores_are_ranked_as_they_stand() -> None:
    scores = (graded() + graded(seed=8)) / 2
    row = row_of(computed(responses_of(scores), sizes=(120,)), questions=120)
    assert row.seen.rising.gap == 0.005
    assert row.rank_correlation == pytest.approx(1.0)
    assert row.error == pytest.approx(0.0, abs=1e-12)


def test_another_sampler_moves_no_other_s_numbers() -> None:
    responses = responses_of(graded(), subjects=tuple("abc" * 80), strata=True)
    alone, both = computed(responses), computed(responses, samplers=("stratified_equal", "uniform"))
    assert [row for row in both.rows if row.sampler == "uniform"] == list(alone.rows)


def test_the_same_seed_gives_the_same_numbers_and_another_one_others() -> None:
    assert computed(seed=1) == computed(seed=1)
    assert computed(seed=1) != computed(seed=2)


def test_the_plot_has_a_panel_per_sampler_and_marks_what_is_reached() -> None:
    result = computed(sizes=(5, 10, 20, 40, 80, 120), samplers=("uniform", "confidence_strata"), trials=30)
    chart = Chart()
    plot(result, chart)
    drawn = chart.draw("wide").drawn
    assert list(dict.fromkeys(curve["group"] for curve in drawn["curves"])) == ["b: uniform", "b: confidence strata"]
    lines = [curve for curve in drawn["curves"] if "bins" not in curve["label"]]
    assert len(lines) == 8  # four of six sizes each: more lines cannot be told apart
    assert len(drawn["curves"]) - len(lines) == 2
    reached = [row.seen.rising for row in result.rows if row.questions in (5, 20, 40, 120) and row.seen.rising.gap is not None]
    assert [(mark["x"], mark["y"]) for mark in drawn["marks"]] == [(100 * one.gap, one.agreement) for one in reached]
    assert len(reached) >= 5
    assert drawn["references"] == [{"value": 0.8, "label": "80 % agreement"}]
    assert chart.draw("narrow").svg.count("<circle") >= len(reached)


@pytest.mark.parametrize(
    "options",
    [
        {"sizes": (10, 10)},
        {"samplers": ()},
        {"samplers": ("uniform", "uniform")},
        {"models": ("m1",)},
        {"models": ("m1", "m1")},
        {"agreement": 0.5},
        {"bin_width": 0.00333},
        {"bin_width": 0.0},
        {"ties": "right"},
        {"trials": 1},
        {"resamples": 10},
    ],
)
def test_impossible_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        MdadOptions(kind="mdad", **options)


def test_every_sampler_can_be_asked_for_by_name() -> None:
    assert get_args(SamplerName) == tuple(SAMPLERS)


@pytest.mark.parametrize("ties", ["wrong", "half"])
def test_it_passes_what_every_analysis_must_pass(ties: str) -> None:
    options = {"kind": "mdad", "samplers": list(SAMPLERS), "trials": 4, "resamples": 100, "sizes": [6, 40], "ties": ties}
    check_analysis(ANALYSIS, options, sample_responses(models=8, questions=100))


def test_the_report_keeps_ranking_and_detecting_apart() -> None:
    text = rendered(ANALYSIS, article_like(), {"kind": "mdad", "trials": 10, "resamples": 100, "sizes": [25, 500]})
    assert "ranked the right way round" in text
    assert "no test detects it" in text
    assert "Which gap a test would detect on a sample is a question for power" in text
    assert "As published First bin Rising fit" in text
    assert "28 pairs" in text


def test_the_report_warns_where_mdad_lies_below_the_benchmark_s_own_error() -> None:
    options = {"kind": "mdad", "trials": 10, "resamples": 100}
    assert "is a sample of questions too" in rendered(ANALYSIS, responses_of(graded()), {**options, "sizes": [118]})
    assert "is a sample of questions too" not in rendered(ANALYSIS, responses_of(graded()), {**options, "sizes": [10]})


def test_the_report_says_which_half_is_what_and_how_subjects_are_treated() -> None:
    options = {"kind": "mdad", "trials": 4, "resamples": 100, "samplers": ["stratified_equal", "diversity"], "sizes": [20]}
    text = rendered(ANALYSIS, sample_responses(models=10), options)
    assert "each of 3 subjects is halved by itself" in text
    assert "lets samplers look at scores of 5 others" in text
    assert "this sampler needs subjects that the study declares as strata" in text
    assert "published estimate of scores for this sampler" in text
