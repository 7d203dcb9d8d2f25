"""Files attached to a PDF that came alone are held against each other."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from evalspec.artifacts.base import canonical_json, sha256_hex
from evalspec.signing.attached import NOT_COMPARED, check_attached
from evalspec.signing.trust import Trust

PROTOCOL = canonical_json({"format": 1})
FINDINGS = canonical_json({"protocol_sha256": sha256_hex(PROTOCOL)})
VERDICT = canonical_json({"findings_sha256": sha256_hex(FINDINGS)})
WHOLE = {"study.yaml": b"title: x\n", "protocol.json": PROTOCOL, "findings.json": FINDINGS, "verdict.json": VERDICT}
TIMES = (datetime(2026, 11, 30, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC))


def checked(attached: Mapping[str, bytes]) -> tuple[str, ...]:
    return check_attached(attached, "SHA256:" + "A" * 43 + "=", Trust(), TIMES).faults


def test_files_that_belong_together_are_in_order_and_what_was_not_compared_is_said() -> None:
    found = check_attached(WHOLE, "SHA256:" + "A" * 43 + "=", Trust(), TIMES)
    assert found.faults == ()
    assert found.notes == (
        "attached and held against each other: findings.json, protocol.json, study.yaml, verdict.json",
        *NOT_COMPARED,
    )
    assert "its pages show" in NOT_COMPARED[0]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"protocol.json": b"{}"}, "the attached findings.json was not made from the attached protocol.json"),
        ({"findings.json": canonical_json({"protocol_sha256": "0" * 64})}, "the attached findings.json was not made from the attached protocol.json"),
        ({"verdict.json": canonical_json({"findings_sha256": "0" * 64})}, "the attached verdict.json was not made from the attached findings.json"),
        ({"verdict.json": b"\xff"}, "the attached verdict.json was not made from the attached findings.json"),
        ({"verdict.json": b"[]"}, "the attached verdict.json was not made from the attached findings.json"),
        ({"verdict.json": VERDICT[:-2] + b',"findings_sha256":"x"}'}, "the attached verdict.json was not made from the attached findings.json"),
        ({"lock.dsse.json": b"{}"}, "the attached plan is not as it was signed"),
        ({"report.html": b"<p>99 %</p>"}, "a file is attached to it that no report carries: 'report.html'"),
        ({"../../verdict.json": VERDICT}, "a file is attached to it that no report carries: '../../verdict.json'"),
    ],
)
def test_an_attached_file_of_another_report_is_named(change: dict[str, bytes], told: str) -> None:
    assert any(fault.startswith(told) for fault in checked({**WHOLE, **change}))


@pytest.mark.parametrize("name", ["study.yaml", "findings.json"])
def test_a_report_without_what_it_must_carry_is_not_whole(name: str) -> None:
    assert f"{name} is not attached to it" in checked({other: content for other, content in WHOLE.items() if other != name})
