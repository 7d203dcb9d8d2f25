"""A report.html that was edited by hand and signed again with the genuine key is told by --recompute, with the place and both values."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalspec import __version__, tools
from evalspec.artifacts.base import canonical_json
from evalspec.signing.keys import load_signer
from evalspec.signing.seal import seal
from evalspec.signing.statement import Claim
from evalspec.store import RunDirectory

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Command, Run

SAME = re.compile(r"report\.html: each of its \d+ numbers is the one that the files have, and its text is what they compose to")


def claim_of(directory: RunDirectory) -> Claim:
    return tools.claim(directory.read_study(), directory.read_protocol(), directory.read_verdict(), directory.read_ledger())


def rewrite(run: Run, folder: Path, change: Callable[[str], str], *, claim: Callable[[Claim], Claim] = lambda claim: claim) -> Path:
    """Copy a run, change its page and seal everything with the genuine key, as a lying signer would."""
    shutil.copytree(run.folder, folder)
    (folder / "report.pdf").unlink(missing_ok=True)
    page = folder / "report.html"
    before = page.read_text()
    page.write_text(change(before))
    seal(folder, load_signer(run.key, None), claim(claim_of(RunDirectory(folder))), pdf_skipped="not asked for")
    return folder


def unchanged(page: str) -> str:
    return page


def better(page: str) -> str:
    """Print a better accuracy, as value and in words."""
    changed = re.sub(
        r'<data value="0\.9" data-path="(/findings/0/estimates/columns/value/0)">90[^<]*</data>',
        r'<data value="0.99" data-path="\1">99 %</data>',
        page,
    )
    assert changed != page
    return changed


def better_in_words(page: str) -> str:
    """Print a better accuracy in words alone."""
    changed = re.sub(r'(<data value="0\.9" data-path="/findings/0/estimates/columns/value/0">)90[^<]*(</data>)', r"\g<1>99 %\2", page)
    assert changed != page
    return changed


def bolder(page: str) -> str:
    changed = page.replace("Signed does not mean true", "Signed and true")
    assert changed != page
    return changed


def test_the_pages_of_runs_are_what_their_files_compose_to(scored: Run, recorded: Run, evalspec: Command) -> None:
    for run in (scored, recorded):
        spoken = evalspec("verify", run.folder, "--trust", run.trust, "--recompute", cwd=run.workplace)
        assert (spoken.code, bool(SAME.search(spoken.out))) == (0, True), spoken.out


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (better, "differs at report.html, /findings/0/estimates/columns/value/0: the page has 0.99, the files have 0.9"),
        (
            better_in_words,
            "differs at report.html, /findings/0/estimates/columns/value/0: the page has 0.9 as '99 %', the files have 0.9 as '90 %'",
        ),
        (bolder, "Signed and true"),
    ],
)
def test_a_page_that_was_edited_by_hand_is_told(recorded: Run, tmp_path: Path, evalspec: Command, change: Callable[[str], str], says: str) -> None:
    folder = rewrite(recorded, tmp_path / "edited", change)
    assert evalspec("verify", folder, "--trust", recorded.trust, cwd=tmp_path).code == 0
    spoken = evalspec("verify", folder, "--trust", recorded.trust, "--recompute", cwd=tmp_path)
    assert (spoken.code, says in spoken.out) == (1, True), spoken.out
    content = evalspec("verify", folder, "--trust", recorded.trust, "--recompute", "--json", cwd=tmp_path).content
    assert (content["exit_code"], content["recomputation"]["state"], content["page"]["state"]) == (1, "recomputed", "differs")


def other(**update: str) -> Callable[[Claim], Claim]:
    return lambda claim: claim.model_copy(update={"tool": claim.tool.model_copy(update=update)})


@pytest.mark.parametrize(
    ("tool", "says"),
    [
        (other(version="0.0.9"), "its text was not compared: written by evalspec 0.0.9, and this is evalspec "),
        (
            other(sources_sha256="0" * 64),
            f"its text was not compared: written by version {__version__} of evalspec with other sources or templates than these",
        ),
    ],
)
def test_the_text_of_another_version_is_not_compared_and_its_numbers_are(
    recorded: Run, tmp_path: Path, evalspec: Command, tool: Callable[[Claim], Claim], says: str
) -> None:
    for name, change, code in (("same", unchanged, 0), ("words", bolder, 0), ("numbers", better, 1)):
        folder = rewrite(recorded, tmp_path / name, change, claim=tool)
        spoken = evalspec("verify", folder, "--trust", recorded.trust, "--recompute", cwd=tmp_path)
        assert (spoken.code, says in spoken.out) == (code, code == 0), spoken.out


def test_a_report_without_its_page_is_not_called_in_order(recorded: Run, tmp_path: Path, evalspec: Command) -> None:
    folder = Path(shutil.copytree(recorded.folder, tmp_path / "bare"))
    (folder / "report.html").unlink()
    seal(folder, load_signer(recorded.key, None), claim_of(RunDirectory(folder)), pdf_skipped="not asked for")
    spoken = evalspec("verify", folder, "--trust", recorded.trust, "--recompute", cwd=tmp_path)
    assert (spoken.code, "report.html not checked: report.html is not among the files" in spoken.out) == (3, True), spoken.out


def test_files_that_do_not_compose_are_not_called_in_order(recorded: Run, tmp_path: Path, evalspec: Command) -> None:
    folder = Path(shutil.copytree(recorded.folder, tmp_path / "odd"))
    (folder / "schedule.json").write_bytes(canonical_json(json.loads((folder / "schedule.json").read_bytes()) | {"more": 1}))
    seal(folder, load_signer(recorded.key, None), claim_of(RunDirectory(folder)), pdf_skipped="not asked for")
    spoken = evalspec("verify", folder, "--trust", recorded.trust, "--recompute", cwd=tmp_path)
    assert (spoken.code, "do not compose to a page: schedule.json is not what this version" in spoken.out) == (3, True), spoken.out


def test_a_page_that_speaks_of_another_signer_is_told(recorded: Run, tmp_path: Path, evalspec: Command) -> None:
    folder = rewrite(recorded, tmp_path / "renamed", lambda page: page.replace("<strong>Example Lab</strong>", "<strong>Notified Body</strong>"))
    spoken = evalspec("verify", folder, "--trust", recorded.trust, "--recompute", cwd=tmp_path)
    assert (spoken.code, "Notified Body" in spoken.out) == (1, True), spoken.out


def test_an_altered_report_is_not_compared(recorded: Run, tmp_path: Path, evalspec: Command) -> None:
    folder = Path(shutil.copytree(recorded.folder, tmp_path / "copy"))
    (folder / "verdict.json").write_text(json.dumps({}))
    spoken = evalspec("verify", folder, "--trust", recorded.trust, "--recompute", cwd=tmp_path)
    assert (spoken.code, "report.html not checked: the content is not as it was signed" in spoken.out) == (1, True)
