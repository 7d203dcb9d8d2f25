"""How far must the intervals of several pairs reach to hold all together?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from evalspec.analyses.designs import weighted
from evalspec.analyses.pairs import DRAWS, Limits, Pair
from evalspec.protocols import Context

if TYPE_CHECKING:
    from evalspec.artifacts.responses import BenchmarkResponses


@dataclass(frozen=True, slots=True)
class Critical:
    """How many standard errors intervals reach out that hold all together; `error` is its Monte Carlo standard error, None when nothing is drawn."""

    value: float
    error: float | None
    by: Literal["max_t", "bonferroni"]

    @property
    def level(self) -> float:
        """The confidence level of a single interval that reaches as far."""
        from evalspec.statistics.designs import level_of

        return level_of(self.value)


def simultaneous(benchmarks: Sequence[BenchmarkResponses], pairs: Mapping[str, Sequence[Pair]], context: Context, limits: Limits) -> Critical | None:
    """Return how far intervals must reach to hold all together at their level; None where fewer than two pairs can be compared.

    The largest of the correlated statistics is drawn (max-T) where every model compared has a score on every question; Bonferroni's bound, which
    needs nothing of the kind, stands in where scores are missing, where clusters are too few or too unequal to measure the correlations, and for
    exact intervals, which rest on no such statistics.
    """
    import numpy as np

    from evalspec.statistics.max_t import family_critical_value, pair_statistics
    from evalspec.statistics.multiplicity import bonferroni_critical_value

    compared = [benchmark for benchmark in benchmarks if pairs[benchmark.benchmark] and not weighted(benchmark)]
    size, alpha = sum(len(pairs[benchmark.benchmark]) for benchmark in compared), 1.0 - limits.level
    if size < 2:
        return None
    if limits.exact:
        return Critical(bonferroni_critical_value(size, alpha=alpha), None, "bonferroni")
    families = []
    for benchmark in compared:
        names = sorted({model for pair in pairs[benchmark.benchmark] for model in pair})
        scores = benchmark.settled()[[benchmark.models.index(name) for name in names]]
        if not np.isnan(scores).any() and scores.shape[1] > 1 and _correlated(benchmark):
            places = [(names.index(first), names.index(second)) for first, second in pairs[benchmark.benchmark]]
            families.append(pair_statistics(scores, places, clusters=benchmark.clusters or None))
    if len(families) < len(compared) or not any(np.any(family.errors > 0.0) for family in families):
        return Critical(bonferroni_critical_value(size, alpha=alpha), None, "bonferroni")
    found = family_critical_value(families, alpha=alpha, draws=DRAWS, rng=context.rng)
    return Critical(found.critical_value, found.standard_error, "max_t")


def _correlated(benchmark: BenchmarkResponses) -> bool:
    """Return whether questions, or enough clusters of them, measure how statistics are correlated."""
    import numpy as np

    from evalspec.statistics.clusters import enough_clusters

    return not benchmark.clusters or enough_clusters(np.unique(np.array(benchmark.clusters), return_counts=True)[1])
