"""Which analyses can a study ask for?  Ours in a visible tuple, others through the entry-point group `evalspec.analyses`.

An analysis is imported when it is asked for, so that a study waits only for those that it names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from evalspec.errors import UsageError
from evalspec.protocols import Analysis, AnyAnalysis, Catalogue

BUILT_IN = (
    "intervals",
    "mcnemar",
    "article_compat",
    "benchpress",
    "harmony",
    "mdad",
    "noninferiority",
    "power",
    "redraw",
    "sensitivity",
    "split_half",
    "subgroups",
    "tiers",
)
"""The kinds of this package; each is the `ANALYSIS` of the module of that name."""

ENTRY_POINT_GROUP = "evalspec.analyses"
"""Where other packages declare theirs; the entry point's name is the kind."""


@dataclass(frozen=True, slots=True)
class Installed(Mapping[str, AnyAnalysis]):
    """Analyses by kind, each imported at its first use."""

    loaders: Mapping[str, Callable[[], AnyAnalysis]]
    loaded: dict[str, AnyAnalysis] = field(default_factory=dict)

    def __getitem__(self, kind: str) -> AnyAnalysis:
        if kind not in self.loaded:
            self.loaded[kind] = self.loaders[kind]()
        return self.loaded[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self.loaders)

    def __len__(self) -> int:
        return len(self.loaders)

    def __contains__(self, kind: object) -> bool:
        return kind in self.loaders


def built_in() -> Catalogue:
    """Return the analyses of this package alone, by kind; what its own schema and language reference describe."""
    return Installed({kind: partial(_built_in, kind) for kind in BUILT_IN})


def catalogue() -> Catalogue:
    """Return every installed analysis by kind; raises UsageError when two packages claim one kind, and at its use for a plug-in that is none."""
    loaders: dict[str, Callable[[], AnyAnalysis]] = {kind: partial(_built_in, kind) for kind in BUILT_IN}
    origins = dict.fromkeys(BUILT_IN, "evalspec")
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: point.value):
        if point.name in loaders:
            raise UsageError(
                f"two packages claim the analysis kind {point.name!r}: {origins[point.name]} and {point.value}", hint="uninstall one of them"
            )
        loaders[point.name], origins[point.name] = partial(_plugged_in, point), point.value
    return Installed(loaders)


def _built_in(kind: str) -> AnyAnalysis:
    analysis: AnyAnalysis = import_module(f"evalspec.analyses.{kind}").ANALYSIS
    return analysis


def _plugged_in(point: EntryPoint) -> AnyAnalysis:
    analysis = point.load()
    if not isinstance(analysis, Analysis):
        raise UsageError(f"the plug-in {point.value!r} must be an evalspec.protocols.Analysis; got {type(analysis).__name__}")
    if analysis.kind != point.name:
        raise UsageError(f"the plug-in {point.value!r} is declared as {point.name!r}, and its kind is {analysis.kind!r}", hint="give both one name")
    return analysis
