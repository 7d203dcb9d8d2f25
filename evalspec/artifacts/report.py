"""What does a report show beside findings and verdict?  Figures, and the ledger of how its numbers came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evalspec.artifacts.base import Artifact, Identifier, JsonValue
from evalspec.artifacts.served import ServerUse


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing and the numbers drawn in it."""

    svg: str
    drawn: Mapping[str, JsonValue]


class LedgerEntry(Artifact):
    """One scoring job as it ran; `in_parts` counts its batches that were computed in parts because memory ran out.

    `packed` counts those whose rows were laid end to end, and `packing` is what kept them apart.

    `server` is what it took of a server, where one was asked; that of a benchmark's last job counts the questions asked again too.
    """

    model: Identifier
    benchmark: Identifier
    shard: int
    device: str
    questions: int
    tokens: int
    seconds: float
    reused: int
    in_parts: int = 0
    packed: int = 0
    packing: str | None = None
    server: ServerUse | None = None


class Ledger(Artifact):
    """Clocks, hosts, versions and speeds: attested, compared with nothing.

    `looks` is how many different sets of answers to these questions the gate has judged, as far as the cache folder of the run knows.
    """

    run_id: str
    started: str
    finished: str
    host: str
    command: str
    versions: dict[str, str]
    environment: dict[str, str]
    devices: tuple[str, ...]
    jobs: tuple[LedgerEntry, ...]
    git_commit: str | None
    git_dirty: bool | None
    key_note: str | None = None
    looks: int | None = None
