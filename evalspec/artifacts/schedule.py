"""What will run where, and what will it cost?  Attested, in no compared digest."""

from __future__ import annotations

from evalspec.artifacts.base import Artifact, Digest, Identifier


class Device(Artifact):
    """Something that can score: a CPU or an accelerator."""

    id: str
    kind: str
    memory_bytes: int | None = None
    name: str | None = None


class Job(Artifact):
    """One model on one shard of one benchmark: the unit that a device is given.

    `id` is the SHA-256 over all that can change its result, so a journal entry found under it can be reused.
    """

    id: Digest
    model: Identifier
    benchmark: Identifier
    shard: int
    shards: int
    questions: int
    tokens: int | None = None
    journalled: int = 0
    device: str | None = None
    seconds: float | None = None


class MemoryNeed(Artifact):
    """What a model needs on its device, from safetensors headers and config.json alone."""

    model: Identifier
    parameters: int
    stored_dtype: str
    weights_bytes: int
    working_bytes: int

    @property
    def total_bytes(self) -> int:
        """Weights in the precision of the run plus the working memory of one batch."""
        return self.weights_bytes + self.working_bytes


class StratumSize(Artifact):
    """How many questions of a stratum the source has and the sample takes."""

    benchmark: Identifier
    subject: str
    available: int
    drawn: int


class Detectable(Artifact):
    """The smallest gap that a declared comparison finds with the stated power on this sample; None when no gap does."""

    analysis: Identifier
    benchmark: Identifier
    comparison: str
    n: int
    discordance: float
    discordance_declared: bool
    alpha: float
    power: float
    difference: float | None
    test: str


class Schedule(Artifact):
    """Jobs onto devices, with memory, time and the forecast of power."""

    protocol_sha256: Digest
    devices: tuple[Device, ...]
    jobs: tuple[Job, ...]
    memory: tuple[MemoryNeed, ...]
    strata: tuple[StratumSize, ...]
    detectable: tuple[Detectable, ...]
    seconds: float | None = None
    seconds_basis: str | None = None
    warnings: tuple[str, ...] = ()
