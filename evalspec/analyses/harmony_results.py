"""What can be asked of harmony, and what is found?"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from evalspec.analyses.harmony_vectors import Encoder
from evalspec.artifacts.base import Artifact, Digest, Identifier, Proportion

PartitionSource = Literal["declared", "embedding", "predictive"]
Bandwidth = Annotated[float, Field(gt=0, le=1)]
GroupCounts = Annotated[tuple[Annotated[int, Field(ge=2, le=50)], Annotated[int, Field(ge=2, le=50)]], Field(min_length=2, max_length=2)]


class InducedOptions(Artifact):
    """How questions are clustered: the numbers of groups that are tried, the silhouette maximum wins."""

    k: GroupCounts = Field(default=(2, 20), description="The smallest and the largest number of groups that is tried; 2 and 20 by default.")
    n_init: Annotated[int, Field(ge=1, le=100)] = Field(default=10, description="Random starts of k-means.")
    seeds: Annotated[int, Field(ge=2, le=50)] = Field(default=5, description="Clusterings with other starts, whose agreement is reported.")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.k[0] > self.k[1]:
            raise ValueError(f"`k` must be the smallest and then the largest number of groups; got {self.k[0]} and {self.k[1]}")
        return self


class EmbeddingOptions(InducedOptions):
    """Groups by k-means of vectors: TF-IDF of the questions' words and its leading singular vectors, or those of an encoder."""

    encoder: Encoder | None = Field(default=None, description="Vectors made elsewhere, instead of those by words.")
    dimensions: Annotated[int, Field(ge=2, le=500)] = Field(default=50, description="Singular vectors of the TF-IDF matrix that are kept.")


class PredictiveOptions(InducedOptions):
    """Groups by how alike a model's answer distributions are: spectral clustering of exp(-tau/2 (KL + reversed KL))."""

    pbar: Literal["answer_tokens"] = Field(default="answer_tokens", description="What is compared: mean distributions over the answer's tokens.")
    tokens: Annotated[int, Field(ge=2, le=4096)] = Field(
        default=255, description="Tokens that are told apart, over all models of a partition, at least 31 for each; all others count as one."
    )
    tau: Annotated[float, Field(gt=0, le=100)] = Field(default=1.0, description="How fast similarity falls with divergence.")
    clamp: Annotated[float, Field(gt=0, lt=0.01)] = Field(default=1e-6, description="The least probability, so that no divergence is infinite.")
    silhouette: Literal["1-S", "J"] = Field(default="1-S", description="The distance of the silhouette that chooses k; the other is reported.")
    labels: Literal["kmeans", "cluster_qr"] = Field(default="kmeans", description="How groups are read off the eigenvectors.")
    shared: Literal["consensus", "per_model"] = Field(
        default="consensus",
        description="One partition by the mean divergence of all models, or one for each model, which makes models hard to compare.",
    )


class HarmonyOptions(Artifact):
    """Whether one accuracy speaks for the groups of a benchmark's questions."""

    kind: Literal["harmony"]
    partition: PartitionSource = Field(
        default="declared", description="Where groups come from: subjects of the data, words of the questions, or the models' answer distributions."
    )
    by: Literal["subject"] = Field(default="subject", description="What makes the declared groups.")
    b: Bandwidth = Field(default=0.1, description="The distance from the mean accuracy at which a group keeps 1/e of its weight; decides the value.")
    b_sweep: Annotated[tuple[Bandwidth, ...], Field(max_length=9)] = Field(
        default=(0.05, 0.1, 0.2), description="Bandwidths shown beside `b`; 0.05, 0.1 and 0.2 by default."
    )
    eps: Annotated[float, Field(gt=0, le=1e-6)] = Field(default=1e-12, description="Added inside the logarithm of the entropy.")
    embedding: EmbeddingOptions | None = Field(default=None, description="Details of `partition: embedding`.")
    predictive: PredictiveOptions | None = Field(default=None, description="Details of `partition: predictive`.")
    ci: Literal["eb"] = Field(default="eb", description="The interval: empirical Bayes, groups kept.")
    level: Proportion = Field(default=0.95, description="The confidence level of each interval.")
    null_draws: Annotated[int, Field(ge=200, le=100_000)] = Field(default=2000, description="Reshuffles, and draws of the interval.")
    min_cluster: Annotated[int, Field(ge=2)] = Field(default=30, description="A group with fewer questions makes the result inconclusive.")
    prune: Proportion = Field(default=0.5, description="The largest share of questions that rebalancing removes from over-represented groups.")

    @model_validator(mode="after")
    def _details_of_the_partition(self) -> Self:
        for name, details in (("embedding", self.embedding), ("predictive", self.predictive)):
            if details is not None and self.partition != name:
                raise ValueError(f"`{name}` holds details of `partition: {name}`, and the partition is {self.partition!r}")
        return self


class SweptGroups(Artifact):
    """What one number of groups gives: both silhouettes where they are defined."""

    k: int
    silhouette: float
    other_silhouette: float | None = None


class Stability(Artifact):
    """How far an induced partition depends on chance and on choices.

    `seed_agreement` is the mean adjusted Rand index over other starts, `half_agreement` over clusterings of random halves with its least value,
    `qr_agreement` against the deterministic reading of the same eigenvectors. `k_by_other` is what the other silhouette would choose.
    """

    seed_agreement: float
    half_agreement: float | None = None
    half_agreement_least: float | None = None
    halves: int = 0
    qr_agreement: float | None = None
    k_by_other: int | None = None


class PartitionSummary(Artifact):
    """Groups of one benchmark's questions: where they come from, their digest, and what makes them doubtful.

    `models` are those whose answers made them, all or one; empty where no answers did. `labels_sha256` is over question ids and their groups,
    `vectors_sha256` of the table of an encoder. `told_apart` is the mean share of an answer's probability in the tokens that are told apart.
    """

    benchmark: Identifier
    source: PartitionSource
    label: str
    models: tuple[Identifier, ...] = ()
    k: int | None = None
    smallest: int | None = None
    labels_sha256: Digest | None = None
    vectors_sha256: Digest | None = None
    told_apart: float | None = None
    swept: tuple[SweptGroups, ...] = ()
    stability: Stability | None = None
    flags: tuple[str, ...] = ()
    undefined: str | None = None


class GroupRow(Artifact):
    """One group for one model: its accuracy with an interval of its own, its share of the questions, and the share of the mass that it keeps."""

    group: str
    n: int
    weight: float
    value: float
    low: float | None = None
    high: float | None = None
    mass: float


class SweepPoint(Artifact):
    """Harmony at another bandwidth, or over another number of groups."""

    b: float | None = None
    k: int | None = None
    value: float


class Rebalanced(Artifact):
    """The accuracy once over-represented groups have given up questions, and how unusual that shift is under random removal."""

    kept: int
    removed: int
    value: float
    harmony: float
    p_value: float | None = None
    undefined: str | None = None


class LowestAccuracy(Artifact):
    """The lowest observed accuracy of a group, and an interval for the lowest true accuracy of any group, whichever group that is."""

    value: float
    n: int
    low: float | None = None
    high: float | None = None


class HarmonyRow(Artifact):
    """One model on one benchmark. `value`, `low` and `high` are of harmony; `size_harmony` is its value from sizes alone.

    `null_mean` is its mean under reshuffled scores and `distance` the value less that, the number to compare between benchmarks. `p_value` is
    the reshuffling test's, `homogeneity_p` the test of equal accuracies. `near_k` holds its values over nearly as many induced groups.
    `follows_choice` and `follows_correctness` are adjusted Rand indices of groups made from answers. `flags` say why it is inconclusive.
    """

    benchmark: Identifier
    model: Identifier
    n: int
    k: int | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    size_harmony: float | None = None
    null_mean: float | None = None
    distance: float | None = None
    p_value: float | None = None
    p_error: float | None = None
    p_adjusted: float | None = None
    homogeneity_test: Literal["pearson", "cochran_q"] | None = None
    homogeneity_p: float | None = None
    homogeneity_adjusted: float | None = None
    untested: str | None = None
    accuracy: float | None = None
    macro: float | None = None
    deviation: float | None = None
    between: float | None = None
    gap: float | None = None
    worst: str | None = None
    best: str | None = None
    lowest: LowestAccuracy | None = None
    sweep: tuple[SweepPoint, ...] = ()
    near_k: tuple[SweepPoint, ...] = ()
    follows_choice: float | None = None
    follows_correctness: float | None = None
    groups: tuple[GroupRow, ...] = ()
    rebalanced: Rebalanced | None = None
    cautions: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    undefined: str | None = None


class PlanePoint(Artifact):
    """One benchmark in the mean-variance plane: over models of which harmony is said."""

    benchmark: Identifier
    models: int
    mean: float | None = None
    variance: float | None = None
    mean_distance: float | None = None
    undefined: str | None = None


class TraitCorrelation(Artifact):
    """Spearman's correlation of harmony with a declared trait over the models of a family, or of all families."""

    benchmark: Identifier
    trait: Literal["parameters", "training_tokens"]
    family: str | None
    models: int
    value: float | None = None
    p_value: float | None = None
    undefined: str | None = None


class HarmonyResult(Artifact):
    """Every benchmark's groups and every model's row."""

    b: float
    level: float
    draws: int
    min_cluster: int
    partition: PartitionSource
    partitions: tuple[PartitionSummary, ...]
    rows: tuple[HarmonyRow, ...]
    family_size: int
    plane: tuple[PlanePoint, ...] = ()
    traits: tuple[TraitCorrelation, ...] = ()
