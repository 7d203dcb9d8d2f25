"""What the page says of a locked plan: a referee must be able to tell what is shown from what is only stated."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from evalspec.artifacts.base import sha256_hex
from evalspec.artifacts.deviations import deviations, standings
from evalspec.artifacts.lock import Before, Earlier, Lock, LockedPlan, listed
from evalspec.reporting.compose import compose
from evalspec.reporting.dossier import Dossier, documents_of
from evalspec.reporting.pages import number_faults, shown_numbers

GOLDEN = Path(__file__).parent / "golden"
KEY = "SHA256:q3l0bXm3r8mYkP0n0o1mBq7W8o3m6zX0yD1k2j3h4g5"
FORBIDDEN = re.compile(r"\bproves?\b|\bproven\b|guarantee|\bverified\b|pre-?registered|tamper-proof", re.IGNORECASE)


def lock_of(dossier: Dossier, *, before: Before, earlier: Earlier) -> Lock:
    """The lock of exactly this study and protocol."""
    study, protocol = (json.loads(artifact.to_json()) for artifact in (dossier.study, dossier.protocol))
    lists = listed(protocol)
    return Lock(
        locked_at="2026-11-28T09:00:00Z",
        versions={"evalspec": "0.1.0", "python": "3.11.2", "numpy": "2.4.5", "torch": "2.13.0"},
        study_source_sha256=dossier.study.source_sha256,
        study_sha256=dossier.study.digest(),
        protocol_sha256=dossier.protocol.digest(),
        benchmarks=lists.benchmarks,
        models=lists.models,
        analyses=lists.analyses,
        thresholds_sha256=lists.thresholds_sha256,
        before=before,
        earlier=earlier,
        signer_certificate="",
        study=study,
        protocol=protocol,
    )


def with_plan(dossier: Dossier, lock: Lock, fingerprint: str = KEY) -> Dossier:
    found = LockedPlan(
        lock,
        sha256_hex(b"lock"),
        fingerprint,
        "Example Lab demonstration",
        deviations(lock, dossier.study, dossier.protocol),
        standings(lock, dossier.protocol),
    )
    return replace(dossier, plan=found)


@pytest.fixture(scope="module")
def settled(build_dossier: Callable[..., Dossier]) -> Dossier:
    """A dossier whose protocol names its study by its digest, as that of a real run does."""
    dossier = build_dossier()
    return replace(dossier, protocol=dossier.protocol.model_copy(update={"study_sha256": dossier.study.digest()}))


@pytest.fixture(scope="module")
def as_locked(settled: Dossier) -> Dossier:
    return with_plan(settled, lock_of(settled, before=Before(answers=0, asked=990), earlier=Earlier()))


@pytest.fixture(scope="module")
def departing(settled: Dossier) -> Dossier:
    """The run of a lock that had another level, other limits, one model less and no pairs; half of the answers were known."""
    before = Before(answers=495, asked=990, replayed=("recorded",), looks=2)
    lock = lock_of(settled, before=before, earlier=Earlier(locks=2, runs=5, seeds=(3, 7), commits=4))
    protocol = json.loads(json.dumps(lock.protocol))
    protocol["analyses"] = protocol["analyses"][:1]
    protocol["thresholds"]["checks"][0]["at_least"] = 0.75
    protocol["benchmarks"][0]["questions"] = protocol["benchmarks"][0]["questions"][:100]
    changed = lock.model_copy(update={"protocol": protocol, "replaces": sha256_hex(b"earlier")})
    return with_plan(settled, changed, fingerprint="SHA256:another")


def section(dossier: Dossier) -> str:
    found = re.search(r'<section id="preregistration".*?</section>', compose(dossier).html, re.DOTALL)
    assert found
    text = re.sub(r"\n\s*\n+", "\n", found[0]) + "\n"
    return re.sub(r"\b[0-9a-f]{64}\b", "(digest)", text)


@pytest.mark.parametrize("name", ["settled", "as_locked", "departing"])
def test_the_section_is_as_recorded(request: pytest.FixtureRequest, name: str) -> None:
    dossier, recorded = request.getfixturevalue(name), GOLDEN / f"preregistration-{name.replace('_', '-')}.html"
    if os.environ.get("EVALSPEC_UPDATE_GOLDEN") == "1":
        recorded.write_text(section(dossier), encoding="utf-8")
    assert section(dossier) == recorded.read_text(encoding="utf-8"), "run with EVALSPEC_UPDATE_GOLDEN=1 and read the difference"


@pytest.mark.parametrize("name", ["settled", "as_locked", "departing"])
def test_it_claims_no_more_than_the_signers_word(request: pytest.FixtureRequest, name: str) -> None:
    words = re.sub(r"<[^>]+>", " ", section(request.getfixturevalue(name)))
    assert FORBIDDEN.findall(words) == []
    assert ("self-asserted: no timestamp authority" in words) == (name != "settled")


@pytest.mark.parametrize("name", ["settled", "as_locked", "departing"])
def test_its_numbers_are_those_of_the_files(request: pytest.FixtureRequest, name: str) -> None:
    dossier = request.getfixturevalue(name)
    shown = shown_numbers(compose(dossier).html)
    assert any(number.path.startswith("lock.dsse.json#/predicate/") for number in shown) == (name != "settled")
    assert list(number_faults(shown, documents_of(dossier))) == []


def test_departures_stand_on_the_first_page(departing: Dossier, as_locked: Dossier) -> None:
    first = "This run departs from the plan that was locked before it; every deviation is listed under Preregistration."
    decision = re.search(r'<section id="decision".*?</section>', compose(departing).html, re.DOTALL)
    assert decision
    assert f"{first} The decision rests on what is not as locked." in decision[0]
    assert first not in compose(as_locked).html


def test_a_plan_that_was_locked_when_answers_were_known_is_said_to_show_little(departing: Dossier, as_locked: Dossier) -> None:
    told = "so the lock does not show that it was set before they were seen"
    assert told in compose(departing).html
    assert told not in compose(as_locked).html
    assert "rests on the signer's word" in compose(as_locked).html.replace("&#39;", "'")
