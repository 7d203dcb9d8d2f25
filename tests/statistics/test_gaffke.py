from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom, binomtest

from benchmarks.weighted_strata import Strata
from evalspec.statistics.designs import Design
from evalspec.statistics.gaffke import Units, fewest_draws, gaffke_bound, gaffke_p
from evalspec.statistics.gaffke import units_of as units_of_design
from evalspec.statistics.proportions import clopper_pearson


def units_of(scores: ArrayLike, clusters: NDArray[np.str_] | None = None, *, by_cluster: bool = False, smallest: float = 0.0) -> Units:
    return units_of_design(scores, Design(clusters=clusters, by_cluster=by_cluster), smallest=smallest)


unit_scores = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=25)


@pytest.mark.parametrize("questions", [1, 2, 10, 57, 500, 20_000])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
def test_right_and_wrong_answers_have_clopper_and_pearson_s_bound(questions: int, share: float, level: float) -> None:
    right = round(share * questions)
    units = units_of(np.repeat([1.0, 0.0], [right, questions - right]))
    assert gaffke_bound(units, alpha=(1.0 - level) / 2.0) == pytest.approx(clopper_pearson(right, questions, level=level).low, rel=1e-9)
    if right:
        assert gaffke_p(units, 0.6) == pytest.approx(binomtest(right, questions, 0.6, alternative="greater").pvalue, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("units", [1, 2, 30, 2_000])
@pytest.mark.parametrize("score", [0.05, 0.7, 1.0])
def test_equal_scores_have_a_closed_form(units: int, score: float) -> None:
    # The made-up draw has the weight D ~ Beta(1, n): score (1 - D) <= limit with chance (limit / score) ** n.
    assert gaffke_bound(units_of(np.full(units, score)), alpha=0.025) == pytest.approx(score * 0.025 ** (1.0 / units), rel=1e-10)
    assert gaffke_p(units_of(np.full(units, score)), score / 2.0) == pytest.approx(0.5**units, rel=1e-9, abs=1e-300)


def test_two_scores_have_a_closed_form() -> None:
    # Uniform weights on the triangle of the corners 0, low and high: the share of its area left of the limit, for a limit up to `low`.
    low, high, limit = 0.4, 0.9, 0.3
    assert gaffke_p(units_of([low, high]), limit) == pytest.approx(limit**2 / (low * high), rel=1e-12)
    assert gaffke_bound(units_of([low, high]), alpha=0.025) == pytest.approx(math.sqrt(0.025 * low * high), rel=1e-12)


def test_clusters_of_two_sizes_agree_with_many_draws() -> None:
    rng = np.random.default_rng(1)
    scores, labels = np.array([1, 0, 1, 1, 1, 0, 1, 1, 1, 0.5]), np.array(list("aaabbbbccd"))
    totals, sizes, limit = np.array([2.0, 3.0, 2.0, 0.5]), np.array([3.0, 4.0, 2.0, 1.0]), 0.55
    weights = rng.exponential(size=(400_000, 5))
    made_up = (3**3 + 4**3 + 2**3 + 1) / (3**2 + 4**2 + 2**2 + 1)
    sums = weights[:, :4] @ (totals - limit * sizes) - weights[:, 4] * limit * made_up
    assert gaffke_p(units_of(scores, labels), limit) == pytest.approx(float(np.mean(sums <= 0.0)), abs=0.0032)  # four Monte Carlo errors


def test_a_bound_is_a_quantile_of_random_averages() -> None:
    rng = np.random.default_rng(2)
    differences = np.array([0.5, -0.25, 0.0, 1.0, 0.125, 0.0, 0.75, -0.5])
    averages = rng.dirichlet(np.ones(9), size=400_000) @ np.append(differences, -1.0)
    assert gaffke_bound(units_of(differences, smallest=-1.0), alpha=0.1) == pytest.approx(float(np.quantile(averages, 0.1)), abs=0.003)


@given(unit_scores, st.floats(0.001, 0.4))
def test_the_p_value_is_alpha_at_the_bound(scores: list[float], alpha: float) -> None:
    units = units_of(scores)
    bound = gaffke_bound(units, alpha=alpha)
    assert 0.0 <= bound <= max(scores)
    if bound > 1e-6:
        assert gaffke_p(units, bound) == pytest.approx(alpha, rel=1e-9)
        assert gaffke_p(units, bound * 0.999) < alpha


@given(unit_scores, st.data())
def test_a_better_score_never_lowers_the_bound_and_a_stricter_level_never_raises_it(scores: list[float], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(scores) - 1))
    better = [*scores[:place], data.draw(st.floats(scores[place], 1.0)), *scores[place + 1 :]]
    bound = gaffke_bound(units_of(scores))
    assert gaffke_bound(units_of(better)) >= bound - 1e-12
    assert gaffke_bound(units_of(scores), alpha=0.01) <= bound + 1e-12


@given(st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=20))
def test_differences_are_scores_on_a_wider_scale(differences: list[float]) -> None:
    on_unit_scale = gaffke_bound(units_of([(value + 1.0) / 2.0 for value in differences]))
    assert gaffke_bound(units_of(differences, smallest=-1.0)) == pytest.approx(2.0 * on_unit_scale - 1.0, abs=1e-9)


def test_clusters_of_one_question_are_questions_and_clusters_that_count_alike_are_their_means() -> None:
    scores = np.random.default_rng(5).random(12)
    alone = np.arange(12).astype(str)
    assert gaffke_bound(units_of(scores, alone)) == gaffke_bound(units_of(scores))
    labels = np.repeat(list("abc"), (2, 4, 6))
    means = [scores[labels == name].mean() for name in "abc"]
    assert gaffke_bound(units_of(scores, labels, by_cluster=True)) == pytest.approx(gaffke_bound(units_of(means)), rel=1e-12)


@pytest.mark.parametrize(("large", "mean"), [(1, 0.03), (2, 0.2), (3, 0.45), (8, 0.8), (15, 0.9)])
@pytest.mark.parametrize(("small", "size"), [(30, 1.0), (100, 5.0), (200, 20.0)])
def test_large_clusters_among_small_ones_pass_wrongly_at_most_as_often_as_declared(large: int, mean: float, small: int, size: float) -> None:
    # Clusters all right or all wrong, the truth at the limit, summed over every table; the remaining questions, as many as the large clusters have,
    # are in clusters so small that they average to the mean. A made-up cluster of the mean size that a question meets passes up to 13 % wrongly.
    sizes = np.array([100.0, size, 1.0])
    rate = 0.0
    for right in range(large + 1):
        tables = [(right, also) for also in range(small + 1)]
        fewest = bisect_left(tables, x=True, key=lambda table: _passes(table, (large, small), sizes, mean))
        rate += binom.pmf(right, large, mean) * binom.sf(fewest - 1, small, mean)
    assert rate <= 0.025 + 1e-9


def _passes(right: tuple[int, int], number: tuple[int, int], sizes: NDArray[np.float64], mean: float) -> bool:
    """Say whether a table passes: how many of the large and of the small clusters are right."""
    counts = np.array([right[0], number[0] - right[0], right[1], number[1] - right[1], 100 * number[0]], dtype=np.float64)
    of = sizes[[0, 0, 1, 1, 2]]
    return gaffke_p(Units(of * [1.0, 0.0, 1.0, 0.0, mean], of, counts, 0.0), mean) < 0.025


def test_the_made_up_cluster_is_as_large_as_equal_ones_and_as_the_largest_among_tiny_ones() -> None:
    for sizes, counts, expected in (([7.0], [20.0], 7.0), ([400.0, 1.0], [3.0, 1200.0], 399.0), ([2.0, 1.0], [1.0, 1.0], 1.8)):
        units = Units(np.zeros(len(sizes)), np.array(sizes), np.array(counts), 0.0)
        assert units.made_up_size == pytest.approx(expected, rel=1e-3)


def test_equal_clusters_are_their_means_whatever_their_size() -> None:
    scores, labels = np.random.default_rng(6).random(40), np.repeat(np.arange(8).astype(str), 5)
    assert gaffke_bound(units_of(scores, labels)) == pytest.approx(gaffke_bound(units_of(scores.reshape(8, 5).mean(axis=1))), rel=1e-10)


def test_scores_at_their_smallest_have_that_as_bound() -> None:
    assert gaffke_bound(units_of([0.0, 0.0])) == 0.0
    assert gaffke_p(units_of([0.0, 0.0]), 0.1) == 1.0


@pytest.mark.parametrize(("margin", "alpha"), [(0.02, 0.025), (0.05, 0.025), (0.3, 0.01)])
def test_draws_that_do_not_differ_clear_a_margin_from_the_fewest_on(margin: float, alpha: float) -> None:
    fewest = fewest_draws(1.0 - margin, alpha=alpha)
    bounds = [gaffke_bound(units_of(np.zeros(count), smallest=-1.0), alpha=alpha) for count in (fewest - 1, fewest)]
    assert bounds[0] < -margin < bounds[1]


def test_what_has_no_bound_is_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match="must not lie below 0"):
        units_of([0.5, -0.1])
    with pytest.raises(ValueError, match="at least 2 clusters"):
        units_of([1.0, 0.0], np.array(["a", "a"]))
    with pytest.raises(ValueError, match="has a weight in the mean and no scored question"):
        units_of_design([1.0, 0.0], Design(strata=np.array(["a", "b"]), shares={"a": 1.0, "b": 2.0, "c": 1.0}))
    with pytest.raises(ValueError, match="alpha"):
        gaffke_bound(units_of([1.0]), alpha=0.6)
    with pytest.raises(ValueError, match="limit"):
        gaffke_p(units_of([1.0]), -0.1)


def test_questions_without_weight_leave_the_bound_of_the_others() -> None:
    shares = Design(strata=np.array(list("aabbb")), shares={"a": 0.0, "b": 1.0})
    assert gaffke_bound(units_of_design([1.0, 0.0, 1.0, 0.5, 1.0], shares)) == pytest.approx(gaffke_bound(units_of([1.0, 0.5, 1.0])), rel=1e-12)


# Found by `python -m benchmarks.weighted_strata`: few questions of large weight and chances that go with the weights.
UNFAVOURABLE = [
    Strata(np.array([5, 12]), np.array([1.0, 0.4167]), np.array([0.644, 1.0])),
    Strata(np.array([11, 7]), np.array([0.6364, 1.0]), np.array([1.0, 0.72])),
    Strata(np.array([8, 8]), np.array([1.0, 1.0]), np.array([0.5, 0.62])),
    Strata(np.array([6, 2, 2]), np.array([0.3333, 1.0, 1.0]), np.array([0.0, 0.0, 0.012])),
]


@pytest.mark.parametrize("strata", UNFAVOURABLE, ids=str)
def test_questions_that_weigh_differently_clear_their_mean_at_most_as_often_as_declared(strata: Strata) -> None:
    assert all(rate <= alpha for alpha, rate in strata.rates(weighted=True).items())


def test_a_made_up_question_of_the_mean_weight_would_not_do() -> None:
    assert UNFAVOURABLE[0].rates(weighted=False)[0.1] > 0.11
