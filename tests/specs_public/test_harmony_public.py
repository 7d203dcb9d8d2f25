"""A real public model is scored by option with its answer distributions, and predictive Harmony is computed from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalspec.analyses.catalogue import catalogue
from evalspec.cli import main
from evalspec.language.compile import compile_study

ROOT = Path(__file__).resolve().parents[2]
STUDY = ROOT / "specs" / "harmony-public.yaml"
MODEL = ROOT / ".cache" / "public-models" / "smollm2-135m-instruct"


@pytest.fixture(autouse=True)
def _model_is_there() -> None:
    if not MODEL.is_dir():
        pytest.skip("SmolLM2-135M-Instruct is not there; `make demo-public` fetches it")


def test_the_study_is_sound() -> None:
    study = compile_study(STUDY, catalogue()).study
    assert [request.kind for request in study.analyses] == ["intervals", "harmony", "harmony", "harmony"]


@pytest.mark.slow
def test_groups_are_made_of_what_the_model_would_answer_and_the_worst_subject_stands_beside_its_accuracy(tmp_path: Path) -> None:
    options = ["--no-pdf", "--quiet", "--throwaway-key", "--cache", str(tmp_path / "cache"), "--out", str(tmp_path / "run")]
    assert main(["run", str(STUDY), *options]) == 0
    findings: Any = json.loads((tmp_path / "run" / "findings.json").read_text(encoding="utf-8"))
    found = {one["request"]["id"]: one["result"] for one in findings["findings"]}
    (subjects,), (alike,) = found["subjects"]["rows"], found["alike"]["rows"]
    assert 0.65 < subjects["accuracy"] < 0.75  # 226 of 320 questions; another processor may move a few
    assert (subjects["k"], subjects["worst"]) == (8, "language")
    (partition,) = found["alike"]["partitions"]
    assert (partition["source"], partition["models"], partition["undefined"]) == ("predictive", ["smollm2"], None)
    assert alike["follows_choice"] < 0.5
    assert alike["follows_correctness"] < 0.3
    assert alike["flags"]
    assert 0 < alike["value"] < 1
    assert "lowest of 8 subjects: language" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
