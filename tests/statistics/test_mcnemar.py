from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from evalspec.statistics.differences import PairedCounts
from evalspec.statistics.mcnemar import (
    mcnemar_asymptotic,
    mcnemar_continuity,
    mcnemar_exact,
    mcnemar_exact_log10_p,
    mcnemar_exact_p,
    mcnemar_mid_p,
)
from evalspec.statistics.odds_ratios import odds_ratio_mid_p
from evalspec.statistics.p_values import SMALLEST_P
from evalspec.statistics.unpaired import TwoSamples, two_sample_z

cell = st.integers(0, 400)
tables = st.tuples(cell, cell, cell, cell).filter(any).map(lambda cells: PairedCounts(*cells))


def test_the_paired_test_sees_what_the_unpaired_one_misses() -> None:
    # 220 questions of a public report: both right 68, only the first 30, only the second 12, neither 110.
    counts = PairedCounts(68, 30, 12, 110)
    assert mcnemar_exact(counts).p_value == pytest.approx(0.0079, abs=5e-5)
    # 0.0800 with unpooled variances, as the report has it; pooled, as here, 0.0804.
    assert two_sample_z(TwoSamples(98, 220, 80, 220)).p_value == pytest.approx(0.0804, abs=5e-5)


@given(tables)
def test_the_exact_p_value_is_that_of_a_binomial_test(counts: PairedCounts) -> None:
    oracle = binomtest(counts.only_first, counts.discordant).pvalue if counts.discordant else 1.0
    assert mcnemar_exact(counts).p_value == pytest.approx(oracle, rel=1e-9)


@given(tables)
def test_p_values_lie_in_order_and_never_reach_0(counts: PairedCounts) -> None:
    exact, mid = mcnemar_exact(counts), mcnemar_mid_p(counts)
    assert 0.0 < mid <= exact.p_value <= 1.0
    assert mcnemar_asymptotic(counts).p_value <= mcnemar_continuity(counts).p_value
    assert 10.0**exact.log10_p_value == pytest.approx(exact.p_value, rel=1e-9)


@given(tables)
def test_swapping_the_models_keeps_the_p_value_and_inverts_the_odds_ratio(counts: PairedCounts) -> None:
    straight, swapped = mcnemar_exact(counts), mcnemar_exact(counts.swapped())
    assert straight.p_value == swapped.p_value
    if straight.odds_ratio and swapped.odds_ratio:
        assert straight.odds_ratio == pytest.approx(1.0 / swapped.odds_ratio)
        assert straight.odds_ratio_interval.low == pytest.approx(1.0 / swapped.odds_ratio_interval.high, rel=1e-6)


@given(tables)
def test_the_odds_ratio_interval_holds_1_exactly_when_the_test_does_not_reject(counts: PairedCounts) -> None:
    test = mcnemar_exact(counts)
    assert (test.odds_ratio_interval.low <= 1.0 <= test.odds_ratio_interval.high) == (test.p_value >= 0.05)


def test_models_that_never_disagree_give_no_evidence_and_no_odds_ratio() -> None:
    counts = PairedCounts(30, 0, 0, 10)
    test = mcnemar_exact(counts)
    assert (test.p_value, test.log10_p_value, test.discordant, test.odds_ratio) == (1.0, 0.0, 0, None)
    assert (test.odds_ratio_interval.low, test.odds_ratio_interval.high) == (0.0, math.inf)
    assert (odds_ratio_mid_p(counts).low, odds_ratio_mid_p(counts).high) == (0.0, math.inf)
    assert mcnemar_mid_p(counts) == mcnemar_asymptotic(counts).p_value == mcnemar_continuity(counts).p_value == 1.0


def test_an_even_split_gives_p_1_with_every_variant() -> None:
    counts = PairedCounts(5, 2, 2, 1)
    assert mcnemar_exact(counts).p_value == mcnemar_mid_p(counts) == 1.0
    assert (mcnemar_continuity(counts).statistic, mcnemar_continuity(counts).p_value) == (0.0, 1.0)


def test_a_p_value_too_small_for_a_double_is_held_above_0_and_keeps_its_size_as_a_logarithm() -> None:
    test = mcnemar_exact(PairedCounts(0, 1200, 0, 0))
    assert test.p_value == SMALLEST_P > 0.0
    assert test.log10_p_value == pytest.approx(-1199 * math.log10(2.0), abs=1e-9)


@pytest.mark.parametrize(("wins", "losses"), [(1000, 30), (1010, 40), (3000, 1300)])
def test_the_logarithm_is_continuous_where_the_way_to_compute_it_changes(wins: int, losses: int) -> None:
    tail = sum(math.comb(wins + losses, i) for i in range(losses + 1))
    expected = (math.log2(tail) + 1 - wins - losses) * math.log10(2.0)
    assert float(mcnemar_exact_log10_p(wins, losses)) == pytest.approx(expected, abs=1e-9)


def test_arrays_of_counts_give_what_single_tables_give() -> None:
    only_first, only_second = np.array([[0, 5], [219, 9]]), np.array([[0, 0], [182, 2]])
    singles = [mcnemar_exact(PairedCounts(1, int(b), int(c), 0)).p_value for b, c in zip(only_first.flat, only_second.flat, strict=True)]
    assert mcnemar_exact_p(only_first, only_second).ravel().tolist() == singles


@pytest.mark.parametrize("wrong", [[-1], [0.5], ["a"]])
def test_impossible_counts_are_refused(wrong: list[object]) -> None:
    with pytest.raises(ValueError, match="only_first"):
        mcnemar_exact_p(wrong, [1])  # type: ignore[arg-type]
