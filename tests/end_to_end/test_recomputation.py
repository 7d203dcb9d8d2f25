from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalspec import tools
from evalspec.artifacts.findings import Findings
from evalspec.signing.keys import load_signer
from evalspec.signing.seal import seal
from evalspec.store import RunDirectory

if TYPE_CHECKING:
    from tests.conftest import Elsewhere
    from tests.end_to_end.conftest import Command, Run


def forge(run: Run, folder: Path, change: Callable[[Any], None]) -> None:
    """Change the findings, make the verdict fit them and seal everything with the genuine key, as a lying signer would."""
    shutil.copytree(run.folder, folder)
    directory = RunDirectory(folder)
    findings, verdict = json.loads(directory.read("findings.json")), directory.read_verdict()
    change(findings)
    forged = Findings.from_json(json.dumps(findings).encode())
    directory.write_findings(forged)
    directory.write_verdict(verdict.model_copy(update={"findings_sha256": forged.digest()}))
    claim = tools.claim(directory.read_study(), directory.read_protocol(), directory.read_verdict(), directory.read_ledger())
    seal(folder, load_signer(run.key, None), claim, pdf_skipped="not asked for")


def test_intact_findings_are_recomputed(scored: Run, evalspec: Command) -> None:
    spoken = evalspec("verify", scored.folder, "--trust", scored.trust, "--recompute", cwd=scored.workplace)
    assert (spoken.code, spoken.out.splitlines()[-1]) == (0, "recomputed: findings and verdict follow from the recorded responses")


def test_numbers_are_the_same_under_another_number_of_threads(scored: Run, process: Command) -> None:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "2")
    spoken = process("verify", scored.folder, "--trust", scored.trust, "--recompute", cwd=scored.workplace, env=threads)
    assert (spoken.code, "recomputed: findings and verdict follow" in spoken.out) == (0, True), spoken.out


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_other_numerical_libraries_find_the_same(scored: Run, threads: int, other_libraries: Path, elsewhere: Callable[..., Elsewhere]) -> None:
    found = elsewhere("verify", scored.folder, "--trust", scored.trust, "--recompute", threads=threads)
    assert (set(found.folders.values()), found.blas_threads) == ({other_libraries}, {min(threads, len(os.sched_getaffinity(0)))})
    assert not set(found.versions.items()) & {(name, version(name)) for name in found.versions}
    assert (found.code, "recomputed: findings and verdict follow" in found.out) == (0, True), found.out + found.err


@pytest.mark.slow
def test_the_published_example_reads_alike_under_other_numerical_libraries(
    root: Path, evalspec: Command, elsewhere: Callable[..., Elsewhere]
) -> None:
    command = ("verify", "reports/example", "--trust", "reports/example.trust.yaml", "--recompute")
    here, found = evalspec(*command, cwd=root), elsewhere(*command, threads=2)
    assert "report.html: each of its" in here.out
    assert (found.code, found.out) == (here.code, here.out), found.err


@pytest.mark.slow
def test_a_lying_signer_is_found_under_other_numerical_libraries(recorded: Run, tmp_path: Path, elsewhere: Callable[..., Elsewhere]) -> None:
    forge(recorded, tmp_path / "forged", raise_accuracy)
    found = elsewhere("verify", tmp_path / "forged", "--trust", recorded.trust, "--recompute", threads=2)
    assert (found.code, "differs by 0.05 at findings.json/findings/0/estimates/columns/value/0" in found.out) == (1, True), found.out


def test_report_pdf_is_what_the_page_renders_to(scored: Run, evalspec: Command) -> None:
    pytest.importorskip("weasyprint", reason="WeasyPrint is not installed", exc_type=ImportError)
    spoken = evalspec("verify", scored.folder, "--trust", scored.trust, "--render", cwd=scored.workplace)
    assert (spoken.code, "report.pdf is what report.html renders to, to the byte" in spoken.out) == (0, True), spoken.out


def test_without_trust_recomputed_findings_stay_untrusted(recorded: Run, evalspec: Command) -> None:
    spoken = evalspec("verify", recorded.folder, "--recompute", "--json", cwd=recorded.workplace)
    assert (spoken.code, spoken.content["exit_code"], spoken.content["recomputation"]["state"]) == (4, 4, "recomputed")


def raise_accuracy(findings: Any) -> None:
    findings["findings"][0]["estimates"]["columns"]["value"][0] += 0.05


def rename_kind(findings: Any) -> None:
    findings["findings"][0]["request"]["kind"] = "astrology"


def drop_finding(findings: Any) -> None:
    findings["findings"].clear()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (raise_accuracy, "differs by 0.05 at findings.json/findings/0/estimates/columns/value/0: recorded 0.95"),
        (rename_kind, "differs at findings.json/findings/0/request/kind"),
        (drop_finding, "differs"),
    ],
)
def test_a_lying_signer_is_found_by_recomputing(recorded: Run, tmp_path: Path, evalspec: Command, change: Callable[[Any], None], says: str) -> None:
    forge(recorded, tmp_path / "forged", change)
    assert evalspec("verify", "forged", "--trust", recorded.trust, cwd=tmp_path).code == 0
    spoken = evalspec("verify", "forged", "--trust", recorded.trust, "--recompute", cwd=tmp_path)
    assert (spoken.code, says in spoken.out) == (1, True), spoken.out


def test_altered_content_is_not_recomputed(recorded: Run, tmp_path: Path, evalspec: Command) -> None:
    shutil.copytree(recorded.folder, tmp_path / "copy")
    (tmp_path / "copy" / "findings.json").write_text("{}")
    spoken = evalspec("verify", "copy", "--trust", recorded.trust, "--recompute", cwd=tmp_path)
    assert (spoken.code, "not recomputable: the content is not as it was signed" in spoken.out) == (1, True)
