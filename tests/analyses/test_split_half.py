from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from evalspec.analyses.pools import CLUSTERED
from evalspec.analyses.split_half import ANALYSIS, NO_LEAD, SMALL_LEAD, TOO_FEW, SplitHalfOptions, SplitHalfResult, compute, plot
from evalspec.artifacts.responses import Responses
from evalspec.protocols import Context
from evalspec.reporting.figures import Chart
from evalspec.statistics.differences import PairedCounts
from evalspec.statistics.redraws import ahead_without_replacement
from evalspec.testing import check_analysis, sample_responses

from .tables import article_like, rendered, responses_of, two_models

SAMPLE = sample_responses(models=4, questions=200)


def computed(responses: Responses = SAMPLE, **options: object) -> SplitHalfResult:
    return compute(responses, SplitHalfOptions(kind="split_half", **options), Context(rng=np.random.default_rng(1)))


def test_the_article_s_leads_are_those_of_the_exact_split_of_its_first_two_models() -> None:
    row = computed(article_like()).rows[0]
    # Exact hypergeometric figures; the third model hardly ever interferes at 1,000 questions.
    assert row.exact.same_winner == pytest.approx(0.9353, abs=5e-5)
    assert 100 * row.exact.lead_selected == pytest.approx(1.8750, abs=5e-5)
    assert 100 * row.exact.lead_held_out == pytest.approx(1.5856, abs=5e-5)
    assert row.exact.shrinkage == pytest.approx(0.154, abs=5e-4)
    for name in ("same_winner", "lead_selected", "lead_held_out", "shrinkage"):
        simulated = getattr(row, name)
        assert simulated.value == pytest.approx(getattr(row.exact, name), abs=4.5 * simulated.error)
        assert simulated.low <= simulated.value <= simulated.high
    assert (row.chosen_on, row.shown_on) == (1000, 1000)


def test_two_models_come_near_the_closed_form_and_meet_its_identity() -> None:
    counts = PairedCounts(30, 14, 9, 11)
    row = computed(two_models(counts)).rows[0]
    assert row.same_winner.value == pytest.approx(row.exact.same_winner, abs=4.5 * row.same_winner.error)
    half = counts.questions // 2
    ahead = ahead_without_replacement(counts, half)
    assert row.exact.lead_selected + row.exact.lead_held_out == pytest.approx((14 - 9) / half * (2 * ahead - 1))
    assert row.wins[0] == pytest.approx(ahead, abs=4.5 * (0.25 / 20_000) ** 0.5)


def test_a_half_of_odd_numbers_leaves_the_other_one_more() -> None:
    row = computed(responses_of(np.random.default_rng(1).integers(0, 2, (3, 31)))).rows[0]
    assert (row.chosen_on, row.shown_on) == (15, 16)


def test_models_of_one_answer_sheet_have_no_lead_and_no_shrinkage() -> None:
    answers = np.arange(40) % 2
    row = computed(responses_of([answers, answers])).rows[0]
    assert (row.same_winner.value, row.lead_selected.value, row.lead_held_out.value) == (0.5, 0.0, 0.0)
    assert (row.shrinkage.value, row.shrinkage.undefined, row.exact.undefined) == (None, NO_LEAD, NO_LEAD)


def test_no_share_is_taken_of_a_lead_of_less_than_one_question() -> None:
    row = computed(two_models(PairedCounts(50, 1, 0, 49))).rows[0]
    assert 0 < row.lead_selected.value * row.chosen_on < 1
    assert (row.shrinkage.value, row.shrinkage.undefined) == (None, SMALL_LEAD)
    assert (row.exact.shrinkage, row.exact.undefined) == (None, SMALL_LEAD)


def test_three_models_are_split_as_a_plain_simulation_splits_them() -> None:
    scores = (np.random.default_rng(7).random((3, 60)) < np.array([[0.62], [0.58], [0.55]])).astype(np.float64)
    row = computed(responses_of(scores)).rows[0]
    rng, splits = np.random.default_rng(2), 8000
    same = selected = held_out = 0.0
    for _ in range(splits):
        turned = rng.permutation(60)
        first, second = scores[:, turned[:30]].sum(axis=1), scores[:, turned[30:]].sum(axis=1)
        winner, runner_up = np.argsort(-(first + rng.random(3)))[:2]
        same += np.argmax(second + rng.random(3)) == winner
        selected += (first[winner] - first[runner_up]) / 30
        held_out += (second[winner] - second[runner_up]) / 30
    # The plain simulation breaks ties by chance where ours shares them, so its errors are the larger ones.
    assert row.same_winner.value == pytest.approx(same / splits, abs=4.5 * (0.25 / splits) ** 0.5)
    assert row.lead_selected.value == pytest.approx(selected / splits, abs=0.003)
    assert row.lead_held_out.value == pytest.approx(held_out / splits, abs=0.006)


def test_each_stratum_is_halved_by_itself() -> None:
    subjects = tuple("a" if index < 21 else "b" for index in range(40))
    result = computed(responses_of(np.random.default_rng(3).integers(0, 2, (2, 40)), subjects=subjects, strata=True))
    assert (result.rows[0].chosen_on, result.rows[0].shown_on, result.pools[0].strata) == (10 + 9, 11 + 10, 2)
    assert result.rows[0].exact is None


def test_what_cannot_be_split_is_refused_with_its_reason() -> None:
    assert computed(responses_of([[1], [0]])).pools[0].undefined == TOO_FEW
    lonely = responses_of(np.ones((2, 5)), subjects=("a", "a", "a", "a", "b"), strata=True)
    assert computed(lonely).pools[0].undefined == TOO_FEW
    assert computed(responses_of(np.ones((2, 4)), clusters=("a", "a", "b", "b"))).pools[0].undefined == CLUSTERED


def test_both_leads_are_drawn_with_their_monte_carlo_intervals() -> None:
    chart = Chart()
    plot(computed(), chart)
    rows = chart.draw("wide").drawn["rows"]
    assert [(row["group"], row["label"]) for row in rows][:2] == [("first", "on the half that chose"), ("first", "on the other half")]
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows)


def test_too_few_splits_are_refused() -> None:
    with pytest.raises(ValidationError):
        SplitHalfOptions(kind="split_half", draws=10)


def test_it_passes_what_every_analysis_must_pass() -> None:
    check_analysis(ANALYSIS, {"kind": "split_half", "draws": 1000})


def test_the_report_says_that_a_runner_up_is_picked_too_where_there_are_more_than_two_models() -> None:
    """Four models of one accuracy behind a better one: the half that chooses shows the smaller lead of the two."""
    answers = np.random.default_rng(3).random((5, 1000)) < [[0.9], [0.8], [0.8], [0.8], [0.8]]
    row = computed(responses_of(answers.astype(float))).rows[0]
    assert row.lead_selected.value < row.lead_held_out.value
    options = {"kind": "split_half", "draws": 1000}
    text = rendered(ANALYSIS, responses_of(answers.astype(float)), options)
    assert "A runner-up picked out of several models is flattered too" in text
    assert "A runner-up" not in rendered(ANALYSIS, responses_of(answers[:2].astype(float)), options)


def test_the_report_gives_a_frequency_of_all_splits_a_limit_and_no_error_of_zero() -> None:
    answers = np.concatenate([np.ones((1, 60)), np.zeros((2, 60))])
    text = rendered(ANALYSIS, responses_of(answers), {"kind": "split_half", "draws": 1000})
    assert "not below 99.62 %" in text
    assert "above 0.00 points" not in text


def test_the_report_says_what_the_errors_speak_of() -> None:
    text = rendered(ANALYSIS, article_like(), {"kind": "split_half", "draws": 1000})
    assert "say nothing about other questions" in text
    assert "93.5 %" in text
    assert "Not computed for b" in rendered(ANALYSIS, responses_of([[1], [0]]), {"kind": "split_half", "draws": 1000})
