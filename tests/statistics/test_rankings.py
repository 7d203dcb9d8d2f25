from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom, binomtest

from evalspec.statistics.article import jittered_first_share, null_half_width, paired_interval, pairing_gain
from evalspec.statistics.clusters import clustered_mean
from evalspec.statistics.differences import PairedCounts
from evalspec.statistics.max_t import family_critical_value, max_t_critical_value, pair_statistics, step_down
from evalspec.statistics.multiplicity import bonferroni_critical_value
from evalspec.statistics.rankings import RedrawPlan, ResponsePatterns, order_share, redraw_ranking, simulated_split_halves
from evalspec.statistics.redraws import ahead_approximately, ahead_with_replacement, ahead_without_replacement, split_halves
from evalspec.statistics.tiers import compact_letters, count_rank_intervals, possible_best, rank_intervals, simultaneous_rank_intervals

PAIR = PairedCounts(1217, 219, 182, 382)
cell = st.integers(0, 12)
tables = st.tuples(cell, cell, cell, cell).filter(lambda cells: sum(cells) >= 2).map(lambda cells: PairedCounts(*cells))


def scores_of(counts: PairedCounts) -> NDArray[np.int64]:
    columns = [(1, 1)] * counts.both + [(1, 0)] * counts.only_first + [(0, 1)] * counts.only_second + [(0, 0)] * counts.neither
    return np.array(columns).T


@pytest.mark.parametrize(
    ("questions", "exact", "normal"),
    [(30, 0.5881, 0.5896), (100, 0.6597, 0.6604), (200, 0.7202, 0.7207), (500, 0.8223, 0.8224), (1000, 0.9045, 0.9045), (2000, 0.9678, 0.9678)],
)
def test_the_leaders_chances_are_those_published(questions: int, exact: float, normal: float) -> None:
    assert ahead_with_replacement(PAIR, questions) == pytest.approx(exact, abs=5e-5)
    assert ahead_approximately(PAIR, questions) == pytest.approx(normal, abs=5e-5)


@given(tables, st.integers(1, 40))
def test_the_chances_of_both_models_sum_to_1(counts: PairedCounts, questions: int) -> None:
    for method in (ahead_with_replacement, ahead_approximately):
        assert method(counts, questions) + method(counts.swapped(), questions) == pytest.approx(1.0)
    size = min(questions, counts.questions)
    assert ahead_without_replacement(counts, size) + ahead_without_replacement(counts.swapped(), size) == pytest.approx(1.0)


@given(tables)
def test_drawing_every_question_without_replacement_repeats_the_ranking(counts: PairedCounts) -> None:
    difference = counts.only_first - counts.only_second
    assert ahead_without_replacement(counts, counts.questions) == pytest.approx(0.5 + 0.5 * np.sign(difference))


@given(tables.filter(lambda counts: counts.questions % 2 == 0))
def test_both_leads_sum_to_what_the_halves_identity_says(counts: PairedCounts) -> None:
    # E|D1| + E[sign(D1) D2] = (b - c) E[sign(D1)], because D1 + D2 = b - c whatever the split.
    halves = split_halves(counts)
    half = counts.questions // 2
    sign = 2.0 * ahead_without_replacement(counts, half) - 1.0
    total = (counts.only_first - counts.only_second) / half * sign
    assert halves.lead_selected + halves.lead_held_out == pytest.approx(total, abs=1e-9)
    assert halves.lead_held_out <= halves.lead_selected + 1e-9


def test_a_split_needs_two_parts() -> None:
    with pytest.raises(ValueError, match="both parts"):
        split_halves(PAIR, 2000)
    with pytest.raises(ValueError, match="between 1 and 2000"):
        ahead_without_replacement(PAIR, 2001)
    with pytest.raises(ValueError, match="at least 2 models"):
        simulated_split_halves(ResponsePatterns.from_scores([[1, 0]]), draws=5, rng=np.random.default_rng(1))


def test_simulation_comes_near_the_closed_forms() -> None:
    responses, rng = ResponsePatterns.from_scores(scores_of(PairedCounts(60, 14, 8, 18))), np.random.default_rng(1)
    counts = PairedCounts(60, 14, 8, 18)
    draws = 20_000
    drawn = redraw_ranking(responses, RedrawPlan(40, draws), order=[0, 1], rng=rng)
    kept = redraw_ranking(responses, RedrawPlan(40, draws, "without"), order=[0], rng=rng)
    halves, exact = simulated_split_halves(responses, draws=draws, rng=rng), split_halves(counts)
    # Four Monte Carlo standard errors of a frequency.
    assert drawn.first[0] == pytest.approx(ahead_with_replacement(counts, 40), abs=0.014)
    assert drawn.order == pytest.approx(drawn.first[0])
    assert kept.first[0] == pytest.approx(ahead_without_replacement(counts, 40), abs=0.014)
    assert halves.same_winner == pytest.approx(exact.same_winner, abs=0.014)
    assert halves.lead_held_out == pytest.approx(exact.lead_held_out, abs=0.003)
    assert drawn.standard_error(0.5) == pytest.approx(0.5 / np.sqrt(draws))


@given(st.integers(2, 6), st.integers(0, 1000))
def test_shares_of_first_places_sum_to_1(models: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    responses = ResponsePatterns.from_scores(rng.integers(0, 2, (models, 12)))
    ranking = redraw_ranking(responses, RedrawPlan(5, 20), order=[0], rng=rng)
    assert sum(ranking.first) == pytest.approx(1.0)


def test_ties_are_shared_over_every_order() -> None:
    assert order_share(np.array([[3], [3], [3], [1]]), [1, 0]).tolist() == pytest.approx([1 / 6])
    assert order_share(np.array([[3], [2], [1]]), [1, 0]).tolist() == [0.0]


@pytest.mark.parametrize(("order", "questions", "says"), [([0, 0], 2, "distinct"), ([5], 2, "below 2"), ([0], 9, "must not exceed 3")])
def test_impossible_redraws_are_refused(order: list[int], questions: int, says: str) -> None:
    responses = ResponsePatterns.from_scores([[1, 0, 1], [0, 1, 1]])
    with pytest.raises(ValueError, match=says):
        redraw_ranking(responses, RedrawPlan(questions, 5, "without"), order=order, rng=np.random.default_rng(1))
    with pytest.raises(ValueError, match="models, questions"):
        ResponsePatterns.from_scores([1, 0, 1])


def test_identical_models_are_never_separated_and_are_named() -> None:
    rng = np.random.default_rng(3)
    weak, strong = np.arange(80) % 2, np.ones(80)
    scores = np.vstack([strong, weak, weak])
    family = pair_statistics(scores, [(0, 1), (0, 2), (1, 2)])
    assert max_t_critical_value(family, draws=500, rng=rng).identical == ((1, 2),)
    ranks = simultaneous_rank_intervals(scores, draws=500, rng=rng)
    assert (ranks.low, ranks.high) == ((1, 2, 2), (1, 3, 3))
    assert possible_best(scores, draws=500, rng=rng) == (True, False, False)
    assert not step_down(pair_statistics(np.vstack([weak, weak]), [(0, 1), (1, 0)]), draws=500, rng=rng).rejected.any()
    with pytest.raises(ValueError, match="nothing to compare"):
        max_t_critical_value(pair_statistics(np.vstack([weak, weak]), [(0, 1)]), draws=500, rng=rng)


def test_the_critical_value_of_a_family_lies_between_one_comparison_and_bonferroni() -> None:
    scores = np.random.default_rng(3).random((4, 200))
    family = pair_statistics(scores, [(i, j) for i in range(4) for j in range(i)])
    found = max_t_critical_value(family, draws=20_000, rng=np.random.default_rng(1))
    # Tukey's studentised range for 4 means of independent scores: 3.633 / sqrt(2).
    assert found.critical_value == pytest.approx(3.633 / np.sqrt(2), abs=0.05)
    assert 0.0 < found.standard_error < 0.05


@pytest.mark.parametrize("counts", [(4, 0), (5, 0), (9, 3), (10, 3), (60, 40), (60, 42)])
@pytest.mark.parametrize("together", [False, True])
def test_one_pair_is_rejected_exactly_when_mcnemar_s_one_sided_test_rejects(counts: tuple[int, int], together: bool) -> None:
    scores = scores_of(PairedCounts(30, *counts, 20))
    clusters = [*range(counts[0] + counts[1] + 30), *[-1] * 20] if together else None  # what agrees may come together
    found = step_down(pair_statistics(scores, [(0, 1)], clusters=clusters), draws=20_000, rng=np.random.default_rng(1))
    assert bool(found.rejected[0]) == (binomtest(counts[0], sum(counts), alternative="greater").pvalue <= 0.05)


def test_models_that_differ_by_as_much_on_every_question_are_told_apart() -> None:
    family = pair_statistics(np.vstack([np.ones(40), np.zeros(40)]), [(0, 1), (1, 0)])
    assert step_down(family, draws=1000, rng=np.random.default_rng(1)).rejected.tolist() == [True, False]


def test_five_clusters_can_separate_nothing_at_5_percent_and_six_can() -> None:
    for count, separated in ((5, False), (6, True)):
        labels = np.repeat(np.arange(count), 8).tolist()
        family = pair_statistics(np.vstack([np.ones(8 * count), np.zeros(8 * count)]), [(0, 1), (1, 0)], clusters=labels)
        assert bool(step_down(family, draws=20_000, rng=np.random.default_rng(1)).rejected.any()) == separated


def test_draws_too_few_for_alpha_reject_nothing() -> None:
    family = pair_statistics(np.vstack([np.ones(40), np.zeros(40)]), [(0, 1)])
    found = step_down(family, alpha=0.001, draws=900, rng=np.random.default_rng(1))
    assert (found.rejected.tolist(), found.critical_value, found.standard_error) == ([False], None, None)


@pytest.mark.parametrize("sizes", [(20,) * 10, (100, 30, 20, 10, 10, 8, 6, 6, 5, 5), (200, *(10,) * 35)])
def test_equal_models_are_called_separated_no_more_often_than_alpha_whatever_the_sizes_of_clusters(sizes: tuple[int, ...]) -> None:
    rng, separated = np.random.default_rng(7), 0
    labels = np.repeat(np.arange(len(sizes)), sizes)
    for _ in range(300):
        easy = rng.beta(1.6, 0.7, (6, len(sizes)))[:, labels]
        scores = (rng.random(easy.shape) < easy).astype(np.float64)
        family = pair_statistics(scores, [(i, j) for i in range(6) for j in range(6) if i != j], clusters=labels.tolist())
        separated += bool(step_down(family, draws=1000, rng=rng).rejected.any())
    # Student's t on the clusters less one separates in about 10, 51 and 28 % of such runs.
    assert separated <= binom.ppf(0.9999, 300, 0.05)


def test_equal_models_of_few_questions_are_called_separated_no_more_often_than_alpha() -> None:
    rng, separated = np.random.default_rng(9), 0
    pairs = [(i, j) for i in range(6) for j in range(6) if i != j]
    for _ in range(300):
        family = pair_statistics((rng.random((6, 30)) < 0.9).astype(np.float64), pairs)
        separated += bool(step_down(family, draws=1000, rng=rng).rejected.any())
    assert separated <= binom.ppf(0.9999, 300, 0.05)


@pytest.mark.parametrize("pairs", [[(0, 0)], [(0, 9)], []])
def test_impossible_pairs_are_refused(pairs: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="pair"):
        pair_statistics([[1, 0, 1], [0, 1, 1]], pairs)


def test_scores_of_one_question_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 2 questions"):
        pair_statistics([[1], [0]], [(0, 1)])


@given(st.integers(2, 7), st.data())
def test_models_share_a_group_exactly_when_they_are_not_separated(models: int, data: st.DataObject) -> None:
    every = [(i, j) for i in range(models) for j in range(i)]
    different = data.draw(st.sets(st.sampled_from(every)))
    groups = [set(own) for own in compact_letters(models, different)]
    for i, j in every:
        assert bool(groups[i] & groups[j]) == ((i, j) not in different)


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=8), st.floats(0.05, 0.5))
def test_rank_intervals_hold_the_observed_ranks(scores: list[float], gap: float) -> None:
    values = np.array(scores)
    ranks = rank_intervals(values[:, None] > values[None, :] + gap)
    for model, value in enumerate(scores):
        assert ranks.low[model] <= 1 + int(np.sum(values > value)) <= ranks.high[model]


def test_contradictions_are_refused() -> None:
    with pytest.raises(ValueError, match="each be better"):
        rank_intervals([[False, True], [True, False]])
    with pytest.raises(ValueError, match="square"):
        rank_intervals([[False, True]])
    with pytest.raises(ValueError, match="different models"):
        compact_letters(2, [(1, 1)])


def test_categories_never_chosen_are_ranked_last_together() -> None:
    ranks = count_rank_intervals([200, 0, 0])
    assert (ranks.low, ranks.high) == ((1, 2, 2), (1, 3, 3))


@settings(max_examples=20, deadline=None)
@given(tables.filter(lambda counts: counts.discordant > 0))
def test_the_published_recipe_centres_on_the_difference(counts: PairedCounts) -> None:
    limits = paired_interval(counts)
    assert (limits.low + limits.high) / 2 == pytest.approx((counts.only_first - counts.only_second) / counts.questions)


def test_the_published_recipe_refuses_what_it_cannot_compare() -> None:
    with pytest.raises(ValueError, match="no width"):
        pairing_gain(PairedCounts(5, 0, 0, 0))
    with pytest.raises(ValueError, match="discordance"):
        null_half_width(1.2, 10)
    with pytest.raises(ValueError, match="missing"):
        jittered_first_share([[1, float("nan")], [0, 1]], 2, draws=5, rng=np.random.default_rng(1))


def test_several_benchmarks_are_one_family_whose_largest_statistic_counts() -> None:
    rng = np.random.default_rng(5)
    scores = (rng.random((3, 200)) < 0.6).astype(np.float64)
    family = pair_statistics(scores, [(0, 1), (0, 2), (1, 2)])
    one = family_critical_value([family], draws=20_000, rng=np.random.default_rng(1)).critical_value
    two = family_critical_value([family, family], draws=20_000, rng=np.random.default_rng(1)).critical_value
    assert one < two < bonferroni_critical_value(6) + 0.03  # three Monte Carlo standard errors


def test_clusters_widen_the_standard_errors_of_pairs() -> None:
    rng = np.random.default_rng(6)
    scores = (rng.random((2, 200)) < np.stack([np.repeat(rng.random(20), 10), np.repeat(rng.random(20), 10)])).astype(np.float64)
    labels = [index // 10 for index in range(200)]
    plain, clustered = pair_statistics(scores, [(0, 1)]), pair_statistics(scores, [(0, 1)], clusters=labels)
    assert clustered.errors[0] == pytest.approx(clustered_mean(scores[0] - scores[1], labels, correction="CR1").standard_error)
    assert clustered.errors[0] > 1.5 * plain.errors[0]


def test_the_order_of_questions_does_not_move_the_critical_value() -> None:
    rng = np.random.default_rng(7)
    scores = (rng.random((5, 150)) < 0.6).astype(np.float64)
    pairs = [(i, j) for i in range(5) for j in range(i)]
    turned = scores[:, rng.permutation(150)]
    found = [max_t_critical_value(pair_statistics(one, pairs), draws=2000, rng=np.random.default_rng(1)).critical_value for one in (scores, turned)]
    assert found[0] == pytest.approx(found[1], rel=1e-12)


@pytest.mark.parametrize("grouped", [False, True])
def test_the_order_of_questions_does_not_move_what_is_separated(grouped: bool) -> None:
    rng = np.random.default_rng(8)
    scores = (rng.random((4, 150)) < np.array([[0.9], [0.8], [0.7], [0.6]])).astype(np.float64)
    order, labels = rng.permutation(150), np.arange(150) // 5
    pairs = [(i, j) for i in range(4) for j in range(4) if i != j]
    families = [pair_statistics(scores[:, one], pairs, clusters=labels[one].tolist() if grouped else None) for one in (np.arange(150), order)]
    first, second = (step_down(family, draws=1000, rng=np.random.default_rng(1)) for family in families)
    assert first.critical_value == second.critical_value
    assert first.rejected.tolist() == second.rejected.tolist()
