from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc
from scipy.stats import nbinom

from evalspec.statistics.exponential_sums import log_chance_at_most_zero


def chance(weights: list[float], counts: list[float] | None = None) -> float:
    return math.exp(log_chance_at_most_zero(weights, counts))


@pytest.mark.parametrize("questions", [1, 2, 7, 40, 200, 2_000, 20_000])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("limit", [0.001, 0.1, 0.5, 0.9, 0.999])
def test_two_weights_give_the_beta_distribution(questions: int, share: float, limit: float) -> None:
    right = max(1, round(share * questions))
    expected = float(betainc(right, questions - right + 1, limit))
    found = log_chance_at_most_zero([1.0 - limit, -limit], [right, questions - right + 1.0])
    # Below 1e-290 the oracle loses digits; near 1 the chance itself is compared, which is what it is used for.
    if expected > 1e-290:
        assert math.exp(found) == pytest.approx(expected, rel=1e-10)


def partial_fractions(weights: list[float]) -> float:
    """P(sum <= 0) for weights that all differ: each negative one adds the residue of its pole."""
    return sum(math.prod(w / (w - other) for other in weights if other != w) for w in weights if w < 0.0)


@given(st.lists(st.integers(-30, 30).filter(bool), min_size=2, max_size=6, unique=True))
def test_few_different_weights_give_the_closed_form(whole: list[int]) -> None:
    weights = [number / 7.0 for number in whole]
    assert chance(weights) == pytest.approx(partial_fractions(weights), rel=1e-9, abs=1e-11)  # the residues cancel to about 1e-13


def test_weights_of_very_different_size_give_the_closed_form() -> None:
    weights = [1e-6, -3e-4, 0.5, 40.0, -1e4]
    assert chance(weights) == pytest.approx(partial_fractions(weights), rel=1e-9)


def many_small_ones(small: float, many: int, few: int, last: float) -> float:
    """P(G_few > small G_many + last E), as few points of a Poisson process come after so many of two others: two negative binomials, added."""
    counts = np.arange(few)
    first, second = (nbinom.pmf(counts, number, 1.0 / (1.0 + weight)) for number, weight in ((many, small), (1, last)))
    return float(np.convolve(first, second)[:few].sum())


@pytest.mark.parametrize("many", [30, 995, 20_000])
@pytest.mark.parametrize("few", [1, 2, 5, 9, 40])
@pytest.mark.parametrize("part", [0.2, 0.9, 1.0, 1.1, 2.0])
@pytest.mark.parametrize("last", [0.05, 1.0, 20.0])
def test_few_large_weights_among_very_many_small_ones_give_the_closed_form(many: int, few: int, part: float, last: float) -> None:
    small = part * few / many
    expected = many_small_ones(small, many, few, last)
    weights, counts = [1.0, -small, -last], [few, many, 1]
    assert chance([-weight for weight in weights], counts) == pytest.approx(expected, rel=1e-9, abs=1e-14)
    assert chance(weights, counts) == pytest.approx(1.0 - expected, abs=1e-10)


@pytest.mark.parametrize("kinds", [1, 30, 3000])
@pytest.mark.parametrize("copies", [1, 100, 100_000])
@pytest.mark.parametrize("last", [0.02, 1.0, 50.0, 1e4])
def test_one_weight_against_very_many_of_all_sizes_gives_the_closed_form(kinds: int, copies: int, last: float) -> None:
    weights, counts = np.geomspace(1e-5, 1.0, kinds), np.full(kinds, float(copies))
    expected, started = -float(counts @ np.log1p(weights / last)), time.process_time()
    assert log_chance_at_most_zero([*weights, -last], [*counts, 1.0]) == pytest.approx(expected, rel=1e-12, abs=1e-10)
    assert time.process_time() - started < 5.0  # a tenth of a second; minutes along a straight path


@given(st.lists(st.floats(-1.0, 1.0).filter(lambda w: abs(w) > 1e-3), min_size=2, max_size=30), st.floats(0.01, 100.0))
def test_scale_does_not_matter_and_turning_the_signs_round_gives_the_rest(weights: list[float], scale: float) -> None:
    found = chance(weights)
    assert chance([scale * w for w in weights]) == pytest.approx(found, rel=1e-9, abs=1e-14)
    assert chance([-w for w in weights]) == pytest.approx(1.0 - found, abs=1e-10)


def test_counts_are_repetitions_and_weights_of_zero_do_nothing() -> None:
    once = log_chance_at_most_zero([0.5, 0.5, 0.5, -0.8, 0.0, 0.3, 0.3])
    assert log_chance_at_most_zero([0.3, 0.5, -0.8], [2.0, 3.0, 1.0]) == pytest.approx(once, rel=1e-12)
    assert log_chance_at_most_zero([0.3, 0.5, -0.8, -9.0], [2.0, 3.0, 1.0, 0.0]) == pytest.approx(once, rel=1e-12)


def test_weights_of_one_sign_leave_no_doubt() -> None:
    assert chance([1.0, 2.0]) == 0.0
    assert chance([-1.0, -2.0]) == 1.0
    assert chance([0.0]) == 1.0


def test_chances_far_below_the_smallest_number_have_a_logarithm() -> None:
    # All of 20,000 positive: the chance that E0 exceeds their sum is 0.1 ** 20000.
    assert log_chance_at_most_zero([0.9, -0.1], [20_000, 1]) == pytest.approx(20_000 * math.log(0.1), rel=1e-12)


def test_many_draws_agree() -> None:
    rng = np.random.default_rng(3)
    weights = rng.normal(0.15, 1.0, 12)
    share = float(np.mean(rng.exponential(size=(200_000, 12)) @ weights <= 0.0))
    assert chance(weights.tolist()) == pytest.approx(share, abs=0.0045)  # four Monte Carlo standard errors


def test_what_cannot_be_added_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        log_chance_at_most_zero([])
    with pytest.raises(ValueError, match="missing or infinite"):
        log_chance_at_most_zero([1.0, math.inf])
    with pytest.raises(ValueError, match="one count per weight"):
        log_chance_at_most_zero([1.0, -1.0], [1.0])
