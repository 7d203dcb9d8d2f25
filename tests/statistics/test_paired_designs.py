from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evalspec.statistics.clusters import clustered_interval
from evalspec.statistics.designs import Design
from evalspec.statistics.differences import PairedCounts, tango
from evalspec.statistics.mcnemar import mcnemar_exact
from evalspec.statistics.odds_ratios import odds_ratio_exact, odds_ratio_limits
from evalspec.statistics.one_sided import bounded_mean_above
from evalspec.statistics.p_values import SMALLEST_P
from evalspec.statistics.paired_designs import bounded_difference, design_difference, pool_difference
from evalspec.statistics.permutations import reshuffle_groups, sign_flip_exact
from evalspec.statistics.unpaired import TwoSamples, fisher_exact

RNG = np.random.default_rng(8)
FIRST, SECOND = RNG.random(120), RNG.random(120)
NEW = np.random.default_rng


def test_fractional_scores_are_compared_by_student_s_paired_test() -> None:
    expected = stats.ttest_rel(FIRST, SECOND)
    found = design_difference(FIRST, SECOND, Design(), rng=NEW(1))
    interval = expected.confidence_interval(0.95)
    assert (found.p_value, found.interval.low, found.interval.high) == pytest.approx((expected.pvalue, interval.low, interval.high))
    assert found.correlation == pytest.approx(np.corrcoef(FIRST, SECOND)[0, 1])
    assert found.test == "t"


@pytest.mark.parametrize("count", [12, 40])
def test_clusters_are_flipped_whole_and_their_interval_is_cr2(count: int) -> None:
    labels = np.array([f"c{index % count:02}" for index in range(120)])
    first, second = np.round(FIRST), np.round(SECOND)
    found = design_difference(first, second, Design(clusters=labels), rng=NEW(1))
    interval = clustered_interval(first - second, labels)
    assert (found.test, found.interval.low, found.interval.high) == ("cluster_sign_flip", pytest.approx(interval.low), pytest.approx(interval.high))
    totals = [float(np.sum((first - second)[labels == name])) for name in sorted(set(labels.tolist()))]
    assert (found.p_value, found.p_error) == (pytest.approx(sign_flip_exact(totals)), None)
    assert ("fewer than 30" in str(found.caution)) == (count < 30)


def test_sums_of_clusters_that_cannot_be_counted_are_flipped_at_random_with_its_error() -> None:
    labels = np.array([f"c{index % 40:02}" for index in range(120)])
    found = design_difference(FIRST, SECOND, Design(clusters=labels), draws=2000, rng=NEW(1))
    assert found.p_error is not None
    order = NEW(3).permutation(120)
    turned = design_difference(FIRST[order], SECOND[order], Design(clusters=labels[order]), draws=2000, rng=NEW(1))
    assert turned.p_value == found.p_value  # the order of questions does not move the draws


def test_equal_models_of_clusters_of_very_different_sizes_are_separated_no_more_often_than_stated() -> None:
    sizes = np.array([50, 40, 30, 20, 10, *[1] * 40])
    rng, labels, separated = NEW(5), np.repeat([f"c{place:02}" for place in range(45)], sizes), 0
    for _ in range(1000):
        easy = np.repeat(rng.beta(1.6, 0.7, (2, 45)), sizes, axis=1)
        first, second = (rng.random(easy.shape) < easy).astype(np.float64)
        separated += design_difference(first, second, Design(clusters=labels), rng=rng).p_value <= 0.05
    assert separated <= stats.binom.ppf(0.9999, 1000, 0.05)  # 70 by Student's t with CR2


def test_identical_scores_are_never_separated_and_have_no_interval_of_width_zero() -> None:
    found = design_difference(FIRST, FIRST, Design(), rng=NEW(1))
    assert (found.difference, found.p_value, found.interval, found.standard_error) == (0.0, 1.0, None, None)


def test_a_difference_without_any_spread_is_refused() -> None:
    with pytest.raises(ValueError, match="without any spread"):
        design_difference(np.full(10, 0.75), np.full(10, 0.5), Design(), rng=NEW(1))


@pytest.mark.parametrize(("first", "second"), [(1.0, 0.0), (0.75, 0.5), (0.7, 0.4)])
def test_clusters_that_all_differ_by_as_much_are_tested_and_have_no_interval(first: float, second: float) -> None:
    labels = np.repeat([f"c{place}" for place in range(10)], [1, 2, 3, 4, 5, 5, 4, 3, 2, 1])
    found = design_difference(np.full(30, first), np.full(30, second), Design(clusters=labels), rng=NEW(1))
    assert (found.p_value, found.p_error, found.test) == (2 / 2**10, None, "cluster_sign_flip")
    assert (found.difference, found.interval, found.standard_error) == (pytest.approx(first - second), None, None)
    assert found.caution == "the spread is 0, so it gives no interval"
    with pytest.raises(ValueError, match="without any spread"):  # Student's t of cluster means has nothing to measure by
        design_difference(np.full(30, first), np.full(30, second), Design(clusters=labels, by_cluster=True), rng=NEW(1))


def test_a_p_value_is_never_zero() -> None:
    scores = np.linspace(0.9, 1.0, 5000)
    assert design_difference(scores, np.linspace(0.0, 0.01, 5000), Design(), rng=NEW(1)).p_value >= SMALLEST_P


def test_an_almost_empty_share_of_a_pool_has_tango_s_interval() -> None:
    counts = PairedCounts(1217, 219, 182, 382)
    found, plain = pool_difference(counts, 10**7), tango(counts)
    assert (found.interval.low, found.interval.high) == pytest.approx((plain.low, plain.high), abs=5e-6)
    assert found.p_value == pytest.approx(mcnemar_exact(counts).p_value, rel=1e-3)  # 401 of a few million are nearly independent draws
    assert found.caution is None


def test_the_interval_of_half_a_pool_is_that_of_twice_the_questions() -> None:
    half, double = PairedCounts(100, 30, 20, 50), PairedCounts(200, 60, 40, 100)
    found, expected = pool_difference(half, 400), tango(double)
    assert (found.interval.low, found.interval.high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    for pool in (199, 200):
        with pytest.raises(ValueError, match="neither nothing nor all"):
            pool_difference(half, pool)


def test_few_discordant_questions_of_a_pool_are_cautioned_about() -> None:
    assert "3 discordant questions" in str(pool_difference(PairedCounts(50, 3, 0, 47), 200).caution)
    assert "drawn within subjects" in str(pool_difference(PairedCounts(50, 30, 9, 47), 200, drawn_within=True).caution)


def test_odds_ratio_limits_are_those_of_single_pairs() -> None:
    first, second = [219, 0, 0, 5, 12], [182, 0, 7, 0, 12]
    limits = odds_ratio_limits(first, second)
    expected = [odds_ratio_exact(PairedCounts(1, b, c, 1)) for b, c in zip(first, second, strict=True)]
    assert limits.low == pytest.approx([one.low for one in expected])
    assert limits.high == pytest.approx([one.high for one in expected])


@pytest.mark.parametrize("table", [(8, 10, 1, 6), (3, 8, 0, 100), (0, 5, 0, 7), (50, 100, 30, 90), (5, 5, 5, 5)])
def test_fisher_s_p_is_scipy_s(table: tuple[int, int, int, int]) -> None:
    right, n, other, m = table
    assert fisher_exact(TwoSamples(*table)) == pytest.approx(stats.fisher_exact([[right, n - right], [other, m - other]]).pvalue)


def test_reshuffled_labels_find_groups_that_differ_and_only_those() -> None:
    labels = np.repeat(np.array(list("abcd")), 50)
    alike = RNG.normal(size=200)
    apart = (RNG.random(200) < np.repeat([0.9, 0.3, 0.6, 0.6], 50)).astype(np.float64)
    assert reshuffle_groups(apart, labels, draws=999, rng=NEW(1)).p_value == pytest.approx(0.001)
    found = reshuffle_groups(alike, labels, draws=4999, rng=NEW(1))
    groups = [alike[labels == name] for name in "abcd"]
    assert found.p_value == pytest.approx(stats.f_oneway(*groups).pvalue, abs=0.03)  # both are exact up to a few Monte Carlo errors of 0.007
    order = NEW(2).permutation(200)
    assert reshuffle_groups(alike[order], labels[order], draws=4999, rng=NEW(1)).p_value == found.p_value
    with pytest.raises(ValueError, match="at least 2 groups"):
        reshuffle_groups([1.0, 0.0], ["a", "a"], draws=9, rng=NEW(1))


def test_reshuffled_labels_take_an_unequal_spread_around_one_mean_for_a_difference_of_groups() -> None:
    labels, rng = np.repeat(["few", "many"], [20, 200]), NEW(5)
    spread = np.repeat([0.5, 0.04], [20, 200])  # shares of questions on which the two models part, each as often either's
    found = [
        reshuffle_groups(np.where(rng.random(220) < spread, rng.choice([-1.0, 1.0], 220), 0.0), labels, draws=99, rng=rng).p_value for _ in range(60)
    ]
    assert 0.15 < np.mean(np.array(found) <= 0.05) < 0.55  # about a third


@pytest.mark.parametrize("labels", [None, np.array([f"c{index % 17:02}" for index in range(120)])])
def test_bounds_of_differences_are_those_of_the_one_sided_test_and_leave_out_zero_exactly_where_it_rejects(labels: np.ndarray | None) -> None:
    design = Design(clusters=labels)
    found = bounded_difference(FIRST, 0.7 * SECOND, design, level=0.9)
    above, below = (bounded_mean_above(sign * (FIRST - 0.7 * SECOND), design, 0.0, alpha=0.05) for sign in (1.0, -1.0))
    assert (found.interval.low, found.interval.high) == pytest.approx((above.bound, -below.bound))
    assert found.p_value == pytest.approx(2.0 * above.p_value)
    assert found.test == ("gaffke" if labels is None else "gaffke_clustered")
    for part, holds in ((1.001, False), (0.999, True)):
        interval = bounded_difference(FIRST, 0.7 * SECOND, design, level=1.0 - part * found.p_value).interval
        assert (interval.low <= 0.0 <= interval.high) == holds


def test_bounds_of_right_and_wrong_answers_turn_with_the_models() -> None:
    first, second = np.round(FIRST), np.round(SECOND)
    found, turned = bounded_difference(first, second, Design()), bounded_difference(second, first, Design())
    assert (found.interval.low, found.interval.high, found.p_value) == (-turned.interval.high, -turned.interval.low, turned.p_value)


def test_differences_that_are_all_alike_are_bounded_and_tested_too() -> None:
    found = bounded_difference(np.full(40, 0.75), np.full(40, 0.5), Design())
    assert found.interval.low < 0.25 == pytest.approx(found.difference)
    assert 0.0 < found.p_value < 1.0
    assert found.standard_error is None
