from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st

from evalspec.statistics.bootstrap import cluster_bootstrap, percentile_bootstrap
from evalspec.statistics.clustered_pairs import cluster_sign_flip, durkalski, obuchowski
from evalspec.statistics.clusters import bell_mccaffrey_freedom, clustered_interval, clustered_mean, clustered_wilson
from evalspec.statistics.differences import PairedCounts
from evalspec.statistics.mcnemar import mcnemar_asymptotic, mcnemar_exact
from evalspec.statistics.means import mean_score
from evalspec.statistics.permutations import reshuffle_exact, sign_flip, sign_flip_exact
from evalspec.statistics.proportions import wilson

SCORES = [1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1]
CLUSTERS = [0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 3, 3, 4]
labelled = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 6)), min_size=4, max_size=60).filter(
    lambda rows: len({row[2] for row in rows}) > 1
)


def test_corrections_rise_from_none_to_the_jackknife() -> None:
    errors = [clustered_mean(SCORES, CLUSTERS, correction=name).standard_error for name in ("CR0", "miller", "CR1", "CR2", "CR3")]
    assert errors == pytest.approx([0.1487, 0.1527, 0.1663, 0.1749, 0.1849], abs=5e-5)


def test_the_jackknife_correction_is_the_spread_of_means_without_each_cluster() -> None:
    values, labels = np.array(SCORES, dtype=float), np.array(CLUSTERS)
    left_out = np.array([values[labels != cluster].mean() for cluster in range(5)])
    error = np.sqrt(4 / 5 * np.sum((left_out - values.mean()) ** 2))
    assert clustered_mean(SCORES, CLUSTERS, correction="CR3").standard_error == pytest.approx(error)


def test_cr0_and_cr1_agree_with_statsmodels() -> None:
    fit = sm.OLS(np.array(SCORES, dtype=float), np.ones(15))
    for name, correct in (("CR0", False), ("CR1", True)):
        robust = fit.fit(cov_type="cluster", cov_kwds={"groups": np.array(CLUSTERS), "use_correction": correct})
        expected = float(robust.bse[0])
        # statsmodels multiplies by (n - 1) / (n - k) as well, which is 1 for a mean.
        assert clustered_mean(SCORES, CLUSTERS, correction=name).standard_error == pytest.approx(expected)


@given(labelled)
def test_questions_that_are_their_own_clusters_give_the_plain_standard_error(rows: list[tuple[int, int, int]]) -> None:
    scores = [row[0] for row in rows]
    plain = mean_score(scores)
    for name in ("CR1", "CR2", "miller"):
        clustered = clustered_mean(scores, range(len(scores)), correction=name)
        assert clustered.standard_error == pytest.approx(plain.standard_error, abs=1e-12)
    assert bell_mccaffrey_freedom([1] * len(scores)) == pytest.approx(len(scores) - 1)


@given(labelled, st.randoms(use_true_random=False))
def test_the_order_of_questions_and_the_names_of_clusters_do_not_matter(rows: list[tuple[int, int, int]], random: object) -> None:
    shuffled = sorted(rows, key=lambda _: random.random())  # type: ignore[attr-defined]
    straight = clustered_mean([row[0] for row in rows], [row[2] for row in rows])
    renamed = clustered_mean([row[0] for row in shuffled], [f"cluster {row[2]}" for row in shuffled])
    assert renamed.standard_error == pytest.approx(straight.standard_error, abs=1e-12)
    assert renamed.degrees_of_freedom == pytest.approx(straight.degrees_of_freedom)


@given(labelled)
def test_clustered_intervals_hold_their_estimate(rows: list[tuple[int, int, int]]) -> None:
    scores, labels = [row[0] for row in rows], [row[2] for row in rows]
    plain, proportion = clustered_interval(scores, labels), clustered_wilson(scores, labels)
    assert plain.low <= proportion.proportion + 1e-12
    assert plain.high >= proportion.proportion - 1e-12
    assert 0.0 <= proportion.interval.low <= proportion.proportion <= proportion.interval.high <= 1.0
    assert proportion.effective_n <= len(rows) + 1e-9


def test_a_cluster_counts_as_one_question_when_every_answer_is_right() -> None:
    proportion = clustered_wilson([1] * 40, [number // 4 for number in range(40)])
    assert proportion.effective_n == 10.0
    assert proportion.interval.high == 1.0
    assert proportion.interval.low < wilson(10, 10).low


@pytest.mark.parametrize(("clusters", "says"), [(9, "not calibrated"), (29, "fewer than 30"), (30, None)])
def test_few_clusters_come_with_a_caution(clusters: int, says: str | None) -> None:
    caution = clustered_mean(np.arange(clusters) % 2, range(clusters)).caution
    assert caution is None if says is None else says in (caution or "")


@pytest.mark.parametrize(("labels", "says"), [([1, 1, 1], "at least 2 clusters"), ([1, float("nan"), 2], "position 1"), ([1, 2], "2 labels for 3")])
def test_clusters_that_do_not_fit_are_refused(labels: list[float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        clustered_mean([1, 0, 1], labels)


@pytest.mark.parametrize("sizes", [(5, 5, 5, 5), (1, 2, 3, 4), (50, 10, 5, 5, 1), (200, *(1,) * 60)])
def test_bell_mccaffrey_freedom_is_that_of_the_whole_matrices(sizes: tuple[int, ...]) -> None:
    # Bell and McCaffrey (2002), equation 2.2 ff.: the variance is sum_g (p_g' e)^2, a mixture of chi-squares with the eigenvalues of P' P.
    labels = np.repeat(np.arange(len(sizes)), sizes)
    residual = np.eye(labels.size) - 1.0 / labels.size
    parts = []
    for cluster in range(len(sizes)):
        inside = labels == cluster
        eigenvalues, vectors = np.linalg.eigh(residual[np.ix_(inside, inside)])
        adjusted = (vectors / np.sqrt(eigenvalues)) @ vectors.T
        parts.append(residual[:, inside] @ adjusted @ np.ones(inside.sum()))
    eigenvalues = np.linalg.eigvalsh(np.array(parts) @ np.array(parts).T)
    assert bell_mccaffrey_freedom(sizes) == pytest.approx(eigenvalues.sum() ** 2 / np.sum(eigenvalues**2))


def test_clusters_of_very_different_sizes_are_cautioned_about_for_what_they_are_worth() -> None:
    even, uneven = np.arange(400) // 10, np.minimum(np.arange(400) // 5, 39)
    assert clustered_mean(np.arange(400) % 2, even).caution is None
    assert str(clustered_mean(np.arange(400) % 2, uneven).caution).startswith("40 clusters of sizes so different that they are worth about 5 ")


def test_bell_mccaffrey_needs_two_clusters() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        bell_mccaffrey_freedom([5])


@given(labelled)
def test_with_single_questions_both_clustered_tests_come_back_to_mcnemar(rows: list[tuple[int, int, int]]) -> None:
    first, second = [row[0] for row in rows], [row[1] for row in rows]
    plain = mcnemar_asymptotic(PairedCounts.from_scores(first, second)).statistic
    count = len(rows)
    assert durkalski(first, second, range(count)).statistic == pytest.approx(plain)
    assert obuchowski(first, second, range(count)).statistic == pytest.approx(plain * (count - 1) / count)


def test_doubling_every_question_within_its_cluster_adds_no_evidence() -> None:
    rng = np.random.default_rng(4)
    first, second = rng.integers(0, 2, (2, 60))
    labels = np.arange(60)
    for test in (durkalski, obuchowski):
        once = test(first, second, labels).statistic
        twice = test(np.repeat(first, 2), np.repeat(second, 2), np.repeat(labels, 2)).statistic
        assert twice == pytest.approx(once)
    alone = mcnemar_asymptotic(PairedCounts.from_scores(np.repeat(first, 2), np.repeat(second, 2))).statistic
    assert alone == pytest.approx(2 * durkalski(first, second, labels).statistic)


def test_clustered_tests_refuse_what_they_cannot_use() -> None:
    with pytest.raises(ValueError, match="at least 2 clusters"):
        durkalski([1, 0], [0, 1], ["a", "a"])
    with pytest.raises(ValueError, match="one length"):
        obuchowski([1, 0], [0, 1, 1], ["a", "b"])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-2, 2).map(float), min_size=1, max_size=9))
def test_random_sign_flips_come_near_the_exact_p_value(differences: list[float]) -> None:
    exact = sign_flip_exact(differences)
    estimate = sign_flip(differences, draws=4000, rng=np.random.default_rng(1))
    assert 0.0 < estimate.p_value <= 1.0
    # Five Monte Carlo standard errors, and the "plus one" of the estimate.
    assert estimate.p_value == pytest.approx(exact, abs=5 * estimate.standard_error + 1e-3)


def test_flipping_clusters_is_flipping_their_sums() -> None:
    p_value = cluster_sign_flip([1, 1, 2, -1, 1], ["a", "a", "b", "b", "c"], draws=8000, rng=np.random.default_rng(1)).p_value
    assert p_value == pytest.approx(sign_flip_exact([2, 1, 1]), abs=0.02)


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=12), st.sampled_from([1, 8, 3]))
def test_counting_sums_is_enumerating_all_signs(wholes: list[int], parts: int) -> None:
    differences = np.array(wholes) / parts
    signs = np.array(list(product([-1, 1], repeat=len(wholes))))
    expected = np.mean(np.abs(signs @ np.array(wholes)) >= abs(sum(wholes)))
    assert sign_flip_exact(differences) == pytest.approx(float(expected))


@pytest.mark.parametrize(("won", "lost"), [(60, 40), (300, 100), (1500, 10), (3, 3)])
def test_flipping_single_questions_is_mcnemar_s_exact_test(won: int, lost: int) -> None:
    flipped = sign_flip_exact(np.repeat([1.0, -1.0, 0.0], [won, lost, 50]))
    assert flipped == pytest.approx(mcnemar_exact(PairedCounts(25, won, lost, 25)).p_value, rel=1e-9)
    assert flipped > 0.0


def test_what_cannot_be_enumerated_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 20"):
        sign_flip_exact(np.linspace(0.1, 1.0, 21) ** 0.5)
    with pytest.raises(ValueError, match="arrangements"):
        reshuffle_exact(np.arange(20.0), np.arange(20.0))


def test_bootstrap_limits_approach_binomial_quantiles() -> None:
    limits = percentile_bootstrap([1] * 36 + [0] * 4, draws=20_000, rng=np.random.default_rng(1)).interval
    assert (limits.low, limits.high) == pytest.approx((0.8, 0.975), abs=0.0251)  # one step of 1/40


def test_redrawing_clusters_widens_the_interval_of_clustered_scores() -> None:
    scores, labels = np.repeat(np.arange(40) % 2, 5), np.repeat(np.arange(40), 5)
    rng = np.random.default_rng(1)
    clustered = cluster_bootstrap(scores, labels, draws=2000, rng=rng)
    plain = percentile_bootstrap(scores, draws=2000, rng=rng)
    assert clustered.caution is None
    assert clustered.interval.high - clustered.interval.low > 1.8 * (plain.interval.high - plain.interval.low)
    with pytest.raises(ValueError, match="at least 2 clusters"):
        cluster_bootstrap([1, 0], ["a", "a"], draws=99, rng=rng)
