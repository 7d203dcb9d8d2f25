"""Whole diagnostic output of broken studies; `make golden` writes it anew, to be reviewed as a diff."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from evalspec.analyses.catalogue import BUILT_IN
from evalspec.errors import StudyError
from evalspec.language.compile import compile_text
from evalspec.language.paths import Surroundings

BROKEN = Path(__file__).parent / "broken"
CATALOGUE = {analysis.kind: analysis for analysis in BUILT_IN}
STUDIES = sorted(BROKEN.glob("*.yaml"))


def told(study: Path) -> str:
    with pytest.raises(StudyError) as caught:
        compile_text(study.read_bytes(), study.name, CATALOGUE, Surroundings(BROKEN, BROKEN))
    return f"{caught.value}\n"


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.stem)
def test_every_fault_is_named_with_its_place_and_a_hint(study: Path) -> None:
    expected = study.with_suffix(".txt")
    output = told(study)
    if os.environ.get("EVALSPEC_UPDATE_GOLDEN") == "1":
        expected.write_text(output, encoding="utf-8")
    assert expected.read_text(encoding="utf-8") == output


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.stem)
def test_faults_come_in_file_order(study: Path) -> None:
    with pytest.raises(StudyError) as caught:
        compile_text(study.read_bytes(), study.name, CATALOGUE, Surroundings(BROKEN, BROKEN))
    places = [(fault.location.line, fault.location.column) for fault in caught.value.diagnostics if fault.location]
    assert sorted(places) == places
    assert len(places) == len(caught.value.diagnostics)


def test_there_are_at_least_thirty_five_broken_studies() -> None:
    assert len(STUDIES) >= 35
