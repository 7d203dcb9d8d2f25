"""Do recorded findings follow from the recorded responses?  Counts, ids and decisions exactly, real numbers within a tolerance."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeGuard

from evalspec.artifacts.base import JsonValue
from evalspec.artifacts.findings import Findings
from evalspec.artifacts.verdict import Verdict
from evalspec.protocols import Catalogue

ABSOLUTE_FLOOR = 1e-12
"""Differences below this are rounding around zero, whatever the relative tolerance."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """A recorded value that the responses do not give back; `path` is a JSON pointer into `file`."""

    file: str
    path: str
    recorded: JsonValue
    recomputed: JsonValue

    def __str__(self) -> str:
        if _is_real(self.recorded) and _is_real(self.recomputed):
            by = abs(float(self.recorded) - float(self.recomputed))
            return f"differs by {by:.3g} at {self.file}{self.path}: recorded {self.recorded!r}, recomputed {self.recomputed!r}"
        return f"differs at {self.file}{self.path}: recorded {self.recorded!r}, recomputed {self.recomputed!r}"


@dataclass(frozen=True, slots=True)
class Recomputation:
    """What came of recomputing findings and verdict from the responses."""

    state: Literal["recomputed", "differs", "not_recomputable"]
    divergences: tuple[Divergence, ...] = ()
    why: str | None = None


def compare(recorded: tuple[Findings, Verdict], recomputed: tuple[Findings, Verdict], catalogue: Catalogue) -> Recomputation:
    """Return where recorded findings and verdict differ from recomputed ones beyond each analysis's own tolerance."""
    divergences = [
        *_between_findings(recorded[0], recomputed[0], catalogue),
        *_differences("verdict.json", "", _without_parent(recorded[1]), _without_parent(recomputed[1]), _loosest(recomputed[0], catalogue)),
    ]
    return Recomputation("differs" if divergences else "recomputed", tuple(divergences))


def _between_findings(recorded: Findings, recomputed: Findings, catalogue: Catalogue) -> Iterator[Divergence]:
    old, new = json.loads(recorded.to_json()), json.loads(recomputed.to_json())
    old_parts, new_parts = old.pop("findings"), new.pop("findings")
    yield from _differences("findings.json", "", old, new, 1e-9)
    if len(old_parts) != len(new_parts):
        yield Divergence("findings.json", "/findings", len(old_parts), len(new_parts))
        return
    # The recomputed finding's kind is one that is installed; the recorded one can say anything.
    for index, (finding, pair) in enumerate(zip(recomputed.findings, zip(old_parts, new_parts, strict=True), strict=True)):
        yield from _differences("findings.json", f"/findings/{index}", *pair, catalogue[finding.request.kind].tolerance)


def _without_parent(verdict: Verdict) -> dict[str, JsonValue]:
    """Leave out the digest of the findings, whose last bits may differ on another machine; the findings themselves are compared."""
    content: dict[str, JsonValue] = json.loads(verdict.to_json())
    content.pop("findings_sha256")
    return content


def _loosest(findings: Findings, catalogue: Catalogue) -> float:
    return max((catalogue[finding.request.kind].tolerance for finding in findings.findings), default=0.0)


def _differences(file: str, path: str, old: JsonValue, new: JsonValue, tolerance: float) -> Iterator[Divergence]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            if key in old and key in new:
                yield from _differences(file, f"{path}/{key}", old[key], new[key], tolerance)
            else:
                yield Divergence(file, f"{path}/{key}", old.get(key), new.get(key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, pair in enumerate(zip(old, new, strict=True)):
            yield from _differences(file, f"{path}/{index}", *pair, tolerance)
    elif not _same(old, new, tolerance):
        yield Divergence(file, path, _shortened(old), _shortened(new))


def _same(old: JsonValue, new: JsonValue, tolerance: float) -> bool:
    if _is_real(old) and _is_real(new) and (isinstance(old, float) or isinstance(new, float)):
        return abs(float(old) - float(new)) <= max(ABSOLUTE_FLOOR, tolerance * max(abs(float(old)), abs(float(new))))
    return type(old) is type(new) and old == new


def _is_real(value: JsonValue) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shortened(value: JsonValue) -> JsonValue:
    return f"{len(value)} entries" if isinstance(value, Sequence | Mapping) and not isinstance(value, str) else value
