from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evalspec.analyses.article_compat import (
    ANALYSIS,
    CLUSTERED,
    FEW,
    INCOMPLETE,
    NEVER_APART,
    NOT_BINARY,
    ONE_MODEL,
    WEIGHTED,
    compute,
    estimates,
    plot,
)
from evalspec.analyses.article_compat_results import ArticleCompatOptions, ArticleCompatResult
from evalspec.artifacts.responses import BenchmarkResponses, Responses
from evalspec.protocols import Context
from evalspec.reporting.figures import Chart
from evalspec.testing import check_analysis, sample_responses

QUICK = {"kind": "article_compat", "redraw_sizes": [10, 40], "draws": 200}


def responses_of(scores: np.ndarray) -> Responses:
    n = scores.shape[1]
    benchmark = BenchmarkResponses(
        benchmark="b",
        models=tuple("abcdefgh"[: len(scores)]),
        questions=tuple(f"q{index}" for index in range(n)),
        subjects=(None,) * n,
        weights=np.ones(n),
        scores=scores.astype(np.float64)[:, :, None],
        reasons=np.where(np.isnan(scores), 2, 0).astype(np.int8)[:, :, None],
        choices=np.full((*scores.shape, 1), -1, dtype=np.int16),
        logprobs=None,
        missing="complete_case",
    )
    return Responses(benchmarks=(benchmark,), origins=(), protocol_sha256="0" * 64)


def table(both: int, only_first: int, only_second: int, neither: int) -> Responses:
    first = [1.0] * (both + only_first) + [0.0] * (only_second + neither)
    second = [1.0] * both + [0.0] * only_first + [1.0] * only_second + [0.0] * neither
    return responses_of(np.array([second, first]))


def computed(responses: Responses) -> ArticleCompatResult:
    return compute(responses, ArticleCompatOptions.model_validate({**QUICK, "redraw_sizes": (10, 40)}), Context(rng=np.random.default_rng(3)))


def test_the_article_s_pair_gives_the_article_s_figures() -> None:
    row = computed(table(1217, 219, 182, 382)).rows[0]
    assert (row.first, row.second, row.first_right, row.second_right) == ("b", "a", 1436, 1399)
    assert row.unpaired_half_width == pytest.approx(0.028154, abs=5e-7)  # published: 2.82 points
    assert row.paired_half_width == pytest.approx(0.019608, abs=5e-7)  # published: 1.96 points
    assert row.paired is not None
    assert (row.paired.low, row.paired.high) == pytest.approx((-0.00111, 0.03811), abs=5e-6)  # published: -0.1 to +3.8
    assert row.gain == pytest.approx(0.304, abs=5e-4)  # published: 30%
    assert row.simple_questions == pytest.approx(4593, abs=1)  # published: about 4,600
    assert row.exact_questions == pytest.approx(4695, abs=10)  # the exact test needs more than the formula says
    assert [round(one.half_width * 100) for one in row.resolutions] == [6, 4, 2]  # published for q = .20


def test_half_a_difference_needs_four_times_as_many_questions() -> None:
    row = computed(table(1217, 219, 182, 382)).rows[0]
    assert row.halved_simple_questions == pytest.approx(4 * row.simple_questions, rel=0.01)
    assert row.halved_exact_questions == pytest.approx(4 * row.exact_questions, rel=0.02)


def test_one_and_two_questions_more_move_a_score_by_what_the_article_says() -> None:
    (step,) = computed(table(10, 3, 2, 5)).rows[0].steps
    assert (step.questions, round(step.one * 100, 1), round(step.two * 100, 1)) == (30, 3.3, 6.7)  # published


def test_the_closest_three_neighbours_are_named_with_what_parts_the_outer_two() -> None:
    rights = {"a": 9, "b": 19, "c": 13, "d": 12, "e": 1}
    scores = np.array([[1.0] * right + [0.0] * (20 - right) for right in rights.values()])
    closest = computed(responses_of(scores)).rows[0].closest
    assert closest is not None
    assert (closest.models, closest.span) == (("c", "d", "a"), pytest.approx(0.2))
    assert computed(responses_of(scores[:2])).rows[0].closest is None


def test_where_the_recipe_s_intervals_are_not_to_be_relied_on_is_said() -> None:
    cautions = [computed(table(*counts)).rows[0].caution for counts in ((1217, 219, 182, 382), (100, 20, 10, 70), (300, 0, 0, 100))]
    assert cautions == [None, FEW, NEVER_APART]


def test_no_estimate_rests_on_the_recipe() -> None:
    (estimate,) = estimates(computed(table(1217, 219, 182, 382)))
    assert estimate.method == "tango"
    assert (estimate.low, estimate.high) == pytest.approx((-0.001128, 0.038198), abs=5e-7)
    assert estimate.p_value is None


def test_redraws_carry_an_error_that_is_never_zero() -> None:
    row = computed(table(10, 30, 0, 0)).rows[0]
    assert [(one.share, one.shared_ties) for one in row.redraws] == [(1.0, 1.0)] * 2
    assert all(one.share_error > one.shared_ties_error > 0 for one in row.redraws)


def test_models_that_never_differ_have_no_sample_size() -> None:
    row = computed(table(20, 0, 0, 20)).rows[0]
    assert (row.difference, row.simple_questions, row.exact_questions) == (0.0, None, None)
    everything = computed(table(20, 0, 0, 0)).rows[0]
    assert everything.gain is None
    assert everything.low is not None
    assert everything.low < 0


def test_what_the_recipe_cannot_use_is_refused_with_the_reason() -> None:
    scores = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    one = responses_of(scores[:1])
    fractional, incomplete = scores.copy(), scores.copy()
    fractional[0, 0], incomplete[1, 1] = 0.5, np.nan
    whole = responses_of(scores).benchmarks[0]
    weighted = replace(responses_of(scores), benchmarks=(replace(whole, weights=np.array([1.5, 0.75, 0.75])),))
    clustered = replace(responses_of(scores), benchmarks=(replace(whole, clusters=("x", "x", "y")),))
    refused = {ONE_MODEL: one, NOT_BINARY: responses_of(fractional), INCOMPLETE: responses_of(incomplete), WEIGHTED: weighted, CLUSTERED: clustered}
    for reason, responses in refused.items():
        result = computed(responses)
        assert result.rows[0].undefined == reason
        assert estimates(result)[0].value is None


def test_no_work_is_named_where_the_recipe_gives_no_figure() -> None:
    assert ANALYSIS.sources_used is not None
    assert ANALYSIS.sources_used(computed(table(10, 3, 2, 5))) == ANALYSIS.sources
    assert ANALYSIS.sources_used(computed(responses_of(np.ones((1, 4))))) == ()


def test_it_passes_what_every_analysis_must_pass() -> None:
    check_analysis(ANALYSIS, QUICK, sample_responses(questions=60))


def test_the_four_intervals_of_the_difference_are_drawn_one_below_the_other() -> None:
    chart = Chart()
    plot(computed(responses_of(np.ones((1, 4)))), chart)
    assert chart.empty
    result = computed(table(1217, 219, 182, 382))
    plot(result, chart)
    rows = chart.draw("wide").drawn["rows"]
    assert [row["label"] for row in rows] == [
        "different questions, recipe",
        "different questions, Newcombe",
        "same questions, recipe",
        "same questions, Tango",
    ]
    assert (rows[0]["high"] - rows[0]["low"]) / 2 == pytest.approx(result.rows[0].unpaired_half_width)
    assert (rows[3]["low"], rows[3]["high"]) == (result.rows[0].low, result.rows[0].high)
    assert {row["value"] for row in rows} == {result.rows[0].difference}
