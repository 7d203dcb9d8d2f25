"""A table beside the study: named by path and digest, looked at before anything is scored, kept in the run directory, and read from there again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Command

ANALYSIS = """analyses:
  - id: elsewhere
    kind: benchpress
    matrix: {{path: scores.csv, sha256: {matrix}}}
    columns: {{path: columns.csv, sha256: {columns}}}
    models: [{{model: good, row: row-3}}]
    blocks: [3]
    draws: 200
"""


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_tables(folder: Path, *, scale: str = "percent") -> None:
    rng = np.random.default_rng(5)
    ability, difficulty = rng.normal(size=(10, 1)), rng.normal(size=5)
    scores = np.round(100 / (1 + np.exp(difficulty - ability + 0.1 * rng.normal(size=(10, 5)))), 1)
    cells = [["" if (row + column) % 4 == 3 else str(score) for column, score in enumerate(line)] for row, line in enumerate(scores.tolist())]
    lines = ["model,b0,b1,b2,b3,b4", *(",".join((f"row-{row}", *line)) for row, line in enumerate(cells))]
    (folder / "scores.csv").write_text("\n".join(lines) + "\n")
    declared = [f"b{column},{scale if column == 1 else 'percent'},higher" for column in range(5)]
    (folder / "columns.csv").write_text("\n".join(["benchmark_id,scale,polarity", *declared]) + "\n")


def write_study(folder: Path, make: SimpleNamespace, *, scale: str = "percent") -> Path:
    study: Path = make.recorded(folder)
    write_tables(folder, scale=scale)
    asked = ANALYSIS.format(matrix=digest(folder / "scores.csv"), columns=digest(folder / "columns.csv"))
    study.write_text(study.read_text().replace("analyses:\n", asked))
    return study


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, make: SimpleNamespace, evalspec: Command) -> Path:
    folder = tmp_path_factory.mktemp("outside")
    write_study(folder, make)
    spoken = evalspec("run", "study.yaml", "--no-pdf", cwd=folder)
    assert spoken.code == 0, spoken.err
    return folder


def test_the_run_directory_keeps_each_table_under_its_digest(place: Path) -> None:
    kept = {path.name for path in (place / "reports" / "study").glob("table-*")}
    assert kept == {f"table-{digest(place / name)}.csv" for name in ("scores.csv", "columns.csv")}
    for path in (place / "reports" / "study").glob("table-*"):
        assert path.name == f"table-{digest(path)}.csv"


def test_findings_are_computed_again_from_the_run_directory_alone(place: Path, tmp_path: Path, evalspec: Command) -> None:
    moved = tmp_path / "elsewhere"
    (place / "reports" / "study").rename(moved)
    try:
        spoken = evalspec("verify", moved, "--trust", place / "reports" / "study.trust.yaml", "--recompute", cwd=tmp_path)
        assert (spoken.code, "recomputed: findings and verdict follow from the recorded responses" in spoken.out) == (0, True)
    finally:
        moved.rename(place / "reports" / "study")


def test_a_changed_table_is_an_altered_report(place: Path, evalspec: Command) -> None:
    kept = next((place / "reports" / "study").glob("table-*"))
    content = kept.read_bytes()
    kept.write_bytes(content.replace(b"row-1,", b"row-I,").replace(b"b0,percent", b"b0,fractio"))
    try:
        spoken = evalspec("verify", "reports/study", "--trust", "reports/study.trust.yaml", "--recompute", cwd=place)
        assert (spoken.code, kept.name in spoken.out) == (1, True)
    finally:
        kept.write_bytes(content)


def test_the_same_study_runs_again_over_its_own_directory(place: Path, evalspec: Command) -> None:
    assert evalspec("run", "study.yaml", "--no-pdf", cwd=place).code == 0


def test_predictions_are_marked_in_findings_and_stand_in_the_report(place: Path) -> None:
    findings = json.loads((place / "reports" / "study" / "findings.json").read_text(encoding="utf-8"))
    result = findings["findings"][0]["result"]
    assert {row["model"] for row in result["predictions"] if row["value"] is not None} == {"good"}
    page = (place / "reports" / "study" / "report.html").read_text(encoding="utf-8")
    assert "A prediction is no measurement." in page
    assert "Predicted, not measured: good" in page


def test_faults_of_a_table_are_told_by_validate_and_stop_a_run_before_it_scores(tmp_path: Path, evalspec: Command, make: SimpleNamespace) -> None:
    write_study(tmp_path, make, scale="fraction")
    for verb in ("validate", "plan", "run"):
        spoken = evalspec(verb, "study.yaml", cwd=tmp_path)
        assert (spoken.code, "'b1' is declared as fraction, and" in spoken.err) == (3, True), (verb, spoken.err)
    assert not (tmp_path / "reports").exists()


def test_another_file_than_the_declared_one_is_a_fault_of_the_study(tmp_path: Path, evalspec: Command, make: SimpleNamespace) -> None:
    write_study(tmp_path, make)
    (tmp_path / "scores.csv").write_text((tmp_path / "scores.csv").read_text().replace("row-1,", "row-one,"))
    spoken = evalspec("validate", "study.yaml", cwd=tmp_path)
    assert (spoken.code, '"scores.csv" is not the file that the study declares' in spoken.err) == (2, True)


def test_a_threshold_on_a_prediction_is_a_fault_of_the_study(tmp_path: Path, evalspec: Command, make: SimpleNamespace) -> None:
    study = write_study(tmp_path, make)
    check = "    - {id: hoped, analysis: elsewhere, metric: predicted_score, model: good, at_least: 70}\n"
    text = study.read_text()
    assert "  checks:\n" in text
    study.write_text(text.replace("  checks:\n", "  checks:\n" + check))
    spoken = evalspec("run", "study.yaml", cwd=tmp_path)
    assert (spoken.code, "a prediction satisfies no check" in spoken.err) == (2, True)
