"""What can be asked of `mdad`, and what does it answer?"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from evalspec.artifacts.base import Artifact, Identifier, ModelId, Proportion
from evalspec.artifacts.columns import Rows

Size = Annotated[PositiveInt, Field(le=1_000_000)]
SamplerName = Literal["uniform", "stratified_equal", "stratified_proportional", "confidence_strata", "anchor_points", "item_response", "diversity"]
Edges = Literal["left", "centred"]
TieRule = Literal["wrong", "half"]

NOT_REACHED = "not reached"


class MdadOptions(Artifact):
    """From which gap on a small sample of the questions ranks two models as all of them do, for several samplers."""

    kind: Literal["mdad"]
    sizes: Annotated[tuple[Size, ...], Field(max_length=30)] = Field(
        default=(), description="Numbers of questions chosen; by default 10, 25, 50, 100, 250, 500 and 1000, as far as half of the questions reaches."
    )
    samplers: Annotated[tuple[SamplerName, ...], Field(min_length=1)] = Field(
        default=("uniform",), description="How the questions are chosen; those that look at other models judge at most half of the models."
    )
    models: tuple[ModelId, ...] = Field(default=(), description="The models that are judged; by default all. The others may still be looked at.")
    trials: Annotated[int, Field(ge=2, le=2000)] = Field(default=50, description="Trials, each with its own models, halves and samples.")
    targets: Annotated[int, Field(ge=2, le=1000)] = Field(default=50, description="Models judged in each trial, at most.")
    sources: Annotated[int, Field(ge=2, le=10_000)] = Field(default=300, description="Other models that a sampler may look at, at most.")
    agreement: Annotated[float, Field(gt=0.5, lt=1)] = Field(
        default=0.8, description="Share of pairs that must be ranked as the sampled half ranks them."
    )
    ties: TieRule = Field(default="wrong", description="What a pair counts that ties on the sample: nothing (`wrong`), or one half (`half`).")
    bin_width: Annotated[float, Field(gt=0, le=0.1)] = Field(default=0.005, description="Width of the bins of gaps, 0.005 for half a point.")
    bins: Edges = Field(default="left", description="Whether a bin begins at its gap (`left`), or lies around it (`centred`).")
    min_pairs: Annotated[int, Field(ge=1)] = Field(default=30, description="Fewest pairs that may decide where the agreement is reached.")
    resamples: Annotated[int, Field(ge=100, le=10_000)] = Field(default=400, description="Resamples of models and trials behind each interval.")
    level: Proportion = Field(default=0.95, description="The confidence level of each interval.")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for name, entries in (("size", self.sizes), ("sampler", self.samplers), ("model", self.models)):
            if len(set(entries)) < len(entries):
                raise ValueError(f"a {name} is named twice")
        if abs(self.bin_width * 10_000 - round(self.bin_width * 10_000)) > 1e-9:
            raise ValueError("`bin_width` must be a whole number of hundredths of a point, such as 0.005")
        if len(self.models) == 1:
            raise ValueError("`models` must name at least two: pairs of models are ranked")
        return self


class Reached(Artifact):
    """The smallest gap at which the agreement is reached, with the pairs and trials behind the bin that decides; none where it is not reached.

    `low` and `high` bound it where there is an interval; a bound is none where so many resamples do not reach the agreement.
    """

    gap: float | None
    agreement: float | None = None
    pairs: int = 0
    trials: int = 0
    low: float | None = None
    high: float | None = None
    undefined: str | None = None


class CurveBin(Artifact):
    """One bin of gaps that holds pairs: how many, how often they are ranked alike, and the rising fit there."""

    gap: float
    pairs: int
    agreement: float
    rising: float


class AgreementOn(Artifact):
    """What one half of the questions says of a sample: `published` as published, `first` the first bin with enough pairs, `rising` the rising fit.

    `below` is the share of the study's own pairs, by their gaps on all questions, that lie below `rising`.
    """

    agreement: float
    published: Reached
    first: Reached
    rising: Reached
    below: float | None
    curve: Rows[CurveBin]


class MdadRow(Artifact):
    """One sampler at one size on one benchmark: against the half that was sampled (`seen`), and against the other half (`fresh`).

    `formula` is the gap by closed form, for simple random samples; `rank_correlation` and `error` are against the seen half, means over trials.
    `published_estimate` says whether the published form estimates scores otherwise than this package does.
    """

    benchmark: Identifier
    sampler: SamplerName
    questions: int
    seen: AgreementOn | None = None
    fresh: AgreementOn | None = None
    formula: float | None = None
    rank_correlation: float | None = None
    error: float | None = None
    published_estimate: bool = False
    undefined: str | None = None


class MdadBenchmark(Artifact):
    """One benchmark: questions with a score from every model, those left out, both halves, models judged and looked at.

    `own_error` is the standard error of a difference of two models by luck of which questions the benchmark has, typical of the closest pairs.
    `looks_at` says what samplers see of other models.
    """

    benchmark: Identifier
    n: int
    dropped: int = 0
    seen: int = 0
    fresh: int = 0
    strata: int = 0
    models: int = 0
    targets: int = 0
    sources: int = 0
    pairs: int = 0
    own_error: float | None = None
    looks_at: Literal["confidence", "scores"] | None = None
    undefined: str | None = None


class MdadResult(Artifact):
    """Every size of every sampler on every benchmark."""

    agreement: float
    ties: TieRule
    bin_width: float
    bins: Edges
    min_pairs: int
    trials: int
    resamples: int
    level: float
    benchmarks: tuple[MdadBenchmark, ...]
    rows: tuple[MdadRow, ...]
