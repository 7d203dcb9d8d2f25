"""Whole diagnostic output of broken studies; `make golden` writes it anew, to be reviewed as a diff."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from evalspec.errors import Diagnostic

STUDIES = sorted((Path(__file__).parent / "broken").glob("*.yaml"))
Faults = Callable[[bytes], tuple[Diagnostic, ...]]


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.stem)
def test_every_fault_is_named_with_its_place_and_a_hint_in_file_order(study: Path, faults: Faults) -> None:
    found = faults(study.read_bytes())
    places = [(fault.location.line, fault.location.column) for fault in found if fault.location]
    assert len(found) == len(places)
    assert sorted(places) == places
    expected, output = study.with_suffix(".txt"), "\n".join(map(str, found)) + "\n"
    if os.environ.get("EVALSPEC_UPDATE_GOLDEN") == "1":
        expected.write_text(output, encoding="utf-8")
    assert expected.read_text(encoding="utf-8") == output


def test_there_are_broken_studies_of_every_sort() -> None:
    assert len(STUDIES) >= 35
