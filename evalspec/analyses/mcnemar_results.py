"""What can be asked of pairs of models, and what does the answer hold?"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from evalspec.analyses.pairs import PairRow
from evalspec.artifacts.base import Artifact, Identifier, ModelId, Proportion
from evalspec.artifacts.columns import Rows
from evalspec.artifacts.scores import Score

Test = Literal["exact", "mid_p"]
Family = Literal["adjacent", "vs_baseline", "all_pairs", "named"]
Correction = Literal["holm", "none"]
Method = Literal["score", "exact"]
Intervals = Literal["per_comparison", "simultaneous"]
WhyApart = Literal["family", "adjustment", "level", "method"]
SAME_RATE = 1e-9
"""1 less a level is the alpha that it stands for up to rounding."""


class McnemarOptions(Artifact):
    """Paired comparison of models on the same questions."""

    kind: Literal["mcnemar"]
    family: Family = Field(description="Which pairs are compared: neighbours by score, each with a baseline, all, or the pairs named.")
    test: Test = "exact"
    correction: Correction = "holm"
    alpha: Proportion = 0.05
    level: Proportion = 0.95
    intervals: Intervals = Field(
        default="per_comparison",
        description="Whether `level` holds for each interval by itself, or (`simultaneous`) for all intervals of the family together.",
    )
    method: Method = Field(
        default="score",
        description="What the interval of a difference is. `score`: Tango's, and Student's for fractional scores and clusters. `exact`: Fay and "
        "Lumbard's, which agrees with McNemar's exact test, and Gaffke's for fractional scores and clusters, whose test then decides there. "
        "Left open, it is `exact` where a check holds a bound of this analysis against a limit.",
    )
    baseline: ModelId | None = None
    pairs: tuple[tuple[ModelId, ModelId], ...] = ()
    discordance: Proportion | None = Field(
        default=None, description="Expected share of questions that exactly one of two models answers correctly; for planning."
    )

    @model_validator(mode="after")
    def _family_is_complete(self) -> Self:
        if (self.baseline is not None) != (self.family == "vs_baseline"):
            raise ValueError("`baseline` goes with `family: vs_baseline`, and only with it")
        if bool(self.pairs) != (self.family == "named"):
            raise ValueError("`pairs` go with `family: named`, and only with it")
        if any(first == second for first, second in self.pairs):
            raise ValueError("a pair needs two different models")
        if len({frozenset(pair) for pair in self.pairs}) < len(self.pairs):
            raise ValueError("a pair is named twice")
        return self


class McnemarRow(PairRow):
    """One comparison of the family: what its pair shows, the adjusted p-value where the study asks for adjusting, and the decision.

    `disagrees` marks a row whose interval and whose decision say different things about zero.
    """

    p_adjusted: float | None = None
    separated: bool | None = None
    disagrees: bool = False


class BriefRow(Artifact):
    """A comparison of a long family that a report does not list: its estimate and its counts, from which the rest follows.

    `p_value` is that of the test which decides.
    """

    benchmark: Identifier
    first: Identifier
    second: Identifier
    n: int
    both: int | None
    only_first: int | None
    only_second: int | None
    neither: int | None
    difference: float | None
    low: float | None
    high: float | None
    method: str | None
    p_value: float | None
    p_adjusted: float | None
    separated: bool | None
    undefined: str | None


class McnemarResult(Artifact):
    """Every comparison of the family, and the models of each benchmark in order of their scores, best first.

    `rows` are those that a report lists: all of them, or of a benchmark with more than `most_listed` those with the smallest p; then `others` holds
    the rest.

    `scores` says what scores are of where it is not right answers.

    `critical` is how many standard errors the simultaneous intervals reach out, with its Monte Carlo standard error where it was drawn. `caution` is
    what to keep in mind of the family as a whole.
    """

    test: Test
    method: Method = Field(default="score", exclude_if=lambda method: method == "score")  # results from before there was a choice name none
    family: Family
    correction: Correction
    alpha: float
    level: float
    intervals: Intervals
    critical: float | None = None
    critical_error: float | None = None
    critical_by: Literal["max_t", "bonferroni"] | None = None
    family_size: int
    most_listed: int
    caution: str | None = Field(default=None, exclude_if=lambda told: told is None)  # results from before it was told have none
    rows: Rows[McnemarRow]
    others: Rows[BriefRow]
    order: dict[Identifier, tuple[Identifier, ...]]
    scores: dict[Identifier, Score] = Field(default_factory=dict)

    def why_apart(self, row: McnemarRow) -> WhyApart:
        """Return why the interval and the decision of a row that `disagrees` say different things about zero.

        Both may allow for the `family`, each in its own way; the `adjustment` of the p-value alone may; the `level` of the interval may ask for less
        or more than alpha does; else they are of different `method`.
        """
        p, missed = row.p(self.test), 1.0 - self.level
        if self.intervals == "simultaneous" and self.family_size > 1:
            return "family"
        if p is not None and not row.separated and p <= self.alpha:
            return "adjustment"
        if p is not None and abs(missed - self.alpha) > SAME_RATE and (p <= missed) != row.separated:
            return "level"
        return "method"
