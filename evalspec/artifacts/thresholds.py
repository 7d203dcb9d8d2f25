"""Which limits are a study's estimates held against, and what is assumed where a check's power is stated?"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from evalspec.artifacts.base import AnalysisId, Artifact, BenchmarkId, Identifier, ModelId, Proportion, Text


class Assumption(Artifact):
    """What is taken to be true where the power of a check is stated: never an observed value."""

    difference: Annotated[float, Field(gt=-1, lt=1)] | None = Field(default=None, description="True difference, model minus baseline.")
    discordance: Proportion | None = Field(default=None, description="Share of questions that exactly one of the two models answers correctly.")
    accuracy: Proportion | None = Field(default=None, description="True accuracy of the model, for a check of its accuracy.")


class Check(Artifact):
    """A limit that an estimate is held against; exactly one of the four limits is given."""

    id: Identifier
    analysis: AnalysisId
    metric: Identifier
    model: ModelId
    baseline: ModelId | None = None
    benchmark: BenchmarkId | None = Field(default=None, description="By default every benchmark of the analysis, each of which must pass.")
    subject: Text | None = None
    bound: Literal["low", "high", "value"] | None = Field(
        default=None,
        description="The bound of the interval that must clear the limit (low for at_least and above, high for at_most and below), "
        "or the value itself, which has no error control.",
    )
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    assume: Assumption | None = Field(
        default=None, description="What is taken to be true where the power of this check, and the questions that it needs, are stated."
    )

    @property
    def limit(self) -> float:
        """The limit, whichever of the four it is; raises ValueError when there is none."""
        for limit in (self.at_least, self.above, self.at_most, self.below):
            if limit is not None:
                return limit
        raise ValueError(f"check {self.id!r} sets no limit")

    @property
    def lower(self) -> bool:
        """Whether the limit is a lower one, that an estimate must reach or exceed."""
        return self.at_least is not None or self.above is not None


class Thresholds(Artifact):
    """Which checks decide, and what an inconclusive one does to the exit code."""

    require: Literal["all", "any"] = "all"
    inconclusive: Literal["block", "warn"] = "block"
    checks: Annotated[tuple[Check, ...], Field(min_length=1)]
