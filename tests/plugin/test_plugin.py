"""An analysis from another package: installed by `make test`, found by its entry point, held to the same rules."""

from __future__ import annotations

import json
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from evalspec.analyses.catalogue import ENTRY_POINT_GROUP, catalogue
from evalspec.cli import main
from evalspec.errors import StudyError
from evalspec.language.compile import compile_study
from evalspec.language.scaffold import STUDY, starter_files
from evalspec.testing import check_analysis

CHECK = "    - {id: alike, analysis: agreement, metric: agreement, model: candidate, baseline: baseline, at_least: 0.4}\n"


def study_with(folder: Path, check: str, *, replaced: tuple[str, str] = ("", "")) -> Path:
    """Write a first study that also asks how much its two models agree."""
    for name, text in starter_files((), catalogue()).items():
        (folder / name).write_text(text, encoding="utf-8")
    study = folder / STUDY
    asked = study.read_text(encoding="utf-8").replace("\nthresholds:", "  - {id: agreement, kind: agreement}\n\nthresholds:") + check
    study.write_text(asked.replace(*replaced), encoding="utf-8")
    return study


def test_the_plug_in_is_found_by_its_entry_point() -> None:
    assert "agreement" in entry_points(group=ENTRY_POINT_GROUP).names, "install it: pip install ./tests/plugin"
    assert "agreement" in catalogue()


def test_the_plug_in_passes_what_every_analysis_must_pass() -> None:
    check_analysis(catalogue()["agreement"], {"kind": "agreement"})


def test_a_threshold_can_stand_on_a_metric_of_two_models_that_a_plug_in_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study_with(tmp_path, CHECK)
    monkeypatch.chdir(tmp_path)
    assert main(["run", STUDY, "--no-pdf", "--json"]) == 0
    outcomes = {check["check"]["id"]: check["outcome"] for check in json.loads(capsys.readouterr().out)["checks"]}
    assert outcomes["alike"] == "passed"


def test_either_order_of_the_two_models_will_do(tmp_path: Path) -> None:
    study = study_with(tmp_path, CHECK, replaced=("model: candidate, baseline: baseline", "model: baseline, baseline: candidate"))
    assert compile_study(study, catalogue()).study.thresholds


@pytest.mark.parametrize(
    ("replaced", "says"),
    [
        ((", baseline: baseline, at", ", at"), 'check "alike" is about agreement, which is of two models, and has no "baseline"'),
        (
            ("analysis: agreement, metric: agreement", "analysis: accuracy, metric: accuracy"),
            'check "alike" is about accuracy, which takes no baseline',
        ),
        (("baseline: baseline,", "baseline: candidate,"), 'check "alike" compares "candidate" with itself'),
    ],
)
def test_what_a_metric_is_about_follows_from_the_analysis(tmp_path: Path, replaced: tuple[str, str], says: str) -> None:
    with pytest.raises(StudyError, match=says):
        compile_study(study_with(tmp_path, CHECK, replaced=replaced), catalogue())
