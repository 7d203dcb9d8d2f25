from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evalspec.statistics.accuracies import accuracy
from evalspec.statistics.clusters import clustered_interval, clustered_wilson
from evalspec.statistics.designs import WHOLE, Design, about_spread, design_mean, level_of
from evalspec.statistics.finite_pools import finite_correction
from evalspec.statistics.max_t import pair_statistics
from evalspec.statistics.means import mean_score, paired_mean
from evalspec.statistics.one_sided import mean_above
from evalspec.statistics.paired_designs import design_difference
from evalspec.statistics.proportions import Interval, clopper_pearson, effective_limits, jeffreys, wilson
from evalspec.statistics.strata import stratified_mean
from evalspec.statistics.unpaired import separate_means_test

RNG = np.random.default_rng(20)
BINARY = (RNG.random(90) < 0.7).astype(np.float64)
FRACTIONAL = RNG.random(90)
THREE = np.array(["a"] * 20 + ["b"] * 30 + ["c"] * 40)


@pytest.mark.parametrize(("method", "plain"), [("wilson", wilson), ("clopper_pearson", clopper_pearson), ("jeffreys", jeffreys)])
@pytest.mark.parametrize("right", [0, 3, 9, 10])
def test_independent_answers_get_the_plain_interval(method: str, plain: object, right: int) -> None:
    found = accuracy(np.array([1.0] * right + [0.0] * (10 - right)), Design(), method=method)
    expected = plain(right, 10)
    assert (found.interval.low, found.interval.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert (found.method, found.successes, found.effective_n) == (method, right, None)


def test_no_standard_error_is_ever_zero() -> None:
    assert accuracy(np.ones(10), Design()).standard_error is None
    assert accuracy(np.zeros(10), Design()).standard_error is None


@pytest.mark.parametrize("weights", ["micro", "macro"])
def test_strata_have_the_textbook_standard_error(weights: str) -> None:
    shares = dict.fromkeys("abc", 1.0) if weights == "macro" else None
    expected = stratified_mean(FRACTIONAL, THREE.tolist(), weights=weights)
    found = design_mean(FRACTIONAL, Design(strata=THREE, shares=shares))
    assert (found.mean, found.standard_error) == pytest.approx((expected.mean, expected.standard_error), rel=1e-12)


def test_one_stratum_is_worth_as_many_questions_as_it_has() -> None:
    assert accuracy(BINARY, Design(strata=np.full(90, "a"))).effective_n == pytest.approx(90)


def test_strata_in_which_all_answers_are_alike_do_not_promise_certainty() -> None:
    scores, labels = np.array([1.0] * 50 + [0.0] * 50), np.array(["a"] * 50 + ["b"] * 50)
    found = accuracy(scores, Design(strata=labels))
    assert found.standard_error is None
    assert found.interval.high - found.interval.low > 0.02


DESIGNS = {
    "independent": Design(),
    "strata": Design(strata=np.array(list("aabbcc"))),
    "clusters": Design(clusters=np.array(list("aabbcc"))),
    "cluster means": Design(clusters=np.array(list("aabbcc")), by_cluster=True),
}


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS.keys())
@pytest.mark.parametrize("score", [0.1, 0.7, 1 / 3])
def test_what_rounding_makes_of_equal_scores_is_no_spread(design: Design, score: float) -> None:
    found = accuracy(np.full(6, score), design)
    assert (found.interval, found.standard_error) == (None, None)
    assert mean_score(np.full(6, score)).standard_error == 0.0


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS.keys())
def test_differences_that_only_rounding_tells_apart_pass_no_limit(design: Design) -> None:
    first = np.array([0.9, 0.4, 0.6, 0.8, 0.3, 0.7])
    differences = first - np.array([0.8, 0.3, 0.5, 0.7, 0.2, 0.6])
    assert np.ptp(differences) > 0.0
    with pytest.raises(ValueError, match="equal"):
        mean_above(differences, design, -0.02)
    rng = np.random.default_rng(1)
    if design.clusters is not None and not design.by_cluster:
        assert design_difference(first, first - differences, design, rng=rng).p_value == 2 / 2**3  # signs need no spread
    else:
        with pytest.raises(ValueError, match="without any spread"):
            design_difference(first, first - differences, design, rng=rng)
    assert paired_mean(np.full(6, 0.1), first).correlation is None


def test_clusters_whose_means_are_all_alike_show_no_spread_between_them() -> None:
    differences = np.tile([1.0, 0.0, 0.0], 5)
    clusters = np.repeat(list("abcde"), 3)
    with pytest.raises(ValueError, match="equal"):
        mean_above(differences, Design(clusters=clusters), 0.0)
    assert pair_statistics(np.stack([differences, np.zeros(15)]), [(0, 1)], clusters=clusters.tolist()).errors.tolist() == [0.0]


@pytest.mark.parametrize("strata", [49, 50, 57])
@pytest.mark.parametrize("right", [0.0, 1.0])
def test_answers_that_are_all_alike_have_just_their_mean_in_strata_whose_shares_do_not_sum_to_one(strata: int, right: float) -> None:
    labels = np.repeat([f"s{place}" for place in range(strata)], 2)
    assert stratified_mean(np.full(labels.size, right), labels.tolist()).mean == right
    found = accuracy(np.full(labels.size, right), Design(strata=labels), method="clopper_pearson")
    assert found.mean == right
    assert (found.interval.high == 1.0, found.interval.low == 0.0) == (right == 1.0, right == 0.0)


def test_strata_cover_as_often_as_they_say() -> None:
    rng, truth = np.random.default_rng(4), np.array([0.95, 0.7, 0.4, 0.85])
    labels, held = np.repeat(np.array(list("abcd")), 25), 0
    for _ in range(600):
        interval = accuracy((rng.random(100) < np.repeat(truth, 25)).astype(np.float64), Design(strata=labels)).interval
        held += interval.low <= truth.mean() <= interval.high
    assert held / 600 > 0.93  # 0.95 less two Monte Carlo standard errors


def test_clusters_follow_the_functions_for_clusters() -> None:
    labels = np.array([f"c{index % 31}" for index in range(90)])
    binary, fractional = accuracy(BINARY, Design(clusters=labels)), accuracy(FRACTIONAL, Design(clusters=labels))
    share, interval = clustered_wilson(BINARY, labels.tolist()), clustered_interval(FRACTIONAL, labels.tolist())
    assert (binary.interval, binary.effective_n, binary.clusters) == (share.interval, share.effective_n, 31)
    assert (fractional.interval.low, fractional.interval.high) == pytest.approx((interval.low, interval.high))
    eased = accuracy(BINARY, Design(clusters=labels), method="jeffreys")
    assert eased.interval == effective_limits(share.proportion, share.effective_n, method="jeffreys", degrees_of_freedom=30.0)


def test_clusters_that_count_alike_are_a_sample_of_their_means() -> None:
    means = [BINARY[name == THREE].mean() for name in "abc"]
    found = accuracy(BINARY, Design(clusters=THREE, by_cluster=True))
    low, high = stats.t.interval(0.95, 2, loc=np.mean(means), scale=np.std(means, ddof=1) / np.sqrt(3))
    assert found.mean == pytest.approx(np.mean(means))
    assert (found.interval.low, found.interval.high) == pytest.approx((max(low, 0.0), min(high, 1.0)))


def test_a_pool_corrects_every_kind_of_interval() -> None:
    plain, pooled = design_mean(FRACTIONAL, Design()), design_mean(FRACTIONAL, Design(pool={WHOLE: 120}))
    assert pooled.standard_error == pytest.approx(plain.standard_error * finite_correction(90, 120))
    strata = design_mean(FRACTIONAL, Design(strata=THREE, pool={"a": 40, "b": 60, "c": 80}))
    assert strata.standard_error == pytest.approx(design_mean(FRACTIONAL, Design(strata=THREE)).standard_error * finite_correction(1, 2))


def test_the_order_of_questions_does_not_matter() -> None:
    order = np.random.default_rng(9).permutation(90)
    for design in (Design(strata=THREE), Design(clusters=THREE)):
        one = accuracy(FRACTIONAL, design)
        turned = Design(strata=None if design.strata is None else THREE[order], clusters=None if design.clusters is None else THREE[order])
        other = accuracy(FRACTIONAL[order], turned)
        assert (other.mean, other.standard_error) == pytest.approx((one.mean, one.standard_error))


@pytest.mark.parametrize(
    ("scores", "design", "reason"),
    [
        ([], Design(), "at least 1"),
        ([0.5], Design(), "single question"),
        ([1, 0], Design(clusters=np.array(["a", "a"])), "at least 2 clusters"),
        ([1, 0], Design(clusters=np.array(["a", "a"]), by_cluster=True), "at least 2 clusters"),
        ([1, 0, 1], Design(strata=np.array(["a", "a", "b"]), shares={"a": 1, "b": 1}), "single scored question"),
        ([1, 0], Design(strata=np.array(["a", "a"]), shares={"a": 1, "b": 1}), "no scored question"),
        ([float("nan")], Design(), "missing"),
    ],
)
def test_what_is_undefined_is_refused_with_the_reason(scores: list[float], design: Design, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        accuracy(np.array(scores, dtype=np.float64), design)


def test_two_separate_means_are_tested_like_scipy_does() -> None:
    one, other = FRACTIONAL[:30], FRACTIONAL[30:]
    expected = stats.ttest_ind(one, other, equal_var=False)
    found = separate_means_test(design_mean(one, Design()), design_mean(other, Design()))
    assert (found.statistic, found.p_value) == pytest.approx((expected.statistic, expected.pvalue))


def test_a_level_and_its_critical_value_are_two_names_of_one_thing() -> None:
    assert level_of(stats.norm.ppf(0.995)) == pytest.approx(0.99)


TWO = np.array(["art", "law", "law", "law", "art"])


@pytest.mark.parametrize("method", ["wilson", "jeffreys", "clopper_pearson"])
@pytest.mark.parametrize(
    ("design", "mean"),
    [
        (Design(pool={WHOLE: 5}), 0.8),
        (Design(strata=TWO, pool={"law": 3, "art": 2}), 0.8),
        (Design(strata=TWO, pool={"law": 3, "art": 2}, shares={"law": 1.0, "art": 1.0}), 0.75),
    ],
    ids=["pool", "strata", "weighted strata"],
)
def test_a_part_of_a_pool_that_was_asked_whole_has_no_uncertainty(design: Design, mean: float, method: str) -> None:
    found = accuracy(np.array([0.0, 1.0, 1.0, 1.0, 1.0]), design, method=method)
    assert (found.mean, found.interval) == (pytest.approx(mean), Interval(found.mean, found.mean))
    assert found.standard_error is None
    assert "nothing is uncertain" in (found.caution or "")


CLUSTERS = np.repeat([f"c{place:02}" for place in range(40)], 3)


@pytest.mark.parametrize(
    ("apart", "design", "says"),
    [
        (1, Design(), "1 of 120 questions has another score than all others"),
        (9, Design(), "9 of 120 questions have another score than the others, which all have the same"),
        (9, Design(clusters=CLUSTERS), "9 of 40 clusters have another score than the others, which all have the same"),
        (9, Design(clusters=CLUSTERS, by_cluster=True), "9 of 40 clusters have another score"),
        (9, Design(strata=np.repeat(["x", "y"], 60)), "9 of 120 questions have another score"),
    ],
)
def test_a_spread_that_few_questions_or_clusters_make_is_cautioned_about(apart: int, design: Design, says: str) -> None:
    scores = np.zeros(120)
    scores[: 3 * apart : 3] = 0.7 - 0.4
    assert says in str(about_spread(design_mean(scores, design)))
    scores[:30:3] = 0.7 - 0.4
    assert about_spread(design_mean(scores, design)) is None


def test_scores_that_are_all_different_are_not_taken_for_a_few_that_differ() -> None:
    assert about_spread(design_mean(np.linspace(0.0, 1.0, 8), Design())) == "8 questions: fewer than 30, so the mean may not be nearly normal"
