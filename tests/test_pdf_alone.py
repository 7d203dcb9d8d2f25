"""What a PDF that came alone carries is judged again: a verdict that does not follow from the attached findings is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalspec.artifacts.base import canonical_json, sha256_hex
from evalspec.pdf_alone import derive
from evalspec.pdf_check import by_words
from evalspec.reporting.pdf import render
from evalspec.signing.keys import FileSigner, make_key
from evalspec.signing.pades import sign_pdf
from evalspec.signing.verify import verify_pdf

PAGE = "<!doctype html><html lang='en'><head><title>Example</title></head><body><h1>Example</h1><p>The accuracy is {} %.</p></body></html>"

pytest.importorskip("weasyprint", reason="WeasyPrint is not installed", exc_type=ImportError)
pytest.importorskip("pyhanko", reason="pyHanko is not installed")


@pytest.fixture(scope="module")
def attached(root: Path) -> dict[str, bytes]:
    """What the published example attaches to its PDF."""
    return {name: (root / "reports" / "example" / name).read_bytes() for name in ("study.yaml", "protocol.json", "findings.json", "verdict.json")}


def mailed(folder: Path, attachments: dict[str, bytes]) -> Path:
    """Render a small report with these attachments and sign it."""
    key = make_key("Example Lab", years=1)
    rendered = render(PAGE.format(90), attachments=attachments, finished="2026-11-30T09:00:00Z")
    (folder / "mail.pdf").write_bytes(sign_pdf(rendered, FileSigner(key.private, key.certificate)).content)
    return folder / "mail.pdf"


def test_a_verdict_that_follows_is_derived_again(tmp_path: Path, attached: dict[str, bytes]) -> None:
    pdf = mailed(tmp_path, attached)
    assert derive(pdf, verify_pdf(pdf)).state == "derived"


def better(verdict: Any) -> None:
    verdict["checks"][0]["outcome"] = "failed" if verdict["checks"][0]["outcome"] == "passed" else "passed"


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("verdict.json", better, "differs at verdict.json/checks/0/outcome"),
        ("verdict.json", lambda verdict: verdict.update(overall="passed"), "differs at verdict.json/overall"),
        ("verdict.json", lambda verdict: verdict["checks"].pop(), "at verdict.json/checks: recorded"),
        ("verdict.json", lambda verdict: verdict.update(checks=7), "was not derived again"),
    ],
)
def test_what_does_not_follow_is_named(name: str, change: Callable[[Any], None], told: str, tmp_path: Path, attached: dict[str, bytes]) -> None:
    content = json.loads(attached[name])
    change(content)
    pdf = mailed(tmp_path, {**attached, name: canonical_json(content)})
    verification = verify_pdf(pdf)
    assert verification.outcome == "intact"
    assert told in derive(pdf, verification).describe()


def test_findings_from_another_protocol_are_a_fault_of_the_pdf(tmp_path: Path, attached: dict[str, bytes]) -> None:
    protocol = json.loads(attached["protocol.json"])
    pdf = mailed(tmp_path, {**attached, "protocol.json": canonical_json({**protocol, "seed": protocol["seed"] + 1})})
    verification = verify_pdf(pdf)
    assert (verification.exit_code, [problem.detail for problem in verification.problems]) == (
        1,
        ["the attached findings.json was not made from the attached protocol.json"],
    )
    assert derive(pdf, verification).exit_code == 3


def test_words_that_only_the_pdf_has_are_named() -> None:
    first, again, forged = (render(PAGE.format(number), attachments={}, finished="2026-11-30T09:00:00Z") for number in ("90", "90", "98.7"))
    assert sha256_hex(first) == sha256_hex(again)
    found = by_words(forged, first)
    if found.state == "not_compared":
        pytest.skip("pdftotext is not installed")
    assert (found.state, found.exit_code, found.words) == ("differs", 1, ("90", "98.7"))
    assert by_words(first, again).state == "same_words"


@pytest.mark.parametrize(
    "change", [lambda text: text.replace(b"title:", b"title: Not", 1), lambda text: text + b"# a remark\n", lambda _: b"title: x\n"]
)
def test_a_study_that_the_attached_protocol_was_not_made_from_is_told(
    change: Callable[[bytes], bytes], tmp_path: Path, attached: dict[str, bytes]
) -> None:
    pdf = mailed(tmp_path, {**attached, "study.yaml": change(attached["study.yaml"])})
    found = derive(pdf, verify_pdf(pdf))
    assert (found.state, found.exit_code, "was not derived again" in found.describe()) == ("not_derivable", 3, True)


def test_a_kind_of_analysis_that_is_not_installed_here_is_named(tmp_path: Path, attached: dict[str, bytes]) -> None:
    changed = {name: json.loads(attached[name]) for name in ("protocol.json", "findings.json", "verdict.json")}
    changed["protocol.json"]["analyses"][0]["kind"] = changed["findings.json"]["findings"][0]["request"]["kind"] = "elsewhere"
    protocol = canonical_json(changed["protocol.json"])
    changed["findings.json"]["protocol_sha256"] = sha256_hex(protocol)
    findings = canonical_json(changed["findings.json"])
    verdict = canonical_json(changed["verdict.json"] | {"findings_sha256": sha256_hex(findings)})
    pdf = mailed(tmp_path, {**attached, "protocol.json": protocol, "findings.json": findings, "verdict.json": verdict})
    assert "study.yaml was not compiled: no analysis of the kind 'elsewhere' is installed here" in derive(pdf, verify_pdf(pdf)).describe()
