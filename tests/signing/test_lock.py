"""The file of a lock: nothing in it can be changed, and what it says of itself must hold."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from evalspec.artifacts.base import canonical_json, sha256_hex
from evalspec.artifacts.lock import Before, Earlier, Lock, LockedAnalysis, LockedBenchmark, LockedModel
from evalspec.signing.dsse import parse_envelope, payload_of, sign
from evalspec.signing.keys import FileSigner, make_key
from evalspec.signing.lock import LARGEST_LOCK, read_lock, sign_lock

STUDY = {"source_sha256": "5" * 64, "title": "Example", "seed": 3}
PROTOCOL = {"study_sha256": sha256_hex(canonical_json(STUDY)), "seed": 3, "analyses": []}


@pytest.fixture(scope="module")
def key() -> FileSigner:
    made = make_key("Example Lab")
    return FileSigner(made.private, made.certificate)


@pytest.fixture(scope="module")
def lock(key: FileSigner) -> Lock:
    return Lock(
        locked_at="2026-11-29T20:00:00Z",
        versions={"evalspec": "0.1.0"},
        study_source_sha256="5" * 64,
        study_sha256=sha256_hex(canonical_json(STUDY)),
        protocol_sha256=sha256_hex(canonical_json(PROTOCOL)),
        benchmarks=(),
        models=(),
        analyses=(),
        thresholds_sha256=None,
        before=Before(answers=0, asked=10),
        earlier=Earlier(),
        signer_certificate=key.certificate_pem.decode(),
        study=STUDY,
        protocol=PROTOCOL,
    )


@pytest.fixture(scope="module")
def content(lock: Lock, key: FileSigner) -> bytes:
    return sign_lock(lock, key)


def test_a_lock_reads_back_with_its_signer(lock: Lock, content: bytes, key: FileSigner) -> None:
    found = read_lock(content)
    assert (found.lock, found.fingerprint, found.signer, found.sha256) == (lock, key.fingerprint, "Example Lab", sha256_hex(content))
    assert found.lock.seed == 3


def test_its_statement_is_in_toto_of_a_type_of_its_own(content: bytes) -> None:
    statement = json.loads(payload_of(parse_envelope(content)))
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://evalspec.dev/attestation/study-lock/v1"
    assert [subject["name"] for subject in statement["subject"]] == ["protocol.json", "study.json", "study.yaml"]
    assert statement["predicate"]["timeAuthority"] == "self-asserted: no timestamp authority"


def test_every_flipped_byte_is_found(content: bytes) -> None:
    for place in range(0, len(content), 7):
        flipped = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
        with pytest.raises(ValueError, match=r"."):
            read_lock(flipped)


def change_seed(statement: dict[str, Any]) -> None:
    statement["predicate"]["protocol"]["seed"] = 4


def change_study(statement: dict[str, Any]) -> None:
    statement["predicate"]["study"]["title"] = "Other"


def change_subject(statement: dict[str, Any]) -> None:
    statement["subject"][0]["digest"]["sha256"] = "0" * 64


def add_word(statement: dict[str, Any]) -> None:
    statement["predicate"]["more"] = 1


def other_authority(statement: dict[str, Any]) -> None:
    statement["predicate"]["timeAuthority"] = "a notary"


def no_certificate(statement: dict[str, Any]) -> None:
    statement["predicate"]["signerCertificate"] = None


def other_certificate(statement: dict[str, Any]) -> None:
    made = make_key("Example Lab")
    statement["predicate"]["signerCertificate"] = FileSigner(made.private, made.certificate).certificate_pem.decode()


def true_for_one(statement: dict[str, Any]) -> None:
    statement["predicate"]["formatVersion"] = True


def no_time(statement: dict[str, Any]) -> None:
    statement["predicate"]["lockedAt"] = "2026-13-45T99:00:00Z"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (true_for_one, "formatVersion: .* the whole number 1"),
        (no_time, "lockedAt"),
        (change_seed, "the digest of the protocol is not that of the protocol in the lock"),
        (change_study, "the digest of the study is not that of the study in the lock"),
        (change_subject, "the subjects are not the files of the plan"),
        (add_word, "more"),
        (other_authority, "timeAuthority"),
        (no_certificate, "does not hold the certificate of its signer"),
        (other_certificate, "no signature holds under an accepted key"),
    ],
)
def test_what_a_lock_says_of_itself_must_hold_even_when_it_is_signed(
    content: bytes, key: FileSigner, change: Callable[[dict[str, Any]], None], says: str
) -> None:
    statement = json.loads(payload_of(parse_envelope(content)))
    change(statement)
    with pytest.raises(ValueError, match=says):
        read_lock(sign(canonical_json(statement), key).to_json())


@pytest.mark.parametrize("payload", [b"", b"[]", b"{}", b"\xff", b'{"predicate": 1}', b'{"predicate": {"signerCertificate": "x"}}', b"[" * 5000])
def test_what_is_no_lock_is_refused_with_a_reason(payload: bytes, key: FileSigner) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_lock(sign(payload, key).to_json())


def test_a_file_beyond_the_limit_is_not_parsed() -> None:
    with pytest.raises(ValueError, match="at most"):
        read_lock(b" " * (LARGEST_LOCK + 1))


def test_a_changed_payload_does_not_pass_for_signed(content: bytes) -> None:
    envelope = json.loads(content)
    envelope["payload"] = base64.b64encode(base64.b64decode(envelope["payload"]).replace(b"Example", b"Exbmple")).decode()
    with pytest.raises(ValueError, match="no signature holds"):
        read_lock(canonical_json(envelope))


IDENTITY = {"kind": "recorded", "sha256": "6" * 64, "model": "first", "origin": "first.csv"}
WHOLE = {
    **PROTOCOL,
    "benchmarks": [{"id": "small", "source_sha256": "7" * 64, "questions": [{"id": "q", "sha256": "8" * 64}], "prompt": "?", "preambles": []}],
    "models": [{"id": "first", "identity": IDENTITY}],
    "analyses": [{"id": "accuracy", "kind": "intervals", "planned": True}],
    "thresholds": {"checks": []},
}


def listed() -> dict[str, Any]:
    return {
        "benchmarks": (
            LockedBenchmark(
                id="small",
                source_sha256="7" * 64,
                questions=1,
                questions_sha256=sha256_hex(canonical_json(["8" * 64])),
                prompt_sha256=sha256_hex(canonical_json(["?", []])),
            ),
        ),
        "models": (LockedModel(id="first", kind="recorded", sha256="6" * 64),),
        "analyses": (LockedAnalysis(id="accuracy", kind="intervals", planned=True, sha256=sha256_hex(canonical_json(WHOLE["analyses"][0]))),),
        "thresholds_sha256": sha256_hex(canonical_json(WHOLE["thresholds"])),
    }


def locked(lock: Lock, **lists: Any) -> Lock:
    return Lock(**{**dict(lock), "protocol": WHOLE, "protocol_sha256": sha256_hex(canonical_json(WHOLE)), **listed(), **lists})


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("benchmarks", {"source_sha256": "0" * 64}),
        ("benchmarks", {"questions": 14_000}),
        ("benchmarks", {"questions_sha256": "0" * 64}),
        ("benchmarks", {"prompt_sha256": "0" * 64}),
        ("models", {"sha256": "0" * 64}),
        ("models", {"kind": "checkpoint"}),
        ("analyses", {"planned": False}),
        ("analyses", {"sha256": "0" * 64}),
    ],
)
def test_what_a_lock_lists_for_people_must_be_what_its_protocol_holds(name: str, field: dict[str, Any], lock: Lock) -> None:
    assert locked(lock).seed == 3
    (entry,) = listed()[name]
    for lists in ((entry.model_copy(update=field),), ()):
        with pytest.raises(ValueError, match=f"the {name} that the lock lists are not those of the protocol in it"):
            locked(lock, **{name: lists})
    with pytest.raises(ValueError, match="the thresholds that the lock lists"):
        locked(lock, thresholds_sha256=None)
