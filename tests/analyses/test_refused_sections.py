"""A section says what was computed and on which questions: nothing of draws that were not made, nor the declared rule twice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evalspec.analyses.catalogue import built_in
from evalspec.artifacts.responses import Responses
from evalspec.protocols import Context
from evalspec.reporting.figures import Chart
from evalspec.testing import sample_responses

from .test_sections import SHAPES, section


def only(shape: str, which: int) -> Responses:
    """One benchmark of a shape."""
    return replace(SHAPES[shape], benchmarks=(SHAPES[shape].benchmarks[which],))


CLUSTERED = only("few clusters", -1)
STORIES = {
    "redraw": ("draws of each size", "Two things are counted", "No threshold can rest"),
    "split_half": ("times. One half chooses", "Monte Carlo standard errors", "No threshold can rest"),
    "power": ("The numbers are exact", "the curves stand for", "Questions needed: not stated"),
}


@pytest.mark.parametrize("kind", STORIES)
def test_a_refused_analysis_tells_of_nothing_but_the_refusal(kind: str) -> None:
    refused, computed = section(kind, CLUSTERED), section(kind, only("plain", -1))
    assert "questions come in clusters" in refused
    for told in STORIES[kind]:
        assert told in computed
        assert told not in refused


@pytest.mark.parametrize("kind", STORIES)
def test_one_benchmark_that_is_refused_silences_no_other(kind: str) -> None:
    both = replace(SHAPES["plain"], benchmarks=(only("plain", -1).benchmarks[0], replace(CLUSTERED.benchmarks[0], benchmark="apart")))
    said = section(kind, both)
    assert "questions come in clusters" in said
    assert all(told in said for told in STORIES[kind])


def test_ranks_that_are_refused_tell_of_no_comparisons() -> None:
    alone = replace(only("plain", -1), benchmarks=(replace(only("plain", -1).benchmarks[0], sample="chosen"),))
    said = section("tiers", alone)
    assert "Not computed for" in said
    assert "Every two models are compared" not in said
    assert "Every two models are compared" in section("tiers", only("plain", -1))


@pytest.mark.parametrize(("responses", "empty"), [(CLUSTERED, True), (only("plain", -1), False)], ids=["clusters", "independent"])
def test_no_curve_and_no_source_of_a_power_that_was_not_computed(responses: Responses, empty: bool) -> None:
    analysis = built_in()["power"]
    result = analysis.compute(responses, analysis.options(kind="power"), Context(rng=np.random.default_rng(1)))
    chart = Chart()
    analysis.plot(result, chart)
    assert chart.empty == empty
    assert (analysis.sources_used(result) == ()) == empty


def test_signs_that_are_flipped_for_all_pairs_at_once_have_to_be_so_jointly() -> None:
    said = section("tiers", only("plain", -1), method="max_t")
    assert "equally accurate models are jointly as likely to have the opposite signs, the chance" in said
    assert "of more models each pair is, and all of them jointly need not be" in said


def test_the_difference_in_a_subject_is_not_said_to_rest_on_given_answers_alone() -> None:
    said = section("subgroups", SHAPES["plain"], model="model-0", baseline="model-1")
    assert "both answered" not in said
    assert "on the questions that both have a score for; of a missing answer it is the one that the rule of the study gives" in said


@pytest.mark.parametrize(
    ("rule", "kept", "left", "told"),
    [
        ("wrong", "Missing: left out", "Missing: wrong", "and the study counts them as wrong"),
        ("complete_case", "Missing: wrong", "Missing: left out", "and the study leaves them out"),
    ],
)
def test_the_declared_rule_for_missing_answers_has_one_column(rule: str, kept: str, left: str, told: str) -> None:
    lacking = tuple(replace(one, missing=rule) for one in sample_responses().benchmarks)
    responses = replace(sample_responses(), benchmarks=lacking)
    said = section("sensitivity", responses, pairs=[["model-0", "model-1"]])
    assert f" As declared {kept} " in said
    assert left not in said
    assert told in said
    result = built_in()["sensitivity"]
    found = result.compute(responses, result.options(kind="sensitivity"), Context(rng=np.random.default_rng(1)))
    chart = Chart()
    result.plot(found, chart)
    assert left.removeprefix("Missing: ") not in chart.draw("wide").svg
    assert {row.case for row in found.cases} >= {"missing_wrong", "missing_left_out"}  # the findings keep both


def test_rules_that_change_no_model_shown_keep_their_columns() -> None:
    entries = []
    for one in sample_responses().benchmarks:
        scores, reasons = one.scores.copy(), one.reasons.copy()
        scores[0], reasons[0] = np.nan_to_num(scores[0]), 0
        entries.append(replace(one, scores=scores, reasons=reasons, missing="wrong"))
    said = section("sensitivity", replace(sample_responses(), benchmarks=tuple(entries)), models=["model-0"])
    assert " As declared Missing: wrong Missing: left out " in said
    assert "the study counts them" not in said
