from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from evalspec.analyses.benchpress import ANALYSIS, compute, estimates, examine, plot_hidden, plot_probes
from evalspec.analyses.benchpress_models import FEWEST_KNOWN, NOT_PREDICTABLE, TOO_FEW_KNOWN, TOO_WIDE
from evalspec.analyses.benchpress_options import BenchpressOptions
from evalspec.analyses.benchpress_results import BenchpressResult
from evalspec.artifacts.base import sha256_hex
from evalspec.artifacts.findings import Finding, Findings
from evalspec.artifacts.responses import Responses
from evalspec.artifacts.study import AnalysisRequest
from evalspec.artifacts.thresholds import Check, Thresholds
from evalspec.errors import AnalysisError
from evalspec.gating import PREDICTED, gate
from evalspec.protocols import Context
from evalspec.reporting.documents import Documents
from evalspec.reporting.figures import Chart
from evalspec.reporting.templates import make_environment
from evalspec.testing import check_analysis, sample_responses

ROWS = 16
SCALES = (*("percent",) * 6, "fraction", "unbounded")
NAMES = tuple(f"b{index}" for index in range(len(SCALES)))


def made_up() -> np.ndarray[Any, np.dtype[np.float64]]:
    """Scores of models of one ability, a third of them missing; the sixth column is a fraction, the last an Elo number."""
    rng = np.random.default_rng(11)
    ability, difficulty = rng.normal(size=(ROWS, 1)), rng.normal(size=len(SCALES))
    scores = np.round(100.0 / (1.0 + np.exp(-(ability - difficulty + 0.15 * rng.normal(size=(ROWS, len(SCALES)))))), 1)
    scores[:, 6] /= 100.0
    scores[:, 7] = np.round(1200.0 + 90.0 * ability[:, 0])
    hidden = rng.random(scores.shape) < 0.33
    hidden[:, :4] = False
    scores[hidden] = np.nan
    return scores


def matrix_csv(scores: Any = None, models: list[str] | None = None) -> bytes:
    scores = made_up() if scores is None else scores
    models = models or [f"row {index}" for index in range(len(scores))]
    lines = [",".join(("model", *NAMES))]
    lines += [",".join((name, *("" if np.isnan(cell) else f"{cell:g}" for cell in row))) for name, row in zip(models, scores, strict=True)]
    return ("\n".join(lines) + "\n").encode()


def columns_csv(**changed: str) -> bytes:
    declared = enumerate(zip(NAMES, SCALES, strict=True), start=1)
    rows = [f"{name},{changed.get(name, scale)},{'lower' if name == 'b5' else 'higher'},{cost}" for cost, (name, scale) in declared]
    return ("benchmark_id,scale,polarity,cost\n" + "\n".join(rows) + "\n").encode()


def given(matrix: bytes | None = None, columns: bytes | None = None, **options: object) -> tuple[BenchpressOptions, dict[str, bytes]]:
    matrix, columns = matrix or matrix_csv(), columns or columns_csv()
    tables = {sha256_hex(matrix): matrix, sha256_hex(columns): columns}
    named = {
        "matrix": {"path": "scores.csv", "sha256": sha256_hex(matrix)},
        "columns": {"path": "columns.csv", "sha256": sha256_hex(columns)},
        "blocks": [3, 9],
        "draws": 200,
        **options,
    }
    return BenchpressOptions.model_validate_json(json.dumps({"kind": "benchpress", **named})), tables


RESPONSES = sample_responses(models=3, questions=60)
MODELS = [
    {"model": "model-0", "row": "row 4"},
    {"model": "model-1", "known": {"b0": 61.0, "b1": 55.5, "b2": 40.0, "b3": 70.0, "b7": 1250}},
]


@cache
def computed(**options: Any) -> BenchpressResult:
    asked = {"models": MODELS, "measured": [{"benchmark": "first", "column": "b5"}], **{name: json.loads(value) for name, value in options.items()}}
    parsed, tables = given(**asked)
    return compute(RESPONSES, parsed, Context(rng=np.random.default_rng(1), tables=tables))


def told(matrix: bytes | None = None, columns: bytes | None = None, **options: object) -> list[str]:
    parsed, tables = given(matrix, columns, **options)
    return [str(fault) for fault in examine(parsed, tables)]


def test_the_study_s_models_are_predicted_where_nothing_is_known_of_them_and_nowhere_else() -> None:
    result = computed()
    scores = made_up()
    rows = {row.model: row for row in result.models}
    assert (rows["model-0"].row, rows["model-1"].row, rows["model-2"].row) == ("row 4", None, None)
    known = {"model-0": {NAMES[at] for at in np.flatnonzero(~np.isnan(scores[4]))} | {"b5"}, "model-1": {"b0", "b1", "b2", "b3", "b5", "b7"}}
    for model, names in known.items():
        assert rows[model].known == len(names)
        assert {row.column for row in result.predictions if row.model == model} == set(NAMES) - names
    for row in result.predictions:
        if row.value is None:
            continue
        assert row.low is not None
        assert row.high is not None
        assert row.low <= row.value <= row.high
        top = {"percent": 100.0, "fraction": 1.0, "unbounded": np.inf}[row.scale]
        assert row.high <= top
        assert row.scale == "unbounded" or row.low >= 0


def test_a_model_with_too_few_known_scores_is_refused_with_the_reason() -> None:
    result = computed()
    few = next(row for row in result.models if row.model == "model-2")
    assert (few.known, few.measured, few.undefined) == (1, 1, TOO_FEW_KNOWN)
    assert few.known < FEWEST_KNOWN
    rows = [row for row in result.predictions if row.model == "model-2"]
    assert rows
    assert {row.undefined for row in rows} == {TOO_FEW_KNOWN}
    assert all(row.value is None for row in rows)


def test_what_another_model_of_the_study_scores_moves_no_prediction() -> None:
    parsed, tables = given(models=MODELS)
    alone = Responses(
        benchmarks=tuple(
            replace(entry, models=entry.models[:1], scores=entry.scores[:1], reasons=entry.reasons[:1], choices=entry.choices[:1])
            for entry in RESPONSES.benchmarks
        ),
        origins=RESPONSES.origins,
        protocol_sha256=RESPONSES.protocol_sha256,
    )
    both, one = (compute(part, parsed, Context(rng=np.random.default_rng(1), tables=tables)) for part in (RESPONSES, alone))
    assert [row for row in both.predictions if row.model == "model-0"] == list(one.predictions)
    assert both.errors == one.errors


def test_measured_and_reported_scores_are_held_against_intervals_made_without_them() -> None:
    result = computed()
    measured = {row.model: row for row in result.surprises if row.source == "measured"}
    assert set(measured) == {"model-0", "model-1", "model-2"}
    for row, scores in zip(measured.values(), RESPONSES.benchmarks[0].settled(), strict=True):
        assert row.column == "b5"
        assert row.score == pytest.approx(100.0 * scores.mean())
        assert row.score_low is not None
        assert row.score_high is not None
        assert row.score_low < row.score < row.score_high
    reported = [row for row in result.surprises if row.source == "reported" and row.model == "model-1"]
    assert {row.column for row in reported} == {"b0", "b1", "b2", "b3", "b7"}
    for row in result.surprises:
        if row.inside is None:
            assert row.undefined is not None
            continue
        assert row.low is not None
        assert row.high is not None
        assert row.inside == (row.low <= row.score <= row.high)
    for count in result.surprise_counts:
        own = [row for row in result.surprises if row.source == count.source]
        assert count.checked + count.unchecked == len(own)
        assert count.outside == sum(row.inside is False for row in own)
        assert count.expected == pytest.approx(0.1 * count.checked)


def test_a_score_that_does_not_fit_a_model_s_others_lies_outside_its_interval() -> None:
    like = {name: score for name, score in zip(NAMES, made_up()[7].tolist(), strict=True) if not np.isnan(score)}
    odd = [{"model": "model-1", "known": {**like, "b2": 0.0 if like["b2"] > 50 else 100.0}}]
    rows = {row.column: row for row in computed(models=json.dumps(odd), measured="[]").surprises if row.model == "model-1"}
    assert rows["b2"].inside is False
    assert rows["b2"].half_widths is not None
    assert rows["b2"].half_widths > 1


def test_a_model_whose_known_scores_leave_their_intervals_too_often_is_cautioned() -> None:
    odd = {f"b{place}": 97.0 if place % 2 else 3.0 for place in range(6)}
    row = computed(models=json.dumps([{"model": "model-0", "known": odd}])).models[0]
    assert row.checked >= 5
    assert row.held < 0.8 * row.checked
    assert "missed" in row.cautions
    plain = computed()
    for row in plain.models:
        own = [one for one in plain.surprises if one.model == row.model and one.inside is not None]
        assert (row.checked, row.held) == (len(own), sum(bool(one.inside) for one in own))


def test_errors_stand_beside_both_baselines_and_the_published_definition_is_labelled() -> None:
    result = computed()
    assert {(row.scope, row.predictor) for row in result.errors} == {
        (scope, predictor) for scope in ("points", "unbounded", "published") for predictor in ("completion", "additive", "median")
    }
    by = {(row.scope, row.predictor): row for row in result.errors}
    assert by["points", "completion"].median < by["points", "median"].median
    known = int((~np.isnan(made_up())).sum())
    assert by["published", "completion"].n + by["published", "completion"].unpredicted == 10 * known
    assert result.folds == 30
    assert {row.hidden: row.n for row in result.coverage} == {"third": 10 * known, "twentieth": known}


def test_every_benchmark_and_every_model_of_the_matrix_has_its_own_line() -> None:
    result = computed()
    assert [row.column for row in result.benchmarks] == list(NAMES)
    assert [row.polarity for row in result.benchmarks] == ["lower" if name == "b5" else "higher" for name in NAMES]
    assert len(result.matrix_models) == ROWS
    assert all(row.coverage is not None and 0 <= row.coverage <= 1 for row in result.matrix_models)


def test_a_block_that_no_three_models_complete_says_why() -> None:
    three, nine = computed().blocks
    assert three.undefined is None
    assert three.two is not None
    assert nine.undefined == "a block has 2 to 8 benchmarks; got 9"


def test_estimates_are_marked_as_predicted_and_carry_the_column_s_polarity() -> None:
    found = estimates(computed(measured="[]"))
    assert {estimate.basis for estimate in found} == {"predicted"}
    assert {estimate.unit for estimate in found} == {"score"}
    assert {estimate.polarity for estimate in found if estimate.benchmark == "b5"} == {"lower_is_better"}
    assert {estimate.confidence_level for estimate in found} == {0.9}


def test_the_gate_lets_no_prediction_decide_whatever_a_plug_in_asks() -> None:
    found = next(estimate for estimate in estimates(computed()) if estimate.value is not None)
    request = AnalysisRequest(id="benchpress", kind="benchpress", benchmarks=(found.benchmark,), options={"kind": "benchpress"})
    findings = Findings(
        protocol_sha256="1" * 64, responses_sha256="2" * 64, summaries=(), findings=(Finding(request=request, estimates=(found,), result={}),)
    )
    for bound in (None, "value"):
        check = Check(id="c", analysis="benchpress", metric="predicted_score", model=found.models[0], bound=bound, at_least=-1e9)
        result = gate(findings, Thresholds(checks=(check,))).checks[0]
        assert (result.outcome, result.why) == ("inconclusive", PREDICTED)


def test_an_interval_wider_than_the_study_allows_is_not_given() -> None:
    wide, narrow = computed(), computed(widest="0.5")
    assert any(row.value is not None for row in wide.predictions)
    assert {row.undefined for row in narrow.predictions if row.model != "model-2"} <= {TOO_WIDE, wide.predictions[0].undefined} - {None}


def test_targets_are_all_that_is_predicted() -> None:
    assert {row.column for row in computed(targets='["b4", "b7"]').predictions} <= {"b4", "b7"}


def test_probes_are_chosen_again_without_parts_of_the_models() -> None:
    found = computed(probes='{"steps": 2, "folds": 4}').probes
    assert found is not None
    assert [row.hidden > row.revealed for row in found.rows] == [True, True]
    assert all(row.chosen is not None and row.cross_validated is not None for row in found.rows)
    assert sum(row.chosen or 0 for row in found.rows) + sum(other.chosen for other in found.others) == 8
    once = computed(probes='{"steps": 2, "folds": null}').probes
    assert once is not None
    assert [row.column for row in once.rows] == [row.column for row in found.rows]
    assert once.rows[0].cross_validated is None


def test_probes_end_where_no_hidden_score_is_left() -> None:
    result = computed(mode='"compat"', probes='{"steps": 15, "folds": 2}').probes
    assert result is not None
    assert len(result.rows) == len(NAMES) - 1
    assert all(row.cells > 0 for row in result.rows)


def test_a_budget_is_kept() -> None:
    found = computed(probes='{"steps": 4, "folds": null, "budget": 6}').probes
    assert found is not None
    assert found.rows[-1].cost is not None
    assert found.rows[-1].cost <= 6


def test_the_published_method_needs_no_declared_columns_and_takes_ten_starts() -> None:
    parsed, tables = given(mode="compat", columns=None, models=MODELS[:1])
    result = compute(RESPONSES, parsed.model_copy(update={"columns": None}), Context(rng=np.random.default_rng(1), tables=tables))
    assert (result.mode, result.matrix.starts, result.matrix.points, result.matrix.unbounded) == ("compat", 10, 7, 1)
    assert {row.polarity for row in result.benchmarks} == {"undeclared"}


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


def test_a_column_without_a_score_is_said_to_be_unpredictable_and_a_full_matrix_to_have_no_empty_cell() -> None:
    matrix = made_up()
    matrix[:, 6] = np.nan
    parsed, tables = given(matrix_csv(matrix), models=MODELS[:1])
    result = compute(RESPONSES, parsed, Context(rng=np.random.default_rng(1), tables=tables))
    assert next(row.undefined for row in result.predictions if (row.model, row.column) == ("model-0", "b6")) == NOT_PREDICTABLE
    full = np.where(np.isnan(matrix), 50.0, matrix)[:, :6]
    full = np.column_stack([full, full[:, 0] / 100.0, 1200.0 + full[:, 1]])
    parsed, tables = given(matrix_csv(full), mode="compat")
    result = compute(RESPONSES, parsed, Context(rng=np.random.default_rng(1), tables=tables))
    assert (result.starts.median, result.starts.ninth_decile, result.starts.largest) == (None, None, None)
    assert "No cell is empty that could be predicted" in rendered(result)


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


def test_it_passes_what_every_analysis_must_pass() -> None:
    parsed, tables = given(models=MODELS[:1], measured=[{"benchmark": "second", "column": "b5"}], probes={"steps": 1, "folds": 2})
    check_analysis(ANALYSIS, json.loads(parsed.model_dump_json()), RESPONSES, tables=tables)


@pytest.mark.parametrize(
    ("probes", "why"),
    [
        ('{"steps": 3, "folds": null, "candidates": ["b2", "b3"]}', "3 probes were asked for, and only 2 were added: there are no more candidates."),
        (
            '{"steps": 4, "folds": null, "budget": 6}',
            "were added: no further candidate fits the budget and leaves a hidden score that can be predicted.",
        ),
    ],
)
def test_a_search_that_ends_early_says_how_many_probes_were_asked_for(probes: str, why: str) -> None:
    assert why in rendered(computed(probes=probes))


def test_a_search_that_finds_all_probes_says_nothing_of_an_early_end() -> None:
    assert "were asked for" not in rendered(computed(probes='{"steps": 2, "folds": 4}'))


def test_hidden_scores_are_drawn_against_their_predictions_and_probes_as_a_path() -> None:
    result = computed(probes='{"steps": 2, "folds": 4}')
    chart = Chart()
    plot_hidden(result, chart)
    drawn: Any = chart.draw("wide").drawn
    line, cloud, own = drawn["curves"]
    assert (line["joined"], cloud["joined"], own["joined"]) == (True, False, False)
    assert [(point["x"], point["y"]) for point in cloud["points"]] == [(point.actual, point.predicted) for point in result.drawn]
    path = Chart()
    plot_probes(result, path)
    assert [len(curve["points"]) for curve in path.draw("narrow").drawn["curves"]] == [2, 2, 2]  # type: ignore[union-attr, index, call-overload]
    without = Chart()
    plot_probes(computed(), without)
    assert without.empty


def rendered(result: BenchpressResult) -> str:
    request = AnalysisRequest(id="asked", kind="benchpress", benchmarks=("first",), options={"kind": "benchpress"})
    finding = Finding(request=request, estimates=(), result=json.loads(result.model_dump_json()))
    environment = make_environment(Documents({"findings.json": {"findings": [json.loads(finding.model_dump_json())]}}))
    body = environment.get_template(ANALYSIS.template).render(
        request=request, result=result, at="/findings/0", estimates=(), figure="", further_figures=["(path)"]
    )
    return " ".join(re.sub(r"<[^>]+>", " ", body).split())


def test_the_report_says_that_a_prediction_is_no_measurement_and_labels_the_published_definitions() -> None:
    text = rendered(computed(probes='{"steps": 2, "folds": 4}'))
    assert "A prediction is no measurement. " in text
    assert "It satisfies no check" in text
    assert "Predicted, not measured: model-0" in text
    assert "Published definition: all of them at once, each in its own units" in text
    assert "counts the probes' own scores as predicted without error" in text.replace("&#39;", "'")
    assert "(path)" in text
    assert TOO_FEW_KNOWN.replace("'", "&#39;") in text
    assert text.index("Benchmarks whose scale ends, in points") < text.index("Published definition")


@pytest.mark.parametrize(
    "place", ["templates/analyses/benchpress.html.j2", "docs/benchpress.md", "specs/benchpress.yaml", "specs/benchpress/README.md"]
)
def test_no_text_says_that_testing_may_be_skipped(root: Path, place: str) -> None:
    text = (root / place).read_text(encoding="utf-8").lower()
    for words in ("skip", "instead of running", "instead of testing", "without running", "without testing", "no need to", "not need to", "save "):
        assert words not in text, words


def test_a_completion_that_is_no_better_than_a_baseline_is_said_aloud() -> None:
    result = computed()

    def page(**medians: float) -> str:
        errors = [row.model_copy(update={"median": medians[row.predictor]}) for row in result.errors]
        return rendered(result.model_copy(update={"errors": tuple(errors)})).replace("&#39;", "'")

    assert "no better than" not in page(completion=2.0, additive=3.0, median=4.0)
    assert "no better than benchmark's median (" in page(completion=2.0, additive=3.0, median=2.0)
    assert "no better than model and benchmark alone or benchmark's median (" in page(completion=2.0, additive=1.0, median=1.5)


def test_the_report_of_a_result_without_probes_or_predictions_is_whole() -> None:
    assert "Which few benchmarks tell most" not in rendered(computed())
    assert "Predicted, not measured" not in rendered(computed(targets='["b0"]', models="[]"))


def test_a_search_that_finds_no_probe_says_so_and_draws_nothing() -> None:
    result = computed(probes='{"steps": 2, "folds": 4}')
    assert result.probes is not None
    nothing = result.model_copy(update={"probes": result.probes.model_copy(update={"rows": (), "others": ()})})
    assert "No probe leaves a hidden score that can be predicted" in rendered(nothing)
    chart = Chart()
    plot_probes(nothing, chart)
    assert chart.empty


def test_the_published_method_prints_the_published_figures_under_their_label(shared: Path) -> None:
    matrix = (shared / "data" / "benchpress" / "scores.csv").read_bytes()
    named = {"kind": "benchpress", "mode": "compat", "matrix": {"path": "scores.csv", "sha256": sha256_hex(matrix)}, "targets": ["mmlu_pro"]}
    options = BenchpressOptions.model_validate_json(json.dumps(named))
    result = compute(RESPONSES, options, Context(rng=np.random.default_rng(1), tables={sha256_hex(matrix): matrix}))
    pooled = next(row for row in result.errors if (row.scope, row.predictor) == ("published", "completion"))
    assert (pooled.median, pooled.median_relative) == pytest.approx((4.598, 0.0776), abs=5e-4)
    order = {(row.margin, row.hidden): row.median for row in result.order if row.published or row.margin == 0}
    assert (order[0.0, "any"], order[5.0, "any"]) == pytest.approx((0.8383, 0.9205), abs=5e-5)
    assert [(block.benchmarks, block.models) for block in result.blocks] == [(4, 42), (7, 11), (10, 7), (13, 6)]
