"""What can be asked of the accuracy of single models, and what does the answer hold?"""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from evalspec.analyses.designs import Average
from evalspec.artifacts.base import Artifact, Identifier, Proportion
from evalspec.artifacts.scores import Score

Method = Literal["wilson", "clopper_pearson", "jeffreys"]


class IntervalsOptions(Artifact):
    """Accuracy with a confidence interval, per model and per stratum."""

    kind: Literal["intervals"]
    method: Method = "wilson"
    level: Proportion = 0.95
    average: Average = Field(
        default="micro",
        description="What `accuracy` is where subjects have a role: `micro` lets every question count the same, `macro` every subject. "
        "With `macro` the other one is shown beside it.",
    )


class IntervalRow(Artifact):
    """One model on one benchmark, or on one stratum of it.

    `successes` is the number of right answers where every question counts the same and is right or wrong; `effective_n` is the number of
    independent questions that would be as precise, where that is not `n`; `method` names the interval of this row. `one_sided` is the exact bound at
    the same level where independent answers are all wrong (upper) or all right (lower).
    """

    benchmark: Identifier
    model: Identifier
    subject: str | None
    average: Average = "micro"
    n: int
    successes: int | None = None
    effective_n: float | None = None
    clusters: int | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    one_sided: float | None = None
    standard_error: float | None = None
    method: str | None = None
    caution: str | None = None
    undefined: str | None = None

    @property
    def passes_over(self) -> bool:
        """Whether the interval is Clopper and Pearson's of independent draws while the standard error counts subjects, or a part of a pool."""
        if self.method != "clopper_pearson" or self.value is None or self.standard_error is None:
            return False
        return not math.isclose(self.standard_error**2 * (self.n - 1), self.value * (1.0 - self.value), rel_tol=1e-9)


class RepeatsRow(Artifact):
    """What an average over repeats hides: in how many questions every repeat is right, in how many none, and the worst question.

    `value` is the share of questions of which every repeat is right.
    """

    benchmark: Identifier
    model: Identifier
    repeats: int
    n: int
    always: int
    never: int
    worst: float
    value: float | None = None
    low: float | None = None
    high: float | None = None
    method: str | None = None
    undefined: str | None = None


class IntervalsResult(Artifact):
    """Every row, in the order of benchmarks and models of the study; `scores` says what they are of where it is not right answers."""

    method: Method
    level: float
    average: Average
    rows: tuple[IntervalRow, ...]
    repeats: tuple[RepeatsRow, ...]
    scores: dict[Identifier, Score] = Field(default_factory=dict)
