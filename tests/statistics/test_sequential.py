from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalspec.statistics.differences import PairedCounts
from evalspec.statistics.posteriors import probability_better, probability_better_independent
from evalspec.statistics.sequential import e_value, log_e_value, spending_boundaries, type_1_inflation
from evalspec.statistics.unpaired import TwoSamples


@pytest.mark.parametrize(("looks", "inflated"), [(1, 0.05), (2, 0.083), (5, 0.142), (10, 0.193), (20, 0.248)])
def test_looking_again_inflates_the_level_as_published(looks: int, inflated: float) -> None:
    # Armitage, McPherson and Rowe (1969), table 2.
    assert type_1_inflation(looks) == pytest.approx(inflated, abs=5e-4)


def test_spending_boundaries_are_those_of_lan_and_demets() -> None:
    # The R package ldbounds, five equal looks, two-sided 0.05.
    fractions = [0.2, 0.4, 0.6, 0.8, 1.0]
    assert spending_boundaries(fractions) == pytest.approx((4.8769, 3.3569, 2.6803, 2.2898, 2.0310), abs=2e-4)
    assert spending_boundaries(fractions, spending="pocock") == pytest.approx((2.4380, 2.4268, 2.4101, 2.3966, 2.3859), abs=2e-4)


def test_a_single_look_spends_all_of_alpha() -> None:
    assert spending_boundaries([1.0]) == pytest.approx((1.959964,), abs=1e-6)


@pytest.mark.parametrize("fractions", [[], [0.5, 0.5], [0.5, 1.1], [0.0, 1.0]])
def test_looks_that_do_not_rise_are_refused(fractions: list[float]) -> None:
    with pytest.raises(ValueError, match="rise"):
        spending_boundaries(fractions)


@pytest.mark.parametrize("discordant", [1, 2, 10, 60])
def test_the_e_value_of_a_fair_coin_has_expectation_1(discordant: int) -> None:
    values = [e_value(PairedCounts(1, wins, discordant - wins, 0)) * math.comb(discordant, wins) / 2**discordant for wins in range(discordant + 1)]
    assert sum(values) == pytest.approx(1.0)


def test_an_e_value_too_large_for_a_double_is_held_at_the_largest() -> None:
    counts = PairedCounts(0, 5000, 0, 0)
    assert e_value(counts) == sys.float_info.max
    assert log_e_value(counts) > 3000.0


@given(st.integers(0, 80), st.integers(0, 80))
def test_the_posterior_probabilities_of_both_models_sum_to_1(wins: int, losses: int) -> None:
    counts = PairedCounts(1, wins, losses, 0)
    assert probability_better(counts) + probability_better(counts.swapped()) == pytest.approx(1.0)
    samples, flipped = TwoSamples(wins, 80, losses, 90), TwoSamples(losses, 90, wins, 80)
    assert probability_better_independent(samples) + probability_better_independent(flipped) == pytest.approx(1.0)


def test_independent_posteriors_come_near_a_simulation() -> None:
    rng = np.random.default_rng(1)
    drawn = np.mean(rng.beta(8, 4, 200_000) > rng.beta(5, 7, 200_000))
    assert probability_better_independent(TwoSamples(7, 10, 4, 10)) == pytest.approx(drawn, abs=0.004)


def test_priors_that_are_not_usable_are_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        probability_better(PairedCounts(1, 1, 1, 1), prior=0.0)
    with pytest.raises(ValueError, match="unbounded"):
        probability_better_independent(TwoSamples(0, 5, 1, 5), prior=0.5)
