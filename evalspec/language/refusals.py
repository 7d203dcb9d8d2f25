"""Can every check be decided?  Not where its analysis computes nothing of questions that come about as the benchmark declares."""

from __future__ import annotations

from collections.abc import Iterator

from evalspec.language.draft import Draft, Entry, in_clusters, options_of
from evalspec.language.faults import Fault, name_of
from evalspec.language.scalars import quoted
from evalspec.protocols import DeclaredDesign


def undecidable(draft: Draft) -> Iterator[Fault]:
    """Yield a fault for every check that can never be decided, since its analysis refuses how the questions of a benchmark come about."""
    for pointer, check in draft.entries("check"):
        entry = draft.find("analysis", check.get("analysis"))
        if entry is None:
            continue
        named = check.get("benchmark")
        for identifier in (named,) if isinstance(named, str) else draft.benchmarks_of(entry) or ():
            benchmark = draft.find("benchmark", identifier)
            reason = _why_refused(draft, entry, benchmark) if benchmark else None
            if reason:
                refused = f"analysis {quoted(str(check['analysis']))} computes nothing on benchmark {quoted(identifier)}"
                message = f"{name_of(pointer, draft.written)} can never be decided: {refused}, since {reason}"
                yield Fault((*pointer, "analysis"), message, "name another analysis or another benchmark; or change the method, or the groups")


def _why_refused(draft: Draft, entry: Entry, benchmark: Entry) -> str | None:
    analysis = draft.analysis(entry)
    if analysis is None or analysis.refuses is None:
        return None
    options = options_of(analysis, entry)
    return None if options is None else analysis.refuses(options, DeclaredDesign(clusters=in_clusters(benchmark)))
