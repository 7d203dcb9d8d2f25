from __future__ import annotations

from itertools import combinations
from math import comb, log10

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar as peer_mcnemar
from statsmodels.stats.multitest import multipletests

from evalspec.statistics import all_pairs as statistics_module
from evalspec.statistics import paired_tables as counting_module
from evalspec.statistics.all_pairs import all_pairs, compare_tables, exact_limits, tango_limits
from evalspec.statistics.differences import PairedCounts, tango
from evalspec.statistics.exact_differences import fay_lumbard
from evalspec.statistics.mcnemar import mcnemar_exact, mcnemar_exact_log10_p, mcnemar_mid_p
from evalspec.statistics.paired_tables import PairedTables, paired_tables

SCORES = (np.random.default_rng(5).random((7, 300)) < np.linspace(0.2, 0.95, 7)[:, None]).astype(float)

counts = st.tuples(st.integers(0, 80), st.integers(0, 80), st.integers(0, 300)).filter(any)


def test_every_pair_has_the_numbers_that_the_functions_for_one_pair_give() -> None:
    found = all_pairs(SCORES, level=0.9)
    assert list(zip(found.first, found.second, strict=True)) == list(combinations(range(7), 2))
    for place, (i, j) in enumerate(combinations(range(7), 2)):
        table = PairedCounts.from_scores(SCORES[i], SCORES[j])
        test, limits = mcnemar_exact(table), tango(table, level=0.9)
        cells = (found.tables.both, found.tables.only_first, found.tables.only_second, found.tables.neither)
        assert PairedCounts(*(int(cell[place]) for cell in cells)) == table
        shown = found.comparisons
        assert (shown.p_value[place], shown.log10_p[place]) == (test.p_value, test.log10_p_value)
        assert shown.p_mid[place] == mcnemar_mid_p(table)
        assert (shown.low[place], shown.high[place]) == pytest.approx((limits.low, limits.high), abs=1e-10)


def test_p_values_and_their_adjustment_agree_with_statsmodels() -> None:
    found = all_pairs(SCORES)
    tables = found.tables
    raw = [
        peer_mcnemar([[a, b], [c, d]], exact=True).pvalue
        for a, b, c, d in zip(tables.both, tables.only_first, tables.only_second, tables.neither, strict=True)
    ]
    assert found.comparisons.p_value == pytest.approx(raw, rel=1e-9)
    assert found.p_adjusted == pytest.approx(multipletests(raw, method="holm")[1], rel=1e-9)


@given(counts, st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_many_intervals_at_once_are_those_of_one_at_a_time(cells: tuple[int, int, int], level: float) -> None:
    b, c, agreed = cells
    one = tango(PairedCounts(agreed, b, c, 0), level=level)
    low, high = tango_limits([b, 3], [c, 0], [b + c + agreed, 3], level=level)[:, 0]
    assert (low, high) == pytest.approx((one.low, one.high), abs=1e-10)


@pytest.mark.parametrize("cells", [(1, 0, 1), (0, 1, 1), (0, 0, 1), (5, 0, 5), (0, 9, 10), (1, 0, 10**6), (0, 0, 10**7), (10**6 - 1, 1, 10**6)])
def test_the_interval_is_right_at_the_edges_too(cells: tuple[int, int, int]) -> None:
    b, c, n = cells
    one = tango(PairedCounts(n - b - c, b, c, 0))
    assert tango_limits([b], [c], [n])[:, 0] == pytest.approx((one.low, one.high), abs=1e-10)


def test_missing_answers_leave_each_pair_its_common_questions() -> None:
    present = np.random.default_rng(6).random(SCORES.shape) < 0.8
    found = paired_tables(SCORES == 1, present, np.array([0, 5]), np.array([3, 1]))
    for place, (i, j) in enumerate([(0, 3), (5, 1)]):
        common = present[i] & present[j]
        table = PairedCounts.from_scores(SCORES[i, common], SCORES[j, common])
        assert (found.both[place], found.only_first[place], found.only_second[place], found.neither[place]) == (
            table.both,
            table.only_first,
            table.only_second,
            table.neither,
        )


def test_the_size_of_the_blocks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = all_pairs(SCORES)
    monkeypatch.setattr(counting_module, "_QUESTIONS_AT_ONCE", 7)
    monkeypatch.setattr(counting_module, "_LARGEST_MAP", 1)
    monkeypatch.setattr(statistics_module, "_TABLES_AT_ONCE", 3)
    parts = all_pairs(SCORES)
    assert np.array_equal(parts.tables.both, whole.tables.both)
    assert parts.comparisons.low == pytest.approx(whole.comparisons.low, abs=1e-13)
    assert np.array_equal(parts.comparisons.p_value, whole.comparisons.p_value)


def test_p_values_too_small_for_a_double_keep_their_logarithm() -> None:
    many = mcnemar_exact_log10_p([1200, 0, 30, 20_000, 5], [0, 5000, 4000, 30_000, 5])
    assert many[0] == pytest.approx(-1199 * np.log10(2), rel=1e-12)
    assert many[1] == pytest.approx((1 - 5000) * np.log10(2), rel=1e-12)
    assert many[4] == 0.0
    # The oracle is a whole-number sum of binomial coefficients.
    assert many[2] == pytest.approx(log10(2 * sum(comb(4030, k) for k in range(31))) - 4030 * log10(2), rel=1e-12)


@pytest.mark.parametrize("scores", [[[1, 0, 1]], [1, 0], [[0.5, 1], [1, 0]], [[np.nan, 1], [1, 0]], np.zeros((3, 0))])
def test_what_cannot_be_compared_is_refused(scores: object) -> None:
    with pytest.raises(ValueError, match="scores"):
        all_pairs(scores)  # type: ignore[arg-type]


def test_impossible_tables_are_refused() -> None:
    nothing = np.array([0])
    with pytest.raises(ValueError, match="at least 1 question"):
        compare_tables(PairedTables(nothing, nothing, nothing, nothing))
    with pytest.raises(ValueError, match="no more discordant"):
        tango_limits([3], [3], [5])
    with pytest.raises(ValueError, match="one shape"):
        paired_tables(np.ones((2, 3), dtype=bool), np.ones((2, 4), dtype=bool), nothing, nothing)


def test_no_comparison_at_all_gives_empty_results() -> None:
    empty = np.array([], dtype=np.int64)
    found = compare_tables(PairedTables(empty, empty, empty, empty))
    assert found.low.size == found.p_value.size == 0


def test_tables_too_various_for_one_number_are_compared_all_the_same() -> None:
    cells = (np.array([3_000_000, 0]), np.array([2_000_000, 5]), np.array([1, 1_999_999]), np.array([0, 1]))
    together = compare_tables(PairedTables(*cells))
    for place in (0, 1):
        alone = compare_tables(PairedTables(*(cell[[place]] for cell in cells)))
        assert (together.low[place], together.high[place]) == (alone.low[0], alone.high[0])
        assert (together.difference[place], together.log10_p[place]) == (alone.difference[0], alone.log10_p[0])
    assert together.difference[0] > 0 > together.high[1]


def test_exact_limits_are_those_of_each_table_by_itself() -> None:
    cells = np.array([(20, 5, 0, 3), (1217, 219, 182, 382), (0, 5, 0, 23), (0, 0, 9, 0), (1217, 182, 219, 382)]).T
    low, high = exact_limits(PairedTables(*cells), level=0.9)
    for place, counted in enumerate(cells.T.tolist()):
        limits = fay_lumbard(PairedCounts(*counted), level=0.9)
        assert (low[place], high[place]) == (limits.low, limits.high)
    assert exact_limits(PairedTables(*cells[:, :0])).shape == (2, 0)
