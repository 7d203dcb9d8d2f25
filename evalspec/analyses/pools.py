"""Which questions of a benchmark can be drawn again, and how?  The pool that analyses of redrawn questions share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalspec.analyses.designs import CHOSEN, subject_labels, weighted
from evalspec.analyses.scores import as_recorded
from evalspec.artifacts.base import Artifact, Identifier
from evalspec.artifacts.scores import Score
from evalspec.protocols import DeclaredDesign

if TYPE_CHECKING:
    from evalspec.artifacts.responses import BenchmarkResponses
    from evalspec.statistics.differences import PairedCounts
    from evalspec.statistics.response_patterns import ResponsePatterns

ONE_MODEL = "a ranking needs at least two models"
CLUSTERED = "questions come in clusters, so that a smaller benchmark would be a draw of clusters, which is not computed"
NO_COMMON = "no question has a score from every model"


class Pool(Artifact):
    """What is drawn from: models in the order of their scores, best first, questions that all of them have a score for, and how many were left out.

    `strata` is the number of subjects whose share of the questions is kept, 0 where questions are drawn without regard to subjects. `level` says
    how many models share the best score, `score` what scores are of where it is not right answers.
    """

    benchmark: Identifier
    n: int
    dropped: int = 0
    strata: int = 0
    models: tuple[Identifier, ...] = ()
    scores: tuple[float, ...] = ()
    level: int = 1
    score: Score | None = None
    undefined: str | None = None


def refuses(_options: object, design: DeclaredDesign) -> str | None:
    """Return why nothing can be drawn again from questions that come about so."""
    return CLUSTERED if design.clusters else None


@dataclass(frozen=True, slots=True)
class Drawable:
    """The pool with its response patterns, models in the same order; `leaders` are the counts of the first two where a closed form knows them."""

    pool: Pool
    patterns: ResponsePatterns
    leaders: PairedCounts | None


def drawable(benchmark: BenchmarkResponses) -> Drawable:
    """Return what can be drawn from a benchmark; raises ValueError with the reason where nothing can.

    Subjects keep their share of the questions where the study declares them as strata and their numbers were fixed beforehand, and where a
    weighted sample cannot be read without them.
    """
    import numpy as np

    from evalspec.statistics.differences import PairedCounts
    from evalspec.statistics.response_patterns import ResponsePatterns

    if len(benchmark.models) < 2:
        raise ValueError(ONE_MODEL)
    if benchmark.clusters:
        raise ValueError(CLUSTERED)
    if benchmark.sample == "chosen":
        raise ValueError(CHOSEN)
    scores = benchmark.merits()
    complete = ~np.isnan(scores).any(axis=0)
    if not complete.any():
        raise ValueError(NO_COMMON)
    stratified = weighted(benchmark) or (benchmark.strata and benchmark.sample != "simple")
    strata = subject_labels(benchmark)[complete].tolist() if stratified else None
    found = ResponsePatterns.from_scores(scores[:, complete], strata=strata, weights=benchmark.weights[complete])
    means = found.scores
    order = sorted(range(len(means)), key=lambda place: (-round(float(means[place]), 12), benchmark.models[place]))
    ranked = scores[order][:, complete]
    pool = Pool(
        benchmark=benchmark.benchmark,
        n=int(complete.sum()),
        dropped=int((~complete).sum()),
        strata=found.shares.size if stratified else 0,
        models=tuple(benchmark.models[place] for place in order),
        scores=tuple(as_recorded(float(means[place]), benchmark) for place in order),
        level=int(np.sum(means > means.max() - 1e-12)),
        score=benchmark.score,
    )
    counted = not stratified and np.all((ranked[:2] == 0) | (ranked[:2] == 1))
    patterns = ResponsePatterns.from_scores(ranked, strata=strata, weights=benchmark.weights[complete])
    return Drawable(pool, patterns, PairedCounts.from_scores(ranked[0], ranked[1]) if counted else None)
