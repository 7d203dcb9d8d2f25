"""How often do two models get the same questions right and wrong?"""

from __future__ import annotations

from itertools import combinations
from typing import Literal

import numpy as np

from evalspec.artifacts.base import Artifact
from evalspec.artifacts.findings import Estimate
from evalspec.artifacts.responses import Responses
from evalspec.protocols import Analysis, Context


class AgreementOptions(Artifact):
    """The share of questions on which two models are both right or both wrong."""

    kind: Literal["agreement"]
    level: float = 0.95


class AgreementRow(Artifact):
    """One pair on one benchmark."""

    benchmark: str
    first: str
    second: str
    same: int
    n: int
    low: float
    high: float


class AgreementResult(Artifact):
    """Every pair of every benchmark."""

    level: float
    rows: tuple[AgreementRow, ...]


def compute(responses: Responses, options: AgreementOptions, _context: Context) -> AgreementResult:
    """Return the agreement of every pair of models."""
    from evalspec.statistics.proportions import wilson  # imported here, so that `evalspec validate` does not wait for scipy

    rows = []
    for benchmark in responses.benchmarks:
        scores = benchmark.settled()
        for first, second in combinations(range(len(benchmark.models)), 2):
            same, n = int(np.sum(scores[first] == scores[second])), scores.shape[1]
            interval = wilson(same, n, level=options.level)
            names = benchmark.models[first], benchmark.models[second]
            row = AgreementRow(benchmark=benchmark.benchmark, first=names[0], second=names[1], same=same, n=n, low=interval.low, high=interval.high)
            rows.append(row)
    return AgreementResult(level=options.level, rows=tuple(rows))


def estimates(result: AgreementResult) -> tuple[Estimate, ...]:
    """Return one `agreement` estimate per pair."""
    return tuple(
        Estimate(
            analysis="agreement",
            metric="agreement",
            benchmark=row.benchmark,
            models=(row.first, row.second),
            value=row.same / row.n,
            low=row.low,
            high=row.high,
            confidence_level=result.level,
            method="wilson",
            n=row.n,
        )
        for row in result.rows
    )


ANALYSIS = Analysis(
    kind="agreement",
    options=AgreementOptions,
    result=AgreementResult,
    compute=compute,
    metrics=("agreement",),
    pair_metrics=("agreement",),
    estimates=estimates,
    tolerance=1e-9,
    template="evalspec_agreement:agreement.html.j2",
)
