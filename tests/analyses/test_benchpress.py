from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from evalspec.analyses.benchpress import ANALYSIS, compute, estimates
from evalspec.analyses.benchpress_models import FEWEST_KNOWN, NOT_PREDICTABLE, TOO_FEW_KNOWN, TOO_WIDE
from evalspec.analyses.benchpress_options import BenchpressOptions
from evalspec.analyses.benchpress_results import BenchpressResult
from evalspec.artifacts.base import sha256_hex
from evalspec.artifacts.findings import Finding, Findings
from evalspec.artifacts.responses import Responses
from evalspec.artifacts.study import AnalysisRequest
from evalspec.artifacts.thresholds import Check, Thresholds
from evalspec.gating import PREDICTED, gate
from evalspec.protocols import Context
from evalspec.reporting.documents import Documents
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


def rendered(result: BenchpressResult) -> str:
    request = AnalysisRequest(id="asked", kind="benchpress", benchmarks=("first",), options={"kind": "benchpress"})
    finding = Finding(request=request, estimates=(), result=json.loads(result.model_dump_json()))
    environment = make_environment(Documents({"findings.json": {"findings": [json.loads(finding.model_dump_json())]}}))
    body = environment.get_template(ANALYSIS.template).render(
        request=request, result=result, at="/findings/0", estimates=(), figure="", further_figures=["(path)"]
    )
    return " ".join(re.sub(r"<[^>]+>", " ", body).split())


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


def test_it_passes_what_every_analysis_must_pass() -> None:
    parsed, tables = given(models=MODELS[:1], measured=[{"benchmark": "second", "column": "b5"}], probes={"steps": 1, "folds": 2})
    check_analysis(ANALYSIS, json.loads(parsed.model_dump_json()), RESPONSES, tables=tables)
