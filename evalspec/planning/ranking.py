"""Which gap will each sample rank the right way round?  Kept apart from the gap that a test on it would detect, which is larger.

A sample is held against two rankings: that of all questions of its source, and that of questions like them without end. By formula, as if the sample
were a simple one: strata can only help.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evalspec.artifacts.protocol import Protocol, ProtocolBenchmark
from evalspec.artifacts.schedule import Rankable
from evalspec.planning.power import USUAL_DISCORDANCES
from evalspec.protocols import Comparison
from evalspec.statistics.mdad_closed_form import rankable_gap

AGREEMENT = 0.8

CLUSTERED = "questions come in clusters, and what they rank depends on how alike those of one cluster are"
WEIGHTED = "the sample is weighted, and what it ranks depends on how much its strata differ"
NAMED = "the questions were named and not drawn, so nothing follows for others"
CHOSEN = "the questions are chosen and not drawn; the analysis mdad says what such a sample ranks"


def rankable_gaps(protocol: Protocol, comparisons: Mapping[str, Sequence[Comparison]]) -> tuple[Rankable, ...]:
    """Return, for each benchmark, the smallest gap that its sample ranks rightly in 80 % of draws; nothing for a study of one model.

    The discordance is the first that an analysis of the benchmark or its sample's size declares, else three usual ones.
    """
    if len(protocol.models) < 2:
        return ()
    return tuple(entry for benchmark in protocol.benchmarks for entry in _of(benchmark, _declared(protocol, benchmark, comparisons)))


def _declared(protocol: Protocol, benchmark: ProtocolBenchmark, comparisons: Mapping[str, Sequence[Comparison]]) -> float | None:
    of_benchmark = [request.id for request in protocol.analyses if benchmark.id in request.benchmarks]
    known = [comparison.discordance for identifier in of_benchmark for comparison in comparisons.get(identifier, ())]
    planned = benchmark.planned_size.discordance if benchmark.planned_size else None
    return next((value for value in (*known, planned) if value is not None), None)


def _of(benchmark: ProtocolBenchmark, declared: float | None) -> Iterator[Rankable]:
    asked = len(benchmark.questions)
    empty = Rankable(benchmark=benchmark.id, n=asked, pool=None, agreement=AGREEMENT)
    reason = _why_undefined(benchmark)
    if reason is not None:
        yield empty.model_copy(update={"undefined": reason})
        return
    for pool in (benchmark.source_size, None):
        if pool == asked or (pool is None and benchmark.target == "this_pool"):
            continue  # all of the source ranks itself; and a pool that is the target stands for nothing else
        for discordance in USUAL_DISCORDANCES if declared is None else (declared,):
            gap = rankable_gap(asked, pool, discordance, level=AGREEMENT)
            found = {"pool": pool, "discordance": discordance, "discordance_declared": declared is not None, "gap": gap}
            yield empty.model_copy(update=found)


def _why_undefined(benchmark: ProtocolBenchmark) -> str | None:
    if benchmark.clusters is not None:
        return CLUSTERED
    if benchmark.sample.method in ("ids", "chosen"):
        return NAMED if benchmark.sample.method == "ids" else CHOSEN
    return WEIGHTED if benchmark.weighted else None
