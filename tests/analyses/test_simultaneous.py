"""Intervals of several pairs that hold all together reach out further than each by itself, by the largest statistic or by Bonferroni's bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evalspec.analyses.mcnemar import ANALYSIS
from evalspec.statistics.differences import PairedCounts
from evalspec.statistics.exact_differences import fay_lumbard
from evalspec.statistics.multiplicity import bonferroni_critical_value

from .tables import rendered
from .test_mcnemar import RESPONSES, benchmark_of, computed, table


def test_a_single_comparison_needs_no_drawn_critical_value() -> None:
    each = computed(table(1217, 219, 182, 382), family="all_pairs")
    alone = computed(table(1217, 219, 182, 382), family="all_pairs", intervals="simultaneous")
    assert (alone.critical, alone.critical_by) == (None, None)
    assert (alone.rows[0].low, alone.rows[0].high) == (each.rows[0].low, each.rows[0].high)


def test_simultaneous_intervals_reach_as_far_as_the_largest_of_all_statistics() -> None:
    each, all_at_once = computed(family="all_pairs"), computed(family="all_pairs", intervals="simultaneous")
    assert 2.5 < all_at_once.critical < bonferroni_critical_value(20) + 0.03
    assert (all_at_once.critical_by, each.critical) == ("bonferroni" if np.isnan(RESPONSES.benchmarks[1].settled()).any() else "max_t", None)
    for alone, together in zip(each.rows, all_at_once.rows, strict=True):
        assert together.low < alone.low < alone.high < together.high
        assert together.p_adjusted == alone.p_adjusted


def test_simultaneous_intervals_fall_back_on_bonferroni_where_scores_are_missing() -> None:
    gaps = replace(RESPONSES, benchmarks=tuple(replace(benchmark, missing="complete_case") for benchmark in RESPONSES.benchmarks))
    result = computed(gaps, family="all_pairs", intervals="simultaneous")
    assert (result.critical_by, result.critical_error) == ("bonferroni", None)
    assert result.critical == pytest.approx(bonferroni_critical_value(20))


@pytest.mark.parametrize(
    ("sizes", "by"), [((10,) * 40, "max_t"), ((10,) * 20, "bonferroni"), ((200, *(5,) * 40), "bonferroni"), ((400,), "bonferroni")]
)
def test_simultaneous_intervals_fall_back_on_bonferroni_where_clusters_are_worth_too_few(sizes: tuple[int, ...], by: str) -> None:
    labels = tuple(f"c{place}" for place, size in enumerate(sizes) for _ in range(size))
    scores = (np.random.default_rng(4).random((3, len(labels), 1)) < 0.6).astype(np.float64)
    assert computed(benchmark_of(scores, clusters=labels), family="all_pairs", intervals="simultaneous").critical_by == by


def test_exact_simultaneous_intervals_divide_the_error_rate() -> None:
    result = computed(family="all_pairs", intervals="simultaneous", method="exact")
    assert (result.critical_by, result.critical_error) == ("bonferroni", None)
    row = result.rows[0]
    limits = fay_lumbard(PairedCounts(row.both, row.only_first, row.only_second, row.neither), level=1 - 0.05 / 20)
    assert (row.low, row.high) == pytest.approx((limits.low, limits.high))
    assert "exact intervals rest on no statistics whose correlation could be drawn" in rendered(
        ANALYSIS, RESPONSES, {"kind": "mcnemar", "family": "all_pairs", "intervals": "simultaneous", "method": "exact"}
    )
