"""Which questions of a model have scores, group by group, and what is known of each group's accuracy?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evalspec.analyses.designs import subject_design, weighted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalspec.analyses.harmony_partitions import Partition
    from evalspec.analyses.harmony_results import HarmonyOptions
    from evalspec.artifacts.responses import BenchmarkResponses
    from evalspec.statistics.accuracies import Accuracy
    from evalspec.statistics.designs import Design

NO_ANSWERS = "no question has a score"
ALL_BUT_ASKED = 1e-6
"""What counts as left of a group of a finite pool that was asked whole: its accuracy is known, and no error may be 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """The scored questions of one model, group after group and by id within one, and what is known of each group.

    `kept` holds their positions in the benchmark. Arrays of groups hold one entry per group; `errors` are standard errors of `means`, never 0;
    `asked` is how many questions of an endless pool would say as much, None where answers are not counted or come in clusters. `wider` has
    intervals that hold for all groups at once (Bonferroni).
    """

    partition: Partition
    kept: NDArray[np.intp]
    scores: NDArray[np.float64]
    codes: NDArray[np.int64]
    sizes: NDArray[np.int64]
    shares: NDArray[np.float64]
    means: NDArray[np.float64]
    errors: NDArray[np.float64]
    asked: NDArray[np.float64] | None
    found: tuple[Accuracy | None, ...]
    wider: tuple[Accuracy | None, ...]
    counted: bool
    clustered: bool
    weighted: bool


def scored_groups(benchmark: BenchmarkResponses, model: int, partition: Partition, options: HarmonyOptions) -> Scored:
    """Return the scored questions of one model by group; raises ValueError with the reason where a group has none."""
    import numpy as np

    settled = benchmark.settled()[model]
    order = np.lexsort((np.array(benchmark.questions), partition.codes))
    kept = order[~np.isnan(settled[order])]
    if not kept.size:
        raise ValueError(NO_ANSWERS)
    scores, codes = settled[kept], partition.codes[kept]
    sizes = np.bincount(codes, minlength=len(partition.names))
    if sizes.min() == 0:
        raise ValueError(f"no question of {partition.names[int(sizes.argmin())]} has a score")
    weights = np.bincount(codes, benchmark.weights[kept])
    means, counted = np.bincount(codes, scores) / sizes, bool(np.all((scores == 0.0) | (scores == 1.0)))
    designs = [_group_design(benchmark, partition, name) for name in partition.names]
    clustered = any(design.clusters is not None for design in designs)
    members = np.split(kept, np.cumsum(sizes)[:-1])
    levels = (options.level, 1.0 - (1.0 - options.level) / len(designs))
    found, wider = (tuple(_accuracy(settled, design, which, level) for design, which in zip(designs, members, strict=True)) for level in levels)
    errors, asked = _errors(found, means, sizes, counted=counted and not clustered), None
    if counted and not clustered:
        left = np.array([max(1.0 - design.asked(size), ALL_BUT_ASKED) for design, size in zip(designs, sizes.tolist(), strict=True)])
        errors, asked = errors * np.sqrt(left), sizes / left
    return Scored(
        partition, kept, scores, codes, sizes, weights / weights.sum(), means, errors, asked, found, wider, counted, clustered, weighted(benchmark)
    )


def _group_design(benchmark: BenchmarkResponses, partition: Partition, name: str) -> Design:
    """Return the design behind the questions of one group; where the groups are the clusters, questions within one are independent."""
    import numpy as np

    from evalspec.statistics.designs import Design

    if partition.summary.source != "declared":
        return Design(clusters=np.array(benchmark.clusters, dtype=np.str_) if benchmark.clusters else None)
    design = subject_design(benchmark, name)
    return replace(design, clusters=None) if benchmark.clusters == benchmark.subjects else design


def _accuracy(settled: NDArray[np.float64], design: Design, members: NDArray[np.intp], level: float) -> Accuracy | None:
    import numpy as np

    from evalspec.statistics.accuracies import accuracy

    which = np.zeros(settled.size, dtype=np.bool_)
    which[members] = True
    try:
        return accuracy(settled[which], design.kept(which), level=level)
    except ValueError:
        return None


def _errors(found: tuple[Accuracy | None, ...], means: NDArray[np.float64], sizes: NDArray[np.int64], *, counted: bool) -> NDArray[np.float64]:
    """Return the standard error of each group's mean, never 0: a group whose scores show no spread gets that of as many right answers."""
    import numpy as np

    from evalspec.statistics.harmony_intervals import proportion_errors

    eased = proportion_errors(np.rint(means * sizes).astype(np.int64), sizes)
    if counted:
        return eased
    measured = np.array([(one.standard_error or 0.0) if one else 0.0 for one in found])
    return np.where(measured > 0.0, measured, eased)
