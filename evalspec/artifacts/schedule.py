"""What will run where, and what will it cost?  Attested, in no compared digest."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from evalspec.artifacts.base import Artifact, Digest, Identifier

WORTH_SPREADING = 2.0
"""A model is loaded on several devices where what is left of its work takes more than so many times its loading."""


class Device(Artifact):
    """Something that can score: a CPU or an accelerator."""

    id: str
    kind: str
    memory_bytes: int | None = None
    name: str | None = None


def taken_together(devices: Sequence[Device]) -> Device | None:
    """Return all accelerators as one, for a model that none of them has room for alone; None where there are fewer than two."""
    several = [device for device in devices if device.kind == "cuda"]
    if len(several) < 2:
        return None
    memory = sum(device.memory_bytes or 0 for device in several)
    return Device(id="+".join(device.id for device in several), kind="together", memory_bytes=memory, name=several[0].name)


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
    """What a model needs on its device, from the headers of its files alone, or, where `measured`, as it was when a small part was scored there."""

    model: Identifier
    parameters: int
    stored_dtype: str
    weights_bytes: int
    working_bytes: int
    measured: bool = False

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
    """The smallest gap that a comparison finds with the stated power on this sample; None when no gap does.

    `analysis` is None where no analysis of the study compares models on the benchmark, and the comparison is one pair by the usual test.
    """

    analysis: Identifier | None
    benchmark: Identifier
    comparison: str
    n: int
    discordance: float
    discordance_declared: bool
    alpha: float
    power: float
    difference: float | None
    test: str
    limit: float = 0.0


class Rankable(Artifact):
    """The smallest gap between two models that this sample ranks as `pool` questions would, or as questions like them without end where it is None.

    `agreement` is the probability that it does, a tie counting as wrong; no test stands behind it. `gap` is None where no gap is ranked so.
    """

    benchmark: Identifier
    n: int
    pool: int | None
    agreement: float
    discordance: float | None = None
    discordance_declared: bool = False
    gap: float | None = None
    undefined: str | None = None


class LastLook(Artifact):
    """The last of several planned looks at a check: its number, its questions, its alpha, and the chance of passing at it."""

    look: int
    n: int
    alpha: float
    power: float | None = None


class GateForecast(Artifact):
    """How likely a check is to pass on this sample, under a truth that is declared or assumed and never observed.

    `truth` is the true difference, or the true accuracy; `power` is the chance of passing under it, `needed` the number of questions that would
    make that chance `wanted`, None when there is none, with the reason in `why_not`. `smallest` is the truth nearest to the limit that passes
    with the chance `wanted` on this sample, None when none does. `alpha` is the chance of a false pass on the one side that matters. Where looks
    are planned, `n`, `alpha` and `power` are those of this look, `needed` and `smallest` are at the alpha of the `last` one. `n` and `needed` count
    questions of the `subject` where the check names one.
    """

    check: Identifier
    benchmark: Identifier
    n: int
    source_size: int
    limit: float
    test: str | None = None
    alpha: float | None = None
    truth: float | None = None
    truth_declared: bool = False
    discordance: float | None = None
    discordance_declared: bool = False
    power: float | None = None
    wanted: float = 0.8
    needed: int | None = None
    smallest: float | None = None
    subject: str | None = None
    last: LastLook | None = None
    why_not: str | None = None
    undefined: str | None = None

    @property
    def states_need(self) -> bool:
        """Whether it says how many questions are needed, or else which truth passes on this sample."""
        return self.needed is not None or (self.smallest is not None and not (self.undefined or self.why_not))


class CostEstimate(Artifact):
    """What asking a served model is expected to take: requests and tokens that are left, and their cost where the study states a price.

    Questions of the self-check, which are asked again, are counted. `retries` is what requests that are sent again may add; `spent` is what the
    journal's answers have cost.
    """

    model: Identifier
    host: str
    requests: int
    input_tokens: int
    output_tokens: int
    basis: str = Field(description="Where the count of tokens comes from.")
    input_cost: float | None = None
    output_cost: float | None = None
    retries: float | None = None
    spent: float | None = None
    currency: str | None = None
    max_cost: float | None = None

    @property
    def total(self) -> float | None:
        """What the study's answers from the model are expected to cost in all; None where no price is stated."""
        parts = (self.input_cost, self.output_cost, self.retries, self.spent)
        return None if self.currency is None else sum(part or 0.0 for part in parts)


class Schedule(Artifact):
    """Jobs onto devices, with memory, time and the forecast of power."""

    protocol_sha256: Digest
    devices: tuple[Device, ...]
    jobs: tuple[Job, ...]
    memory: tuple[MemoryNeed, ...]
    strata: tuple[StratumSize, ...]
    detectable: tuple[Detectable, ...]
    rankable: tuple[Rankable, ...] = ()
    gates: tuple[GateForecast, ...] = ()
    costs: tuple[CostEstimate, ...] = ()
    seconds: float | None = None
    seconds_basis: str | None = None
    warnings: tuple[str, ...] = ()
