"""Was the plan settled before anything was scored?  Locks are made from a resolved study, found beside it, and held against a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from evalspec import surroundings
from evalspec.artifacts.base import Artifact, JsonValue
from evalspec.artifacts.deviations import tells_more
from evalspec.artifacts.lock import LOCK, Before, Lock, LockedPlan, listed
from evalspec.artifacts.protocol import EarlierIdentity, Protocol, RecordIdentity
from evalspec.artifacts.schedule import Schedule
from evalspec.artifacts.study import Study
from evalspec.attempts import Attempts, attempt_at
from evalspec.errors import Diagnostic, SigningError, StudyError, UsageError
from evalspec.foreign import read_file
from evalspec.looks import known_looks
from evalspec.protocols import Signer
from evalspec.signing.files import write_atomically
from evalspec.signing.lock import LARGEST_LOCK, SignedLock, read_lock, sign_lock

MOST_NAMED = 100


@dataclass(frozen=True, slots=True)
class FoundLock:
    """A lock whose signature holds, where it lies, its bytes, and whether a run may deviate from it."""

    path: Path
    content: bytes
    signed: SignedLock
    allow_deviations: bool = False


@dataclass(frozen=True, slots=True)
class Locked:
    """A lock that was written, and where."""

    file: Path
    lock: Lock


@dataclass(frozen=True, slots=True)
class LockChoice:
    """Which lock a run is held against, the one beside the study unless another is named, and whether it may deviate from it."""

    file: Path | None = None
    allow_deviations: bool = False


@dataclass(frozen=True, slots=True)
class StudyPlace:
    """Where a study lies, the folder that its paths may not leave, and where what must outlive a run is kept."""

    path: Path
    root: Path
    cache: Path


def lock_beside(study: Path) -> Path:
    """Return where the lock of a study lies."""
    return study.with_name(f"{study.stem}.{LOCK}")


def find_lock(study: Path, choice: LockChoice) -> FoundLock | None:
    """Return the lock that is named, or the one beside the study, if there is one.

    Raises UsageError where none is there and one is asked for, SigningError where what is there is no lock or was altered.
    """
    path = choice.file or lock_beside(study)
    if path.exists():
        return replace(open_lock(path), allow_deviations=choice.allow_deviations)
    if choice.file is not None or choice.allow_deviations:
        raise UsageError(f"there is no lock {path}", hint=f"make one before the run: evalspec lock {study}")
    return None


def earlier_lock(study: Path, *, may_replace: bool) -> FoundLock | None:
    """Return the lock in whose place another one is to be put; raises UsageError where nobody said that it may be replaced."""
    file = lock_beside(study)
    if file.exists() and not may_replace:
        raise UsageError(f"{file} exists: this study is locked", hint="--replace puts another lock in its place, which names it and counts it")
    return open_lock(file) if file.exists() else None


def open_lock(path: Path) -> FoundLock:
    """Read a lock; raises SigningError where it is none or was altered."""
    content = read_file(path, name=str(path), limit=LARGEST_LOCK)
    try:
        return FoundLock(path, content, read_lock(content))
    except ValueError as error:
        raise SigningError(f"the lock {path} is not as it was signed: {error}", hint="put the signed file back, or lock the study again") from error


def remember(kind: Literal["lock", "run"], place: StudyPlace, protocol: Protocol) -> None:
    """Keep in the cache folder that a study was locked or run."""
    Attempts(place.cache).remember(attempt_at(kind, place.path, place.root, protocol))


def plan_in(folder: Path, study: Study, protocol: Protocol) -> LockedPlan | None:
    """Return the locked plan of a run directory; None where there is none. Raises SigningError where it was altered."""
    return open_lock(folder / LOCK).signed.beside(study, protocol) if (folder / LOCK).exists() else None


def hold_against(found: FoundLock, study: Study, protocol: Protocol, *, started: str) -> LockedPlan:
    """Return how a run that begins stands to its lock; raises StudyError with every deviation that is not allowed."""
    plan = found.signed.beside(study, protocol)
    if plan.lock.locked_at > started:
        raise StudyError(f"the lock {found.path} says that it was made at {plan.lock.locked_at}, which is still to come", hint="set the clocks right")
    if more := tells_more(plan.lock, protocol):
        problem = f"the lock {found.path} discloses more of benchmark '{more[0]}' than the study does now, and it would travel with the report"
        raise StudyError(problem, hint="lock the study again, as it is now")
    if plan.deviations and not found.allow_deviations:
        raise StudyError(_faults(found.path, plan))
    return plan


def lock_study(place: StudyPlace, plan: tuple[Study, Protocol, Schedule], *, replaced: FoundLock | None, signer: Signer) -> Locked:
    """Sign a plan and write it beside the study, and remember that; raises SigningError where the file would not be read again."""
    lock = _lock(place, plan, replaced, signer)
    content = sign_lock(lock, signer)
    if len(content) > LARGEST_LOCK:
        raise SigningError(f"the lock would have {len(content):,} bytes; at most {LARGEST_LOCK:,} are read", hint="draw a smaller sample")
    remember("lock", place, plan[1])  # first: a lock that was not counted could not be told from a first one
    write_atomically(lock_beside(place.path), content)
    return Locked(lock_beside(place.path), lock)


def _lock(place: StudyPlace, plan: tuple[Study, Protocol, Schedule], replaced: FoundLock | None, signer: Signer) -> Lock:
    """Return what is signed before scoring: the plan, and what the cache folder and the repository know of earlier answers and attempts."""
    study, protocol, schedule = plan
    plain = _plain(protocol)
    lists = listed(plain)
    git, attempt = surroundings.git_state(place.path), attempt_at("lock", place.path, place.root, protocol)
    return Lock(
        locked_at=surroundings.timestamp(),
        versions=surroundings.versions(),
        study_source_sha256=study.source_sha256,
        study_sha256=study.digest(),
        protocol_sha256=protocol.digest(),
        benchmarks=lists.benchmarks,
        models=lists.models,
        analyses=lists.analyses,
        thresholds_sha256=lists.thresholds_sha256,
        before=_before(protocol, schedule, place.cache),
        earlier=Attempts(place.cache).earlier(attempt, committed=_committed(lock_beside(place.path))),
        replaces=None if replaced is None else replaced.signed.sha256,
        git_commit=git.commit,
        git_dirty=git.dirty,
        signer_certificate=signer.certificate_pem.decode("ascii"),
        study=_plain(study),
        protocol=plain,
    )


def _before(protocol: Protocol, schedule: Schedule, cache: Path) -> Before:
    return Before(
        answers=sum(job.journalled for job in schedule.jobs),
        asked=sum(job.questions for job in schedule.jobs),
        replayed=tuple(model.id for model in protocol.models if isinstance(model.identity, RecordIdentity | EarlierIdentity)),
        looks=known_looks(cache, protocol),
    )


def _committed(path: Path) -> list[Lock] | None:
    """Return the locks in the commits that touched the lock file; None where there is no repository."""
    versions = surroundings.committed_versions(path)
    return None if versions is None else list(_readable(versions))


def _readable(versions: Iterable[bytes]) -> Iterable[Lock]:
    for content in versions:
        try:
            yield read_lock(content).lock
        except ValueError:
            continue


def _plain(artifact: Artifact) -> dict[str, JsonValue]:
    content: dict[str, JsonValue] = artifact.model_dump(mode="json", by_alias=True)
    return content


def _faults(path: Path, plan: LockedPlan) -> tuple[Diagnostic, ...]:
    named = [Diagnostic(f"not as locked in {path}: {deviation}") for deviation in plan.deviations[:MOST_NAMED]]
    if len(plan.deviations) > MOST_NAMED:
        named.append(Diagnostic(f"and {len(plan.deviations) - MOST_NAMED} more places"))
    hint = "run with --allow-deviations, and the report lists them; or lock the study again, which counts as another lock"
    return (*named[:-1], Diagnostic(named[-1].message, hint=hint))
