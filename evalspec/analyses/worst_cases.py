"""What would the estimates behind the checks be if every missing answer counted against them?

A pass must not come of answers that are not there, whatever rule the study declares for its numbers: so the analysis of a check is computed once
more with the missing answers of its model wrong and those of its baseline right, or the other way round where the check claims the opposite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evalspec.analyses.variants import Sides, bearing, settled_for
from evalspec.artifacts.findings import Estimate, SettledEstimate, estimate_of
from evalspec.artifacts.responses import Responses
from evalspec.artifacts.thresholds import Check
from evalspec.protocols import AnyAnalysis

NOT_ORDERED = "no one way of counting missing answers is known to be the worst for this metric"
NOT_COMPARED = "with them counted so, the analysis does not compare these models"

Again = Callable[[Responses], Sequence[Estimate]]


@dataclass(frozen=True, slots=True)
class Examined:
    """An analysis with its responses and what it found in them; `again` gives its estimates on other responses."""

    analysis: AnyAnalysis
    responses: Responses
    estimates: Sequence[Estimate]
    again: Again


def settled_estimates(examined: Examined, checks: Sequence[Check]) -> Iterator[SettledEstimate]:
    """Yield, for every check of the analysis on every benchmark where answers that bear on it are missing, its estimate with those against it."""
    known: dict[Sides, Sequence[Estimate]] = {}
    for check in checks:
        for benchmark in examined.responses.benchmarks:
            found = estimate_of(check, benchmark.benchmark, examined.estimates)
            if check.benchmark not in (None, benchmark.benchmark) or found is None:
                continue
            entry = SettledEstimate(check=check.id, benchmark=benchmark.benchmark, missing=bearing(check, benchmark, found.unit))
            if not entry.missing:
                continue
            if check.metric not in examined.analysis.ordered:
                yield entry.model_copy(update={"undefined": NOT_ORDERED})
                continue
            sides = Sides.against_claim(check, benchmark, found.unit)
            if sides not in known:
                known[sides] = examined.again(_settled(examined.responses, sides))
            settled = estimate_of(check, benchmark.benchmark, known[sides])
            yield entry.model_copy(update={"estimate": settled} if settled is not None else {"undefined": NOT_COMPARED})


def _settled(responses: Responses, sides: Sides) -> Responses:
    benchmarks = (settled_for(entry, np.isnan(entry.scores), sides) for entry in responses.benchmarks)
    return replace(responses, benchmarks=tuple(benchmarks))
