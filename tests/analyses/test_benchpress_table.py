"""Faults of the matrix, of its columns and of the options are all told at once, before anything is computed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from evalspec.analyses.benchpress import compute, examine
from evalspec.analyses.benchpress_options import BenchpressOptions
from evalspec.errors import AnalysisError
from evalspec.protocols import Context

from .test_benchpress import MODELS, RESPONSES, ROWS, columns_csv, given, made_up, matrix_csv


def told(matrix: bytes | None = None, columns: bytes | None = None, **options: object) -> list[str]:
    parsed, tables = given(matrix, columns, **options)
    return [str(fault) for fault in examine(parsed, tables)]


@pytest.mark.parametrize(
    ("cell", "text", "told_of"),
    [
        ((1, 1), "130", "'b1' is declared as percent, and 1 of its scores lie outside, such as 130 of 'row 0'"),
        ((1, 1), "many", "the score in column 'b1' is no number: 'many'"),
        ((1, 1), "inf", "the score in column 'b1' is no number: 'inf'"),
        ((2, 0), "row 0", "the model 'row 0' stands already in line 2"),
    ],
)
def test_each_fault_of_a_matrix_is_named_with_its_line(cell: tuple[int, int], text: str, told_of: str) -> None:
    lines = matrix_csv().decode().splitlines()
    cells = lines[cell[0]].split(",")
    if cell[1] == 0:
        cells[0] = text
    else:
        cells[1 + cell[1]] = text
    lines[cell[0]] = ",".join(cells)
    faults = told(("\n".join(lines) + "\n").encode())
    assert len(faults) == 1
    assert told_of in faults[0]


def test_all_faults_of_scales_are_told_at_once_before_anything_is_computed() -> None:
    scores = made_up()
    scores[:, 0] /= 100.0
    scores[~np.isnan(scores[:, 1]), 1] = 99.9
    faults = told(matrix_csv(scores))
    assert any("'b0' is declared as percent, and none of its scores is above" in fault for fault in faults)
    assert any("scores of 'b1' are alike" in fault for fault in faults)
    parsed, tables = given(matrix_csv(scores))
    with pytest.raises(AnalysisError, match="'b0' is declared as percent"):
        compute(RESPONSES, parsed, Context(rng=np.random.default_rng(1), tables=tables))


@pytest.mark.parametrize("mode", ["audit", "compat"])
@pytest.mark.parametrize("scores", [[1200.0], [1200.0] * 2, [1200.0] * ROWS])
def test_a_scale_without_an_end_needs_two_different_scores_in_either_mode(mode: str, scores: list[float]) -> None:
    matrix = made_up()
    matrix[:, 7] = np.nan
    matrix[: len(scores), 7] = scores
    faults = told(matrix_csv(matrix), mode=mode)
    assert len(faults) == 1
    assert "'b7'" in faults[0]
    assert "leave_out" in faults[0]


def test_mixed_scales_are_refused_until_they_are_left_out() -> None:
    columns = columns_csv(b4="mixed")
    faults = told(columns=columns)
    assert len(faults) == 1
    assert "'b4' has a mixed scale" in faults[0]
    assert "leave_out: [b4]" in faults[0]
    assert told(columns=columns, leave_out=["b4"]) == []
    assert any("'b4' is 'percents'" in fault and "one of percent" in fault for fault in told(columns=columns_csv(b4="percents")))


@pytest.mark.parametrize(
    ("options", "told_of"),
    [
        ({"targets": ["b9"]}, "targets names 'b9', which the matrix does not have"),
        ({"leave_out": ["b9"]}, "leave_out names 'b9'"),
        ({"measured": [{"benchmark": "first", "column": "b7"}]}, "'b7' has no highest score, and a benchmark of a study measures shares"),
        ({"measured": [{"benchmark": "first", "column": "b9"}]}, "measured names 'b9'"),
        ({"models": [{"model": "model-0", "row": "row 99"}]}, "models names the row 'row 99'"),
        ({"models": [{"model": "model-0", "known": {"b9": 1.0}}]}, "known of model 'model-0' names 'b9'"),
        ({"models": [{"model": "model-0", "known": {"b0": 130.0}}]}, "130 for 'b0', known of model 'model-0', is not on its scale of 0 to 100"),
        ({"models": [{"model": "model-0", "known": {"b0": 0.7}}]}, "0.7 for 'b0', known of model 'model-0', looks like a fraction"),
        ({"probes": {"candidates": ["b9"]}}, "candidates of probes names 'b9'"),
        ({"probes": {"candidates": ["b2", "b3"], "budget": 2.5}}, "the budget of 2.5 buys no candidate"),
    ],
)
def test_what_the_options_say_must_be_in_the_matrix(options: dict[str, Any], told_of: str) -> None:
    faults = told(**options)
    assert len(faults) == 1
    assert told_of in faults[0]


def test_an_unknown_column_to_leave_out_hides_no_other_fault() -> None:
    faults = told(leave_out=["b9"], targets=["b8"], probes={"candidates": ["b9"]})
    assert [fault.split(" names")[0].split(": ")[1] for fault in faults] == ["leave_out", "targets", "candidates of probes"]


def test_faults_of_matrix_columns_and_options_are_told_at_once_in_file_order() -> None:
    lines = matrix_csv().decode().splitlines()
    lines[3] = lines[3].replace("row 2", "row 0")
    lines[2] = "row 1," + ",".join(["many", *lines[2].split(",")[2:]])
    faults = told(("\n".join(lines) + "\n").encode(), columns_csv(b4="percents"), leave_out=["b9"], targets=["b8"])
    assert [fault.split(": ")[0] for fault in faults] == ["columns.csv:6:1", "scores.csv:1:1", "scores.csv:1:1", "scores.csv:3:1", "scores.csv:4:1"]
    ragged = told("\n".join([*lines, "row 99,1,2"]).encode(), columns_csv(b4="percents"))
    assert any(fault.startswith("columns.csv") for fault in ragged)
    assert any("the row has 3 cells" in fault for fault in ragged)


def test_a_sound_matrix_has_no_fault() -> None:
    assert told(models=MODELS) == []


@pytest.mark.parametrize(
    "options",
    [
        {"columns": None},
        {"models": [{"model": "a", "row": "x"}, {"model": "a"}]},
        {"models": [{"model": "a", "row": "x"}, {"model": "b", "row": "x"}]},
        {"measured": [{"benchmark": "first", "column": "b0"}, {"benchmark": "second", "column": "b0"}]},
        {"level": 1.0},
        {"blocks": [1]},
        {"draws": 10},
        {"probes": {"steps": 0}},
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    named = {"matrix": {"path": "m.csv", "sha256": "0" * 64}, "columns": {"path": "c.csv", "sha256": "1" * 64}, **options}
    with pytest.raises(ValidationError):
        BenchpressOptions.model_validate_json(json.dumps({"kind": "benchpress", **named}))
