from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from evalspec.analyses.designs import NEEDS_SUBJECTS
from evalspec.analyses.intervals import ANALYSIS, NO_ANSWERS, compute, estimates
from evalspec.analyses.intervals_results import IntervalsOptions, IntervalsResult
from evalspec.analyses.sources import CLOPPER_PEARSON
from evalspec.artifacts.protocol import Pool
from evalspec.artifacts.responses import BenchmarkResponses, Responses
from evalspec.protocols import Context
from evalspec.statistics.clusters import clustered_interval
from evalspec.statistics.designs import LONELY
from evalspec.testing import check_analysis, sample_responses

from .tables import rendered, responses_of


def result_for(
    scores: list[list[float]] | np.ndarray,
    *,
    missing: str = "wrong",
    weights: list[float] | None = None,
    changes: dict[str, object] | None = None,
    **options: object,
) -> IntervalsResult:
    array = np.array(scores, dtype=np.float64)
    array = array[:, :, None] if array.ndim == 2 else array
    n = array.shape[1]
    benchmark = BenchmarkResponses(
        benchmark="b",
        models=tuple(f"m{index}" for index in range(len(scores))),
        questions=tuple(f"q{index}" for index in range(n)),
        subjects=tuple("even" if index % 2 == 0 else "odd" for index in range(n)),
        weights=np.array(weights or [1.0] * n),
        scores=array,
        reasons=np.isnan(array).astype(np.int8) * 2,
        choices=np.full(array.shape, -1, dtype=np.int16),
        logprobs=None,
        missing=missing,
        strata=False,
    )
    benchmark = replace(benchmark, **(changes or {}))
    responses = Responses(benchmarks=(benchmark,), origins=(), protocol_sha256="0" * 64)
    return compute(responses, IntervalsOptions(kind="intervals", **options), Context(rng=np.random.default_rng(0)))


@pytest.mark.parametrize(("method", "peer"), [("wilson", "wilson"), ("clopper_pearson", "beta")])
@pytest.mark.parametrize("right", [0, 1, 7, 39, 40])
def test_an_interval_equals_statsmodels(method: str, peer: str, right: int) -> None:
    row = result_for([[1.0] * right + [0.0] * (40 - right)], method=method).rows[0]
    low, high = proportion_confint(right, 40, alpha=0.05, method=peer)
    assert (row.low, row.high) == pytest.approx((low, high), abs=1e-12)  # both compute in double precision
    assert (row.successes, row.n, row.value) == (right, 40, right / 40)


@pytest.mark.parametrize("method", ["wilson", "clopper_pearson", "jeffreys"])
def test_none_or_all_right_has_the_exact_one_sided_bound_beside_the_interval(method: str) -> None:
    none, every, some = result_for([[0.0] * 40, [1.0] * 40, [1.0] * 39 + [0.0]], method=method, level=0.9).rows
    assert none.one_sided == pytest.approx(1 - 0.1 ** (1 / 40), abs=1e-14)
    assert none.one_sided == pytest.approx(stats.binomtest(0, 40, alternative="less").proportion_ci(0.9, "exact").high, abs=1e-12)
    assert every.one_sided == pytest.approx(0.1 ** (1 / 40), abs=1e-14)
    assert some.one_sided is None
    assert CLOPPER_PEARSON in ANALYSIS.sources_used(result_for([[0.0] * 4]))


def test_an_extreme_count_has_no_one_sided_bound_where_questions_are_no_independent_draws() -> None:
    pooled = result_for([[1.0] * 6], changes={"pool": Pool(size=60, subjects={"even": 30, "odd": 30}), "sample": "simple"}).rows[0]
    stratified = result_for([[1.0] * 6], changes={"strata": True}).rows
    clustered = result_for([[1.0] * 6], changes={"clusters": ("a", "a", "b", "b", "c", "c")}).rows[0]
    assert [row.one_sided is None for row in (pooled, clustered, stratified[0])] == [True, True, True]
    assert stratified[1].one_sided == pytest.approx(0.05 ** (1 / 3))  # one subject by itself is an independent draw


def test_the_report_says_the_one_sided_bound_in_a_sentence() -> None:
    words = rendered(ANALYSIS, responses_of([[0.0] * 40, [1.0] * 40, [1.0] * 20 + [0.0] * 20]), {"kind": "intervals"})
    assert "m0 , b: 0 of 40 questions are answered correctly. Taken by itself, the true share is at most 7.2 % : the exact one-sided bound" in words
    assert "m1 , b: 40 of 40 questions are answered correctly. Taken by itself, the true share is at least 92.8 %" in words
    assert "20 of 40 answers" not in words
    assert "± 0.0" not in words


def test_every_stratum_has_its_own_row_on_its_own_questions() -> None:
    rows = result_for([[1, 0, 1, 0, 1, 1]], changes={"strata": True}).rows
    assert [(row.subject, row.successes, row.n) for row in rows] == [(None, 4, 6), ("even", 3, 3), ("odd", 1, 3)]


def test_a_missing_score_counts_as_wrong_or_is_dropped_as_declared() -> None:
    scores = [[1, float("nan"), 1, 0]]
    assert (result_for(scores).rows[0].successes, result_for(scores).rows[0].n) == (2, 4)
    dropped = result_for(scores, missing="complete_case").rows[0]
    assert (dropped.successes, dropped.n) == (2, 3)


def test_fractional_scores_get_student_s_interval_and_say_so() -> None:
    scores = np.random.default_rng(3).random(40)
    row = result_for([scores.tolist()]).rows[0]
    error = scores.std(ddof=1) / np.sqrt(40)
    spread = stats.t.ppf(0.975, 39) * error
    assert (row.value, row.low, row.high) == pytest.approx((scores.mean(), scores.mean() - spread, scores.mean() + spread))
    assert (row.method, row.successes, row.caution) == ("t", None, None)
    assert row.standard_error == pytest.approx(error)
    assert "fewer than 30" in str(result_for([[0.5, 1, 0, 0.25]]).rows[0].caution)


def test_a_row_without_answers_is_refused_with_a_reason() -> None:
    nothing = result_for([[float("nan")] * 4], missing="complete_case").rows[0]
    assert (nothing.value, nothing.undefined) == (None, NO_ANSWERS)


def test_equal_fractional_scores_have_a_value_and_no_interval_of_width_zero() -> None:
    row = result_for([[0.5] * 40]).rows[0]
    assert (row.value, row.low, row.standard_error) == (0.5, None, None)
    assert row.caution is not None


def test_repeats_are_averaged_within_the_question_before_anything_else() -> None:
    repeated = (np.random.default_rng(5).random((1, 60, 10)) < 0.7).astype(np.float64)
    row = result_for(repeated).rows[0]
    means = repeated[0].mean(axis=1)
    assert row.n == 60
    assert row.standard_error == pytest.approx(means.std(ddof=1) / np.sqrt(60))
    assert row.method == "t"


@pytest.mark.parametrize("sample", ["all", "stratified", "ids"])
def test_strata_of_fixed_size_shorten_the_interval_of_the_whole(sample: str) -> None:
    scores = [[1.0] * 45 + [0.0] * 5 + [0.0] * 45 + [1.0] * 5]
    subjects = {"subjects": ("law",) * 50 + ("art",) * 50}
    plain = result_for(scores, changes=subjects).rows[0]
    row = result_for(scores, changes={**subjects, "strata": True, "sample": sample}).rows[0]
    assert row.standard_error == pytest.approx(np.sqrt(2 * 0.25 * (0.09 * 50 / 49) / 50))  # sum of w^2 s^2 / n over the two strata
    assert (plain.method, row.method) == ("wilson", "wilson_stratified")
    assert (row.effective_n or 0) > 200
    assert row.high - row.low < plain.high - plain.low
    drawn = result_for(scores, changes={**subjects, "strata": True, "sample": "simple"}).rows[0]
    assert (drawn.low, drawn.high, drawn.method) == (plain.low, plain.high, "wilson")  # how many of each were drawn is chance there


def test_an_average_over_subjects_stands_beside_the_one_over_questions_and_is_the_estimate() -> None:
    subjects = {"subjects": ("law",) * 30 + ("art",) * 10, "strata": True}
    result = result_for([[1.0] * 27 + [0.0] * 3 + [1.0] * 5 + [0.0] * 5], changes=subjects, average="macro")
    by_average = {row.average: row.value for row in result.rows if row.subject is None}
    assert by_average == {"macro": pytest.approx(0.7), "micro": pytest.approx(0.8)}
    overall = [one for one in estimates(result) if one.subject is None]
    assert [(one.metric, one.value) for one in overall] == [("accuracy", pytest.approx(0.7))]
    assert "average over subjects" in overall[0].method
    assert result_for([[1.0, 0.0]], average="macro").rows[0].undefined == NEEDS_SUBJECTS


@pytest.mark.parametrize("method", ["wilson", "clopper_pearson"])
def test_an_average_over_the_subjects_of_a_pool_is_refused_where_the_sample_has_none_of_one(method: str) -> None:
    pool = Pool(size=1010, subjects={"law": 1000, "art": 10})
    drawn = {"subjects": ("law",) * 50, "strata": True, "sample": "simple", "pool": pool}
    macro, micro, law = result_for([[1.0] * 50], changes=drawn, average="macro", method=method).rows
    assert (macro.average, macro.value) == ("macro", None)
    assert macro.undefined == "subject art has a weight in the mean and no scored question"
    assert micro.value == law.value == 1.0


@pytest.mark.parametrize("method", ["wilson", "clopper_pearson"])
def test_a_pool_of_which_a_subject_has_no_answer_at_all_is_not_called_certain(method: str) -> None:
    pool = {"strata": True, "sample": "stratified", "pool": Pool(size=8, subjects={"even": 4, "odd": 4})}
    answers = np.where(np.arange(7) % 2 == 0, [1.0, 0, 1, 0, 0, 0, 1], np.nan)
    whole, asked_whole, unanswered = result_for(answers[None], missing="complete_case", changes=pool, method=method).rows
    assert (whole.low, whole.undefined) == (None, "the pool holds subject odd, of which no question has a score")
    assert (asked_whole.low, asked_whole.high) == (0.75, 0.75)
    assert unanswered.undefined == NO_ANSWERS


def test_clusters_leave_fewer_effective_questions_and_few_of_them_are_flagged() -> None:
    rng = np.random.default_rng(1)
    scores = (rng.random(400) < np.repeat(rng.random(20), 20)).astype(np.float64)
    labels = tuple(f"c{index // 20}" for index in range(400))
    plain = result_for([scores.tolist()]).rows[0]
    row = result_for([scores.tolist()], changes={"clusters": labels}).rows[0]
    assert (row.method, row.clusters) == ("wilson_clustered", 20)
    assert (row.effective_n or 0) < 200
    assert row.high - row.low > 1.5 * (plain.high - plain.low)
    assert "fewer than 30" in str(row.caution)
    few = result_for([scores[:100].tolist()], changes={"clusters": labels[:100]}).rows[0]
    assert "not calibrated" in str(few.caution)
    one = result_for([scores[:20].tolist()], changes={"clusters": labels[:20]}).rows[0]
    assert "at least 2 clusters" in str(one.undefined)


def test_fractional_scores_in_clusters_get_cr2_with_bell_and_mccaffrey_s_degrees_of_freedom() -> None:
    scores = np.random.default_rng(2).random(90)
    labels = tuple(f"c{index % 31}" for index in range(90))
    row = result_for([scores.tolist()], changes={"clusters": labels}).rows[0]
    interval = clustered_interval(scores, labels)
    assert (row.method, row.low, row.high) == ("cr2_t", pytest.approx(interval.low), pytest.approx(interval.high))


def test_a_finite_pool_shrinks_the_interval_by_the_part_that_was_asked() -> None:
    scores = [[1.0] * 120 + [0.0] * 80]
    row = result_for(scores, changes={"sample": "simple", "pool": Pool(size=400)}).rows[0]
    assert row.effective_n == pytest.approx(400)
    low, high = proportion_confint(240, 400, method="wilson")
    assert (row.low, row.high, row.method) == (pytest.approx(low), pytest.approx(high), "wilson_effective_n")


def test_a_single_question_in_a_subject_gives_up_strata_for_the_whole_and_says_so() -> None:
    row = result_for([[1, 0, 1, 1]], changes={"subjects": ("a", "a", "a", "b"), "strata": True}).rows[0]
    assert (row.method, row.caution) == ("wilson", LONELY)


def test_a_weighted_sample_gives_the_weighted_share_and_its_effective_size() -> None:
    row = result_for([[1, 0, 1, 0, 1, 1]], weights=[1.5, 0.5, 1.5, 0.5, 1.5, 0.5]).rows[0]
    assert row.value == pytest.approx(0.75 * 1 + 0.25 / 3)
    assert row.successes is None
    assert row.low is not None
    assert row.high is not None
    assert row.low < row.value < row.high


def test_a_weighted_stratum_of_one_question_has_no_variance_and_is_refused() -> None:
    assert "single scored question" in str(result_for([[1, 0, 1]], weights=[1.2, 0.6, 1.2]).rows[0].undefined)


def test_repeats_show_what_their_average_hides() -> None:
    repeated = np.ones((1, 50, 10))
    repeated[0, 0] = 0.0
    result = result_for(repeated)
    assert (result.repeats[0].always, result.repeats[0].never, result.repeats[0].worst) == (49, 1, 0.0)
    found = {one.metric: one for one in estimates(result)}
    assert found["accuracy"].value == found["always_right"].value == pytest.approx(0.98)
    assert (found["worst_question"].value, found["worst_question"].low) == (0.0, None)


@pytest.mark.parametrize("method", ["wilson", "clopper_pearson", "jeffreys"])
def test_it_passes_what_every_analysis_must_pass(method: str) -> None:
    check_analysis(ANALYSIS, {"kind": "intervals", "method": method})


def test_strata_give_rows_only_where_they_are_declared() -> None:
    result = compute(sample_responses(), IntervalsOptions(kind="intervals"), Context(rng=np.random.default_rng(0)))
    assert {row.benchmark for row in result.rows if row.subject} == {"first"}


@pytest.mark.parametrize("made", [{"repeats": 3}, {"clusters": 12}])
@pytest.mark.parametrize("average", ["micro", "macro"])
def test_repeats_clusters_and_averages_pass_too(made: dict[str, int], average: str) -> None:
    check_analysis(ANALYSIS, {"kind": "intervals", "average": average}, sample_responses(**made))
