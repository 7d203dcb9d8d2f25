"""A real public model answers real MMLU questions from its weights to a signed report; here a dozen of the 500."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest

from evalspec.cli import main

ROOT = Path(__file__).resolve().parents[2]
STUDY = ROOT / "specs" / "mmlu-500-smollm2.yaml"
MODEL = Path(os.environ.get("EVALSPEC_MODELS", ROOT / ".cache" / "public-models")) / "smollm2-135m-instruct"
QUESTIONS = Path(os.environ.get("EVALSPEC_SHARED", ROOT.parent / "shared")) / "data" / "mmlu_500_subject_balanced.jsonl"
ASKED = 12


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds repository and shared questions, as the study expects them, with an evalspec.toml that lets it read both."""
    if not QUESTIONS.is_file():
        pytest.skip("the shared questions are not beside the repository")
    folder = tmp_path_factory.mktemp("mmlu")
    (folder / "evalspec.toml").touch()
    (folder / "shared" / "data").mkdir(parents=True)
    shutil.copyfile(QUESTIONS, folder / "shared" / "data" / QUESTIONS.name)
    (folder / "main" / "specs").mkdir(parents=True)
    shutil.copyfile(STUDY, folder / "main" / "specs" / STUDY.name)
    return folder


@pytest.fixture(scope="module")
def with_model(place: Path) -> Path:
    if not (MODEL / "model.safetensors").is_file():
        pytest.skip("the public model is not here: python specs/public/fetch_models.py")
    pytest.importorskip("torch")
    shutil.copytree(MODEL, place / "main" / ".cache" / "public-models" / MODEL.name, copy_function=os.link if _one_disk(place) else shutil.copy2)
    return place


def _one_disk(place: Path) -> bool:
    return MODEL.stat().st_dev == place.stat().st_dev


def test_the_study_names_the_questions_that_are_there(place: Path) -> None:
    content = (place / "shared" / "data" / QUESTIONS.name).read_bytes()
    assert hashlib.sha256(content).hexdigest() in STUDY.read_text(encoding="utf-8")
    assert len(content.splitlines()) == 500


@pytest.mark.slow
def test_the_model_answers_and_the_report_is_built_anew_from_the_files(with_model: Path) -> None:
    whole = with_model / "main" / "specs" / STUDY.name
    study = whole.with_name("mmlu-few.yaml")
    few = f"sample: {{method: simple, size: {ASKED}}}\n    missing: wrong"
    study.write_text(whole.read_text(encoding="utf-8").replace("groups: {subject: strata}\n    missing: wrong", few), encoding="utf-8")
    out = with_model / "run"
    code = main(["run", str(study), "--no-pdf", "--quiet", "--throwaway-key", "--out", str(out), "--threads", "1"])
    assert code in {0, 1, 4}, "passed, failed or inconclusive: what a dozen questions say is not at stake here"
    origin = json.loads((out / "ledger.json").read_text(encoding="utf-8"))["jobs"][0]
    assert (origin["questions"], origin["reused"]) == (ASKED, 0)
    assert "smollm2-135m-instruct" in (out / "report.html").read_text(encoding="utf-8")
    assert main(["verify", str(out), "--trust", str(with_model / "run.trust.yaml"), "--recompute"]) == 0
