from __future__ import annotations

from importlib.util import find_spec
from itertools import islice

import numpy as np
import pytest
from scipy.stats import t

from benchmarks.__main__ import NAMES
from benchmarks.cluster_sizes import MADE_UP, searched, simulated
from benchmarks.multivariate_t import CORRECTIONS, Correction, any_beyond, parts_of
from benchmarks.rates import Rate, summaries
from benchmarks.separations import COMPARISON, PARTS
from benchmarks.weighted_strata import averages
from evalspec.statistics.clusters import clustered_mean
from evalspec.statistics.proportions import ProportionMethod

SIZES = np.array([4, 9, 1, 6, 6, 13])


def test_every_benchmark_that_is_named_is_there() -> None:
    assert [name for name in NAMES if find_spec(f"benchmarks.{name}") is None] == []


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_errors_of_differences_are_those_of_clustered_means(correction: Correction) -> None:
    scores = (np.random.default_rng(1).random((2, SIZES.sum())) < 0.6).astype(np.float64)
    expected = clustered_mean(scores[0] - scores[1], np.repeat(np.arange(SIZES.size), SIZES).tolist(), correction=correction).standard_error
    parts = parts_of(scores, SIZES, correction)
    assert np.sqrt(np.sum((parts[0] - parts[1]) ** 2)) == pytest.approx(expected, rel=1e-12)


def test_two_models_are_beyond_where_student_s_t_says_so() -> None:
    sizes, decided = np.full(8, 5), {}
    for seed in range(200):
        scores = (np.random.default_rng(seed).random((2, 40)) < [[0.8], [0.5]]).astype(np.float64)
        differences = clustered_mean(scores[0] - scores[1], np.repeat(np.arange(8), 5).tolist(), correction="CR1")
        p_value = 2.0 * t.sf(abs(differences.mean) / differences.standard_error, 7)
        if not 0.03 < p_value < 0.08:  # so near the level 1,000 draws may decide otherwise
            decided[seed] = p_value < 0.05
            assert any_beyond(scores, sizes, "CR1", alpha=0.05, rng=np.random.default_rng(seed)) == decided[seed]
    assert set(decided.values()) == {True, False}


@pytest.mark.parametrize("part", ["intervals", "pairs"])
def test_comparisons_stand_beside_the_same_rates(part: str) -> None:
    alone, beside = (
        list(islice((rate for studies in PARTS[part]() for rate in studies.rates(3, comparisons=comparisons)), 12)) for comparisons in (False, True)
    )
    offered = [rate for rate in beside if COMPARISON not in rate.test]
    assert offered == alone[: len(offered)]
    assert len(offered) < len(beside)


def test_a_search_is_the_same_each_time_and_finds_what_a_smaller_made_up_cluster_passes() -> None:
    made_up, smaller = MADE_UP.values()
    rates = list(searched("size", made_up, 40))
    assert rates == list(searched("size", made_up, 40))
    assert {rate.alpha for rate in rates} == {0.0025, 0.01, 0.025, 0.1}
    assert not any(rate.above for rate in rates)
    assert any(rate.above for rate in searched("smaller", smaller, 40))


def test_sizes_drawn_at_random_are_the_same_each_time_and_pass_wrongly_no_more_often_than_stated() -> None:
    rates = list(islice(simulated(4), 8))
    assert rates == list(islice(simulated(4), 8))
    assert len({rate.test for rate in rates}) == 8
    assert not any(rate.above for rate in rates)


@pytest.mark.parametrize(("method", "largest", "chance"), [("wilson", 0.0768, "0.54"), ("jeffreys", 0.0855, "0.55")])
def test_averages_over_unequal_subjects_pass_more_often_than_stated_by_an_effective_number(
    method: ProportionMethod, largest: float, chance: str
) -> None:
    worst = max(averages(method), key=lambda rate: rate.rate)
    assert (worst.rate, worst.setting) == (pytest.approx(largest, abs=5e-5), f"2, 2 and 100 questions, chance {chance}")


def test_a_summary_names_the_worst_setting_and_counts_what_lies_above_alpha() -> None:
    rates = [Rate("a", "first", 0.02), Rate("a", "second", 0.04), Rate("a", "third", 0.03, error=0.002), Rate("b", "fourth", 0.06, alpha=0.05)]
    found = summaries(rates)
    assert found["a"] == {
        "settings": 3,
        "alpha": 0.025,
        "largest": 0.04,
        "largest_at": "second",
        "mean": 0.03,
        "above_alpha": 1,
        "monte_carlo_error": 0.0,
    }
    assert list(found) == ["a", "b"]
