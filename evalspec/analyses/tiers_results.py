"""What can be asked of the ranks of all models, and what does the answer hold?"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from evalspec.artifacts.base import Artifact, Identifier
from evalspec.artifacts.scores import Score

Method = Literal["holm", "exact", "max_t"]


class TiersOptions(Artifact):
    """Rank intervals, groups of models that are not told apart, and the models that may be the best."""

    kind: Literal["tiers"]
    method: Method = Field(
        default="holm",
        description="`holm`: the paired test of every pair, adjusted by Holm's method; `exact`: the same for every direction of every pair, by tests "
        "that keep their level at every sample size; `max_t`: every direction, judged by the largest of their correlated statistics under flipped "
        "signs, step by step. Left open, it is `exact` where a check holds a rank against a limit.",
    )
    alpha: Annotated[float, Field(gt=0, le=0.5)] = Field(default=0.05, description="The error rate of all comparisons of all benchmarks together.")
    draws: Annotated[int, Field(ge=1000, le=200_000)] = Field(default=20_000, description="Draws of the largest statistic, for `max_t`.")


class TierRow(Artifact):
    """One model: its score, its observed rank (models with one score share the better rank), the ranks it may hold, and its letters.

    `alike` names the models that have this one's score on every question. Letters are left out among too many models.
    """

    benchmark: Identifier
    model: Identifier
    score: float | None = None
    rank: int | None = None
    low: int | None = None
    high: int | None = None
    letters: tuple[str, ...] = ()
    possible_best: bool | None = None
    alike: tuple[Identifier, ...] = ()
    undefined: str | None = None


class TierBenchmark(Artifact):
    """One benchmark: its questions, those left out, comparisons made and separated, and the last critical value of `max_t` with its error.

    `tests` are those that compared single pairs; `caution` is what to keep in mind of the clusters.
    """

    benchmark: Identifier
    n: int
    dropped: int = 0
    comparisons: int = 0
    separated: int = 0
    undecided: int = 0
    critical: float | None = None
    critical_error: float | None = None
    tests: tuple[str, ...] = ()
    caution: str | None = None
    undefined: str | None = None


class TiersResult(Artifact):
    """Every model of every benchmark, best score first; `family_size` counts the comparisons that are judged together.

    `scores` says what scores are of where it is not right answers.
    """

    method: Method
    alpha: float
    draws: int | None
    family_size: int
    most_lettered: int
    benchmarks: tuple[TierBenchmark, ...]
    rows: tuple[TierRow, ...]
    scores: dict[Identifier, Score] = Field(default_factory=dict)
