"""How is a plan signed before it is carried out?  An in-toto Statement of its own type in one DSSE envelope, which holds all that a reader needs.

The certificate stands inside the statement, so that the signature can be checked wherever the file travels. It is taken from there before
anything is verified, as one beside the file would be, and says nothing about whose key it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from cryptography import x509
from pydantic import ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from evalspec.artifacts.base import Artifact, sha256_hex
from evalspec.artifacts.deviations import deviations, standings
from evalspec.artifacts.lock import Lock, LockedPlan
from evalspec.artifacts.protocol import Protocol
from evalspec.artifacts.study import Study
from evalspec.foreign import parse_bytes
from evalspec.signing import dsse
from evalspec.signing.certificates import fingerprint_of, holder_of, p256_key_of, read_certificate
from evalspec.signing.files import printable
from evalspec.signing.statement import Sha256, StatementType, Subject

if TYPE_CHECKING:  # at run time this would load numpy, which verification has no use for
    from evalspec.protocols import Signer

LARGEST_LOCK = 64 * 2**20
"""Bytes of the largest lock: some hundred thousand questions."""

LockType = Literal["https://evalspec.dev/attestation/study-lock/v1"]


class LockStatement(Artifact):
    """The in-toto Statement over a plan; its subjects are the files that a run as locked will hold."""

    model_config = ConfigDict(alias_generator=to_camel)

    type_: StatementType = Field(default="https://in-toto.io/Statement/v1", alias="_type")
    subject: tuple[Subject, ...]
    predicate_type: LockType = "https://evalspec.dev/attestation/study-lock/v1"
    predicate: Lock

    @model_validator(mode="after")
    def _names_its_subjects(self) -> Self:
        if self.subject != _subjects(self.predicate):
            raise ValueError("the subjects are not the files of the plan")
        return self


@dataclass(frozen=True, slots=True)
class SignedLock:
    """A lock whose signature holds: what it says, the SHA-256 of its file, and the certificate of its signer."""

    lock: Lock
    sha256: str
    certificate: x509.Certificate

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the key that signed it."""
        return fingerprint_of(self.certificate)

    @property
    def signer(self) -> str:
        """The name that the certificate claims."""
        return printable(holder_of(self.certificate))

    def beside(self, study: Study, protocol: Protocol) -> LockedPlan:
        """Hold a run against the lock."""
        found = deviations(self.lock, study, protocol)
        return LockedPlan(self.lock, self.sha256, self.fingerprint, self.signer, found, standings(self.lock, protocol))


def sign_lock(lock: Lock, signer: Signer) -> bytes:
    """Return the file of a lock, which must name the signer's certificate."""
    statement = LockStatement(subject=_subjects(lock), predicate=lock)
    return dsse.sign(statement.to_json(), signer).to_json()


def read_lock(content: bytes) -> SignedLock:
    """Read a lock and check its signature; raises ValueError with the first fault."""
    envelope = dsse.parse_envelope(content, limit=LARGEST_LOCK)
    certificate = _presented(envelope)
    signed = dsse.verify(envelope, {fingerprint_of(certificate): p256_key_of(certificate)})
    statement = parse_lock(signed.payload)
    return SignedLock(statement.predicate, sha256_hex(content), certificate)


def parse_lock(payload: bytes) -> LockStatement:
    """Read the statement of a lock from verified bytes; raises ValueError with the first fault."""
    parse_bytes(payload, limit=LARGEST_LOCK)
    try:
        return LockStatement.from_json(payload)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{'.'.join(str(part) for part in first['loc']) or 'statement'}: {first['msg']}") from error


def _presented(envelope: dsse.Envelope) -> x509.Certificate:
    """Return the certificate that the lock itself presents, before anything is verified: only a key to try."""
    content = parse_bytes(dsse.payload_of(envelope), limit=LARGEST_LOCK)
    predicate = content.get("predicate") if isinstance(content, dict) else None
    pem = predicate.get("signerCertificate") if isinstance(predicate, dict) else None
    if not isinstance(pem, str):
        raise ValueError("it does not hold the certificate of its signer")  # noqa: TRY004 - content, not a caller's type
    return read_certificate(pem.encode())


def _subjects(lock: Lock) -> tuple[Subject, ...]:
    digests = {"protocol.json": lock.protocol_sha256, "study.json": lock.study_sha256, "study.yaml": lock.study_source_sha256}
    return tuple(Subject(name=name, signed=Sha256(sha256=digest)) for name, digest in digests.items())
