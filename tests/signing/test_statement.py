from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from evalspec.artifacts.base import canonical_json
from evalspec.signing.statement import Claim, Predicate, Statement, parse_statement, state


@pytest.fixture
def statement(claim: Claim) -> Statement:
    digests = {"signer.crt": "a" * 64, "study.yaml": claim.study.sha256, "protocol.json": claim.protocol.sha256, "data/x": "b" * 64}
    return state(digests, Predicate.model_validate({**claim.model_dump(), "pdf": None, "pdf_skipped": "Pango is not installed"}))


def test_a_statement_reads_back_with_in_totos_names(statement: Statement) -> None:
    assert parse_statement(statement.to_json()) == statement
    plain = json.loads(statement.to_json())
    assert plain["_type"] == "https://in-toto.io/Statement/v1"
    assert plain["predicateType"] == "https://evalspec.dev/attestation/study-report/v1"
    assert plain["subject"][0] == {"name": "data/x", "digest": {"sha256": "b" * 64}}
    assert plain["predicate"]["pdf"] is None
    assert plain["predicate"]["pdfSkipped"] == "Pango is not installed"


def _add(name: str) -> Callable[[dict], None]:
    return lambda plain: plain["subject"].append({"name": name, "digest": {"sha256": "c" * 64}})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda plain: plain.update(predicateType="https://slsa.dev/provenance/v1"), "predicateType"),
        (lambda plain: plain.update(_type="https://in-toto.io/Statement/v0.1"), "_type"),
        (lambda plain: plain.update(extra=1), "extra"),
        (lambda plain: plain["subject"].pop(1), "protocol.json is not among"),
        (lambda plain: plain["subject"].pop(2), "signer.crt is not among"),
        (lambda plain: plain["subject"].pop(3), "study.yaml is not among"),
        (lambda plain: plain["predicate"].update(formatVersion=True), "formatVersion: .* the whole number 1"),
        (lambda plain: plain["predicate"].update(formatVersion=1.0), "formatVersion: .* the whole number 1"),
        (lambda plain: plain["predicate"].update(formatVersion=2), "formatVersion"),
        (_add("../outside"), "is not allowed"),
        (_add("/etc/passwd"), "is not allowed"),
        (_add("a\\b"), "is not allowed"),
        (_add("data/x"), "one file on some systems"),
        (_add("DATA/X"), "one file on some systems"),
        (_add("manifest.dsse.json"), "cannot be signed by itself"),
        (_add("report.pdf"), "do not go together"),
        (lambda plain: plain["predicate"]["study"].update(sha256="d" * 64), "another digest of study.yaml"),
        (lambda plain: plain["predicate"].update(pdfSkipped=None), "either `pdf` or `pdfSkipped`"),
        (lambda plain: plain["predicate"].update(createdAt="yesterday"), "createdAt"),
        (lambda plain: plain["predicate"].update(createdAt="2026-13-01T00:00:00Z"), "createdAt"),
        (lambda plain: plain["subject"][0]["digest"].update(sha256="short"), "sha256"),
    ],
)
def test_a_statement_that_does_not_fit_together_is_refused(statement: Statement, change: Callable[[dict], None], reason: str) -> None:
    plain = json.loads(statement.to_json())
    change(plain)
    with pytest.raises(ValueError, match=reason):
        parse_statement(canonical_json(plain))


def test_a_statement_with_duplicate_keys_is_refused(statement: Statement) -> None:
    with pytest.raises(ValueError, match="stands twice"):
        parse_statement(statement.to_json().replace(b'"subject"', b'"subject": [], "subject"', 1))
