"""A real public model is scored by option with its answer distributions, and predictive Harmony is computed from them.

The study runs as it stands but for its questions, of which every fourth is asked: what is tested does not hang on their number, and time does.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from evalspec.analyses.catalogue import catalogue
from evalspec.cli import main
from evalspec.language.compile import compile_study

ROOT = Path(__file__).resolve().parents[2]
STUDY = ROOT / "specs" / "harmony-public.yaml"
QUESTIONS = ROOT / "specs" / "public" / "general_knowledge.jsonl"
MODEL = Path(".cache", "public-models", "smollm2-135m-instruct")
EVERY = 4


@pytest.fixture(autouse=True, scope="module")
def _model_is_there() -> None:
    if not (ROOT / MODEL).is_dir():
        pytest.skip("SmolLM2-135M-Instruct is not there; `make demo-public` fetches it")


@pytest.fixture(scope="module")
def folder(_model_is_there: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of the study on every fourth question."""
    place = tmp_path_factory.mktemp("public")
    shutil.copytree(ROOT / MODEL, place / MODEL, copy_function=link)
    (place / "specs" / "public").mkdir(parents=True)
    (place / "evalspec.toml").write_text("", encoding="utf-8")
    asked = "".join(QUESTIONS.read_text(encoding="utf-8").splitlines(keepends=True)[::EVERY]).encode()
    (place / "specs" / "public" / QUESTIONS.name).write_bytes(asked)
    text, pinned = STUDY.read_text(encoding="utf-8"), hashlib.sha256(QUESTIONS.read_bytes()).hexdigest()
    assert pinned in text
    study = place / "specs" / STUDY.name
    study.write_text(text.replace(pinned, hashlib.sha256(asked).hexdigest()), encoding="utf-8")
    options = ["--no-pdf", "--quiet", "--throwaway-key", "--cache", str(place / "cache"), "--out", str(place / "run")]
    assert main(["run", str(study), *options]) == 0
    return place / "run"


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, Any]:
    findings = json.loads((folder / "findings.json").read_text(encoding="utf-8"))
    return {one["request"]["id"]: one["result"] for one in findings["findings"]}


def link(source: str, target: str) -> None:
    """Copy a file without its content where the file system can."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def test_the_study_is_sound() -> None:
    study = compile_study(STUDY, catalogue()).study
    assert [request.kind for request in study.analyses] == ["intervals", "harmony", "harmony", "harmony"]


@pytest.mark.slow
def test_groups_are_made_of_what_the_model_would_answer(found: dict[str, Any]) -> None:
    (alike,), (partition,) = found["alike"]["rows"], found["alike"]["partitions"]
    assert (partition["source"], partition["models"], partition["undefined"]) == ("predictive", ["smollm2"], None)
    assert alike["follows_choice"] < 0.5
    assert alike["follows_correctness"] < 0.3
    assert alike["flags"]
    assert 0 < alike["value"] < 1
    assert sum(group["n"] for group in alike["groups"]) == alike["n"] == 80


@pytest.mark.slow
def test_the_worst_subject_stands_beside_the_accuracy(found: dict[str, Any], folder: Path) -> None:
    (subjects,) = found["subjects"]["rows"]
    assert 0.55 < subjects["accuracy"] < 0.85  # 226 of all 320 questions
    lowest = min(subjects["groups"], key=lambda group: group["value"])
    assert (subjects["k"], subjects["worst"]) == (8, lowest["group"])
    page = (folder / "report.html").read_text(encoding="utf-8")
    decision = re.search(r'<section id="decision".*?</section>', page, re.DOTALL)
    assert decision
    assert f"<td>{subjects['worst']}</td>" in decision[0]
    assert "8 groups have fewer than 30 scored questions" in decision[0]
