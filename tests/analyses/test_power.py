from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from evalspec.analyses.power import ANALYSIS, CLUSTERED, NO_DISAGREEMENT, NOT_BINARY, WEIGHTED, PowerOptions, PowerResult, compute, estimates, plot
from evalspec.artifacts.responses import BenchmarkResponses, Responses
from evalspec.protocols import Context
from evalspec.reporting.figures import Chart
from evalspec.statistics.paired_power import detectable_difference, exact_power
from evalspec.testing import check_analysis, sample_responses

from . import tables
from .tables import rendered


def responses_of(scores: np.ndarray, **fields: object) -> Responses:
    n = scores.shape[1]
    benchmark = BenchmarkResponses(
        **{
            "benchmark": "x",
            "models": tuple("abcdefgh"[: len(scores)]),
            "questions": tuple(f"q{index}" for index in range(n)),
            "subjects": (None,) * n,
            "weights": np.ones(n),
            "scores": scores.astype(np.float64)[:, :, None],
            "reasons": np.zeros((*scores.shape, 1), dtype=np.int8),
            "choices": np.full((*scores.shape, 1), -1, dtype=np.int16),
            "logprobs": None,
            "missing": "wrong",
            **fields,
        }
    )
    return Responses(benchmarks=(benchmark,), origins=(), protocol_sha256="0" * 64)


def pair_of(both: int, only_first: int, only_second: int, neither: int) -> np.ndarray:
    first = [1] * both + [1] * only_first + [0] * only_second + [0] * neither
    second = [1] * both + [0] * only_first + [1] * only_second + [0] * neither
    return np.array([first, second])


def computed(responses: Responses, **options: object) -> PowerResult:
    return compute(responses, PowerOptions(kind="power", **options), Context(rng=np.random.default_rng(0)))


def test_the_article_s_sample_detects_2_84_points() -> None:
    found = computed(responses_of(pair_of(1217, 219, 181, 383))).rows[0]
    assert found.discordance == pytest.approx(0.2)
    assert found.detectable == pytest.approx(0.0284, abs=5e-5)  # published for the exact test at a discordance of 0.2
    assert found.low is not None
    assert found.low < 0.0284 < (found.high or 0)


def test_the_observed_difference_moves_nothing() -> None:
    even, lopsided = (computed(responses_of(pair_of(1217, wins, 401 - wins, 382))).rows[0] for wins in (200, 300))
    assert (even.detectable, even.low, even.high) == (lopsided.detectable, lopsided.low, lopsided.high)


def test_the_interval_is_what_the_uncertain_discordance_makes_of_it() -> None:
    found = computed(responses_of(pair_of(1217, 219, 182, 382))).rows[0]
    ends = [detectable_difference(2000, discordance).difference for discordance in (0.183549, 0.218615)]  # Wilson's limits of 401 of 2,000 from R
    assert (found.low, found.high) == pytest.approx(ends, abs=2e-6)


def test_the_correction_s_worst_case_is_planned_for() -> None:
    eight = sample_responses(models=8, questions=300)
    shared, alone = computed(eight), computed(eight, correction="none")
    assert shared.pair_alpha == pytest.approx(0.05 / 56)  # 28 pairs on each of two benchmarks
    assert alone.pair_alpha == 0.05
    assert all((one.detectable or 1) > (other.detectable or 0) for one, other in zip(shared.rows, alone.rows, strict=True))
    assert computed(eight, baseline="model-0").comparisons == 14


def test_a_declared_difference_gets_its_power_and_the_questions_it_needs() -> None:
    responses = responses_of(pair_of(1217, 219, 182, 382))
    plan = computed(responses, difference=0.0185, discordance=0.2005).plans[0]
    assert plan.questions == pytest.approx(4695, abs=10)  # a separate coding
    assert plan.power == pytest.approx(exact_power(2000, 0.2005, 0.0185), abs=1e-4)
    assert computed(responses, difference=0.0185, discordance=0.2).plans[0].power == pytest.approx(0.4371, abs=5e-5)  # published


def test_nothing_is_planned_where_nothing_is_declared() -> None:
    assert computed(responses_of(pair_of(50, 10, 10, 30))).plans == ()


def test_the_curve_falls_with_the_number_of_questions_and_holds_this_sample() -> None:
    result = computed(responses_of(pair_of(1217, 219, 182, 382)), discordance=0.2)
    drawn = [point.detectable for point in result.curve if point.detectable is not None]
    assert drawn == sorted(drawn, reverse=True)
    assert 2000 in [point.n for point in result.curve]
    chart = Chart()
    plot(result, chart)
    assert not chart.empty


def test_what_cannot_be_computed_says_why() -> None:
    few = computed(responses_of(pair_of(10, 1, 0, 9))).rows[0]
    assert few.detectable is None
    assert "20 question(s)" in (few.undefined or "")
    assert computed(responses_of(pair_of(20, 0, 0, 20))).rows[0].undefined == NO_DISAGREEMENT
    assert computed(responses_of(np.array([[0.5, 1.0], [1.0, 0.0]]))).rows[0].undefined == NOT_BINARY
    assert computed(responses_of(pair_of(20, 5, 5, 20), clusters=("c", "d") * 25)).rows[0].undefined == CLUSTERED
    assert estimates(computed(responses_of(pair_of(20, 0, 0, 20))))[0].value is None


@pytest.mark.parametrize(
    ("scores", "fields", "reason"),
    [
        (pair_of(20, 5, 5, 20), {"clusters": ("c", "d") * 25}, CLUSTERED),
        (pair_of(20, 5, 5, 20), {"weights": np.tile([0.5, 1.5], 25)}, WEIGHTED),
        (np.full((2, 50), 0.5), {}, NOT_BINARY),
    ],
)
def test_a_sample_whose_power_is_not_known_gets_no_plan_but_the_reason(scores: np.ndarray, fields: dict[str, object], reason: str) -> None:
    plan = computed(responses_of(scores, **fields), difference=0.1, discordance=0.3).plans[0]
    assert (plan.power, plan.questions, plan.undefined) == (None, None, reason)


def test_where_all_questions_come_in_clusters_there_is_the_reason_and_no_power_of_others() -> None:
    options = {"kind": "power", "difference": 0.1, "discordance": 0.3}
    text = rendered(ANALYSIS, tables.responses_of(pair_of(20, 5, 5, 20), clusters=("c", "d") * 25), options)
    assert text.count(CLUSTERED) == 2  # for the declared difference, and for the pairs
    assert "independent questions that count the same" not in text


@pytest.mark.parametrize(
    ("options", "says"),
    [({"difference": 0.1}, "discordance"), ({"difference": 0.3, "discordance": 0.2}, "as large"), ({"power": 0.04}, "alpha")],
)
def test_plans_that_no_sample_can_meet_are_refused(options: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        PowerOptions(kind="power", **options)


@pytest.mark.parametrize("options", [{}, {"test": "mid_p", "baseline": "model-1", "difference": 0.05, "discordance": 0.3}])
def test_it_passes_what_every_analysis_must_pass(options: dict[str, object]) -> None:
    check_analysis(ANALYSIS, {"kind": "power", **options})
