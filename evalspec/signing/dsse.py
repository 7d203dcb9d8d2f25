"""How are bytes signed without any canonical form of them?  DSSE v1.0 envelopes (github.com/secure-systems-lab/dsse), ECDSA P-256, SHA-256."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from pydantic import Field, ValidationError

from evalspec.artifacts.base import Artifact
from evalspec.foreign import parse_bytes

if TYPE_CHECKING:  # at run time this would load numpy, which verification has no use for
    from evalspec.protocols import Signer

PAYLOAD_TYPE = "application/vnd.in-toto+json"
SIZE_LIMIT = 8 * 2**20
"""Bytes of the largest envelope that is read, and of its payload; a lock may be larger."""
MOST_SIGNATURES = 100
"""Signatures in an envelope. Anybody can add some, and each takes time and a line of what is told."""


class EnvelopeSignature(Artifact):
    """A signature and a hint at the key that made it."""

    keyid: str
    sig: str


class Envelope(Artifact):
    """The DSSE JSON envelope; payload and signatures are standard base64."""

    payload_type: str = Field(alias="payloadType")
    payload: str
    signatures: tuple[EnvelopeSignature, ...]


@dataclass(frozen=True, slots=True)
class Verified:
    """Bytes that one of the accepted keys signed, that key's fingerprint, and the key ids of further signatures, which say nothing."""

    payload: bytes
    fingerprint: str
    ignored: tuple[str, ...]


def pae(payload_type: str, payload: bytes) -> bytes:
    """Return the bytes that are signed: DSSE v1.0, "Signature definition", PAE(type, body)."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sign(payload: bytes, signer: Signer) -> Envelope:
    """Wrap `payload` in an envelope with one signature (DSSE v1.0, signing, steps 2 to 4)."""
    signature = EnvelopeSignature(keyid=signer.fingerprint, sig=_encode(signer.sign(pae(PAYLOAD_TYPE, payload))))
    return Envelope(payload_type=PAYLOAD_TYPE, payload=_encode(payload), signatures=(signature,))


def parse_envelope(content: bytes, *, limit: int = SIZE_LIMIT) -> Envelope:
    """Read an envelope; raises ValueError when it is malformed or not byte for byte as evalspec writes it.

    DSSE does not sign the envelope's own bytes. Asking for the one form makes a change of any one byte visible. What stays: of an ECDSA signature
    (r, s) anybody can make (r, n - s), which holds as well and says the same.
    """
    parse_bytes(content, limit=limit)
    try:
        envelope = Envelope.from_json(content)
    except ValidationError as error:
        raise ValueError("not a DSSE envelope") from error
    if len(envelope.signatures) > MOST_SIGNATURES:
        raise ValueError(f"the envelope holds {len(envelope.signatures)} signatures; at most {MOST_SIGNATURES} are looked at")
    if envelope.to_json() != content:
        raise ValueError("the envelope is not written in the form that evalspec writes")
    return envelope


def verify(envelope: Envelope, keys: Mapping[str, ec.EllipticCurvePublicKey]) -> Verified:
    """Return the payload if one of `keys` (by fingerprint; earlier ones are preferred) signed it; raises ValueError otherwise.

    The algorithm comes from the key, never from the envelope; the key id is only a hint, but a wrong one is refused.
    """
    # DSSE v1.0, verifying, step 1: decode payload, type, signatures and key ids.
    payload = payload_of(envelope)
    signatures = [(signature.keyid, _decode(signature.sig, "signature")) for signature in envelope.signatures]
    # Step 2, filtering keys by key id, is optional and left out: any accepted key may have made any signature.
    for fingerprint, key in keys.items():
        for position, (keyid, signature) in enumerate(signatures):
            # Step 3: the signature must hold over PAE(type, body).
            if not _holds(key, signature, pae(envelope.payload_type, payload)):
                continue
            # Step 4: the type must be the supported one.
            if envelope.payload_type != PAYLOAD_TYPE:
                raise ValueError(f"the signed payload is of type {envelope.payload_type!r}; {PAYLOAD_TYPE!r} is allowed")
            if keyid != fingerprint:
                raise ValueError(f"the signature names the key {keyid!r}, but {fingerprint} made it")
            # Step 5, parsing, is the caller's, from exactly these bytes.
            return Verified(payload, fingerprint, tuple(other for index, (other, _) in enumerate(signatures) if index != position))
    raise ValueError("no signature holds under an accepted key")


def payload_of(envelope: Envelope) -> bytes:
    """Return the payload before anything is verified; raises ValueError when it is not base64 in its one form."""
    return _decode(envelope.payload, "payload")


def _holds(key: ec.EllipticCurvePublicKey, signature: bytes, message: bytes) -> bool:
    try:
        key.verify(signature, message, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def _encode(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _decode(text: str, what: str) -> bytes:
    try:
        content = base64.b64decode(text, validate=True)
    except ValueError as error:
        raise ValueError(f"the {what} is not base64") from error
    if _encode(content) != text:  # unused bits at the end of base64 could be changed unseen
        raise ValueError(f"the {what} is not base64 in its one form")
    return content
