from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from evalspec.statistics.proportion_alternatives import agresti_coull, beta_posterior, lower_bound, upper_bound, wald
from evalspec.statistics.proportions import Interval, clopper_pearson, clopper_pearson_many, jeffreys, wilson, wilson_many

counts = st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
levels = st.floats(0.5, 0.999)

# Counts of right answers with a Wilson interval published beside each in a report on an evaluation harness.
REPORTED = [
    (14, 307, 0.0274, 0.0751),
    (2, 123, 0.0045, 0.0574),
    (2, 132, 0.0042, 0.0536),
    (5, 280, 0.0077, 0.0411),
    (8, 154, 0.0266, 0.0992),
    (8, 193, 0.0212, 0.0796),
    (0, 4, 0.0, 0.490),
]


@pytest.mark.parametrize(("successes", "trials", "low", "high"), REPORTED)
def test_wilson_gives_the_published_limits(successes: int, trials: int, low: float, high: float) -> None:
    limits = wilson(successes, trials)
    assert (limits.low, limits.high) == pytest.approx((low, high), abs=5e-4 if trials == 4 else 5e-5)


def test_the_exact_interval_of_no_success_in_four_reaches_to_0602() -> None:
    assert clopper_pearson(0, 4) == Interval(0.0, pytest.approx(0.602, abs=5e-4))


@given(counts, levels)
def test_every_interval_holds_its_estimate_and_stays_between_0_and_1(pair: tuple[int, int], level: float) -> None:
    for method in (wilson, clopper_pearson, jeffreys):
        limits = method(*pair, level=level)
        assert 0.0 <= limits.low <= pair[0] / pair[1] <= limits.high <= 1.0


@given(counts, levels)
def test_the_exact_interval_holds_the_jeffreys_interval(pair: tuple[int, int], level: float) -> None:
    outer, inner = clopper_pearson(*pair, level=level), jeffreys(*pair, level=level)
    assert outer.low <= inner.low + 1e-12
    assert inner.high <= outer.high + 1e-12


@given(counts)
def test_counting_failures_instead_of_successes_mirrors_the_interval(pair: tuple[int, int]) -> None:
    k, n = pair
    for method in (wilson, clopper_pearson, jeffreys):
        straight, mirrored = method(k, n), method(n - k, n)
        assert (straight.low, straight.high) == pytest.approx((1 - mirrored.high, 1 - mirrored.low), abs=1e-12)


@given(counts)
def test_limits_agree_with_statsmodels(pair: tuple[int, int]) -> None:
    for method, name in ((wilson, "wilson"), (clopper_pearson, "beta"), (agresti_coull, "agresti_coull")):
        limits = method(*pair)
        assert (limits.low, limits.high) == pytest.approx(proportion_confint(*pair, method=name), abs=1e-9)


def test_arrays_of_counts_give_what_single_counts_give() -> None:
    successes, trials = np.array([0, 3, 7, 10]), 10
    for many, one in ((wilson_many, wilson), (clopper_pearson_many, clopper_pearson)):
        limits = many(successes, trials)
        assert [Interval(*pair) for pair in zip(limits.low, limits.high, strict=True)] == [one(int(k), trials) for k in successes]


def test_one_sided_bounds_are_the_ends_of_a_wider_two_sided_interval() -> None:
    limits = clopper_pearson(13, 16, level=0.9)
    assert (lower_bound(13, 16), upper_bound(13, 16)) == pytest.approx((limits.low, limits.high))


def test_the_rule_of_three_is_near_the_exact_bound_without_a_success() -> None:
    assert upper_bound(0, 1000) == pytest.approx(3 / 1000, rel=4e-3)


@pytest.mark.parametrize(("successes", "trials", "says"), [(12, 10, "exceed"), (-1, 10, "at least 0"), (0, 0, "at least 1"), (2.5, 10, "whole")])
def test_impossible_counts_are_refused(successes: int, trials: int, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        wilson(successes, trials)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, float("nan")])
def test_an_impossible_level_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match="level"):
        clopper_pearson(1, 2, level=level)


def test_bounds_at_the_edge_close_exactly() -> None:
    assert upper_bound(5, 5) == 1.0
    assert lower_bound(0, 5) == 0.0
    with pytest.raises(ValueError, match="prior"):
        beta_posterior(1, 2, prior=(0.0, 1.0))


@pytest.mark.parametrize(("successes", "trials", "says"), [([3], [2], "got 3 of 2"), ([0], [0], "undefined"), ([0.5], [2], "whole")])
def test_arrays_of_impossible_counts_are_refused(successes: list[int], trials: list[int], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        wilson_many(successes, trials)


def test_wald_warns_where_it_misleads_and_only_there() -> None:
    assert "point" in (wald(10, 10).caution or "")
    assert "300" in (wald(150, 299).caution or "")
    assert wald(150, 300).caution is None
