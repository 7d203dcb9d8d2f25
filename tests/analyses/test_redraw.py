from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from evalspec.analyses.pools import CLUSTERED, NO_COMMON, ONE_MODEL
from evalspec.analyses.redraw import ANALYSIS, RedrawOptions, RedrawResult, compute, plot
from evalspec.artifacts.responses import Responses
from evalspec.protocols import Context
from evalspec.reporting.figures import Chart
from evalspec.statistics.differences import PairedCounts
from evalspec.statistics.redraws import ahead_with_replacement, ahead_without_replacement
from evalspec.testing import check_analysis, sample_responses

from .tables import article_like, rendered, responses_of, two_models

SAMPLE = sample_responses(models=4, questions=300)


def computed(responses: Responses = SAMPLE, seed: int = 1, **options: object) -> RedrawResult:
    return compute(responses, RedrawOptions(kind="redraw", **options), Context(rng=np.random.default_rng(seed)))


def binary(models: int, questions: int, seed: int = 3) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    return (rng.random((models, questions)) < np.linspace(0.6, 0.5, models)[:, None]).astype(np.float64)


def test_the_article_s_curve_comes_back_within_its_monte_carlo_error() -> None:
    result = computed(article_like())
    published = {30: 0.45, 100: 0.60, 200: 0.70, 500: 0.82, 1000: 0.91, 2000: 0.96}
    order = {30: 0.12, 100: 0.34, 200: 0.54, 500: 0.77}
    assert [row.questions for row in result.rows] == list(published)
    for row in result.rows:
        # Three standard errors of 2,000 draws, and half a unit of the last digit printed; the set is synthetic, fitted to these figures.
        assert row.top_stays.value == pytest.approx(published[row.questions], abs=3 * (0.25 / 2000) ** 0.5 + 0.005)
        if row.questions in order:
            assert row.order_kept.value == pytest.approx(order[row.questions], abs=3 * (0.25 / 2000) ** 0.5 + 0.005)
        assert row.order_kept.value <= row.top_stays.value <= row.ahead + 5 * row.top_stays.error


@pytest.mark.parametrize(("replacement", "exact"), [("with", ahead_with_replacement), ("without", ahead_without_replacement)])
def test_two_models_come_near_the_closed_form_that_stands_beside(replacement: str, exact: object) -> None:
    counts = PairedCounts(60, 14, 8, 18)
    result = computed(two_models(counts), sizes=(7, 40, 99), replacement=replacement)
    for row in result.rows:
        assert row.ahead == pytest.approx(exact(counts, row.questions))
        assert row.top_stays.value == pytest.approx(row.ahead, abs=4.5 * row.top_stays.error + 1e-12)
        assert row.order_kept == row.top_stays
        assert row.top_stays.low <= row.top_stays.value <= row.top_stays.high


def test_drawing_all_questions_without_replacement_repeats_the_ranking() -> None:
    result = computed(responses_of(binary(3, 50)), sizes=(50, 51), replacement="without")
    first, second = result.rows
    assert (first.top_stays.value, first.order_kept.value, first.ahead) == (1.0, 1.0, 1.0)
    assert "50" in second.undefined
    assert second.top_stays is None


def test_sizes_beyond_the_questions_at_hand_can_be_drawn_with_replacement_only() -> None:
    responses = responses_of(binary(2, 60))
    assert computed(responses, sizes=(600,)).rows[0].top_stays is not None
    assert computed(responses, sizes=(600,), replacement="without").rows[0].undefined is not None


def test_the_default_sizes_are_round_and_end_at_the_questions_at_hand() -> None:
    responses = responses_of(binary(2, 700))
    assert [row.questions for row in computed(responses).rows] == [30, 100, 200, 500, 700]
    assert [row.questions for row in computed(responses, replacement="without").rows] == [30, 100, 200, 500]
    assert [row.questions for row in computed(responses_of(binary(2, 9)), replacement="without").rows] == [1, 2, 4]


def test_ties_are_shared_and_named() -> None:
    twins = np.vstack([binary(1, 80), binary(1, 80)])
    result = computed(responses_of(twins), sizes=(20,))
    assert result.pools[0].level == 2
    assert result.rows[0].first == (0.5, 0.5)
    assert result.rows[0].ahead == 0.5


def test_strata_keep_their_share_and_are_refused_where_one_would_get_no_question() -> None:
    scores = binary(3, 90)
    strata = tuple("large" if index < 80 else "small" for index in range(90))
    result = computed(responses_of(scores, subjects=strata, strata=True), sizes=(4, 45, 90), replacement="without")
    small, half, whole = result.rows
    assert "strata" in small.undefined
    assert result.pools[0].strata == 2
    assert whole.top_stays.value == 1.0
    assert half.ahead is None
    # A subject that decides everything and is drawn whole in proportion: the leader of 9 of 10 questions cannot change.
    decided = np.zeros((2, 90))
    decided[0, :80] = 1.0
    rows = computed(responses_of(decided, subjects=strata, strata=True), sizes=(9,)).rows
    assert rows[0].top_stays.value == 1.0


def test_a_weighted_sample_is_drawn_within_subjects_and_ranked_by_its_weights() -> None:
    subjects = tuple("rare" if index < 50 else "common" for index in range(100))
    scores = np.zeros((2, 100))
    scores[0, :50] = np.arange(50) % 2  # ahead by 25 questions that weigh little
    scores[1, 50:] = np.arange(50) % 3 == 0  # ahead by 17 questions that weigh much
    weights = np.where(np.arange(100) < 50, 0.2, 1.8)
    result = computed(responses_of(scores, subjects=subjects, weights=weights), sizes=(100,))
    assert result.pools[0].models == ("m1", "m0")
    assert result.pools[0].scores == pytest.approx((0.9 * 17 / 50, 0.1 * 0.5))
    assert result.rows[0].top_stays.value > 0.99


def test_fractional_scores_are_ranked_as_they_stand() -> None:
    scores = np.array([[0.5, 0.25, 1.0, 0.5] * 10, [0.25, 0.5, 1.0, 0.25] * 10])
    result = computed(responses_of(scores), sizes=(40,))
    assert result.rows[0].ahead is None
    rng, draws = np.random.default_rng(5), 4000
    gathered = scores[:, rng.integers(0, 40, size=(draws, 40))].sum(axis=2)
    expected = np.mean(gathered[0] > gathered[1]) + 0.5 * np.mean(gathered[0] == gathered[1])  # quarters add up exactly
    assert result.rows[0].top_stays.value == pytest.approx(expected, abs=4.5 * (0.25 / draws) ** 0.5)


def test_questions_without_a_score_from_every_model_are_left_out_and_counted() -> None:
    scores = binary(2, 60)
    scores[0, :7] = np.nan
    result = computed(responses_of(scores, missing="complete_case"), sizes=(30,))
    assert (result.pools[0].n, result.pools[0].dropped) == (53, 7)
    counted = computed(responses_of(scores, missing="wrong"), sizes=(30,))
    assert (counted.pools[0].n, counted.pools[0].dropped) == (60, 0)


def test_what_cannot_be_drawn_is_refused_with_its_reason() -> None:
    none = np.full((2, 4), np.nan)
    none[0, :2], none[1, 2:] = 1.0, 1.0
    assert computed(responses_of(none, missing="complete_case")).pools[0].undefined == NO_COMMON
    assert computed(responses_of(binary(1, 20))).pools[0].undefined == ONE_MODEL
    clustered = computed(responses_of(binary(2, 20), clusters=tuple("ab" * 10)))
    assert (clustered.pools[0].undefined, clustered.rows) == (CLUSTERED, ())


def test_a_model_out_of_reach_changes_nothing_but_its_own_zero() -> None:
    scores = np.vstack([binary(3, 500), np.zeros((1, 500))])
    with_it, without = computed(responses_of(scores), sizes=(400,)), computed(responses_of(scores[:3]), sizes=(400,))
    assert with_it.rows[0].first == (*without.rows[0].first, 0.0)
    assert with_it.rows[0].order_kept == without.rows[0].order_kept


def test_the_order_of_questions_and_of_other_benchmarks_moves_nothing() -> None:
    first = SAMPLE.benchmarks[0]
    turned = np.random.default_rng(4).permutation(len(first.questions))
    shuffled = replace(
        first, subjects=tuple(first.subjects[place] for place in turned), scores=first.scores[:, turned], reasons=first.reasons[:, turned]
    )
    alone, other = (computed(replace(SAMPLE, benchmarks=(entry,))) for entry in (first, shuffled))
    assert alone.rows == other.rows


def test_the_same_seed_gives_the_same_numbers_and_another_one_others() -> None:
    assert computed(seed=1) == computed(seed=1)
    assert computed(seed=1) != computed(seed=2)


def test_the_curve_has_a_panel_per_benchmark_and_a_band() -> None:
    chart = Chart()
    plot(computed(), chart)
    drawn = chart.draw("wide").drawn
    assert [(curve["group"], curve["label"]) for curve in drawn["curves"]] == [
        (name, label) for name in ("first", "second") for label in ("the first model stays first", "the first 3 keep their order")
    ]
    assert all(point["low"] <= point["y"] <= point["high"] for curve in drawn["curves"] for point in curve["points"])


@pytest.mark.parametrize("options", [{"sizes": (30, 30)}, {"sizes": (0,)}, {"top": 0}, {"draws": 10}, {"replacement": "some"}])
def test_impossible_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        RedrawOptions(kind="redraw", **options)


@pytest.mark.parametrize("replacement", ["with", "without"])
def test_it_passes_what_every_analysis_must_pass(replacement: str) -> None:
    check_analysis(ANALYSIS, {"kind": "redraw", "replacement": replacement, "draws": 1000})


def test_the_report_explains_what_was_drawn() -> None:
    text = rendered(ANALYSIS, article_like(), {"kind": "redraw", "draws": 1000})
    assert "new sample from a population" in text
    assert "no confidence" in text
    assert "alone, exact" in text
    again = rendered(ANALYSIS, SAMPLE, {"kind": "redraw", "draws": 1000, "replacement": "without", "sizes": [2, 50]})
    assert "smaller version of this very benchmark" in again
    assert "Each of 3 subjects keeps its share" in again
    assert again.count("alone, exact") == 1  # subjects of the first benchmark are strata, which have no closed form
    assert "too few" in again


def test_a_frequency_of_one_is_printed_with_its_limit_and_not_with_an_error_of_zero() -> None:
    text = rendered(ANALYSIS, responses_of([[1] * 40, [0] * 40]), {"kind": "redraw", "draws": 1000, "sizes": [40]})
    assert "100.0 % not below 99.62 %" in text
