from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalspec.reporting.pdf import LIBRARIES

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Command, Run


def statement_of(folder: Path) -> Any:
    return json.loads(base64.b64decode(json.loads((folder / "manifest.dsse.json").read_bytes())["payload"]))


def test_the_report_of_a_study_file_is_found_by_its_name(recorded: Run, evalspec: Command) -> None:
    spoken = evalspec("report", "study.yaml", "--key", recorded.key, "--no-pdf", "--json", cwd=recorded.workplace)
    assert (spoken.code, spoken.content["folder"], spoken.content["verdict"]) == (0, "reports/study", "passed")


def test_there_is_no_report_without_a_run(tmp_path: Path, evalspec: Command) -> None:
    spoken = evalspec("report", "study.yaml", cwd=tmp_path)
    assert (spoken.code, "run the study first: evalspec run study.yaml" in spoken.err) == (2, True)


def test_files_that_are_not_of_one_run_get_no_report(copied: Path, scored: Run, evalspec: Command) -> None:
    findings = json.loads((copied / "findings.json").read_bytes())
    findings["findings"][0]["estimates"]["columns"]["value"][0] += 0.01
    (copied / "findings.json").write_text(json.dumps(findings))
    spoken = evalspec("report", copied, "--key", scored.key, "--no-pdf", cwd=scored.workplace)
    assert (spoken.code, "was made from another findings.json" in spoken.err) == (3, True)


@pytest.fixture
def without_pango(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine without Pango: the loader finds, before any real one, a file of that name that is no library."""
    if os.uname().sysname != "Linux":
        pytest.skip("libraries are hidden by LD_LIBRARY_PATH, which only Linux has")
    hiding = tmp_path / "no-libraries"
    hiding.mkdir()
    for names in LIBRARIES.values():
        (hiding / names[0]).touch()
    return {"LD_LIBRARY_PATH": str(hiding)}


def test_without_pango_everything_else_is_written_and_signed_and_with_it_the_report_is_made_again_to_the_same_bytes(
    scored: Run, copied: Path, process: Command, evalspec: Command, without_pango: dict[str, str]
) -> None:
    page, pdf = (copied / "report.html").read_bytes(), (copied / "report.pdf").read_bytes()
    length = statement_of(copied)["predicate"]["pdf"]["unsignedPrefixBytes"]

    failed = process("report", copied, "--key", scored.key, "--quiet", cwd=scored.workplace, env=without_pango)
    assert failed.code == 3
    assert "the PDF report needs the Pango library, which is not installed" in failed.err
    assert "sudo apt-get install libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0" in failed.err
    assert "brew install pango" in failed.err
    assert "evalspec report" in failed.err
    assert "verdict: passed" in failed.out
    assert (copied / "report.html").read_bytes() == page
    assert not (copied / "report.pdf").exists()
    checked = evalspec("verify", copied, "--trust", scored.trust, cwd=scored.workplace)
    assert (checked.code, "note: this report has no PDF: the PDF report needs the Pango library" in checked.out) == (0, True)

    spoken = evalspec("report", copied, "--key", scored.key, cwd=scored.workplace)
    assert spoken.code == 0, spoken.err
    assert (copied / "report.html").read_bytes() == page
    assert statement_of(copied)["predicate"]["pdf"]["unsignedPrefixBytes"] == length
    assert (copied / "report.pdf").read_bytes()[:length] == pdf[:length]
    assert evalspec("verify", copied, "--trust", scored.trust, cwd=scored.workplace).code == 0


def test_without_pango_json_is_still_one_object(recorded: Run, process: Command, without_pango: dict[str, str]) -> None:
    spoken = process("report", recorded.folder, "--key", "signer.p12", "--json", cwd=recorded.workplace, env=without_pango)
    assert (spoken.code, spoken.content["verdict"], spoken.content["error"]) == (3, "passed", "MissingLibrary")


def test_doctor_names_pango_and_how_it_is_got(tmp_path: Path, process: Command, without_pango: dict[str, str]) -> None:
    found = process("doctor", "--json", cwd=tmp_path, env=without_pango)
    pango = next(entry for entry in found.content["examined"] if entry["name"] == "pango")
    assert (found.code, found.content["complete"], pango["present"]) == (3, False, False)
    assert "libpango-1.0-0" in pango["remedy"]
