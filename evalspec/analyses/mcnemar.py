"""Which models differ, asked on the same questions?

Each pair is compared on the questions that both answered: by McNemar's test where answers are right or wrong and questions independent, by the mean
of the question differences otherwise; each row says which. The family of pairs is declared in the protocol; the adjusted test decides, and the
interval beside it is for its own comparison only unless the study asks for simultaneous ones. Statistics are imported where they are used: numpy and
scipy would double the start-up of verbs that compute nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from evalspec.analyses.mcnemar_results import BriefRow, McnemarOptions, McnemarResult, McnemarRow, Test
from evalspec.analyses.pairs import Limits, PairRow, about_random_flips, compare_pairs
from evalspec.analyses.scores import declared_scores, measure
from evalspec.analyses.simultaneous import simultaneous
from evalspec.analyses.sources import DIFFERENCES, FAY_LUMBARD, FLIPS, HOLM, MCNEMAR, RANDOM_FLIPS, TANGO, behind_pairs, used
from evalspec.artifacts.findings import Estimate
from evalspec.artifacts.thresholds import Check
from evalspec.protocols import Analysis, Axes, CheckTest, Comparison, Context

if TYPE_CHECKING:
    from evalspec.artifacts.responses import BenchmarkResponses, Responses

MOST_DRAWN = 40
MOST_LISTED = 100
MOST_FORECAST = 50
BRIEF = frozenset(BriefRow.model_fields)

MID_P = "Fagerland, Lydersen & Laake (2013), BMC Med. Res. Methodol. 13:91, doi:10.1186/1471-2288-13-91"
ODDS = "Fay (2010), The R Journal 2(1), 53-58 (odds ratio and its exact interval)"
SIMULTANEOUS = "Westfall & Young (1993), Resampling-Based Multiple Testing (simultaneous intervals)"


def compute(responses: Responses, options: McnemarOptions, context: Context) -> McnemarResult:
    """Return every comparison of the family with its adjusted p-value."""
    order = {benchmark.benchmark: _order(benchmark) for benchmark in responses.benchmarks}
    pairs = {benchmark.benchmark: tuple(_pairs(options, benchmark.models, order[benchmark.benchmark])) for benchmark in responses.benchmarks}
    limits = Limits(options.level, exact=options.method == "exact")
    critical = simultaneous(responses.benchmarks, pairs, context, limits) if options.intervals == "simultaneous" else None
    limits = replace(limits, level=critical.level) if critical else limits
    found = [row for benchmark in responses.benchmarks for row in compare_pairs(benchmark, pairs[benchmark.benchmark], context, limits)]
    decided, listed = _decisions(found, options), _listed(found, options.test)
    return McnemarResult(
        test=options.test,
        method=options.method,
        family=options.family,
        correction=options.correction,
        alpha=options.alpha,
        level=options.level,
        intervals=options.intervals,
        critical=critical.value if critical else None,
        critical_error=critical.error if critical else None,
        critical_by=critical.by if critical else None,
        family_size=len(found),
        most_listed=MOST_LISTED,
        caution=about_random_flips(found, alpha=options.alpha) if options.correction == "holm" else None,
        rows=tuple(_full(row, *decided[place]) for place, row in enumerate(found) if place in listed),
        others=tuple(_brief(row, options.test, *decided[place]) for place, row in enumerate(found) if place not in listed),
        order=order,
        scores=declared_scores(responses),
    )


def estimates(result: McnemarResult) -> tuple[Estimate, ...]:
    """Return one `difference` estimate per comparison."""
    found: list[tuple[McnemarRow | BriefRow, float | None]] = [(row, row.p(result.test)) for row in result.rows]
    found += [(row, row.p_value) for row in result.others]
    return tuple(
        Estimate(
            analysis="mcnemar",
            metric="difference",
            benchmark=row.benchmark,
            models=(row.first, row.second),
            value=row.difference,
            low=row.low,
            high=row.high,
            confidence_level=result.level,
            method=f"{row.method or 'undefined'}{', simultaneous' if result.intervals == 'simultaneous' else ''}",
            p_value=p_value,
            p_adjusted=row.p_adjusted,
            family_size=result.family_size,
            separated=row.separated,
            n=row.n,
            unit="difference",
            undefined=row.undefined,
        )
        for benchmark in result.order
        for row, p_value in found
        if row.benchmark == benchmark
    )


def plot(result: McnemarResult, axes: Axes) -> None:
    """Draw each difference with its interval around a line at zero; comparisons that are not separated are muted."""
    rows = _drawn(result)
    chosen = f"; only the {MOST_DRAWN} comparisons with the smallest p are drawn" if len(rows) < result.family_size else ""
    whose = "intervals that hold for all comparisons together" if result.intervals == "simultaneous" else "the interval of that comparison alone"
    named = measure(result.scores, result.order)
    axes.caption(f"Difference in {named} of each pair, on the same questions, with {whose}{chosen}.")
    axes.scale(f"difference in {named}", percent=True)
    axes.reference(0.0, "no difference" if result.scores else "equal accuracy")
    for row in rows:
        axes.interval(f"{row.first} − {row.second}", row.difference, row.low, row.high, group=row.benchmark, muted=not row.separated)


def _drawn(result: McnemarResult) -> tuple[McnemarRow, ...]:
    """Return the rows that a figure has room for, in their order."""
    places = _by_evidence([row.p(result.test) for row in result.rows])
    return tuple(result.rows[place] for place in sorted(places[:MOST_DRAWN]))


def comparisons(options: McnemarOptions, models: Sequence[str], benchmarks: int) -> tuple[Comparison, ...]:
    """Return what will be tested, each at the smallest alpha that Holm's first step may ask for."""
    pairs = _declared(options, models)
    labels = [f"{first} − {second}" for first, second in pairs]
    if options.family == "adjacent":
        labels = [f"neighbours {place} and {place + 1} by score" for place in range(1, len(models))]
    if len(labels) > MOST_FORECAST:
        # One forecast holds for all of them: they share alpha, test and discordance.
        labels = [f"each of {len(pairs):,} pairs"]
    alpha = options.alpha / max(1, len(pairs) * benchmarks) if options.correction == "holm" else options.alpha
    return tuple(Comparison(label, alpha, options.test, options.discordance) for label in labels)


def check_test(options: McnemarOptions, check: Check, models: Sequence[str], benchmarks: int) -> CheckTest | None:
    """Return what decides a check of a difference: at a limit of 0 the adjusted test, elsewhere the interval of that comparison."""
    exact, tested = options.method == "exact", comparisons(options, models, benchmarks)
    if check.limit == 0.0:
        return CheckTest(options.test, tested[0].alpha / 2.0, options.discordance, exact_means=exact) if tested else None
    miss = (1.0 - options.level) / 2.0
    if options.intervals == "per_comparison":
        return CheckTest("fay_lumbard" if exact else "score", miss, options.discordance)
    # Of statistics that are drawn together nobody knows the critical value before; exact intervals divide the error rate.
    family_size = max(1, len(_declared(options, models)) * benchmarks)
    return CheckTest("fay_lumbard", miss / family_size, options.discordance) if exact else None


def stricter(options: McnemarOptions, divisor: int) -> McnemarOptions:
    """Return the same analysis with single tests that err, and single intervals that miss, so many times less often.

    Checks are corrected for their own number, by Holm's method too: the correction for the family would come on top of it.
    """
    rates = {"alpha": options.alpha / divisor, "level": 1.0 - (1.0 - options.level) / divisor}
    return options.model_copy(update={**rates, "correction": "none", "intervals": "per_comparison"})


def _order(benchmark: BenchmarkResponses) -> tuple[str, ...]:
    """Sort models by their mean score over the questions they answered, best first, equal ones by id; unscored ones last."""
    import numpy as np

    scores = benchmark.merits()
    present = ~np.isnan(scores)
    totals = np.where(present, scores * benchmark.weights, 0.0).sum(axis=1)
    counts = np.where(present, benchmark.weights, 0.0).sum(axis=1)
    means = np.divide(totals, counts, out=np.full(len(counts), -1.0), where=counts > 0)
    ranked = sorted(range(len(means)), key=lambda index: (-round(float(means[index]), 12), benchmark.models[index]))
    return tuple(benchmark.models[index] for index in ranked)


def _pairs(options: McnemarOptions, models: tuple[str, ...], order: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    match options.family:
        case "adjacent":
            yield from pairwise(order)
        case "all_pairs":
            yield from combinations(order, 2)
        case "vs_baseline":
            yield from ((model, options.baseline) for model in models if options.baseline and model != options.baseline)
        case "named":
            yield from options.pairs


def _declared(options: McnemarOptions, models: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the pairs of one benchmark before scoring, when of neighbours by score the number alone is known."""
    return tuple(_pairs(options, tuple(models), tuple(models)))


def _by_evidence(p_values: Sequence[float | None]) -> list[int]:
    """Return places by p-value, smallest first, equal ones in their order; those without one come last."""
    return sorted(range(len(p_values)), key=lambda place: math.inf if (p := p_values[place]) is None else p)


def _decisions(rows: Sequence[PairRow], options: McnemarOptions) -> list[tuple[float | None, bool | None]]:
    """Return the adjusted p-value of each row and whether it is separated; an undefined comparison counts as p = 1 in its family."""
    from evalspec.statistics.multiplicity import holm

    raw = [row.p(options.test) for row in rows]
    if options.correction == "none" or not rows:
        return [(None, None if p is None else p <= options.alpha) for p in raw]
    adjusted = holm([1.0 if p is None else p for p in raw]).tolist()
    return [(None, None) if p is None else (step, step <= options.alpha) for p, step in zip(raw, adjusted, strict=True)]


def _full(row: PairRow, p_adjusted: float | None, separated: bool | None) -> McnemarRow:  # noqa: FBT001 - a decision, not a switch
    excludes = row.low is not None and row.high is not None and (row.low > 0 or row.high < 0)
    disagrees = separated is not None and row.low is not None and excludes != separated
    return McnemarRow(**vars(row), p_adjusted=p_adjusted, separated=separated, disagrees=disagrees)


def _brief(row: PairRow, test: Test, p_adjusted: float | None, separated: bool | None) -> BriefRow:  # noqa: FBT001 - the same
    shared = {name: value for name, value in vars(row).items() if name in BRIEF}
    return BriefRow(**shared | {"p_value": row.p(test), "p_adjusted": p_adjusted, "separated": separated})


def _listed(rows: Sequence[PairRow], test: Test) -> frozenset[int]:
    """Return the places of the rows that a report lists: of each benchmark those with the smallest p."""
    taken: Counter[str] = Counter()
    chosen = []
    for place in _by_evidence([row.p(test) for row in rows]):
        taken[rows[place].benchmark] += 1
        if taken[rows[place].benchmark] <= MOST_LISTED:
            chosen.append(place)
    return frozenset(chosen)


SOURCES = (MCNEMAR, MID_P, HOLM, TANGO, FAY_LUMBARD, ODDS, *DIFFERENCES, FLIPS, RANDOM_FLIPS, SIMULTANEOUS)


def sources_used(result: McnemarResult) -> tuple[str, ...]:
    """Return the works behind the tests and the intervals of a result."""
    counted = any(row.test == "mcnemar" for row in result.rows)
    further = {
        MID_P: counted,
        ODDS: counted,
        HOLM: result.correction == "holm" and result.family_size > 1,
        RANDOM_FLIPS: any(row.p_error is not None for row in result.rows),
        SIMULTANEOUS: result.critical_by == "max_t",
    }
    found = behind_pairs({row.test for row in result.rows} | {row.method for row in result.rows} | {row.method for row in result.others})
    return used(SOURCES, found | {work for work, needed in further.items() if needed})


ANALYSIS = Analysis(
    kind="mcnemar",
    options=McnemarOptions,
    result=McnemarResult,
    compute=compute,
    metrics=("difference",),
    pair_metrics=("difference",),
    ordered=("difference",),
    estimates=estimates,
    tolerance=1e-9,
    template="analyses/mcnemar.html.j2",
    plot=plot,
    comparisons=comparisons,
    check_test=check_test,
    stricter=stricter,
    gate_defaults={"method": "exact"},
    sources=SOURCES,
    sources_used=sources_used,
)
