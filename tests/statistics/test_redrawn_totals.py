from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from evalspec.statistics.fast_draws import draw_with_replacement
from evalspec.statistics.packed_scores import Urn
from evalspec.statistics.rankings import RedrawPlan, ResponsePatterns, redraw_ranking, redraw_rankings
from evalspec.statistics.redrawn_totals import MOST_QUESTIONS, allocate, contenders, redrawn_totals
from evalspec.statistics.response_patterns import FINEST
from evalspec.statistics.subset_draws import draw_without_replacement

ROWS = 40_000


def totals_of(scores: NDArray[np.float64], size: int, rows: int = ROWS, seed: int = 1) -> NDArray[np.int64]:
    found = ResponsePatterns.from_scores(scores)
    return draw_with_replacement(Urn(found.patterns, found.counts), size, rows, np.random.default_rng(seed)).astype(np.int64)


def covariance(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.atleast_2d(np.cov(scores, bias=True))


@pytest.mark.parametrize("size", [1, 7, 40, 400, 3000])
def test_totals_have_the_mean_and_covariance_of_a_multinomial_at_every_size(size: int) -> None:
    scores = (np.random.default_rng(2).random((3, 60)) < np.array([[0.8], [0.5], [0.3]])).astype(np.float64)
    totals = totals_of(scores, size)
    spread = np.sqrt(np.diag(covariance(scores)) * size / ROWS)
    # Six comparisons per size: five standard errors are far out.
    assert np.abs(totals.mean(axis=1) - size * scores.mean(axis=1)) == pytest.approx(0, abs=1e-9 + 5 * spread.max())
    assert np.cov(totals) / size == pytest.approx(covariance(scores), abs=5 * 0.25 * np.sqrt(2 / ROWS))


@pytest.mark.parametrize(("right", "size"), [(13, 30), (13, 500), (1, 500), (59, 2000)])
def test_one_model_s_totals_are_binomial(right: int, size: int) -> None:
    scores = np.array([[1.0] * right + [0.0] * (60 - right)])
    totals = totals_of(scores, size)[0]
    law = stats.binom(size, right / 60)
    edges = np.unique(law.ppf(np.linspace(0.05, 0.95, 12)))
    expected = np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]])) * ROWS
    observed = np.bincount(np.searchsorted(edges, totals), minlength=edges.size + 1)
    assert stats.chisquare(observed, expected).pvalue > 1e-4


def test_questions_that_all_show_one_pattern_give_one_total() -> None:
    assert totals_of(np.array([[1.0] * 5, [0.0] * 5]), 900, rows=3).tolist() == [[900] * 3, [0] * 3]


def test_many_questions_and_many_models_take_the_same_road() -> None:
    scores = (np.random.default_rng(3).random((20, 70_000)) < 0.5).astype(np.float64)
    totals = totals_of(scores, 600, rows=500)
    assert totals.shape == (20, 500)
    assert totals.mean() == pytest.approx(600 * scores.mean(), abs=5 * np.sqrt(600 * 0.25 / 500))


def test_scores_of_many_steps_do_not_overflow_where_models_share_a_word() -> None:
    urn = Urn(np.array([[25, 0], [24, 300]]), np.array([2, 1]))
    totals = draw_with_replacement(urn, 900, 50, np.random.default_rng(1))
    assert np.all((totals[0] > 24 * 900 - 1) & (totals[0] <= 25 * 900))
    assert np.all(totals[0] - 24 * 900 == 900 - totals[1] // 300)


@given(st.integers(1, 12), st.integers(0, 100))
def test_drawing_without_replacement_is_hypergeometric(size: int, seed: int) -> None:
    scores = np.random.default_rng(seed).integers(0, 2, (3, 12))
    found = ResponsePatterns.from_scores(scores)
    totals = draw_without_replacement(Urn(found.patterns, found.counts), size, 50, np.random.default_rng(seed))
    assert np.all(totals <= np.minimum(size, scores.sum(axis=1))[:, None])
    assert np.all(totals >= np.maximum(0, size - 12 + scores.sum(axis=1))[:, None])


@pytest.mark.parametrize("size", [3, 30, 60, 100])
@pytest.mark.parametrize("models", [2, 9])
def test_both_ways_of_drawing_without_replacement_have_the_finite_variance(models: int, size: int) -> None:
    # Two models show few patterns, which are counted; nine show many, so that questions are drawn.
    scores = (np.random.default_rng(5).random((models, 120)) < 0.5).astype(np.float64)
    found = ResponsePatterns.from_scores(scores)
    totals = draw_without_replacement(Urn(found.patterns, found.counts), size, ROWS, np.random.default_rng(1))
    expected = covariance(scores) * size * (120 - size) / 119
    assert np.cov(totals) == pytest.approx(expected, abs=6 * expected.max() * np.sqrt(2 / ROWS))
    assert totals.mean(axis=1) == pytest.approx(size * scores.mean(axis=1), abs=6 * np.sqrt(expected.max() / ROWS))


def test_larger_draws_continue_smaller_ones_and_are_still_draws_of_their_size() -> None:
    found = ResponsePatterns.from_scores(np.vstack([np.ones(50), np.arange(50) % 2]))
    plans = [RedrawPlan(size, 20) for size in (5, 12)]
    small, large = next(redrawn_totals(found, plans, np.random.default_rng(1)))
    assert np.all(small.totals[0] == 5)
    assert np.all(large.totals[0] == 12)
    assert np.all((large.totals - small.totals >= 0) & (large.totals - small.totals <= 7))
    assert (small.units, large.units) == (5.0, 12.0)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8), st.integers(1, 300))
def test_an_allocation_is_proportional_to_within_one_question(sizes: list[int], questions: int) -> None:
    found = allocate(np.array(sizes), questions)
    assert found.sum() == questions
    assert np.all(np.abs(found - np.array(sizes) * questions / sum(sizes)) < 1)


def test_strata_of_uneven_weight_enter_by_it() -> None:
    scores = np.array([[1, 1, 0, 0], [0, 0, 1, 1]])
    found = ResponsePatterns.from_scores(scores, strata=["a", "a", "b", "b"], weights=[1.5, 1.5, 0.5, 0.5])
    assert found.scores.tolist() == [0.75, 0.25]
    drawn = next(redrawn_totals(found, [RedrawPlan(8, 3)], np.random.default_rng(1)))[0]
    assert drawn.totals[0] / drawn.units == pytest.approx([0.75] * 3)
    with pytest.raises(ValueError, match="too few"):
        next(redrawn_totals(found, [RedrawPlan(1, 3)], np.random.default_rng(1)))
    with pytest.raises(ValueError, match="one weight"):
        ResponsePatterns.from_scores(scores, strata=["a", "a", "b", "b"], weights=[1, 2, 1, 1])


def test_fractions_keep_their_denominator_and_other_scores_are_rounded_finely() -> None:
    assert ResponsePatterns.from_scores([[0, 1 / 3, 0.5]]).denominator == 6
    found = ResponsePatterns.from_scores([[0.1234567, 0.7654321, 0.333]])
    assert found.denominator == FINEST
    assert found.scores == pytest.approx([np.mean([0.1234567, 0.7654321, 0.333])], abs=1e-9)


@pytest.mark.parametrize(("scores", "says"), [([[0.0, np.nan]], "missing"), ([[0.0, 1.5]], "lie in"), ([1, 0], "models, questions")])
def test_scores_that_cannot_be_counted_are_refused(scores: list[list[float]], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ResponsePatterns.from_scores(scores)


def test_models_beyond_64_bits_of_patterns_are_told_apart_too() -> None:
    scores = np.random.default_rng(4).integers(0, 2, (70, 30))
    found = ResponsePatterns.from_scores(np.repeat(scores, 2, axis=1))
    assert found.counts.tolist() == [2] * 30
    assert np.all(np.diff(found.patterns[:, 0]) >= 0)


@given(st.integers(0, 50), st.integers(5, 60))
def test_a_model_is_left_out_only_where_it_could_not_come_near(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    scores = (rng.random((5, 80)) < np.linspace(0.9, 0.1, 5)[:, None]).astype(np.float64)
    found = ResponsePatterns.from_scores(scores)
    kept = contenders(found, np.array([size]), draws=1000, order=[0, 1])
    assert {0, 1} <= set(kept)
    drawn = next(redrawn_totals(found, [RedrawPlan(size, 1000)], rng))[0].totals
    for model in set(range(5)) - set(kept):
        assert np.all(drawn[model] < drawn[1])


def test_sizes_that_do_not_grow_or_are_endless_are_refused() -> None:
    found = ResponsePatterns.from_scores([[1, 0], [0, 1]])
    with pytest.raises(ValueError, match="grows"):
        redraw_rankings(found, [RedrawPlan(5, 9), RedrawPlan(5, 9)], order=[0], rng=np.random.default_rng(1))
    with pytest.raises(ValueError, match="at most"):
        RedrawPlan(MOST_QUESTIONS + 1, 5)
    assert redraw_rankings(found, [], order=[0], rng=np.random.default_rng(1)) == ()


def test_a_frequency_does_not_depend_on_the_order_of_questions() -> None:
    scores = np.random.default_rng(5).integers(0, 2, (4, 90))
    turned = scores[:, np.random.default_rng(6).permutation(90)]
    one, other = (
        redraw_ranking(ResponsePatterns.from_scores(entry), RedrawPlan(50, 500), order=[0, 1], rng=np.random.default_rng(1))
        for entry in (scores, turned)
    )
    assert one == other
