"""What can be asked of a candidate and a baseline, and what does the answer hold?"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from evalspec.artifacts.base import Artifact, Identifier, ModelId, Proportion
from evalspec.artifacts.scores import Score

Hypothesis = Literal["noninferiority", "equivalence", "superiority"]
Method = Literal["score", "exact", "e_value"]
Outcome = Literal["shown", "open", "refuted"]


class Looks(Artifact):
    """How often the comparison is looked at while questions accumulate: at how many questions, and which look this is."""

    at: Annotated[tuple[PositiveInt, ...], Field(min_length=2)] = Field(description="Questions asked at each planned look, rising.")
    this: PositiveInt = Field(description="Which of the looks this study is, from 1.")
    spending: Literal["obrien_fleming", "pocock"] = Field(
        default="obrien_fleming", description="How alpha is spent: almost all of it at the end, or about evenly."
    )

    @model_validator(mode="after")
    def _rise(self) -> Self:
        if list(self.at) != sorted(set(self.at)):
            raise ValueError("the looks `at` must rise: each one has more questions than the one before")
        if self.this > len(self.at):
            raise ValueError(f"`this` is look {self.this}, and {len(self.at)} are planned")
        return self


class NoninferiorityOptions(Artifact):
    """Comparison of a candidate with a baseline against a margin that is named beforehand."""

    kind: Literal["noninferiority"]
    candidate: ModelId
    baseline: ModelId
    hypothesis: Hypothesis = Field(
        default="noninferiority",
        description="What is to be shown: a loss smaller than the margin, a difference smaller than it in either direction, or any gain.",
    )
    margin: Proportion | None = Field(default=None, description="Largest acceptable loss of accuracy, 0.02 for two points.")
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = Field(default=0.025, description="One-sided chance of a false pass, over all looks together.")
    method: Method = Field(
        default="score",
        description="`score`: Tango's score test. `exact`: Fay and Lumbard's. `e_value`: a test that holds however often one looks. "
        "Of fractional scores and of clusters, `score` is Student's t test and `exact` Gaffke's. "
        "Left open, it is `exact` where a check holds a bound of this analysis against a limit.",
    )
    looks: Looks | None = Field(default=None, description="Planned looks with alpha spending; without it there is one look.")
    discordance: Proportion | None = Field(
        default=None, description="Expected share of questions that exactly one of the two models answers correctly; for planning."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.candidate == self.baseline:
            raise ValueError("`candidate` and `baseline` must be two different models")
        if (self.margin is None) != (self.hypothesis == "superiority"):
            raise ValueError("`margin` goes with non-inferiority and equivalence, which need it, and not with superiority")
        if self.looks is not None and self.method == "e_value":
            raise ValueError("`looks` are not planned with `method: e_value`, which holds at any number of looks")
        return self


class NoninferiorityRow(Artifact):
    """The comparison on one benchmark; `difference` is candidate - baseline.

    `difference`, `low`, `p_value` and the four counts settle missing answers against the candidate, `high` settles them in its favour, so that
    the bounds hold whatever those answers would have been. Each bound is one-sided at the level of this look. Of a score of which less is better,
    `high` is settled against the candidate and `low` in its favour, and the counts are of best scores instead of right answers.
    """

    benchmark: Identifier
    n: int
    candidate_missing: int
    baseline_missing: int
    both: int | None = None
    only_candidate: int | None = None
    only_baseline: int | None = None
    neither: int | None = None
    clusters: int | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    interval: str | None = None
    p_value: float | None = None
    log10_e: float | None = None
    outcome: Outcome | None = None
    caution: str | None = None
    undefined: str | None = None


class NoninferiorityResult(Artifact):
    """The comparison on every benchmark; `look_alpha` is the one-sided level of each bound at this look, `alpha` that of all looks.

    `scores` says what scores are of where it is not right answers.
    """

    candidate: Identifier
    baseline: Identifier
    hypothesis: Hypothesis
    margin: float | None
    method: Method
    alpha: float
    look_alpha: float
    looks: Looks | None
    rows: tuple[NoninferiorityRow, ...]
    scores: dict[Identifier, Score] = Field(default_factory=dict)
