"""Harmony over the declared subjects of MMLU-Redux, whose real answers the study reads in place."""

from __future__ import annotations

import csv
import gzip
import json
import runpy
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from evalspec.analyses.catalogue import catalogue
from evalspec.cli import main
from evalspec.language.compile import compile_study

SPECS = Path(__file__).resolve().parents[2] / "specs"
STUDY = SPECS / "harmony-redux.yaml"
WHOLE = "all-models.yaml"
TABLE = "mmlu_redux_helm_correct_14models.csv.gz"
KEPT = ("claude-3.5-sonnet", "gpt-4o-2024-05", "mistral-large-2407")


@pytest.fixture(scope="module")
def answers(shared: Path) -> list[dict[str, str]]:
    with gzip.open(shared / "data" / TABLE, "rt", encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def beside(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a repository that holds the study, for three of its models, and the table beside it."""
    folder = tmp_path_factory.mktemp("redux")
    for name in ("shared/data", "main/specs/harmony", "main/.git"):
        (folder / name).mkdir(parents=True)
    shutil.copy2(shared / "data" / TABLE, folder / "shared" / "data" / TABLE)
    make = runpy.run_path(str(SPECS / "harmony" / "make_redux.py"))["make"]
    make(shared / "data" / TABLE, folder / "main" / "specs" / "harmony" / "redux.parquet")
    shutil.copy2(STUDY, folder / "main" / "specs" / WHOLE)
    lines = STUDY.read_text(encoding="utf-8").splitlines()
    models = tuple(f"  - {{id: {name}," for name in KEPT)
    kept = [line for line in lines if "{responses:" not in line or line.startswith(models)]
    (folder / "main" / "specs" / STUDY.name).write_text("\n".join(kept) + "\n", encoding="utf-8")
    return folder


def test_the_stand_ins_have_the_ids_and_subjects_of_the_replayed_questions(beside: Path, answers: list[dict[str, str]]) -> None:
    asked = pq.read_table(beside / "main" / "specs" / "harmony" / "redux.parquet").to_pylist()
    assert [(one["id"], one["subject"]) for one in asked] == [(row["item_id"], row["subject"].replace("_", " ")) for row in answers]
    assert {one["question"] for one in asked} == {"not published"}


def test_every_model_of_the_table_is_in_the_study_which_is_sound(beside: Path, answers: list[dict[str, str]]) -> None:
    study = compile_study(beside / "main" / "specs" / WHOLE, catalogue(), root=beside).study
    assert {getattr(model.source, "model", None) for model in study.models} == set(list(answers[0])[4:])


@pytest.mark.slow
def test_one_accuracy_hides_a_subject_far_below_it_once_the_folder_of_both_is_marked(
    beside: Path, answers: list[dict[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    study, out = beside / "main" / "specs" / STUDY.name, beside / "run"
    assert main(["validate", str(study)]) == 2
    assert 'put an evalspec.toml into the folder that holds both the study and the file, "../.."' in capsys.readouterr().err
    (beside / "evalspec.toml").write_text("", encoding="utf-8")
    options = ["--no-pdf", "--quiet", "--throwaway-key", "--cache", str(beside / "cache"), "--out", str(out)]
    assert main(["run", str(study), *options]) == 4
    findings: Any = json.loads((out / "findings.json").read_text(encoding="utf-8"))
    result = next(one["result"] for one in findings["findings"] if one["request"]["id"] == "subjects")
    rows = {row["model"]: row for row in result["rows"]}
    assert tuple(rows) == KEPT
    row = rows["claude-3.5-sonnet"]
    right = [int(one["anthropic_claude-3-5-sonnet-20240620"]) for one in answers if one["subject"] == "virology"]
    assert (row["k"], row["worst"], row["flags"]) == (57, "virology", [])
    assert row["lowest"]["value"] == pytest.approx(sum(right) / len(right))
    assert (row["size_harmony"], row["gap"]) == (pytest.approx(1.0), pytest.approx(0.43))
    assert 0.93 < row["value"] < 0.97
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("high school mathematics") >= 2
    assert "the accuracies of the subjects differ" in page
