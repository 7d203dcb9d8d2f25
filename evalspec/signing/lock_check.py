"""Is the plan that travels with a report as it was signed, and older than the run?  What `verify` asks of a lock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from evalspec.artifacts.base import sha256_hex
from evalspec.artifacts.lock import LOCK, SELF_ASSERTED
from evalspec.artifacts.protocol import Protocol
from evalspec.artifacts.report import Ledger
from evalspec.artifacts.study import Study
from evalspec.errors import counted
from evalspec.signing import files
from evalspec.signing.lock import LARGEST_LOCK, SignedLock, read_lock
from evalspec.signing.statement import Statement
from evalspec.signing.trust import Trust
from evalspec.signing.verification import Problem

READ = ("study.json", "protocol.json", "ledger.json")


@dataclass(frozen=True, slots=True)
class LockCheck:
    """What checking a lock found; the lock itself where its signature holds."""

    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    signed: SignedLock | None = None

    def about_signer(self, fingerprint: str, trust: Trust, now: datetime) -> tuple[str, ...]:
        """Say whose key locked the plan; `fingerprint` is that of the report's own key."""
        if self.signed is None:
            return ()
        if self.signed.fingerprint == fingerprint:
            return ("the plan was locked with the key of this report",)
        locked_at = datetime.fromisoformat(self.signed.lock.locked_at)
        holder = trust.standing(self.signed.certificate, signed_at=locked_at, now=now)
        return (f"the plan was locked by {holder} with another key than this report's: {self.signed.fingerprint}",)

    def revoked(self, fingerprint: str, trust: Trust) -> tuple[str, ...]:
        """Say so where the plan was locked with another key than the report's, in which the reader has taken back the trust."""
        if self.signed is None or self.signed.fingerprint == fingerprint or not trust.revokes(self.signed.certificate):
            return ()
        return (f"the plan was locked with a revoked key: {self.signed.fingerprint}",)


def check_lock(folder: Path, statement: Statement, problems: tuple[Problem, ...]) -> LockCheck:
    """Check the lock of a run directory, if it has one and it is there as the manifest lists it."""
    if LOCK not in statement.digests or LOCK in {problem.name for problem in problems}:
        return LockCheck()
    try:
        signed = read_lock(_listed(folder, LOCK, statement))
    except ValueError as error:
        return LockCheck((Problem(kind="LOCK", name=LOCK, detail=f"the plan is not as it was signed: {files.printable(str(error))}"),))
    if unsound := sorted({problem.name for problem in problems}.intersection(READ)):
        told = f"how the run stands to its locked plan cannot be told: {unsound[0]} is not there as it was signed"
        return LockCheck(notes=(told,), signed=signed)
    try:
        study, protocol, ledger = (_listed(folder, name, statement) for name in READ)
        plan = signed.beside(Study.from_json(study), Protocol.from_json(protocol))
        started = datetime.fromisoformat(Ledger.from_json(ledger).started)
    except ValueError as error:
        why = files.printable(str(error)).splitlines()[0]
        return LockCheck(notes=(f"how the run stands to its locked plan cannot be told: {why}",), signed=signed)
    told = f"plan locked {signed.lock.locked_at} ({SELF_ASSERTED})"
    if fault := _too_late(signed, started):
        return LockCheck((Problem(kind="LOCK", name=LOCK, detail=f"{told}, {fault}"),), signed=signed)
    count = len(plan.deviations)
    stands = "the run is as locked" if not count else f"the run deviates from it in {counted(count, 'place')}, which the report lists"
    return LockCheck(notes=(f"{told}: {stands}",), signed=signed)


def _too_late(signed: SignedLock, started: datetime) -> str:
    """Say why a plan does not precede a run; nothing where it does."""
    if started.tzinfo is None:
        return "and the ledger tells no time zone of the start of the run, so that nothing shows which came first"
    late = datetime.fromisoformat(signed.lock.locked_at) > started
    return f"after the run had started at {started.isoformat()}" if late else ""


def _listed(folder: Path, name: str, statement: Statement) -> bytes:
    """Return a file if it is the one that the manifest lists; raises ValueError otherwise."""
    if name not in statement.digests:
        raise ValueError(f"{name} is not among the signed files")
    content = files.read_regular(folder, name, limit=LARGEST_LOCK)
    if sha256_hex(content) != statement.digests.get(name):
        raise ValueError(f"{name} is not the signed file")
    return content
