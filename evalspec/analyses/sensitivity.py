"""How much hangs on the rules: missing answers, flagged questions, fragile answers, the kind of average?

Every number is computed again with one rule changed at a time. The table describes; it decides nothing, and nothing in it is adjusted for the
number of its cells. Where the study has checks, their outcomes are shown under each rule, by the very analyses that the checks name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evalspec.analyses.designs import answered, design_of
from evalspec.analyses.pairs import Limits, Pair, compare_pairs, macro_difference
from evalspec.analyses.scores import declared_scores, measure
from evalspec.analyses.sensitivity_results import AccuracyRow, CaseRow, CheckRow, DifferenceRow, SensitivityOptions, SensitivityResult
from evalspec.analyses.variants import DIRECTED, Case, CaseId, Gaps, Sides, bearing, cases_of, gaps_of, varied
from evalspec.artifacts.findings import Estimate
from evalspec.artifacts.thresholds import Check
from evalspec.protocols import Analysis, Axes, Context

if TYPE_CHECKING:
    from evalspec.artifacts.responses import BenchmarkResponses, Responses

NO_ANSWERS = "no question has a score"
MOST_DRAWN = 100


@dataclass(frozen=True, slots=True)
class _Given:
    """A benchmark with the rules that apply to it."""

    benchmark: BenchmarkResponses
    gaps: Gaps
    cases: tuple[Case, ...]


def compute(responses: Responses, options: SensitivityOptions, context: Context) -> SensitivityResult:
    """Return every number under every rule that applies to its benchmark."""
    given = []
    for benchmark in responses.benchmarks:
        gaps = gaps_of(benchmark, responses, options.fragile_gap)
        given.append(_Given(benchmark, gaps, cases_of(benchmark, gaps)))
    return SensitivityResult(
        level=options.level,
        cases=tuple(CaseRow(benchmark=one.benchmark.benchmark, case=case.id, touched=case.touched) for one in given for case in one.cases),
        accuracies=tuple(row for one in given for row in _accuracies(one, options)),
        differences=tuple(row for one in given for pair in options.pairs for row in _differences(one, options, pair, context)),
        checks=tuple(row for one in given for row in _checks(one, responses, context)),
        scores=declared_scores(responses),
    )


def estimates(result: SensitivityResult) -> tuple[Estimate, ...]:
    """Return the extremes of each number over the rules: values without an interval, which no sample stands behind."""
    return tuple(_extremes(result.accuracies, "accuracy")) + tuple(_extremes(result.differences, "difference"))


def _extremes(rows: Sequence[AccuracyRow | DifferenceRow], metric: str) -> Iterator[Estimate]:
    grouped: dict[tuple[str, tuple[str, ...]], list[AccuracyRow | DifferenceRow]] = {}
    for row in rows:
        if row.case != "macro":  # another average is another question, not another rule for the same one
            models: tuple[str, ...] = (row.model,) if isinstance(row, AccuracyRow) else (row.first, row.second)
            grouped.setdefault((row.benchmark, models), []).append(row)
    for (benchmark, models), found in grouped.items():
        # Rounded, so that sums in another order cannot choose among equal values.
        values = [(round(value, 12), row.n) for row in found if (value := _value(row)) is not None]
        for name, extreme in (("lowest", min), ("highest", max)):
            value = extreme(value for value, _ in values) if values else None
            n = max((n for same, n in values if same == value), default=0)
            yield Estimate(
                analysis="sensitivity",
                metric=f"{name}_{metric}",
                benchmark=benchmark,
                models=models,
                value=value,
                method="extreme over the rules shown",
                n=n,
                unit="difference" if metric == "difference" else "proportion",
                undefined=None if values else "undefined under every rule",
            )


def _value(row: AccuracyRow | DifferenceRow) -> float | None:
    return row.value if isinstance(row, AccuracyRow) else row.difference


def plot(result: SensitivityResult, axes: Axes) -> None:
    """Draw each pair's difference under each rule, or each model's accuracy where no pair is asked for; the declared rules stand out."""
    axes.caption("The same numbers under each rule, one rule changed at a time; the declared rules stand out.")
    named = measure(result.scores, [row.benchmark for row in result.cases])
    rules = {row.benchmark: result.declared_rule(row.benchmark) for row in result.cases}
    if result.differences:
        axes.scale(f"difference in {named}", percent=True)
        axes.reference(0.0, "no difference" if result.scores else "equal accuracy")
        for pair in [row for row in result.differences if row.case != rules[row.benchmark]][:MOST_DRAWN]:
            name = f"{pair.first} − {pair.second}, {pair.benchmark}"
            axes.interval(pair.case.replace("_", " "), pair.difference, pair.low, pair.high, group=name, muted=pair.case != "declared")
        return
    axes.scale(named, percent=True)
    for row in [row for row in result.accuracies if row.case != rules[row.benchmark]][:MOST_DRAWN]:
        axes.interval(row.case.replace("_", " "), row.value, row.low, row.high, group=f"{row.model}, {row.benchmark}", muted=row.case != "declared")


def _accuracies(given: _Given, options: SensitivityOptions) -> Iterator[AccuracyRow]:
    """Yield every model under every rule, with its change against the declared rules and its place among the models shown."""
    models = [model for model in given.benchmark.models if not options.models or model in options.models]
    # Against a single model, the worst case of a missing answer is a wrong one, which has a case of its own.
    cases = [case for case in given.cases if case.id != "missing_worst"]
    found = {(model, case.id): _accuracy(given, options, model, case.id) for model in models for case in cases}
    values = {case.id: [value for model in models if (value := found[model, case.id].value) is not None] for case in cases}
    for model in models:
        declared = found[model, "declared"].value
        for case in cases:
            row = found[model, case.id]
            if row.value is None:
                yield row
                continue
            change = None if declared is None else row.value - declared
            better = sum(value != row.value and (value < row.value) == given.benchmark.lower_is_better for value in values[case.id])
            yield row.model_copy(update={"change": change, "place": 1 + better})


def _accuracy(given: _Given, options: SensitivityOptions, model: str, case: CaseId) -> AccuracyRow:
    import numpy as np

    from evalspec.statistics.accuracies import accuracy

    against = Sides.against(model)
    changed = varied(given.benchmark, case, against.turned() if case.endswith("_best") else against, given.gaps)
    scores = changed.settled()[changed.models.index(model)]
    present = ~np.isnan(scores)
    row = AccuracyRow(benchmark=changed.benchmark, model=model, case=case, n=int(present.sum()))
    if not present.any():
        return row.model_copy(update={"undefined": NO_ANSWERS})
    try:
        design = design_of(changed, average="macro" if case == "macro" else "micro")
        found = accuracy(scores[present], answered(design, present), level=options.level)
    except ValueError as error:
        return row.model_copy(update={"undefined": str(error)})
    limits = {"low": found.interval.low, "high": found.interval.high} if found.interval else {}
    return row.model_copy(update={"value": found.mean, "method": found.method, **limits})


def _differences(given: _Given, options: SensitivityOptions, pair: Pair, context: Context) -> Iterator[DifferenceRow]:
    declared: float | None = None
    against = Sides.against(pair[0], pair[1:])
    for case in given.cases:
        changed = varied(given.benchmark, case.id, against.turned() if case.id.endswith("_best") else against, given.gaps)
        if case.id == "macro":
            row = macro_difference(changed, pair, context, level=options.level)
        else:
            (row,) = compare_pairs(changed, [pair], context, Limits(options.level))
        declared = row.difference if case.id == "declared" else declared
        change = None if declared is None or row.difference is None else row.difference - declared
        yield DifferenceRow(**dict(row), case=case.id, change=change)


def _checks(given: _Given, responses: Responses, context: Context) -> Iterator[CheckRow]:
    """Yield what each check comes to under each rule; rules that need a side are turned against the check."""
    judge = context.judge
    if judge is None:
        return
    observed = {result.check.id: result.observed for result in judge(responses)} if any(case.id in DIRECTED for case in given.cases) else {}
    units = {name: estimate.unit for name, estimate in observed.items() if estimate is not None}
    for case in given.cases:
        if case.id == "macro" or case.id.endswith("_best"):
            continue
        for sides, checks in _sided(case.id, given.benchmark, context.checks, units):
            changed = varied(given.benchmark, case.id, sides, given.gaps)
            for result in judge(_with(responses, changed)):
                if result.benchmark == changed.benchmark and result.check.id in checks:
                    unknown = result.check.id in context.unordered and _bears(result.check, given, case.id, units)
                    outcome = "inconclusive" if unknown and result.outcome == "passed" else result.outcome
                    yield CheckRow(check=result.check.id, benchmark=changed.benchmark, case=case.id, outcome=outcome)


def _bears(check: Check, given: _Given, case: CaseId, units: Mapping[str, str]) -> bool:
    """Return whether a rule counts answers that bear on a check for or against somebody; of a pass by one way to count them no other follows."""
    return case in DIRECTED and bearing(check, given.benchmark, units.get(check.id, "proportion"), case, given.gaps) > 0


def _sided(case: CaseId, benchmark: BenchmarkResponses, checks: Sequence[Check], units: Mapping[str, str]) -> Iterator[tuple[Sides, frozenset[str]]]:
    """Yield the checks that are turned against alike, by their ids; all of them at once under a rule that needs no side."""
    grouped: dict[Sides, set[str]] = {}
    for check in checks:
        against = Sides.against_claim(check, benchmark, units.get(check.id, "proportion"))
        grouped.setdefault(against if case in DIRECTED else Sides(), set()).add(check.id)
    for sides, names in grouped.items():
        yield sides, frozenset(names)


def _with(responses: Responses, changed: BenchmarkResponses) -> Responses:
    benchmarks = tuple(changed if entry.benchmark == changed.benchmark else entry for entry in responses.benchmarks)
    return replace(responses, benchmarks=benchmarks)


MISSING = "Little & Rubin (2019), Statistical Analysis with Missing Data, 3rd ed., chapters 3 and 15"
FLAGGED = "Gema et al. (2024), arXiv:2406.04127 (label errors of a benchmark, and what they do to a ranking)"


def sources_used(result: SensitivityResult) -> tuple[str, ...]:
    """Return the works behind the rules that were varied."""
    varied = {row.case for row in result.cases}
    return tuple(work for work, case in ((MISSING, "missing_wrong"), (FLAGGED, "without_flagged")) if case in varied)


ANALYSIS = Analysis(
    kind="sensitivity",
    options=SensitivityOptions,
    result=SensitivityResult,
    compute=compute,
    metrics=("lowest_accuracy", "highest_accuracy", "lowest_difference", "highest_difference"),
    pair_metrics=("lowest_difference", "highest_difference"),
    estimates=estimates,
    tolerance=1e-9,
    template="analyses/sensitivity.html.j2",
    plot=plot,
    sources=(MISSING, FLAGGED),
    sources_used=sources_used,
)
