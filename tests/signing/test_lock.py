"""The file of a lock: nothing in it can be changed, and what it says of itself must hold."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from evalspec.artifacts.base import canonical_json, sha256_hex
from evalspec.artifacts.lock import Before, Earlier, Lock
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


@pytest.mark.parametrize(
    ("change", "says"),
    [
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
