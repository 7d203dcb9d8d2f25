"""How often was this study locked or run before, and under which seeds?  Counted in the cache folder, as far as that folder saw it.

Two attempts are at the same study when its file lies in the same place, or when the same systems are asked about the same sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from evalspec.artifacts.base import Artifact, Digest, canonical_json, sha256_hex
from evalspec.artifacts.lock import Earlier, Lock
from evalspec.artifacts.protocol import CheckpointIdentity, Protocol, RecordIdentity, system_of
from evalspec.errors import InputError
from evalspec.foreign import read_file
from evalspec.places import write_privately

ATTEMPTS = "attempts.json"


class Attempt(Artifact):
    """One lock or run: of which study, by its file and by what it is about, under which protocol and seed."""

    kind: Literal["lock", "run"]
    file: str
    about: Digest
    protocol: Digest
    seed: int


_KNOWN: TypeAdapter[list[Attempt]] = TypeAdapter(list[Attempt])


@dataclass(frozen=True, slots=True)
class Attempts:
    """The record of a cache folder; one that cannot be read is begun anew."""

    cache: Path

    def earlier(self, attempt: Attempt, *, committed: Iterable[Lock] | None = None) -> Earlier:
        """Return what is known of earlier attempts at the same study; `committed` are locks from the history of the lock file, if it has one."""
        history = None if committed is None else list(committed)
        known = [one for one in self._known() if attempt.file == one.file or attempt.about == one.about]
        locks = {one.protocol for one in known if one.kind == "lock"} | {lock.protocol_sha256 for lock in history or ()}
        seeds = {one.seed for one in known} | {lock.seed for lock in history or () if isinstance(lock.seed, int)}
        runs = {one.protocol for one in known if one.kind == "run"}
        return Earlier(locks=len(locks), runs=len(runs), seeds=tuple(sorted(seeds)), commits=None if history is None else len(history))

    def remember(self, attempt: Attempt) -> None:
        """Add an attempt; the same one again changes nothing."""
        known = self._known()
        if attempt not in known:
            write_privately(self.cache / ATTEMPTS, canonical_json([one.model_dump(mode="json") for one in (*known, attempt)]))

    def _known(self) -> list[Attempt]:
        try:
            return _KNOWN.validate_json(read_file(self.cache / ATTEMPTS, name=ATTEMPTS))
        except (InputError, ValueError):
            return []


def attempt_at(kind: Literal["lock", "run"], study: Path, root: Path, protocol: Protocol) -> Attempt:
    """Return what is to be remembered of an attempt; `root` is the folder that the study's paths may not leave."""
    place = study.resolve()
    file = place.relative_to(root.resolve()).as_posix() if place.is_relative_to(root.resolve()) else place.name
    about = sha256_hex(canonical_json([sorted(_systems(protocol)), sorted(benchmark.source_sha256 for benchmark in protocol.benchmarks)]))
    return Attempt(kind=kind, file=file, about=about, protocol=protocol.digest(), seed=protocol.seed)


def _systems(protocol: Protocol) -> Iterator[str]:
    for model in protocol.models:
        identity = system_of(model.identity)
        if isinstance(identity, CheckpointIdentity):
            yield identity.weights_sha256
        else:
            yield f"{identity.sha256 if isinstance(identity, RecordIdentity) else identity.endpoint} {identity.model}"
