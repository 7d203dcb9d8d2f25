"""What can be asked of subjects, and what does the answer hold?"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from evalspec.artifacts.base import Artifact, Identifier, ModelId, Proportion
from evalspec.artifacts.scores import Score


class SubgroupsOptions(Artifact):
    """One model, or the difference of two, subject by subject."""

    kind: Literal["subgroups"]
    model: ModelId = Field(description="The model that is looked at.")
    baseline: ModelId | None = Field(default=None, description="A second model: then model - baseline is looked at in each subject.")
    method: Literal["wilson", "clopper_pearson", "jeffreys"] = Field(
        default="wilson",
        description="The interval of one model's accuracy. Of a difference `clopper_pearson` gives what `method: exact` of mcnemar gives, the others "
        "what `score` gives. Left open, it is `clopper_pearson` where a check holds a bound of this analysis against a limit.",
    )
    test: Literal["exact", "mid_p"] = Field(default="exact", description="The version of McNemar's test for two models.")
    correction: Literal["holm", "none"] = Field(default="holm", description="How p-values are adjusted for the number of subjects.")
    alpha: Proportion = Field(default=0.05, description="The error rate of the whole family of subjects.")
    level: Proportion = Field(default=0.95, description="The confidence level of each subject's own interval.")

    @model_validator(mode="after")
    def _two_models(self) -> Self:
        if self.model == self.baseline:
            raise ValueError("`baseline` must be another model than `model`")
        return self


class SubgroupRow(Artifact):
    """One subject: an accuracy with that of all other subjects together, or a difference with its two discordant counts."""

    benchmark: Identifier
    subject: str
    n: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    method: str | None = None
    elsewhere: float | None = None
    elsewhere_n: int | None = None
    only_first: int | None = None
    only_second: int | None = None
    p_value: float | None = None
    test: str | None = None
    p_adjusted: float | None = None
    separated: bool | None = None
    caution: str | None = None
    undefined: str | None = None


class Heterogeneity(Artifact):
    """Whether the subjects of one benchmark differ at all: how often reshuffled labels part subjects as far, with its Monte Carlo error."""

    benchmark: Identifier
    subjects: int
    draws: int
    p_value: float | None = None
    p_error: float | None = None
    undefined: str | None = None


class SubgroupsResult(Artifact):
    """Every subject, in the order of benchmarks and names; `scores` says what they are of where it is not right answers."""

    model: Identifier
    baseline: Identifier | None
    correction: Literal["holm", "none"]
    alpha: float
    level: float
    family_size: int
    rows: tuple[SubgroupRow, ...]
    heterogeneity: tuple[Heterogeneity, ...]
    scores: dict[Identifier, Score] = Field(default_factory=dict)
