from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evalspec.statistics.arguments import two_sided_t
from evalspec.statistics.bounded_means import betting_interval
from evalspec.statistics.finite_pools import finite_correction, subsample_deviation
from evalspec.statistics.means import bernoulli_standard_error, mean_interval, mean_score, paired_mean, t_test
from evalspec.statistics.missing import complete_pairs, fill_missing
from evalspec.statistics.proportions import wilson
from evalspec.statistics.repeats import (
    VarianceSplit,
    best_of_k_with_replacement,
    pass_at_k,
    question_means,
    repeated_variance,
    variance_split,
)
from evalspec.statistics.strata import combined_standard_error, stratified_mean

scores_list = st.lists(st.floats(0.0, 1.0).map(lambda x: round(x, 6)), min_size=3, max_size=40)
ALTERNATING = [1, 0] * 2000
TEN = [1, 1, 0, 1, 0, 0, 1, 1, 0, 1]


def test_a_macro_mean_of_a_large_and_a_small_subject_has_the_small_ones_error() -> None:
    labels = ["large"] * 4000 + ["small"] * 10
    macro = stratified_mean(ALTERNATING + TEN, labels, weights="macro")
    micro = stratified_mean(ALTERNATING + TEN, labels)
    assert macro.standard_error == pytest.approx(0.08175, abs=5e-6)
    assert micro.standard_error == pytest.approx(0.00790, abs=5e-6)
    assert macro.mean == pytest.approx(0.55)
    assert micro.mean == pytest.approx(2006 / 4010)


@pytest.mark.parametrize(
    ("correct", "questions", "error"),
    [(14, 307, 0.011926), (2, 123, 0.011450), (2, 132, 0.010673), (5, 280, 0.007929), (8, 154, 0.017941), (8, 193, 0.014385), (263, 307, 0.020031)],
)
def test_the_standard_error_of_a_low_accuracy_is_never_0(correct: int, questions: int, error: float) -> None:
    assert mean_score([1] * correct + [0] * (questions - correct)).standard_error == pytest.approx(error, abs=5e-7)


@given(scores_list)
def test_the_interval_holds_its_mean_and_agrees_with_scipy(scores: list[float]) -> None:
    limits = mean_interval(scores)
    assert limits.low <= np.mean(scores) + 1e-12
    assert limits.high >= np.mean(scores) - 1e-12
    if np.ptp(scores) > 1e-3:
        oracle = stats.t.interval(0.95, len(scores) - 1, np.mean(scores), stats.sem(scores))
        assert (limits.low, limits.high) == pytest.approx(oracle, abs=1e-9)


def test_the_paired_t_test_agrees_with_scipy() -> None:
    first, second = np.random.default_rng(2).random((2, 30))
    test, oracle = t_test(first - second), stats.ttest_rel(first, second)
    assert (test.statistic, test.p_value) == pytest.approx((oracle.statistic, oracle.pvalue))


def test_pairing_gives_the_error_that_the_correlation_promises() -> None:
    first, second = np.random.default_rng(2).random((2, 30))
    pair = paired_mean(first, second)
    a, b = mean_score(first).standard_error, mean_score(second).standard_error
    assert pair.correlation is not None
    assert pair.standard_error**2 == pytest.approx(a * a + b * b - 2 * pair.correlation * a * b)
    assert paired_mean([1, 1], [0, 1]).correlation is None


def test_differences_without_spread_are_level_or_refused() -> None:
    assert t_test([0.0, 0.0, 0.0]).p_value == 1.0
    with pytest.raises(ValueError, match="some spread"):
        t_test([0.5, 0.5])


def test_what_has_no_standard_error_is_refused() -> None:
    with pytest.raises(ValueError, match=r"proportion must lie in \[0, 1\]"):
        bernoulli_standard_error(1.2, 5)
    with pytest.raises(ValueError, match="repeats"):
        repeated_variance(VarianceSplit(0.1, 0.1), 0.5)
    with pytest.raises(ValueError, match="must be numbers"):
        mean_score(["a", "b"])
    with pytest.raises(ValueError, match="one-dimensional"):
        mean_score([[1, 0]])
    with pytest.raises(ValueError, match="degrees_of_freedom"):
        two_sided_t(0.95, 0.0)


def test_lengths_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        paired_mean([1, 0], [1, 0, 1])
    with pytest.raises(ValueError, match="one length"):
        complete_pairs([1, 0], [1, 0, 1])
    with pytest.raises(ValueError, match="none of 1 question"):
        complete_pairs([None], [1])


def test_stratified_means_agree_with_weighted_least_squares_on_equal_strata() -> None:
    scores = np.random.default_rng(5).random(12)
    mean = stratified_mean(scores, np.repeat(["x", "y"], 6).tolist(), weights="macro")
    fit = sm.OLS(scores, np.repeat(np.eye(2), 6, axis=0)).fit(cov_type="HC2")
    variance = np.array([0.5, 0.5]) @ fit.cov_params() @ np.array([0.5, 0.5])
    assert mean.standard_error == pytest.approx(math.sqrt(variance))


def test_population_shares_weight_an_equal_sample_back() -> None:
    mean = stratified_mean([1, 1, 0, 0], ["x", "x", "y", "y"], weights={"x": 9, "y": 1})
    assert (mean.mean, mean.weights) == (pytest.approx(0.9), (0.9, 0.1))


@pytest.mark.parametrize(
    ("labels", "weights", "says"),
    [
        (["x", "x", "y"], "macro", "'y' has 1 question"),
        (["x", "x", None], "macro", "position 2 is missing"),
        (["x", "x"], "macro", "2 labels for 3"),
        (["x", "x", "x"], {"y": 1.0}, "exactly the strata"),
        (["x", "x", "x"], {"x": -1.0}, "not be negative"),
    ],
)
def test_strata_that_do_not_fit_are_refused(labels: list[str], weights: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        stratified_mean([1, 0, 1], labels, weights=weights)  # type: ignore[arg-type]


@pytest.mark.parametrize(("errors", "weights"), [([0.1], [1, 1]), ([0.1, 0.1], [0, 0]), ([0.1, 0.1], [-1, 2])])
def test_errors_and_weights_that_do_not_fit_are_refused(errors: list[float], weights: list[float]) -> None:
    with pytest.raises(ValueError, match="weight"):
        combined_standard_error(errors, weights)


def test_repeats_split_the_variance_of_a_uniform_model() -> None:
    rng = np.random.default_rng(7)
    answers = rng.random((40_000, 4)) < rng.random((40_000, 1))
    split = variance_split(answers.astype(float))
    # Expected 1/12 and 1/6; 40,000 questions put the standard errors near 0.0006.
    assert split.between == pytest.approx(1 / 12, abs=0.003)
    assert split.within == pytest.approx(1 / 6, abs=0.003)


def test_one_question_that_always_fails_shows_beside_a_mean_of_98_percent() -> None:
    answers = np.ones((50, 10))
    answers[7] = 0.0
    means = question_means(answers)
    assert means.min() == 0.0
    assert means.mean() == pytest.approx(0.98)
    assert mean_score(means).questions == 50


@pytest.mark.parametrize("shape", [(3,), (3, 1), (1, 3)])
def test_a_variance_split_needs_two_questions_and_two_answers(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="at least 2"):
        variance_split(np.ones(shape))


@given(st.integers(1, 30), st.data())
def test_pass_at_k_lies_above_its_biased_relative_and_rises_with_k(samples: int, data: st.DataObject) -> None:
    correct = data.draw(st.integers(0, samples))
    values = [float(pass_at_k(samples, correct, k)) for k in range(1, samples + 1)]
    assert values == sorted(values)
    assert values[0] == pytest.approx(correct / samples)
    k = data.draw(st.integers(1, samples))
    assert values[k - 1] >= float(best_of_k_with_replacement(samples, correct, k)) - 1e-12


@pytest.mark.parametrize(("samples", "correct"), [(0, 0), (3, 4)])
def test_impossible_sample_counts_are_refused(samples: int, correct: int) -> None:
    with pytest.raises(ValueError, match="samples"):
        pass_at_k(samples, correct, 1)


def test_asking_the_whole_pool_leaves_no_error() -> None:
    assert finite_correction(50, 50) == 0.0
    assert subsample_deviation([1, 0, 1, 1], 4) == 0.0
    with pytest.raises(ValueError, match="pool"):
        finite_correction(51, 50)
    with pytest.raises(ValueError, match="size"):
        subsample_deviation([1, 0], 3)


def test_missing_scores_are_filled_as_declared_and_counted() -> None:
    filled = fill_missing([1.0, float("nan"), 0.0], 0.0)
    assert (filled.scores.tolist(), filled.filled) == ([1.0, 0.0, 0.0], 1)
    with pytest.raises(ValueError, match="value"):
        fill_missing([1.0], 2.0)


@given(scores_list)
def test_the_betting_interval_holds_the_mean_of_steady_scores(scores: list[float]) -> None:
    limits = betting_interval(scores)
    assert 0.0 <= limits.low <= limits.high <= 1.0


def test_the_betting_interval_covers_and_is_shorter_than_hoeffdings() -> None:
    rng = np.random.default_rng(11)
    hoeffding = math.sqrt(math.log(2 / 0.05) / (2 * 300))
    intervals = [betting_interval(rng.beta(10, 30, 300)) for _ in range(100)]
    covered = sum(limits.low <= 0.25 <= limits.high for limits in intervals)
    assert covered >= wilson(95, 100, level=0.999).low * 100
    assert np.mean([limits.high - limits.low for limits in intervals]) < 2 * hoeffding


def test_the_betting_interval_refuses_scores_outside_0_to_1() -> None:
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        betting_interval([0.5, 1.5])
