"""How did the questions of a benchmark come about, as far as its numbers depend on it?  Responses to the design that statistics know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalspec.artifacts.responses import BenchmarkResponses
    from evalspec.statistics.designs import Design

Average = Literal["micro", "macro"]

NEEDS_SUBJECTS = "an average over subjects needs subjects that the study declares as strata or as clusters"
CLUSTERS_INSIDE = "an average over subjects is not computed where questions come in clusters of another kind"
WEIGHTED_CLUSTERS = "a weighted sample of clusters is not computed"
CHOSEN = "the questions were chosen by what other models made of them and not drawn, so nothing says how far an estimate from them can be off"


def subject_labels(benchmark: BenchmarkResponses) -> NDArray[np.str_]:
    """Return the subject of each question, empty text where it has none."""
    import numpy as np

    return np.array([subject or "" for subject in benchmark.subjects], dtype=np.str_)


def weighted(benchmark: BenchmarkResponses) -> bool:
    """Return whether questions weigh differently (equal allocation, or chosen questions)."""
    import numpy as np

    return benchmark.sample == "chosen" or bool(np.ptp(benchmark.weights) > 0)


def design_of(benchmark: BenchmarkResponses, *, average: Average = "micro") -> Design:
    """Return the design behind all questions of a benchmark.

    Strata shorten the interval where the number of questions of each was fixed beforehand, which a simple random sample does not do.
    Raises ValueError with the reason where the average is not defined.
    """
    import numpy as np

    from evalspec.statistics.designs import Design

    if benchmark.sample == "chosen":
        raise ValueError(CHOSEN)
    labels, macro = subject_labels(benchmark), average == "macro"
    if benchmark.clusters:
        clusters = np.array(benchmark.clusters, dtype=np.str_)
        if weighted(benchmark):
            raise ValueError(WEIGHTED_CLUSTERS)
        if macro and not np.array_equal(clusters, labels):
            raise ValueError(CLUSTERS_INSIDE)
        return Design(clusters=clusters, by_cluster=macro)
    if macro and not benchmark.strata:
        raise ValueError(NEEDS_SUBJECTS)
    if macro:
        pool = _pool(benchmark, stratified=True)
        return Design(strata=labels, shares=dict.fromkeys(sorted(pool or set(labels.tolist())), 1.0), pool=pool)
    if weighted(benchmark):
        names, place = np.unique(labels, return_inverse=True)
        shares = dict(zip(names.tolist(), np.bincount(place, benchmark.weights).tolist(), strict=True))
        return Design(strata=labels, shares=shares, pool=_pool(benchmark, stratified=True))
    fixed = benchmark.strata and benchmark.sample != "simple"
    return Design(strata=labels if fixed else None, pool=_pool(benchmark, stratified=fixed))


def subject_design(benchmark: BenchmarkResponses, subject: str) -> Design:
    """Return the design behind the questions of one stratum; its arrays are as long as those of the benchmark.

    Raises ValueError with the reason where the questions are no draw.
    """
    import numpy as np

    from evalspec.statistics.designs import WHOLE, Design

    if benchmark.sample == "chosen":
        raise ValueError(CHOSEN)
    clusters = np.array(benchmark.clusters, dtype=np.str_) if benchmark.clusters else None
    return Design(clusters=clusters, pool={WHOLE: benchmark.pool.subjects[subject]} if benchmark.pool else None)


def answered(design: Design, present: NDArray[np.bool_]) -> Design:
    """Return the design of the questions that have a score; raises ValueError where a subject of the pool has none of them."""
    kept = design.kept(present)
    absent = sorted(set(kept.pool or ()) - set(kept.strata.tolist())) if kept.strata is not None and kept.shares is None else ()
    if absent:
        raise ValueError(f"the pool holds subject {absent[0]}, of which no question has a score")
    return kept


def _pool(benchmark: BenchmarkResponses, *, stratified: bool) -> dict[str, int] | None:
    from evalspec.statistics.designs import WHOLE

    if benchmark.pool is None:
        return None
    return dict(benchmark.pool.subjects) if stratified else {WHOLE: benchmark.pool.size}
