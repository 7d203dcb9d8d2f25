"""Did the named key sign the earlier run that a model is taken from?  Its manifest travels with the report and is checked by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography import x509

from evalspec.artifacts.base import sha256_hex
from evalspec.artifacts.protocol import EarlierIdentity, Protocol, earlier_manifest, known_digest
from evalspec.signing import dsse, files
from evalspec.signing.certificates import fingerprint_of, p256_key_of, read_certificate
from evalspec.signing.statement import SignedModel, Statement, parse_statement
from evalspec.signing.trust import Trust
from evalspec.signing.verification import Problem

PROTOCOL = "protocol.json"
LARGEST_PROTOCOL = 2**30


@dataclass(frozen=True, slots=True)
class EarlierCheck:
    """What checking the manifests of earlier runs found."""

    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    revoked: tuple[str, ...] = ()
    """Why the report cannot be trusted although its own signer is."""


def check_earlier(folder: Path, statement: Statement, problems: tuple[Problem, ...], trust: Trust, now: datetime) -> EarlierCheck:
    """Check the earlier runs of a run directory that is otherwise as its manifest lists it; a protocol of another version names none."""
    if PROTOCOL not in statement.digests or problems:
        return EarlierCheck()
    content = files.read_regular(folder, PROTOCOL, limit=LARGEST_PROTOCOL)
    unwritten = b'"earlier_run"' not in content and b"\\u" not in content  # JSON may write any letter by its number
    if unwritten or sha256_hex(content) != statement.digests[PROTOCOL]:
        return EarlierCheck()
    try:
        protocol = Protocol.from_json(content)
    except ValueError as error:
        return EarlierCheck(notes=(f"earlier runs cannot be told: {files.printable(str(error)).splitlines()[0]}",))
    found: list[Problem] = []
    notes: list[str] = []
    revoked: list[str] = []
    for model in protocol.models:
        if isinstance(model.identity, EarlierIdentity):
            name = earlier_manifest(model.identity.manifest_sha256)
            try:
                certificate = _checked(folder, name, statement, model.identity)
            except ValueError as error:
                found.append(Problem(kind="EARLIER", name=name, detail=f"model {model.id}: {files.printable(str(error))}"))
            else:
                notes.append(_note(model.id, model.identity, certificate, trust, now))
                if trust.revokes(certificate):
                    revoked.append(f"the answers of model {model.id} come from a run that was signed with a revoked key: {model.identity.signer}")
    return EarlierCheck(tuple(found), tuple(notes), tuple(revoked))


def _checked(folder: Path, name: str, statement: Statement, identity: EarlierIdentity) -> x509.Certificate:
    """Return the certificate under which the earlier manifest holds; raises ValueError where it does not say what the protocol says of it."""
    if statement.digests.get(name) != identity.manifest_sha256:
        raise ValueError("the manifest of the run that it is taken from is not among the signed files")
    content = files.read_regular(folder, name, limit=dsse.SIZE_LIMIT)
    certificate = read_certificate(identity.signer_certificate.encode())
    if fingerprint_of(certificate) != identity.signer:
        raise ValueError(f"the certificate is of the key {fingerprint_of(certificate)}, not of {identity.signer}")
    signed = dsse.verify(dsse.parse_envelope(content), {identity.signer: p256_key_of(certificate)})
    earlier = parse_statement(signed.payload)
    for told, differs in _claims(earlier, identity):
        if differs:
            raise ValueError(f"the manifest of that run states another {told} than the protocol")
    return certificate


def _claims(earlier: Statement, identity: EarlierIdentity) -> Iterator[tuple[str, bool]]:
    system = SignedModel(id=identity.model, kind=identity.system.kind, sha256=known_digest(identity.system))
    yield "run id", earlier.predicate.run_id != identity.run_id
    yield "time", earlier.predicate.created_at != identity.signed_at
    yield "digest of protocol.json", earlier.digests.get(PROTOCOL) != identity.protocol_sha256
    yield "digest of responses.parquet", earlier.digests.get("responses.parquet") != identity.responses_sha256
    yield "model", system not in earlier.predicate.models


def _note(model: str, identity: EarlierIdentity, certificate: x509.Certificate, trust: Trust, now: datetime) -> str:
    holder = trust.standing(certificate, signed_at=datetime.fromisoformat(identity.signed_at), now=now)
    return (
        f"model {model} is taken from the run {files.printable(identity.run_id)}, signed by {holder}, key {identity.signer}; "
        "that its answers are those of that run can be seen with that run at hand"
    )
