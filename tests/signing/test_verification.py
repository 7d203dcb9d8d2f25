from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalspec.errors import SigningError
from evalspec.signing.trust import Trust
from evalspec.signing.verification import Problem, Verification, differing_paths
from evalspec.signing.verify import verify


@pytest.mark.parametrize(
    ("outcome", "trusted", "code"),
    [("intact", True, 0), ("altered", True, 1), ("altered", False, 1), ("unchecked", True, 3), ("unchecked", False, 3), ("intact", False, 4)],
)
def test_only_intact_and_trusted_is_zero(outcome: str, trusted: bool, code: int) -> None:
    assert Verification.model_validate({"outcome": outcome, "trusted": trusted}).exit_code == code


def test_differing_places_are_named_by_json_pointers() -> None:
    signed = {"a": [1, 2, {"b/c": 1}], "same": [True], "gone": 1, "kind": 1}
    found = {"a": [1, 3, {"b/c": 2}, 4], "same": [True], "new": 1, "kind": 1.0}
    paths = differing_paths(json.dumps(signed).encode(), json.dumps(found).encode())
    assert paths == ("/a/1", "/a/2/b~1c", "/a/3", "/gone", "/kind", "/new")


def test_many_differing_places_are_counted() -> None:
    paths = differing_paths(json.dumps([0] * 50).encode(), json.dumps([1] * 50).encode())
    assert len(paths) == 21
    assert paths[-1] == "30 more places"


def test_what_is_no_json_any_more_has_no_places() -> None:
    assert differing_paths(b"{}", b"{") == ()


def test_a_problem_reads_as_one_line_and_one_per_place() -> None:
    assert str(Problem(kind="MISSING", name="report.html")) == "MISSING report.html"
    assert str(Problem(kind="UNLISTED", name="x", detail="(not covered)")) == "UNLISTED x (not covered)"
    assert str(Problem(kind="ALTERED", name="x", detail="signed a", paths=("/b",))) == "ALTERED x: signed a\n  differs at /b"


def test_the_description_names_outcome_problems_signer_and_reasons(run: Path, trust: Trust) -> None:
    assert verify(run, trust).describe().startswith("intact: every file is as it was signed\nsigner: Example Lab (trusted), key SHA256:")
    (run / "extra.txt").write_text("")
    described = verify(run).describe().splitlines()
    assert described[0] == "ALTERED: the content is not as it was signed"
    assert described[1] == "UNLISTED extra.txt (not covered by the signature)"
    assert described[2].startswith("signer: Example Lab (NOT TRUSTED), key SHA256:")
    assert described[3].startswith("no trust anchor was given")


def test_bytes_are_handed_on_only_as_signed(run: Path, trust: Trust) -> None:
    verification = verify(run, trust)
    assert verification.read_verified(run, "study.yaml") == (run / "study.yaml").read_bytes()
    (run / "study.yaml").write_text("changed afterwards")
    with pytest.raises(SigningError, match="not as it was signed"):
        verification.read_verified(run, "study.yaml")
    with pytest.raises(SigningError, match="not among the files"):
        verification.read_verified(run, "manifest.dsse.json")


def test_a_verification_is_plain_json(run: Path, trust: Trust) -> None:
    verification = verify(run, trust)
    assert Verification.from_json(verification.to_json()) == verification
