"""Do recorded findings follow from the recorded responses?  Counts, ids and decisions exactly, real numbers within a tolerance."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeGuard

from evalspec.artifacts.base import JsonValue
from evalspec.artifacts.findings import Findings
from evalspec.artifacts.verdict import Verdict
from evalspec.protocols import Catalogue

ABSOLUTE_FLOOR = 1e-12
"""Differences below this are rounding around zero, whatever the relative tolerance."""


SENTENCES = frozenset({"advice", "caution", "rule", "undefined", "untested", "why", "why_not"})
"""Under which keys the reasons of results stand, in words that another edition of evalspec may choose otherwise."""

MOST_SHOWN = 50
LONGEST_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Divergence:
    """A recorded value that the responses do not give back; `path` is a JSON pointer into `file`."""

    file: str
    path: str
    recorded: JsonValue
    recomputed: JsonValue

    def __str__(self) -> str:
        gap = _gap(self.recorded, self.recomputed)
        by = "" if gap is None else f" by {gap:.3g}"
        return f"differs{by} at {self.file}{self.path}: recorded {_shown(self.recorded)}, recomputed {_shown(self.recomputed)}"


@dataclass(frozen=True, slots=True)
class Recomputation:
    """What came of recomputing findings and verdict from the responses; `reworded` are reasons that this edition gives in other words."""

    state: Literal["recomputed", "differs", "not_recomputable"]
    divergences: tuple[Divergence, ...] = ()
    why: str | None = None
    reworded: tuple[Divergence, ...] = ()

    @property
    def exit_code(self) -> int:
        """The exit code of `verify --recompute` on content that is intact: 0 recomputed, 1 something differs, 3 it could not be done."""
        return {"recomputed": 0, "differs": 1, "not_recomputable": 3}[self.state]

    def describe(self) -> str:
        """Return what came of it, for people."""
        if self.state == "differs":
            more = len(self.divergences) - MOST_SHOWN
            return "\n".join([*map(str, self.divergences[:MOST_SHOWN]), *([f"and {more} more places"] if more > 0 else [])])
        if self.state == "not_recomputable":
            return f"not recomputable: {self.why}"
        told = "recomputed: findings and verdict follow from the recorded responses"
        if not self.reworded:
            return told
        first, more = self.reworded[0], len(self.reworded) - 1
        others = f", and {more} more" if more else ""
        return f"{told}; reasons in other words, {self.why}: {first.file}{first.path}{others}"


def compare(recorded: tuple[Findings, Verdict], recomputed: tuple[Findings, Verdict], catalogue: Catalogue, *, edition: str = "") -> Recomputation:
    """Return where recorded findings and verdict differ from recomputed ones beyond each analysis's own tolerance.

    `edition` says what wrote the recorded ones where that is not this very evalspec: its reasons need not be in the same words.
    """
    divergences = [
        *_between_findings(recorded[0], recomputed[0], catalogue),
        *_differences("verdict.json", "", _without_parent(recorded[1]), _without_parent(recomputed[1]), _loosest(recomputed[0], catalogue)),
    ]
    reworded = tuple(filter(_is_reworded, divergences)) if edition else ()
    wrong = tuple(divergence for divergence in divergences if divergence not in reworded)
    return Recomputation("differs", wrong) if wrong else Recomputation("recomputed", why=edition or None, reworded=reworded)


def _is_reworded(divergence: Divergence) -> bool:
    """Return whether a reason is there in both, in other words; where there is one in one of them only, something else was decided."""
    key = next((part for part in reversed(divergence.path.split("/")) if not part.isdigit()), "")
    return key in SENTENCES and isinstance(divergence.recorded, str) and isinstance(divergence.recomputed, str)


def _between_findings(recorded: Findings, recomputed: Findings, catalogue: Catalogue) -> Iterator[Divergence]:
    old, new = recorded.model_dump(mode="json", by_alias=True), recomputed.model_dump(mode="json", by_alias=True)
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
    return verdict.model_dump(mode="json", by_alias=True, exclude={"findings_sha256"})


def _loosest(findings: Findings, catalogue: Catalogue) -> float:
    return max((catalogue[finding.request.kind].tolerance for finding in findings.findings), default=0.0)


def _differences(file: str, path: str, old: JsonValue, new: JsonValue, tolerance: float) -> Iterator[Divergence]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            if key in old and key in new:
                yield from _differences(file, f"{path}/{key}", old[key], new[key], tolerance)
            else:
                yield Divergence(file, f"{path}/{key}", _shortened(old.get(key, "absent")), _shortened(new.get(key, "absent")))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        if _alike(old, new):
            return
        for index, pair in enumerate(zip(old, new, strict=True)):
            yield from _differences(file, f"{path}/{index}", *pair, tolerance)
    elif not _same(old, new, tolerance):
        yield Divergence(file, path, _shortened(old), _shortened(new))


def _alike(old: list[JsonValue], new: list[JsonValue]) -> bool:
    """Return whether two columns of numbers, texts and truth values are equal, in type too: fast, for there can be hundreds of thousands."""
    kinds = set(map(type, old))
    return kinds.isdisjoint({list, dict}) and all(map(operator.is_, map(type, old), map(type, new))) and old == new


def _same(old: JsonValue, new: JsonValue, tolerance: float) -> bool:
    gap = _gap(old, new) if isinstance(old, float) or isinstance(new, float) else None
    if gap is not None and _is_real(old) and _is_real(new):
        return gap <= max(ABSOLUTE_FLOOR, tolerance * max(abs(float(old)), abs(float(new))))
    return type(old) is type(new) and old == new


def _gap(first: JsonValue, second: JsonValue) -> float | None:
    """Return how far two numbers lie apart; None where one is no finite number, as in a file that can say anything."""
    if not _is_real(first) or not _is_real(second):
        return None
    try:
        gap = abs(float(first) - float(second))
    except OverflowError:  # a whole number of hundreds of digits
        return None
    return gap if math.isfinite(gap) else None


def _is_real(value: JsonValue) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: JsonValue) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def _shortened(value: JsonValue) -> JsonValue:
    return f"{len(value)} entries" if isinstance(value, Sequence | Mapping) and not isinstance(value, str) else value
