"""Do the files inside a report.pdf that came alone belong to each other?  Told by the digests that they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from evalspec.artifacts.base import JsonValue, sha256_hex
from evalspec.artifacts.lock import LOCK, SELF_ASSERTED
from evalspec.foreign import parse_bytes
from evalspec.signing import files
from evalspec.signing.lock import SignedLock, read_lock
from evalspec.signing.lock_check import LockCheck
from evalspec.signing.statement import ATTACHED, STUDY
from evalspec.signing.trust import Trust

PROTOCOL, FINDINGS, VERDICT = "protocol.json", "findings.json", "verdict.json"
CARRIED = frozenset({*ATTACHED, PROTOCOL, VERDICT, LOCK})
PARENTS = ((FINDINGS, "protocol_sha256", PROTOCOL), (VERDICT, "findings_sha256", FINDINGS))
NOT_COMPARED = (
    "not checked: that the numbers follow from the answers, which are not in the PDF, and that its pages show what the attached files hold",
    "only the PDF was checked, not the files that belong to the report",
)


@dataclass(frozen=True, slots=True)
class AttachedCheck:
    """What is wrong with the attached files, and what is worth knowing of them."""

    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    revoked: tuple[str, ...] = ()


def check_attached(attached: Mapping[str, bytes], signer: str, trust: Trust, times: tuple[datetime, datetime]) -> AttachedCheck:
    """Hold attached files against each other; `signer` is the key of the PDF, `times` are when it was signed, by its own word, and now."""
    faults = [f"{name} is not attached to it" for name in ATTACHED if name not in attached]
    faults += [f"a file is attached to it that no report carries: {name!r}" for name in sorted(attached.keys() - CARRIED)]
    faults += _foreign_parents(attached)
    notes = [f"attached and held against each other: {', '.join(sorted(attached))}"] if not faults else []
    revoked: tuple[str, ...] = ()
    if LOCK in attached:
        try:
            signed = read_lock(attached[LOCK])
        except ValueError as error:
            faults.append(f"the attached plan is not as it was signed: {files.printable(str(error))}")
        else:
            faults += _faults_of_plan(signed, attached, times[0])
            plan = LockCheck(signed=signed)
            notes += (*_about_plan(signed, attached), *plan.about_signer(signer, trust, times[1]))
            revoked = plan.revoked(signer, trust)
    return AttachedCheck(tuple(faults), (*notes, *NOT_COMPARED), revoked)


def _foreign_parents(attached: Mapping[str, bytes]) -> Iterator[str]:
    """Yield every attached file that names another parent than the attached one."""
    for child, field, parent in PARENTS:
        if child in attached and parent in attached:
            named = _field(attached[child], field)
            if named != sha256_hex(attached[parent]):
                yield f"the attached {child} was not made from the attached {parent}"


def _field(content: bytes, name: str) -> JsonValue:
    try:
        value = parse_bytes(content, limit=len(content))
    except ValueError:
        return None
    return value.get(name) if isinstance(value, dict) else None


def _faults_of_plan(signed: SignedLock, attached: Mapping[str, bytes], signed_at: datetime) -> Iterator[str]:
    if datetime.fromisoformat(signed.lock.locked_at) > signed_at:
        yield f"the attached plan was locked {signed.lock.locked_at}, after the report had been signed at {signed_at.isoformat()}"
    as_locked = PROTOCOL in attached and signed.lock.protocol_sha256 == sha256_hex(attached[PROTOCOL])
    if as_locked and STUDY in attached and signed.lock.study_source_sha256 != sha256_hex(attached[STUDY]):
        yield "the attached study.yaml is not the one that was locked, and the attached protocol is"


def _about_plan(signed: SignedLock, attached: Mapping[str, bytes]) -> Iterator[str]:
    told = f"plan locked {signed.lock.locked_at} ({SELF_ASSERTED})"
    if PROTOCOL in attached:
        same = signed.lock.protocol_sha256 == sha256_hex(attached[PROTOCOL])
        yield f"{told}: the attached protocol is {'the locked one' if same else 'another one than was locked; the report lists the deviations'}"
