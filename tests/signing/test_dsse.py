from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from evalspec.signing import dsse
from evalspec.signing.keys import FileSigner


@pytest.fixture
def keys(signer: FileSigner) -> dict[str, ec.EllipticCurvePublicKey]:
    return {signer.fingerprint: signer.private.public_key()}


def edited(envelope: dsse.Envelope, **changes: Any) -> bytes:
    return dsse.Envelope.model_validate({**envelope.model_dump(), **changes}).to_json()


def test_the_signed_bytes_are_those_of_the_published_test_vector() -> None:
    # DSSE v1.0, protocol.md, "Test Vectors".
    assert dsse.pae("http://example.com/HelloWorld", b"hello world") == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


def test_a_signed_payload_comes_back(signer: FileSigner, keys: dict[str, ec.EllipticCurvePublicKey]) -> None:
    envelope = dsse.parse_envelope(dsse.sign(b"payload", signer).to_json())
    assert dsse.verify(envelope, keys) == dsse.Verified(b"payload", signer.fingerprint, ())


def test_securesystemslib_accepts_the_envelope(signer: FileSigner) -> None:
    other = pytest.importorskip("securesystemslib.dsse", reason="securesystemslib is not installed")
    from cryptography.hazmat.primitives import serialization
    from securesystemslib.signer import SSlibKey

    public = signer.private.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()
    key = SSlibKey(signer.fingerprint, "ecdsa", "ecdsa-sha2-nistp256", {"public": public})
    envelope = other.Envelope.from_dict(json.loads(dsse.sign(b"payload", signer).to_json()))
    assert list(envelope.verify([key], 1)) == [signer.fingerprint]
    assert envelope.payload == b"payload"


def test_another_key_does_not_do(signer: FileSigner, impostor: FileSigner) -> None:
    with pytest.raises(ValueError, match="no signature holds"):
        dsse.verify(dsse.sign(b"payload", signer), {impostor.fingerprint: impostor.private.public_key()})


def test_a_changed_payload_type_breaks_the_signature(signer: FileSigner, keys: dict[str, ec.EllipticCurvePublicKey]) -> None:
    envelope = dsse.parse_envelope(edited(dsse.sign(b"payload", signer), payload_type="text/plain"))
    with pytest.raises(ValueError, match="no signature holds"):
        dsse.verify(envelope, keys)


def test_a_genuinely_signed_payload_of_another_type_is_refused(signer: FileSigner, keys: dict[str, ec.EllipticCurvePublicKey]) -> None:
    proper = dsse.sign(b"payload", signer)
    signature = dsse.EnvelopeSignature(keyid=signer.fingerprint, sig=b64encode(signer.sign(dsse.pae("text/plain", b"payload"))).decode())
    with pytest.raises(ValueError, match="of type 'text/plain'"):
        dsse.verify(proper.model_copy(update={"payload_type": "text/plain", "signatures": (signature,)}), keys)


def test_further_signatures_are_listed_and_count_for_nothing(
    signer: FileSigner, impostor: FileSigner, keys: dict[str, ec.EllipticCurvePublicKey]
) -> None:
    envelope = dsse.sign(b"payload", signer)
    both = envelope.model_copy(update={"signatures": dsse.sign(b"payload", impostor).signatures + envelope.signatures})
    assert dsse.verify(both, keys).ignored == (impostor.fingerprint,)


def test_a_wrong_key_id_is_refused_although_it_is_only_a_hint(signer: FileSigner, keys: dict[str, ec.EllipticCurvePublicKey]) -> None:
    envelope = dsse.sign(b"payload", signer)
    renamed = envelope.signatures[0].model_copy(update={"keyid": "SHA256:other"})
    with pytest.raises(ValueError, match="names the key"):
        dsse.verify(envelope.model_copy(update={"signatures": (renamed,)}), keys)


def test_an_envelope_without_signatures_is_not_signed(signer: FileSigner, keys: dict[str, ec.EllipticCurvePublicKey]) -> None:
    with pytest.raises(ValueError, match="no signature holds"):
        dsse.verify(dsse.parse_envelope(edited(dsse.sign(b"payload", signer), signatures=())), keys)


def test_an_envelope_of_more_signatures_than_anybody_needs_is_refused(signer: FileSigner) -> None:
    envelope = dsse.sign(b"payload", signer)
    for count in (100, 101):
        content = edited(envelope, signatures=envelope.signatures * count)
        if count == 100:
            assert len(dsse.parse_envelope(content).signatures) == 100
        else:
            with pytest.raises(ValueError, match="the envelope holds 101 signatures; at most 100 are looked at"):
                dsse.parse_envelope(content)


@pytest.mark.parametrize("payload", ["cGF5bG9h*A==", "cGF5bG9hZB=="])
def test_base64_has_one_form_only(signer: FileSigner, keys: dict[str, ec.EllipticCurvePublicKey], payload: str) -> None:
    with pytest.raises(ValueError, match="base64"):
        dsse.verify(dsse.parse_envelope(edited(dsse.sign(b"payload", signer), payload=payload)), keys)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b'"payload":', b'"payload" :', "not written in the form"),
        (b'"payloadType":', b'"payload": "", "payloadType":', "stands twice"),
        (b'"payloadType":', b'"extra": 1, "payloadType":', "not a DSSE envelope"),
        (b'"payloadType":', b'"type":', "not a DSSE envelope"),
        (b"{", b"", "Extra data"),
    ],
)
def test_a_malformed_envelope_is_refused(signer: FileSigner, old: bytes, new: bytes, reason: str) -> None:
    content = dsse.sign(b"payload", signer).to_json()
    assert old in content
    with pytest.raises(ValueError, match=reason):
        dsse.parse_envelope(content.replace(old, new, 1))
