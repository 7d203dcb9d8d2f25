"""What does each accuracy hide of the groups of its questions?

Picked from estimates alone, so that it stands beside an accuracy whichever analysis gave that: the worst group, the gap between groups, and harmony
beside its value from sizes alone; or why there is none of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evalspec.artifacts.findings import Estimate
from evalspec.artifacts.responses import Responses
from evalspec.reporting.documents import Placed

GROUP_METRICS = ("worst_group", "group_gap", "harmony", "size_harmony")
DECLARED = "over declared groups"
"""How the method of harmony ends where its groups are the subjects that questions name."""

NOT_ASKED = "the study asks for no analysis of it (kind harmony)"
NO_SUBJECTS = "the questions name no subjects"
ONE_SUBJECT = "all questions are of one subject"


@dataclass(frozen=True, slots=True)
class ByGroup:
    """What one accuracy hides: that of the worst group, the gap between groups, and harmony beside its value from sizes alone."""

    worst_group: Placed[Estimate]
    group_gap: Placed[Estimate]
    harmony: Placed[Estimate]
    size_harmony: Placed[Estimate]

    @property
    def worst(self) -> str:
        """The name of the worst group."""
        return self.worst_group.item.method.partition(": ")[2]

    @property
    def declared(self) -> bool:
        """Whether the groups are the subjects that questions name."""
        return self.harmony.item.method.endswith(DECLARED)


@dataclass(frozen=True, slots=True)
class Beside:
    """What stands beside every accuracy, by benchmark and model; and by benchmark, why nothing does."""

    found: Mapping[tuple[str, str], ByGroup]
    absent: Mapping[str, str]

    @classmethod
    def of(cls, placed: Iterable[Placed[Estimate]], responses: Responses) -> Beside:
        """Take the first analysis that looks at declared subjects; where there is none, the first that looks at other groups."""
        found = _by_group(placed)
        seen = {benchmark for benchmark, _ in found}
        without = [entry for entry in responses.benchmarks if entry.benchmark not in seen]
        named = {entry.benchmark: len(set(entry.subjects) - {None, ""}) for entry in without}
        return cls(found, {benchmark: (NO_SUBJECTS, ONE_SUBJECT, NOT_ASKED)[min(number, 2)] for benchmark, number in named.items()})

    def on(self, benchmark: str, model: str) -> ByGroup | None:
        """Return what stands beside the accuracy of one model."""
        return self.found.get((benchmark, model))

    def without(self, benchmarks: Iterable[str]) -> Mapping[str, list[str]]:
        """Return why nothing stands beside accuracies, each reason with its benchmarks among these."""
        told: dict[str, list[str]] = {}
        for benchmark in benchmarks:
            if benchmark in self.absent:
                told.setdefault(self.absent[benchmark], []).append(benchmark)
        return told

    def reasons(self, benchmark: str, models: Iterable[str]) -> Mapping[str, list[str]]:
        """Return why harmony is not said of some of these models, each reason with its models."""
        told: dict[str, list[str]] = {}
        for model in models:
            groups = self.on(benchmark, model)
            if groups is not None and groups.harmony.item.value is None:
                told.setdefault(groups.harmony.item.undefined or "undefined", []).append(model)
        return told


def _by_group(placed: Iterable[Placed[Estimate]]) -> dict[tuple[str, str], ByGroup]:
    by_analysis: dict[tuple[str, str, str], dict[str, Placed[Estimate]]] = {}
    for one in placed:
        if one.item.metric in GROUP_METRICS:
            by_analysis.setdefault((one.item.analysis, one.item.benchmark, one.item.models[0]), {})[one.item.metric] = one
    whole = [(key, ByGroup(**metrics)) for key, metrics in by_analysis.items() if len(metrics) == len(GROUP_METRICS)]
    told: dict[tuple[str, str], ByGroup] = {}
    for (_, benchmark, model), groups in sorted(whole, key=lambda one: not one[1].declared):
        told.setdefault((benchmark, model), groups)
    return told
