"""The example of MDAD runs on synthetic responses, says so, and gives the same numbers again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from evalspec.cli import main
from evalspec.statistics.mdad_closed_form import rankable_gap

SPECS = Path(__file__).resolve().parents[2] / "specs"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of the study, taken through the whole pipeline, without a PDF."""
    place = tmp_path_factory.mktemp("mdad")
    options = ["--no-pdf", "--quiet", "--throwaway-key", "--cache", str(place / "cache"), "--out", str(place / "run")]
    assert main(["run", str(SPECS / "mdad.yaml"), *options]) == 0
    return place / "run"


@pytest.fixture(scope="module")
def rows(folder: Path) -> list[dict[str, Any]]:
    findings = json.loads((folder / "findings.json").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = next(one["result"]["rows"] for one in findings["findings"] if one["request"]["kind"] == "mdad")
    return found


def test_more_questions_rank_smaller_gaps(rows: list[dict[str, Any]]) -> None:
    gaps = [row["seen"]["rising"]["gap"] for row in rows]
    assert gaps == sorted(gaps, reverse=True)
    assert [row["questions"] for row in rows] == [10, 25, 50, 100, 250, 500]


def test_the_formula_lies_near_what_its_discordance_asks_for(rows: list[dict[str, Any]]) -> None:
    for row in rows[1:]:
        # The models disagree on about a fifth to a quarter of the questions.
        bounds = [rankable_gap(row["questions"], 1000, share) for share in (0.17, 0.30)]
        assert bounds[0] < row["formula"] < bounds[1]


def test_the_report_says_that_responses_are_synthetic_and_draws_the_curve(folder: Path) -> None:
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert "The responses are synthetic." in text
    assert "synthetic: uniform" in text
    assert "80 % agreement" in text


def test_the_numbers_follow_again_from_the_responses(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(folder), "--trust", f"{folder}.trust.yaml", "--recompute"]) == 0
    assert "recomputed" in capsys.readouterr().out


def test_plan_says_what_the_sample_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(SPECS / "mdad.yaml"), "--cache", str(tmp_path)]) == 0
    assert "Smallest gap ranked the right way round in 80 % of samples" in capsys.readouterr().out


@pytest.mark.slow
def test_the_example_on_real_answers_reads_them_in_place_and_finds_what_sixty_models_show(shared: Path, tmp_path: Path) -> None:
    for name, source in (("shared/data", shared / "data"), ("main/specs/benchpress", SPECS / "benchpress")):
        (tmp_path / name).mkdir(parents=True)
        for file in ("gpqa_main_correct_420models.csv.gz", "questions.jsonl"):
            if (source / file).exists():
                shutil.copy2(source / file, tmp_path / name / file)
    (tmp_path / "evalspec.toml").write_text("", encoding="utf-8")
    study = tmp_path / "main" / "specs" / "mdad-gpqa.yaml"
    shutil.copy2(SPECS / study.name, study)
    out = tmp_path / "run"
    assert main(["run", str(study), "--out", str(out), "--no-pdf", "--quiet", "--throwaway-key", "--cache", str(tmp_path / "cache")]) == 0
    findings = json.loads((out / "findings.json").read_text(encoding="utf-8"))
    found = {(row["sampler"], row["questions"]): row for row in findings["findings"][0]["result"]["rows"]}
    # The tolerances of 420 models, widened by half a point for sixty of them.
    for size, points, tolerance in ((25, 12.0, 2.0), (50, 7.5, 1.5), (100, 4.0, 1.0), (200, 1.5, 0.5)):
        assert 100 * found["uniform", size]["seen"]["published"]["gap"] == pytest.approx(points, abs=tolerance)
    assert "tells only 199 of them apart" in found["diversity", 200]["undefined"]
    assert "No score of a single model is estimated here" in (out / "report.html").read_text(encoding="utf-8")
