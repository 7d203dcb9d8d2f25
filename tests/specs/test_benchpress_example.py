"""The example of predicted scores reads real tables in place, and asks of the questions that its responses answer."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from evalspec.analyses.benchpress import ANALYSIS
from evalspec.analyses.catalogue import catalogue
from evalspec.analyses.outside import examine_tables, named_tables
from evalspec.cli import main
from evalspec.language.compile import compile_study

SPECS = Path(__file__).resolve().parents[2] / "specs"
STUDY = SPECS / "benchpress.yaml"


@pytest.fixture(scope="module")
def beside(shared: Path) -> Path:
    """The folder that holds the repository and the real tables."""
    if shared.resolve() != SPECS.parents[1] / "shared":
        pytest.skip(f"the study reads tables from a folder `shared` beside the repository, and they are at {shared}")
    return shared.resolve().parent


def test_the_study_is_sound_where_the_tables_lie_beside_the_repository(beside: Path) -> None:
    compiled = compile_study(STUDY, catalogue(), root=beside)
    requests = compiled.study.analyses
    tables = {table.sha256: (STUDY.parent / table.path).read_bytes() for table in named_tables(requests, catalogue())}
    assert len(tables) == 2
    assert list(examine_tables(requests, catalogue(), tables)) == []


def test_the_study_says_what_to_do_where_its_root_does_not_hold_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(STUDY)]) in {0, 2}
    told = capsys.readouterr().err
    assert not told or 'into the folder that holds both the study and the file, "../.." as seen from the study; an empty one will do' in told


def test_the_stand_ins_have_the_ids_of_the_replayed_questions(shared: Path) -> None:
    with gzip.open(shared / "data" / "gpqa_main_correct_420models.csv.gz", "rt", encoding="utf-8") as lines:
        next(lines)
        expected = [line.split(",", 1)[0] for line in lines]
    asked = [json.loads(line) for line in (SPECS / "benchpress" / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [question["id"] for question in asked] == expected
    assert {question["question"] for question in asked} == {"not published"}


@pytest.mark.slow
def test_measured_scores_of_real_models_are_held_against_what_their_published_ones_say(shared: Path, tmp_path: Path) -> None:
    """Two models, without probes: what the leaderboard's prompt measures on GPQA lies far below what reasoning models are reported to score."""
    for name in ("benchpress/scores.csv", "benchpress/benchmarks.csv", "gpqa_main_correct_420models.csv.gz"):
        target = tmp_path / "shared" / "data" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(shared / "data" / name, target)
    shutil.copytree(SPECS / "benchpress", tmp_path / "main" / "specs" / "benchpress")
    (tmp_path / "evalspec.toml").write_text("", encoding="utf-8")
    lines = STUDY.read_text(encoding="utf-8").splitlines()
    dropped = ("  - {id: ", "    probes:", "      - {model: r1", "    models:")
    kept = [line for line in lines if not line.startswith(dropped) or line.startswith(("  - {id: qwq", "  - {id: gemma-2-9b", "  - {id: accuracy"))]
    study = tmp_path / "main" / "specs" / "study.yaml"
    study.write_text("\n".join(kept) + "\n", encoding="utf-8")
    out = tmp_path / "run"
    assert main(["run", str(study), "--out", str(out), "--no-pdf", "--quiet", "--throwaway-key", "--cache", str(tmp_path / "cache")]) == 0
    findings: Any = json.loads((out / "findings.json").read_text(encoding="utf-8"))
    result = next(one["result"] for one in findings["findings"] if one["request"]["kind"] == ANALYSIS.kind)
    measured = {row["model"]: row for row in result["surprises"] if row["source"] == "measured"}
    assert measured["qwq-32b"]["inside"] is False
    assert measured["qwq-32b"]["score"] < 30
    assert measured["qwq-32b"]["low"] > 55
    assert measured["gemma-2-9b"]["inside"] is True
    assert {row["model"] for row in result["predictions"]} == {"qwq-32b", "gemma-2-9b"}
