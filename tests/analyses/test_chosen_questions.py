"""Questions that were chosen and not drawn give a weighted value, and nothing that needs a random draw."""

from __future__ import annotations

import numpy as np
import pytest

from evalspec.analyses import intervals, mcnemar, mdad, power, redraw, split_half, tiers
from evalspec.analyses.designs import CHOSEN, design_of, subject_design, weighted
from evalspec.artifacts.responses import Responses
from evalspec.protocols import AnyAnalysis, Context

from .tables import rendered, responses_of

WEIGHTS = np.array([0.5, 1.5, 1.0, 1.0])
SCORES = [[1, 0, 1, 1], [0, 1, 1, 0]]


def chosen(**fields: object) -> Responses:
    return responses_of(SCORES, sample="chosen", **{"weights": WEIGHTS, **fields})


def result(analysis: AnyAnalysis, responses: Responses, **options: object) -> object:
    return analysis.compute(responses, analysis.options(kind=analysis.kind, **options), Context(rng=np.random.default_rng(1)))


def test_the_value_is_weighted_and_has_no_interval() -> None:
    rows = result(intervals.ANALYSIS, chosen()).rows
    assert [row.value for row in rows] == [pytest.approx(2.5 / 4), pytest.approx(2.5 / 4)]
    assert {(row.low, row.high, row.standard_error, row.successes, row.method, row.caution) for row in rows} == {
        (None, None, None, None, "chosen", CHOSEN)
    }


def test_a_missing_answer_is_left_out_with_its_weight() -> None:
    scores = np.array(SCORES, dtype=float)
    scores[0, 1] = np.nan
    responses = responses_of(scores, sample="chosen", weights=WEIGHTS, missing="complete_case")
    assert result(intervals.ANALYSIS, responses).rows[0].value == pytest.approx(1.0)


def test_single_subjects_are_not_estimated() -> None:
    rows = result(intervals.ANALYSIS, chosen(subjects=("a", "a", "b", "b"), strata=True)).rows
    assert {row.undefined for row in rows if row.subject is not None} == {CHOSEN}


@pytest.mark.parametrize("weights", [WEIGHTS, np.ones(4)])
def test_no_design_stands_behind_chosen_questions_however_they_weigh(weights: np.ndarray) -> None:
    benchmark = chosen(weights=weights, subjects=("a", "a", "b", "b"), strata=True).benchmarks[0]
    assert weighted(benchmark)
    with pytest.raises(ValueError, match="not drawn"):
        design_of(benchmark)
    with pytest.raises(ValueError, match="not drawn"):
        subject_design(benchmark, "a")


def test_analyses_that_rest_on_a_draw_say_why_they_are_undefined() -> None:
    responses = chosen(weights=np.ones(4))
    assert all(row.undefined for row in result(mcnemar.ANALYSIS, responses, family="all_pairs").rows)
    assert all(row.undefined for row in result(tiers.ANALYSIS, responses).rows)
    assert all(row.undefined for row in result(power.ANALYSIS, responses).rows)
    assert all(entry.undefined for entry in result(mdad.ANALYSIS, responses).benchmarks)
    for analysis in (redraw.ANALYSIS, split_half.ANALYSIS):
        assert all(pool.undefined for pool in result(analysis, responses).pools)


def test_the_report_says_that_nothing_is_known_of_the_error() -> None:
    text = rendered(intervals.ANALYSIS, chosen(), {"kind": "intervals"})
    assert "No interval: the value is the sum of scores by the weights" in text
    assert "nothing says how far an estimate from them can be off" in text
