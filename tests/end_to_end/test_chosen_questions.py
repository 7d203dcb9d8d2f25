"""A study asks the questions that other models' recorded answers choose, from the study file to the verified report."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from evalspec.cli import main

ARTICLE = Path(__file__).resolve().parents[2] / "specs" / "article"
STUDY = """apiVersion: evalspec/v1
title: What would two models score on 2,000 questions, judged by 150 of them?
seed: 3
models:
  - {{id: model-1, source: {{responses: article/responses.csv}}}}
  - {{id: model-2, source: {{responses: article/responses.csv}}}}
benchmarks:
  - id: synthetic
    source: {{file: article/questions.jsonl}}
    sample: {{method: chosen, by: {by}, size: 150, answers: {{path: article/responses.csv, sha256: "{digest}"}}}}
    scoring: {{method: letter}}
    disclosure: {disclosure}
analyses:
  - {{id: accuracy, kind: intervals}}
thresholds:
  checks:
    - {{id: floor, analysis: accuracy, metric: accuracy, model: model-1, bound: value, at_least: 0.5}}
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    shutil.copytree(ARTICLE, tmp_path / "article", ignore=shutil.ignore_patterns("*.py", "*.md"))
    return tmp_path


def written(place: Path, by: str = "confidence_strata", disclosure: str = "ids") -> Path:
    digest = hashlib.sha256((place / "article" / "responses.csv").read_bytes()).hexdigest()
    (place / "study.yaml").write_text(STUDY.format(by=by, digest=digest, disclosure=disclosure), encoding="utf-8")
    return place / "study.yaml"


def run(study: Path) -> tuple[int, Path]:
    out = study.parent / "out"
    options = ["--no-pdf", "--quiet", "--throwaway-key", "--cache", str(study.parent / "cache"), "--out", str(out)]
    return main(["run", str(study), *options]), out


def test_the_run_estimates_the_score_on_all_questions_and_verifies(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(written(place))
    assert code == 0  # the value is held against its limit, without error control
    protocol: dict[str, Any] = json.loads((out / "protocol.json").read_text(encoding="utf-8"))
    benchmark = protocol["benchmarks"][0]
    assert (len(benchmark["questions"]), benchmark["looked_at"]) == (150, 6)
    assert sum(question["weight"] for question in benchmark["questions"]) == pytest.approx(150)
    text = (out / "report.html").read_text(encoding="utf-8")
    assert "not drawn at random" in text
    assert "nothing says how far an estimate from them can be off" in text
    assert main(["verify", str(out), "--trust", f"{out}.trust.yaml", "--recompute"]) == 0
    assert "recomputed" in capsys.readouterr().out
    assert not list(out.glob("**/*answers*"))  # the table of other models is named by its digest, and not published


def test_hidden_questions_are_chosen_without_a_word_of_them(place: Path) -> None:
    code, out = run(written(place, disclosure="none"))
    assert code == 0
    identifier = json.loads((place / "article" / "questions.jsonl").read_text(encoding="utf-8").splitlines()[0])["id"]
    published = b"".join(file.read_bytes() for file in out.iterdir() if file.is_file())
    assert identifier.encode() not in published


def test_a_table_that_lacks_questions_stops_the_study_before_anything_is_scored(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = place / "article" / "other.csv"
    lines = (place / "article" / "responses.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    table.write_text("".join(lines[:-5]), encoding="utf-8")
    study = written(place)
    digest = hashlib.sha256(table.read_bytes()).hexdigest()
    text = study.read_text(encoding="utf-8")
    old = text.split('sha256: "')[1].split('"')[0]
    study.write_text(
        text.replace("answers: {path: article/responses.csv", "answers: {path: article/other.csv").replace(old, digest), encoding="utf-8"
    )
    assert main(["validate", str(study)]) == 3
    assert "no row for 5 of the source's questions" in capsys.readouterr().err
