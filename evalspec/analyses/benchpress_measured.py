"""What did the study itself measure, in the units of the matrix?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalspec.analyses.benchpress_accuracy import Ground
from evalspec.analyses.benchpress_options import BenchpressOptions
from evalspec.analyses.designs import design_of
from evalspec.artifacts.responses import Responses
from evalspec.errors import AnalysisError
from evalspec.statistics.accuracies import accuracy


@dataclass(frozen=True, slots=True)
class Measured:
    """A score that the study measured, in units of the column, with its interval."""

    score: float
    low: float | None
    high: float | None


def measured_scores(ground: Ground, responses: Responses, options: BenchpressOptions) -> dict[str, dict[int, Measured]]:
    """Return what the study measured of each model, by column."""
    found: dict[str, dict[int, Measured]] = {}
    parts = {benchmark.benchmark: benchmark for benchmark in responses.benchmarks}
    for entry in options.measured:
        if entry.benchmark not in parts:
            raise AnalysisError(
                f"`measured` names the benchmark '{entry.benchmark}', of which this analysis does not speak", hint="add it to benchmarks"
            )
        benchmark, place = parts[entry.benchmark], ground.matrix.place(entry.column)
        top, scores = float(ground.tops[place]), benchmark.settled()
        for model, row in zip(benchmark.models, scores, strict=True):
            present = ~np.isnan(row)
            try:
                mean = accuracy(row[present], design_of(benchmark).kept(present), level=options.level)
            except ValueError:
                continue
            low, high = (top * mean.interval.low, top * mean.interval.high) if mean.interval else (None, None)
            found.setdefault(model, {})[place] = Measured(top * mean.mean, low, high)
    return found
