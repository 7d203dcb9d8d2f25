"""Where an accuracy is to have Clopper and Pearson's bounds, every design gets theirs, or the bounds that continue them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evalspec.statistics.accuracies import accuracy
from evalspec.statistics.designs import WHOLE, Design
from evalspec.statistics.finite_pools import pool_clopper_pearson
from evalspec.statistics.gaffke import gaffke_bound, units_of
from evalspec.statistics.proportions import clopper_pearson

from .test_designs import BINARY, FRACTIONAL, THREE

LABELS = np.array([f"c{index % 31}" for index in range(90)])
BOUNDED = {
    "clusters": (BINARY, Design(clusters=LABELS), "gaffke_clustered"),
    "clusters of fractional scores": (FRACTIONAL, Design(clusters=LABELS), "gaffke_clustered"),
    "cluster means": (BINARY, Design(clusters=LABELS, by_cluster=True), "gaffke_cluster_means"),
    "fractional scores": (FRACTIONAL, Design(), "gaffke"),
    "equal scores": (np.full(6, 0.7), Design(), "gaffke"),
    "one score": (np.array([0.5]), Design(), "gaffke"),
}
WEIGHTED = Design(strata=THREE, shares={"a": 1.0, "b": 2.0, "c": 4.0})


@pytest.mark.parametrize(("scores", "design", "method"), BOUNDED.values(), ids=BOUNDED.keys())
def test_clopper_pearson_goes_on_as_gaffke_s_bounds_where_answers_are_no_independent_right_and_wrong_ones(
    scores: np.ndarray, design: Design, method: str
) -> None:
    found = accuracy(scores, design, method="clopper_pearson", level=0.9)
    low, lacking = (gaffke_bound(units_of(side, design), alpha=0.05) for side in (scores, 1.0 - scores))
    assert (found.method, found.interval.low, found.interval.high) == (method, pytest.approx(low), pytest.approx(1.0 - lacking))
    assert found.interval.low < found.mean < found.interval.high
    plain = accuracy(scores, design) if scores.size > 1 else None
    if plain is not None:
        assert (found.mean, found.standard_error) == (pytest.approx(plain.mean), plain.standard_error)
        assert (found.successes, found.clusters) == (plain.successes, plain.clusters)
    assert (found.effective_n, found.one_sided) == (None, None)


def test_only_unequal_clusters_need_a_word_on_what_the_bound_takes_for_granted() -> None:
    even = Design(clusters=np.repeat(np.arange(9).astype(str), 10))
    assert accuracy(BINARY, even, method="clopper_pearson").caution is None
    assert "sizes say nothing" in (accuracy(BINARY, Design(clusters=LABELS), method="clopper_pearson").caution or "")


@pytest.mark.parametrize("design", [Design(strata=THREE), Design(pool={WHOLE: 120}), Design(strata=THREE, pool={"a": 40, "b": 60, "c": 80})])
def test_gaffke_s_bounds_of_fractional_scores_pass_over_strata_and_pools(design: Design) -> None:
    found, plain = (accuracy(FRACTIONAL, some, method="clopper_pearson") for some in (design, Design()))
    assert (found.method, found.interval) == ("gaffke", plain.interval)
    assert found.standard_error == accuracy(FRACTIONAL, design).standard_error


@pytest.mark.parametrize("scores", [BINARY, FRACTIONAL], ids=["right or wrong", "fractional"])
def test_questions_that_weigh_differently_get_gaffke_s_bounds_by_their_weights(scores: np.ndarray) -> None:
    found, plain = (accuracy(scores, WEIGHTED, method=method, level=0.9) for method in ("clopper_pearson", "wilson"))
    units = units_of(scores, WEIGHTED)
    assert (found.mean, found.standard_error) == (pytest.approx(plain.mean), plain.standard_error)
    assert (units.mean, units.made_up_size) == (pytest.approx(plain.mean), units.sizes.max())
    assert (found.method, found.interval.low) == ("gaffke_weighted", gaffke_bound(units, alpha=0.05))
    assert "weigh differently" in str(found.caution)
    assert (found.interval.low, found.interval.high) != (plain.interval.low, plain.interval.high)


def test_weights_that_are_all_alike_leave_clopper_and_pearson_s_bounds() -> None:
    shares = {name: float(np.sum(name == THREE)) for name in "abc"}
    found, plain = (accuracy(BINARY, design, method="clopper_pearson") for design in (Design(strata=THREE, shares=shares), Design()))
    assert (found.interval.low, found.interval.high) == pytest.approx((plain.interval.low, plain.interval.high))
    assert found.caution is None


def test_fractional_scores_of_a_pool_that_was_asked_to_the_last_keep_student_s_interval() -> None:
    design = Design(pool={WHOLE: 90})
    assert accuracy(FRACTIONAL, design, method="clopper_pearson") == accuracy(FRACTIONAL, design)


def test_clopper_pearson_passes_over_strata_that_weigh_as_many_questions_as_they_have() -> None:
    found, plain = (accuracy(BINARY, design, method="clopper_pearson") for design in (Design(strata=THREE), Design()))
    assert (found.method, found.interval, found.effective_n) == ("clopper_pearson", plain.interval, None)
    assert found.standard_error == accuracy(BINARY, Design(strata=THREE)).standard_error
    pools = {"a": 40, "b": 60, "c": 80}
    part = accuracy(BINARY, Design(strata=THREE, pool=pools), method="clopper_pearson")
    assert (part.method, part.interval) == ("clopper_pearson", plain.interval)
    assert part.standard_error == accuracy(BINARY, Design(strata=THREE, pool=pools)).standard_error < found.standard_error


@pytest.mark.parametrize("shares", [(0.5, 0.9), (0.1, 0.5, 0.9), (0.96, 1.0), (0.02, 0.98)])
@pytest.mark.parametrize("each", [5, 20, 60])
def test_clopper_pearson_s_bounds_miss_the_mean_of_unequal_chances_no_more_often_than_they_say(shares: tuple[float, ...], each: int) -> None:
    chances = np.ones(1)
    for share in shares:  # the number right over all strata, summed exactly
        chances = np.convolve(chances, stats.binom.pmf(np.arange(each + 1), each, share))
    n, truth, alpha = each * len(shares), float(np.mean(shares)), 0.025
    found = [clopper_pearson(k, n, level=1 - 2 * alpha) for k in range(n + 1)]
    assert chances[[interval.low > truth for interval in found]].sum() <= alpha
    assert chances[[interval.high < truth for interval in found]].sum() <= alpha


@pytest.mark.parametrize(("asked", "pool"), [(3, 7), (20, 30), (50, 400), (390, 400)])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_clopper_pearson_s_interval_of_a_part_of_a_pool_misses_either_side_at_most_as_often_as_it_says(asked: int, pool: int, level: float) -> None:
    counts = np.arange(asked + 1)
    found = [accuracy(np.repeat([1.0, 0.0], [k, asked - k]), Design(pool={WHOLE: pool}), method="clopper_pearson", level=level) for k in counts]
    assert {row.method for row in found} == {"clopper_pearson_pool"}
    low, high = (np.array([getattr(row.interval, side) for row in found]) for side in ("low", "high"))
    for right in range(pool + 1):
        chances = stats.hypergeom.pmf(counts, pool, right, asked)
        assert chances[low > right / pool + 1e-12].sum() <= (1 - level) / 2 + 1e-9
        assert chances[high < right / pool - 1e-12].sum() <= (1 - level) / 2 + 1e-9


@pytest.mark.parametrize("wrong", range(4))
@pytest.mark.parametrize("asked", [197, 198, 199])
def test_clopper_pearson_s_interval_of_nearly_all_of_a_pool_holds_the_share_of_those_asked(asked: int, wrong: int) -> None:
    # 2 wrong of 199 asked leave 2 or 3 wrong of 200 in the pool, and 3 are rejected: 198 of 200 alone is more than 197 of 199.
    found = pool_clopper_pearson(asked - wrong, questions=asked, pool=200)
    assert found.low <= (asked - wrong) / asked <= found.high


def test_clopper_pearson_s_interval_of_a_small_part_of_a_pool_is_the_binomial_one() -> None:
    found, plain = pool_clopper_pearson(30, questions=40, pool=1_000_000), clopper_pearson(30, 40)
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high), abs=1e-4)
