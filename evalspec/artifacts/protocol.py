"""What can change a number?  Everything that does is in the Protocol; hardware is not."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import Field

from evalspec.artifacts.base import Artifact, Digest, Fingerprint, FormatOne, Identifier, Precision
from evalspec.artifacts.samples import Sample
from evalspec.artifacts.scores import Score
from evalspec.artifacts.served import ServedIdentity
from evalspec.artifacts.study import AnalysisRequest, Disclosure, MissingRule, Scoring, Target
from evalspec.artifacts.thresholds import Thresholds


class FileDigest(Artifact):
    """A file of a model folder, by POSIX path relative to that folder."""

    name: str
    sha256: Digest
    size: int


class CheckpointIdentity(Artifact):
    """Which weights and tokenizer a model id stands for.

    `weights_sha256` is the SHA-256 over the raw SHA-256 digests of all files, concatenated in name order
    (the root of OpenSSF model signing's file method).
    """

    kind: Literal["checkpoint"] = "checkpoint"
    files: tuple[FileDigest, ...]
    weights_sha256: Digest
    tokenizer_sha256: Digest
    architecture: str
    parameters: int
    stored_dtype: str
    origin: str = Field(description="How the study names it: the path as written, or hub id and revision.")

    @property
    def gguf(self) -> str | None:
        """The name of the GGUF file that holds weights and tokenizer; None for a folder as transformers writes it."""
        return self.files[0].name if [PurePosixPath(file.name).suffix for file in self.files] == [".gguf"] else None


class RecordIdentity(Artifact):
    """Which recorded table a model's responses are replayed from."""

    kind: Literal["recorded"] = "recorded"
    sha256: Digest
    model: str = Field(description="The table's name for the model.")
    origin: str


System = Annotated[CheckpointIdentity | RecordIdentity | ServedIdentity, Field(discriminator="kind")]
"""What gives answers."""


class EarlierIdentity(Artifact):
    """A model of an earlier signed run: which run, whose signature it bears, and what the model was in it.

    The manifest of that run travels along, so that `signer_certificate`, which says nothing of its holder, lets anybody check the signature.
    """

    kind: Literal["earlier_run"] = "earlier_run"
    run_id: str
    signed_at: str = Field(description="By the signer's own word.")
    model: Identifier = Field(description="Its id in that run.")
    signer: Fingerprint
    signer_certificate: str
    manifest_sha256: Digest
    protocol_sha256: Digest
    responses_sha256: Digest
    precision: Precision = Field(description="In which the model was scored there, where it was.")
    system: System
    origin: str = Field(description="The run's folder as the study names it.")


Identity = Annotated[CheckpointIdentity | RecordIdentity | ServedIdentity | EarlierIdentity, Field(discriminator="kind")]
"""What a model id stands for."""


Route = Literal["scored_here", "earlier_run", "recorded", "server"]
"""Where answers come from: this run, an earlier signed one, a table that others wrote, or a server."""


def system_of(identity: Identity) -> CheckpointIdentity | RecordIdentity | ServedIdentity:
    """Return what gave a model's answers, in this run or in the earlier one that they are taken from."""
    return identity.system if isinstance(identity, EarlierIdentity) else identity


def earlier_manifest(sha256: str) -> str:
    """Return the name under which a run directory keeps the manifest of an earlier run."""
    return f"earlier-{sha256}.dsse.json"


def known_digest(identity: Identity) -> str | None:
    """Return the digest of weights, of recorded responses or of an earlier run's; None behind a server, whose weights nobody outside knows."""
    if isinstance(identity, CheckpointIdentity):
        return identity.weights_sha256
    if isinstance(identity, EarlierIdentity):
        return identity.responses_sha256
    return identity.sha256 if isinstance(identity, RecordIdentity) else None


class ProtocolModel(Artifact):
    """A model under test, resolved to digests."""

    id: Identifier
    precision: Precision
    identity: Identity


class DrawnQuestion(Artifact):
    """A question of the sample: its public id, its digest or salted commitment, its stratum and its weight.

    `weight` is the stratum's share of the source divided by its share of the sample, so that weights average 1; 1 for self-weighting samples.
    Under `disclosure: none` `id` and `sha256` are commitments (HMAC-SHA-256), not the question's own.
    """

    id: str
    sha256: Digest
    subject: str | None = None
    cluster: str | None = None
    flags: tuple[str, ...] = ()
    weight: float = 1.0


class Pool(Artifact):
    """The questions that a sample speaks for where it speaks for no others: how many there are, in all and by subject."""

    size: int
    subjects: dict[str, int] = Field(default_factory=dict)


class PlannedSize(Artifact):
    """The number of questions that a sample was to have in order to detect a difference: which one, by which test, with which power.

    `alpha` is after the worst case of the correction, two-sided for `exact` and `mid_p`; `detect` is counted from `limit`; `power` is what
    `questions` reach, `wanted` what was asked for.
    """

    analysis: Identifier
    test: str
    alpha: float
    limit: float
    detect: float
    discordance: float
    wanted: float
    power: float
    questions: int


class Example(Artifact):
    """One question that is shown solved; under `disclosure: none` both fields are its commitment."""

    id: str
    sha256: Digest


class Preamble(Artifact):
    """The worked examples that questions of a subject, or all questions, see first."""

    subject: str | None = None
    examples: tuple[Example, ...]
    text: str | None = Field(default=None, description="As it stands before every prompt; only where the benchmark is disclosed in full.")


class ProtocolBenchmark(Artifact):
    """Which questions of a benchmark are asked, and how."""

    id: Identifier
    source: str
    source_sha256: Digest = Field(description="Of the source's files; under `disclosure: none`, of the commitments to the drawn questions.")
    source_size: int = Field(description="Questions in the source.")
    licence: str | None = None
    sample: Sample
    planned_size: PlannedSize | None = Field(default=None, description="Where the sample's size was to detect a difference.")
    looked_at: int | None = Field(default=None, description="How many other models chose the questions, where they were chosen.")
    questions: tuple[DrawnQuestion, ...]
    strata: Literal["subject"] | None = None
    clusters: Literal["subject", "cluster"] | None = None
    target: Target = "super_population"
    pool: Pool | None = Field(default=None, description="The source, where the target is this pool.")
    missing: MissingRule
    score: Score | None = Field(default=None, description="Of recorded scores that are not right and wrong answers.")
    scoring: Scoring
    prompt: str = Field(description="The prompt template as used.")
    preambles: tuple[Preamble, ...] = ()
    disclosure: Disclosure

    @property
    def weighted(self) -> bool:
        """Whether questions weigh differently."""
        return len({question.weight for question in self.questions}) > 1

    def cluster_labels(self) -> tuple[str, ...]:
        """Return the cluster of each drawn question, empty where no clusters are declared; raises ValueError where one has none."""
        if self.clusters is None:
            return ()
        labels = tuple(question.subject if self.clusters == "subject" else question.cluster for question in self.questions)
        known = tuple(label for label in labels if label is not None)
        if len(known) < len(labels):
            raise ValueError(f"benchmark {self.id!r} declares clusters, and {len(labels) - len(known)} of its questions have none")
        return known


class BatchRule(Artifact):
    """How questions are cut into batches: a shard's length-sorted prompts, partitioned optimally under a token budget.

    The shape of a batch can move the last bits of a log-probability, so the rule is part of the protocol.
    """

    algorithm: Literal["optimal_partition_v1"] = "optimal_partition_v1"
    token_budget: int = 4096
    overhead_tokens: int = 64
    shard_questions: int = Field(default=4096, description="Questions per shard, cut from the question list in order.")
    branches: bool = Field(default=True, description="Whether the answers of a question share its prompt, where the model can read branches.")
    shortest_prefix: int = Field(default=64, description="Tokens from which on a beginning that prompts of a shard have in common is read once.")
    packing: bool = Field(
        default=True,
        exclude_if=bool,  # so that protocols from before it was a choice keep their digest
        description="Whether rows are laid end to end where the model and its device can keep them apart; then batches are filled by best fit.",
    )


class Protocol(Artifact):
    """The study resolved to digests: two runs of one protocol must tell the same story."""

    format: FormatOne = 1
    study_sha256: Digest
    seed: int
    models: tuple[ProtocolModel, ...]
    benchmarks: tuple[ProtocolBenchmark, ...]
    analyses: tuple[AnalysisRequest, ...]
    thresholds: Thresholds | None
    batch_rule: BatchRule

    def model(self, identifier: str) -> ProtocolModel:
        """Return the model of that id; raises KeyError when there is none."""
        return {model.id: model for model in self.models}[identifier]

    def benchmark(self, identifier: str) -> ProtocolBenchmark:
        """Return the benchmark of that id; raises KeyError when there is none."""
        return {benchmark.id: benchmark for benchmark in self.benchmarks}[identifier]
