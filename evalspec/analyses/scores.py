"""What is a score of, where the study says that it is no share of right answers?  Words for tables and axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from evalspec.artifacts.scores import Score

if TYPE_CHECKING:
    from evalspec.artifacts.responses import BenchmarkResponses, Responses

ACCURACY = "accuracy"
ANY_SCORE = "mean score"

Scores = Mapping[str, Score]
"""What the study declares of scores, by benchmark; benchmarks of right and wrong answers have no entry."""


def declared_scores(responses: Responses) -> dict[str, Score]:
    """Return what the study declares of the scores of each benchmark."""
    return {benchmark.benchmark: benchmark.score for benchmark in responses.benchmarks if benchmark.score is not None}


def measure(scores: Scores, benchmarks: Iterable[str]) -> str:
    """Name what numbers of these benchmarks are of, and for scores of which less is better that they are; one name for all of them."""
    names = dict.fromkeys(_name(scores.get(benchmark)) for benchmark in benchmarks)
    return next(iter(names)) if len(names) == 1 else ANY_SCORE if names else ACCURACY


def _name(score: Score | None) -> str:
    if score is None:
        return ACCURACY
    return f"{score.unit} (less is better)" if score.lower_is_better else score.unit


def as_recorded(merit: float, benchmark: BenchmarkResponses) -> float:
    """Return a mean score as it was recorded, from one that is counted so that more is better."""
    return 1.0 - merit if benchmark.lower_is_better else merit
