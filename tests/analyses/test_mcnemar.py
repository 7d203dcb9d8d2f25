from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError
from statsmodels.stats.contingency_tables import mcnemar as peer_mcnemar
from statsmodels.stats.multitest import multipletests

from evalspec.analyses.mcnemar import (
    ANALYSIS,
    MOST_DRAWN,
    McnemarOptions,
    McnemarResult,
    _drawn,
    comparisons,
    compute,
    estimates,
    plot,
)
from evalspec.analyses.pairs import NO_COMMON, WEIGHTED
from evalspec.artifacts.responses import BenchmarkResponses, Responses
from evalspec.protocols import Context
from evalspec.reporting.figures import Chart
from evalspec.testing import check_analysis, sample_responses

RESPONSES = sample_responses(models=5, questions=200)


def computed(responses: Responses = RESPONSES, **options: object) -> McnemarResult:
    return compute(responses, McnemarOptions(kind="mcnemar", **options), Context(rng=np.random.default_rng(0)))


def responses_of(scores: np.ndarray, weights: np.ndarray | None = None) -> Responses:
    n = scores.shape[1]
    benchmark = BenchmarkResponses(
        benchmark="b",
        models=tuple("abcdefgh"[: len(scores)]),
        questions=tuple(f"q{index}" for index in range(n)),
        subjects=(None,) * n,
        weights=np.ones(n) if weights is None else weights,
        scores=scores.astype(np.float64)[:, :, None],
        reasons=np.zeros((*scores.shape, 1), dtype=np.int8),
        choices=np.full((*scores.shape, 1), -1, dtype=np.int16),
        logprobs=None,
        missing="wrong",
    )
    return Responses(benchmarks=(benchmark,), origins=(), protocol_sha256="0" * 64)


def table(both: int, only_first: int, only_second: int, neither: int) -> Responses:
    first = [1] * both + [1] * only_first + [0] * only_second + [0] * neither
    second = [1] * both + [0] * only_first + [1] * only_second + [0] * neither
    return responses_of(np.array([first, second]))


def test_the_article_s_first_pair_is_not_separated() -> None:
    row = computed(table(1217, 219, 182, 382), family="adjacent").rows[0]
    assert row.p_value == pytest.approx(0.0720836380266328, rel=1e-10)  # mpmath and R agree on these digits
    assert row.difference == pytest.approx(0.0185)
    assert (row.low, row.high) == pytest.approx((-0.00113, 0.03820), abs=5e-6)  # Tango, as published to two decimals of a point
    assert row.separated is False


def test_the_family_is_adjusted_as_a_whole_like_the_peers_do() -> None:
    result = computed(family="all_pairs")
    raw = [peer_mcnemar([[row.both, row.only_first], [row.only_second, row.neither]], exact=True).pvalue for row in result.rows]
    assert [row.p_value for row in result.rows] == pytest.approx(raw, rel=1e-9)
    assert [row.p_adjusted for row in result.rows] == pytest.approx(multipletests(raw, method="holm")[1], rel=1e-9)
    assert result.family_size == len(result.rows) == 2 * 10


@pytest.mark.parametrize(
    ("options", "pairs"),
    [
        ({"family": "adjacent"}, 4),
        ({"family": "vs_baseline", "baseline": "model-2"}, 4),
        ({"family": "all_pairs"}, 10),
        ({"family": "named", "pairs": (("model-0", "model-1"),)}, 1),
    ],
)
def test_each_family_compares_its_pairs_on_every_benchmark(options: dict[str, object], pairs: int) -> None:
    result = computed(**options)
    assert len(result.rows) == 2 * pairs
    parsed = McnemarOptions(kind="mcnemar", **options)
    planned = comparisons(parsed, RESPONSES.benchmarks[0].models, 2)
    assert len(planned) == pairs
    assert planned[0].alpha == pytest.approx(0.05 / (2 * pairs))


def test_identical_models_are_never_separated() -> None:
    row = computed(table(30, 0, 0, 10), family="adjacent").rows[0]
    assert (row.p_value, row.difference, row.separated, row.odds_ratio) == (1.0, 0.0, False, None)
    assert row.low is not None
    assert row.low < 0 < (row.high or 0)


def test_naming_the_other_model_first_turns_the_sign() -> None:
    one = computed(family="named", pairs=(("model-0", "model-3"),)).rows[0]
    other = computed(family="named", pairs=(("model-3", "model-0"),)).rows[0]
    assert one.p_value == other.p_value
    assert (one.difference, one.low, one.high) == pytest.approx((-other.difference, -other.high, -other.low))


def test_a_weighted_sample_is_refused_with_a_reason() -> None:
    result = computed(responses_of(np.array([[0, 1, 0], [1, 1, 0]]), np.array([1.5, 0.75, 0.75])), family="adjacent")
    assert (result.rows[0].separated, result.rows[0].undefined) == (None, WEIGHTED)
    assert estimates(result)[0].value is None


@pytest.mark.parametrize(
    "options",
    [
        {"family": "vs_baseline"},
        {"family": "adjacent", "baseline": "a"},
        {"family": "named"},
        {"family": "named", "pairs": (("a", "a"),)},
        {"family": "named", "pairs": (("a", "b"), ("b", "a"))},
    ],
)
def test_a_family_without_what_it_needs_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        McnemarOptions(kind="mcnemar", **options)


@pytest.mark.parametrize("family", ["adjacent", "all_pairs"])
@pytest.mark.parametrize("test", ["exact", "mid_p"])
def test_it_passes_what_every_analysis_must_pass(family: str, test: str) -> None:
    check_analysis(ANALYSIS, {"kind": "mcnemar", "family": family, "test": test})


def test_a_large_family_has_one_forecast_and_a_figure_of_bounded_size() -> None:
    many = sample_responses(models=16, questions=40)
    models = many.benchmarks[0].models
    assert [one.label for one in comparisons(McnemarOptions(kind="mcnemar", family="all_pairs"), models, 2)] == ["each of 120 pairs"]
    result = computed(many, family="all_pairs")
    assert (len(result.rows), result.family_size) == (240, 240)
    chart = Chart()
    plot(result, chart)
    drawn = chart.draw("wide").drawn
    assert len(drawn["rows"]) == MOST_DRAWN
    assert str(MOST_DRAWN) in drawn["caption"]
    least = max(row.p_adjusted for row in _drawn(result.rows))
    assert sum(row.p_adjusted < least for row in result.rows) <= MOST_DRAWN


def test_models_without_a_common_question_leave_the_others_their_numbers() -> None:
    responses = responses_of(np.array([[1, 0, 1, 0], [1, 1, 0, 0], [0, 1, 1, 1]]))
    gaps = responses.benchmarks[0].scores.copy()
    gaps[0, :2], gaps[1, 2:] = np.nan, np.nan
    benchmark = replace(responses.benchmarks[0], scores=gaps, reasons=np.isnan(gaps).astype(np.int8) * 2, missing="complete_case")
    rows = {frozenset((row.first, row.second)): row for row in computed(replace(responses, benchmarks=(benchmark,)), family="all_pairs").rows}
    assert rows[frozenset("ab")].undefined == NO_COMMON
    assert (rows[frozenset("ac")].n, rows[frozenset("bc")].n) == (2, 2)
    assert rows[frozenset("bc")].p_value == 1.0
