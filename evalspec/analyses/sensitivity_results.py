"""What can be asked of the rules that could have been chosen otherwise, and what does the answer hold?"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evalspec.analyses.pairs import PairRow
from evalspec.analyses.variants import CaseId
from evalspec.artifacts.base import Artifact, Identifier, ModelId, Proportion
from evalspec.artifacts.scores import Score
from evalspec.artifacts.verdict import Outcome


class SensitivityOptions(Artifact):
    """The same numbers under every rule that could have been chosen otherwise; descriptive, without decisions."""

    kind: Literal["sensitivity"]
    models: tuple[ModelId, ...] = Field(default=(), description="The models whose accuracy is shown; by default all.")
    pairs: tuple[tuple[ModelId, ModelId], ...] = Field(default=(), description="The pairs whose difference, first - second, is shown.")
    level: Proportion = Field(default=0.95, description="The confidence level of each interval.")
    fragile_gap: float | None = Field(
        default=None,
        gt=0,
        description="Answers whose two best choices lie closer than this, in nats, count as fragile; by default what the run's own self-check says.",
    )


class CaseRow(Artifact):
    """A rule as it applies to one benchmark; `touched` is the number of answers, or for `without_flagged` of questions, that it changes."""

    benchmark: Identifier
    case: CaseId
    touched: int


class AccuracyRow(Artifact):
    """One model under one rule; `change` is against the declared rules, `place` its rank by value, 1 for the best, equal ones alike."""

    benchmark: Identifier
    model: Identifier
    case: CaseId
    n: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    method: str | None = None
    change: float | None = None
    place: int | None = None
    undefined: str | None = None


class DifferenceRow(PairRow):
    """One pair under one rule."""

    case: CaseId
    change: float | None = None


class CheckRow(Artifact):
    """What one check of the study comes to under one rule."""

    check: Identifier
    benchmark: Identifier
    case: CaseId
    outcome: Outcome


class SensitivityResult(Artifact):
    """Every number under every rule that applies; `scores` says what they are of where it is not right answers."""

    level: float
    cases: tuple[CaseRow, ...]
    accuracies: tuple[AccuracyRow, ...]
    differences: tuple[DifferenceRow, ...]
    checks: tuple[CheckRow, ...]
    scores: dict[Identifier, Score] = Field(default_factory=dict)

    def declared_rule(self, benchmark: str) -> CaseId | None:
        """Return the rule for missing answers that the study declares, which gives its numbers once more; None where both rules give the same."""
        declared = self._numbers(benchmark, "declared")
        rules: tuple[CaseId, CaseId] = ("missing_wrong", "missing_left_out")
        alike = [case for case in rules if declared and self._numbers(benchmark, case) == declared]
        return alike[0] if len(alike) == 1 else None

    def _numbers(self, benchmark: str, case: CaseId) -> list[tuple[object, ...]]:
        return [
            *((row.model, row.n, row.value, row.low, row.high) for row in self.accuracies if (row.benchmark, row.case) == (benchmark, case)),
            *((row.first, row.second, row.n, row.difference) for row in self.differences if (row.benchmark, row.case) == (benchmark, case)),
        ]
