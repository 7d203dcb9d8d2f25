"""Which analyses can a study ask for?  Ours in a visible tuple, others through the entry-point group `evalspec.analyses`."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType

from evalspec.analyses import article_compat, intervals, mcnemar, noninferiority, power, redraw, sensitivity, split_half, subgroups, tiers
from evalspec.errors import UsageError
from evalspec.protocols import Analysis, AnyAnalysis, Catalogue

BUILT_IN = (
    intervals.ANALYSIS,
    mcnemar.ANALYSIS,
    article_compat.ANALYSIS,
    noninferiority.ANALYSIS,
    power.ANALYSIS,
    redraw.ANALYSIS,
    sensitivity.ANALYSIS,
    split_half.ANALYSIS,
    subgroups.ANALYSIS,
    tiers.ANALYSIS,
)
ENTRY_POINT_GROUP = "evalspec.analyses"


def built_in() -> Catalogue:
    """Return the analyses of this package alone, by kind; what its own schema and language reference describe."""
    return MappingProxyType({analysis.kind: analysis for analysis in BUILT_IN})


def catalogue() -> Catalogue:
    """Return every installed analysis by kind; raises UsageError when two claim one kind or a plug-in is not an analysis."""
    claimed: dict[str, tuple[str, AnyAnalysis]] = {}
    found: list[tuple[str, AnyAnalysis]] = [("evalspec", analysis) for analysis in BUILT_IN]
    found += [(point.value, _load(point)) for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: point.value)]
    for origin, analysis in found:
        if analysis.kind in claimed:
            raise UsageError(
                f"two packages claim the analysis kind {analysis.kind!r}: {claimed[analysis.kind][0]} and {origin}",
                hint="uninstall one of them",
            )
        claimed[analysis.kind] = (origin, analysis)
    return MappingProxyType({kind: analysis for kind, (_, analysis) in claimed.items()})


def _load(point: EntryPoint) -> AnyAnalysis:
    analysis = point.load()
    if not isinstance(analysis, Analysis):
        raise UsageError(f"the plug-in {point.value!r} must be an evalspec.protocols.Analysis; got {type(analysis).__name__}")
    return analysis
