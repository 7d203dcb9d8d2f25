"""How many questions does a sample need that must detect a difference?  So many as the test needs that will be run on them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from evalspec.artifacts.base import canonical_json
from evalspec.artifacts.samples import SampleSimple, SampleStratified, SizeToDetect
from evalspec.artifacts.study import Study
from evalspec.language.draft import Draft, Entry, in_clusters, options_of
from evalspec.language.faults import Fault, lookup, name_of
from evalspec.protocols import AnyAnalysis, Catalogue, Comparison

if TYPE_CHECKING:  # most studies plan no size, and validation starts fast
    from evalspec.artifacts.protocol import PlannedSize

TWO_SIDED = ("exact", "mid_p")


def sizes(draft: Draft) -> Iterator[Fault]:
    """Yield a fault for every sample that must detect a difference where no number of questions follows from that."""
    models = draft.ids("model")
    for pointer, benchmark in draft.entries("benchmark"):
        written = lookup(benchmark, ("sample", "size"))
        if not isinstance(written, dict) or models is None:
            continue
        place, name = (*pointer, "sample", "size"), name_of(pointer, draft.written)
        if in_clusters(benchmark):
            message = f"the sample of {name} must detect a difference, and its questions come in clusters, whose spread is not known beforehand"
            yield Fault(place, message, "write a number of questions")
            continue
        try:
            target = SizeToDetect.model_validate_json(json.dumps(written))
        except ValidationError:
            continue  # a fault of the grammar
        paired = [entry for _, entry in draft.entries("analysis") if benchmark.get("id") in (draft.benchmarks_of(entry) or ())]
        known = [(str(entry.get("id")), found) for entry in paired if (found := _comparison_of(draft, entry, models))]
        if any(draft.analysis(entry) is None for entry in paired):
            continue  # the analysis meant may be the faulty one
        if not known:
            hint = "add an analysis of the kind mcnemar or noninferiority on this benchmark, or write a number"
            yield Fault(place, f"the sample of {name} must detect a difference, and no analysis tests one there", hint)
            continue
        try:
            _planned(target, *known[0])
        except ValueError as error:
            yield Fault(place, f"the sample of {name} must detect a difference, and no number of questions does: {error}", None)


def planned_sizes(study: Study, catalogue: Catalogue) -> dict[str, PlannedSize]:
    """Return, by benchmark, the number of questions of every sample that must detect a difference; the study has no fault."""
    models, found = tuple(model.id for model in study.models), {}
    for benchmark in study.benchmarks:
        sample = benchmark.sample
        if not isinstance(sample, SampleSimple | SampleStratified) or not isinstance(sample.size, SizeToDetect):
            continue
        for request in study.analyses:
            analysis = catalogue[request.kind]
            if benchmark.id not in request.benchmarks or analysis.comparisons is None:
                continue
            options = analysis.options.model_validate_json(canonical_json(request.options))
            checks = study.thresholds.checks if study.thresholds and study.thresholds.require == "any" else ()
            divisor = len(checks) if request.id in {check.analysis for check in checks} else 1
            tested = _tested(analysis, options, divisor, (models, len(request.benchmarks)))
            if tested:
                found[benchmark.id] = _planned(sample.size, request.id, tested)
                break
    return found


def _comparison_of(draft: Draft, entry: Entry, models: tuple[str, ...]) -> Comparison | None:
    """Return the first comparison that an analysis of the draft will test; None for one that tests nothing, or is faulty."""
    analysis, benchmarks = draft.analysis(entry), draft.benchmarks_of(entry)
    if analysis is None or analysis.comparisons is None or benchmarks is None:
        return None
    options = options_of(analysis, entry)
    if options is None:
        return None
    checks = [check for _, check in draft.entries("check")] if lookup(draft.content, ("thresholds", "require")) == "any" else []
    divisor = len(checks) if entry.get("id") in {check.get("analysis") for check in checks} else 1
    return _tested(analysis, options, divisor, (models, len(benchmarks)))


def _tested(analysis: AnyAnalysis, options: BaseModel, divisor: int, asked: tuple[tuple[str, ...], int]) -> Comparison | None:
    """Return the first comparison at the smallest alpha that may be asked for: by its own family, or by Holm's correction of so many checks."""
    if analysis.comparisons is None:
        return None
    found = [_first_known(analysis.comparisons(options, *asked))]
    if divisor > 1 and analysis.stricter is not None:
        found.append(_first_known(analysis.comparisons(analysis.stricter(options, divisor), *asked)))
    return min((comparison for comparison in found if comparison is not None), key=lambda comparison: comparison.alpha, default=None)


def _first_known(comparisons: tuple[Comparison, ...]) -> Comparison | None:
    from evalspec.statistics.planned_tests import METHODS, VARIANTS

    return next((comparison for comparison in comparisons if comparison.test in {*METHODS, *VARIANTS}), None)


@cache
def _planned(target: SizeToDetect, analysis: str, comparison: Comparison) -> PlannedSize:
    """Return the number of questions that a test needs; raises ValueError when there is none."""
    from evalspec.artifacts.protocol import PlannedSize
    from evalspec.statistics.planned_tests import PlannedTest

    if comparison.both_limits and target.detect != -comparison.limit:
        raise ValueError(f"a test between two limits is planned for no difference, so write detect: {-comparison.limit:g}, the margin")
    one_sided = comparison.alpha / 2.0 if comparison.test in TWO_SIDED else comparison.alpha
    test = PlannedTest(comparison.test, one_sided, comparison.limit, comparison.both_limits)  # type: ignore[arg-type]  # checked by _first_known
    needed = test.questions(target.discordance, comparison.limit + target.detect, power=target.power)
    return PlannedSize(
        analysis=analysis,
        test=comparison.test,
        alpha=comparison.alpha,
        limit=comparison.limit,
        detect=target.detect,
        discordance=target.discordance,
        wanted=target.power,
        power=needed.power,
        questions=needed.questions,
    )
