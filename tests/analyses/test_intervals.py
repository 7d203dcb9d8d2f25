from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from evalspec.analyses.intervals import ANALYSIS, NOT_BINARY, TOO_FEW, IntervalsOptions, IntervalsResult, compute
from evalspec.artifacts.responses import BenchmarkResponses, Responses
from evalspec.protocols import Context
from evalspec.testing import check_analysis, sample_responses


def result_for(scores: list[list[float]], *, missing: str = "wrong", weights: list[float] | None = None, **options: object) -> IntervalsResult:
    array = np.array(scores, dtype=np.float64)[:, :, None]
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
        strata=True,
    )
    responses = Responses(benchmarks=(benchmark,), origins=(), protocol_sha256="0" * 64)
    return compute(responses, IntervalsOptions(kind="intervals", **options), Context(rng=np.random.default_rng(0)))


@pytest.mark.parametrize(("method", "peer"), [("wilson", "wilson"), ("clopper_pearson", "beta")])
@pytest.mark.parametrize("right", [0, 1, 7, 39, 40])
def test_an_interval_equals_statsmodels(method: str, peer: str, right: int) -> None:
    row = result_for([[1.0] * right + [0.0] * (40 - right)], method=method).rows[0]
    low, high = proportion_confint(right, 40, alpha=0.05, method=peer)
    assert (row.low, row.high) == pytest.approx((low, high), abs=1e-12)  # both compute in double precision
    assert (row.successes, row.n, row.value) == (right, 40, right / 40)


def test_every_stratum_has_its_own_row_on_its_own_questions() -> None:
    rows = result_for([[1, 0, 1, 0, 1, 1]]).rows
    assert [(row.subject, row.successes, row.n) for row in rows] == [(None, 4, 6), ("even", 3, 3), ("odd", 1, 3)]


def test_a_missing_score_counts_as_wrong_or_is_dropped_as_declared() -> None:
    scores = [[1, float("nan"), 1, 0]]
    assert (result_for(scores).rows[0].successes, result_for(scores).rows[0].n) == (2, 4)
    dropped = result_for(scores, missing="complete_case").rows[0]
    assert (dropped.successes, dropped.n) == (2, 3)


def test_fractional_scores_and_empty_rows_are_refused_with_a_reason() -> None:
    assert result_for([[0.5, 1, 0, 1]]).rows[0].undefined == NOT_BINARY
    nothing = result_for([[float("nan")] * 4], missing="complete_case").rows[0]
    assert nothing.value is None
    assert nothing.undefined is not None


def test_a_weighted_sample_gives_the_weighted_share_and_its_effective_size() -> None:
    row = result_for([[1, 0, 1, 0, 1, 1]], weights=[1.5, 0.5, 1.5, 0.5, 1.5, 0.5]).rows[0]
    assert row.value == pytest.approx(0.75 * 1 + 0.25 / 3)
    assert row.successes is None
    assert row.low is not None
    assert row.high is not None
    assert row.low < row.value < row.high


def test_a_weighted_stratum_of_one_question_has_no_variance_and_is_refused() -> None:
    assert result_for([[1, 0, 1]], weights=[1.2, 0.6, 1.2]).rows[0].undefined == TOO_FEW


@pytest.mark.parametrize("method", ["wilson", "clopper_pearson"])
def test_it_passes_what_every_analysis_must_pass(method: str) -> None:
    check_analysis(ANALYSIS, {"kind": "intervals", "method": method})


def test_strata_give_rows_only_where_they_are_declared() -> None:
    result = compute(sample_responses(), IntervalsOptions(kind="intervals"), Context(rng=np.random.default_rng(0)))
    assert {row.benchmark for row in result.rows if row.subject} == {"first"}
