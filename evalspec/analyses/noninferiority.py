"""Is a candidate no worse than a baseline by a margin, equivalent within it, or better?

The margin, the error rate and the number of looks are declared in the protocol. A missing answer counts against the candidate: wrong for it, right
for the baseline. "Not significantly different" never passes: what passes is a bound that lies on the right side of the limit. Statistics are
imported where they are used: numpy and scipy would double the start-up of verbs that compute nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalspec.analyses.designs import design_of, weighted
from evalspec.analyses.noninferiority_results import NoninferiorityOptions, NoninferiorityResult, NoninferiorityRow
from evalspec.analyses.pairs import WEIGHTED
from evalspec.analyses.scores import declared_scores, measure
from evalspec.analyses.sources import CLUSTERS, FAY_LUMBARD, GAFFKE, GAFFKE_BOUND, MCNEMAR, PAIRED_MEANS, POOLS, TANGO, behind_pairs, used
from evalspec.artifacts.findings import Estimate
from evalspec.artifacts.thresholds import Check
from evalspec.protocols import Analysis, Axes, CheckTest, Comparison, Context, DeclaredDesign, PlannedLooks

if TYPE_CHECKING:
    from evalspec.artifacts.responses import BenchmarkResponses, Responses
    from evalspec.statistics.settled import SettledDifference

TESTS = {"score": "score", "exact": "fay_lumbard", "e_value": "e_value"}
OF_COUNTS = "method e_value counts right and wrong answers of independent questions, and not fractional scores or clusters"
INTERVALS = {"score": "tango", "exact": "fay_lumbard", "e_value": "e_value"}


def compute(responses: Responses, options: NoninferiorityOptions, _context: Context) -> NoninferiorityResult:
    """Return the comparison of candidate and baseline on every benchmark."""
    alpha = look_alpha(options)
    return NoninferiorityResult(
        candidate=options.candidate,
        baseline=options.baseline,
        hypothesis=options.hypothesis,
        margin=options.margin,
        method=options.method,
        alpha=options.alpha,
        look_alpha=alpha,
        looks=options.looks,
        rows=tuple(_row(benchmark, options, alpha) for benchmark in responses.benchmarks),
        scores=declared_scores(responses),
    )


def look_alpha(options: NoninferiorityOptions, look: int | None = None) -> float:
    """Return the one-sided level at which this look is tested, or another one of those that are planned."""
    if options.looks is None:
        return options.alpha
    from evalspec.statistics.sequential import LookPlan, nominal_alpha, spent_alpha

    plan = LookPlan(options.looks.at, options.looks.spending)
    # An exact test has no normal statistic: its looks may spend their parts of alpha and no more.
    level = spent_alpha if options.method == "exact" else nominal_alpha
    return level(plan, look or options.looks.this, alpha=options.alpha)


def estimates(result: NoninferiorityResult) -> tuple[Estimate, ...]:
    """Return one `difference` estimate per benchmark, whose bounds are those of the test."""
    both_sides = result.hypothesis == "equivalence"
    turned = {benchmark for benchmark, score in result.scores.items() if score.lower_is_better}
    return tuple(
        Estimate(
            analysis="noninferiority",
            metric="difference",
            benchmark=row.benchmark,
            models=(result.candidate, result.baseline),
            value=row.difference,
            low=row.low,
            high=row.high,
            confidence_level=1.0 - (2.0 if both_sides else 1.0) * result.look_alpha,
            sides="two" if both_sides else "upper" if row.benchmark in turned else "lower",
            method=row.interval or INTERVALS[result.method],
            p_value=row.p_value,
            look=result.looks.this if result.looks else 1,
            looks=len(result.looks.at) if result.looks else 1,
            anytime=result.method == "e_value",
            n=row.n,
            unit="difference",
            undefined=row.undefined,
        )
        for row in result.rows
    )


def plot(result: NoninferiorityResult, axes: Axes) -> None:
    """Draw the difference on each benchmark with its bounds, and the limits that they are held against."""
    named = measure(result.scores, [row.benchmark for row in result.rows])
    axes.caption(
        f"Difference in {named}, {result.candidate} minus {result.baseline}, with one-sided bounds, and the limit that the bound must clear."
    )
    axes.scale(f"difference in {named}", percent=True)
    axes.reference(0.0, "no difference")
    for limit in _limits(result):
        axes.reference(limit, "margin")
    for row in result.rows:
        axes.interval(row.benchmark, row.difference, row.low, row.high, muted=row.outcome != "shown")


def _limits(result: NoninferiorityResult) -> list[float]:
    """Return where the margin lies: below 0 where more is better, above it where less is, on both sides for an equivalence."""
    if result.margin is None:
        return []
    if result.hypothesis == "equivalence":
        return [-result.margin, result.margin]
    turned = {row.benchmark in result.scores and result.scores[row.benchmark].lower_is_better for row in result.rows}
    return [result.margin if less else -result.margin for less in sorted(turned)]


def comparisons(options: NoninferiorityOptions, _models: Sequence[str], _benchmarks: int) -> tuple[Comparison, ...]:
    """Return what will be tested, at the level of this look."""
    label = f"{options.candidate} − {options.baseline}"
    limit, both = 0.0 - (options.margin or 0.0), options.hypothesis == "equivalence"
    return (Comparison(label, look_alpha(options), TESTS[options.method], options.discordance, limit, both_limits=both),)


def check_test(options: NoninferiorityOptions, _check: Check, _models: Sequence[str], _benchmarks: int) -> CheckTest:
    """Return how a check on the difference is decided."""
    looks = options.looks
    planned = PlannedLooks(looks.this, len(looks.at), looks.at[-1], look_alpha(options, len(looks.at))) if looks else None
    no_difference = options.hypothesis != "superiority"
    return CheckTest(TESTS[options.method], look_alpha(options), options.discordance, no_difference=no_difference, looks=planned)


def refuses(options: NoninferiorityOptions, design: DeclaredDesign) -> str | None:
    """Return why a method cannot be had of questions that come about so."""
    return OF_COUNTS if options.method == "e_value" and (design.clusters or design.fractional) else None


def stricter(options: NoninferiorityOptions, divisor: int) -> NoninferiorityOptions:
    """Return the same analysis with its error rate divided."""
    return options.model_copy(update={"alpha": options.alpha / divisor})


def _row(benchmark: BenchmarkResponses, options: NoninferiorityOptions, alpha: float) -> NoninferiorityRow:
    import numpy as np

    from evalspec.statistics.one_sided import LimitTest
    from evalspec.statistics.settled import settled_difference

    candidate, baseline = (benchmark.scores[benchmark.models.index(model)] for model in (options.candidate, options.baseline))
    row = NoninferiorityRow(
        benchmark=benchmark.benchmark,
        n=len(benchmark.questions),
        candidate_missing=int(np.isnan(candidate).any(axis=1).sum()),
        baseline_missing=int(np.isnan(baseline).any(axis=1).sum()),
    )
    reason = _why_undefined(benchmark, options)
    if reason:
        return row.model_copy(update={"undefined": reason})
    test = LimitTest(0.0 - (options.margin or 0.0), alpha, options.method, both=options.hypothesis == "equivalence")
    if benchmark.lower_is_better:
        candidate, baseline = 1.0 - candidate, 1.0 - baseline
    try:
        found = settled_difference(candidate, baseline, design_of(benchmark), test)
    except ValueError as error:
        return row.model_copy(update={"undefined": str(error)})
    turned = {"difference": 0.0 - found.difference, "low": -found.high, "high": -found.low} if benchmark.lower_is_better else {}
    return row.model_copy(update=_numbers(found) | turned)


def _why_undefined(benchmark: BenchmarkResponses, options: NoninferiorityOptions) -> str | None:
    asked = len(benchmark.questions)
    if weighted(benchmark):
        return WEIGHTED
    if options.looks is not None and asked != options.looks.at[options.looks.this - 1]:
        planned = options.looks.at[options.looks.this - 1]
        return f"look {options.looks.this} is planned at {planned:,} questions, and this sample has {asked:,}"
    return None


def _numbers(found: SettledDifference) -> dict[str, float | int | str | None]:
    counts = found.counts
    return {
        "both": counts.both if counts else None,
        "only_candidate": counts.only_first if counts else None,
        "only_baseline": counts.only_second if counts else None,
        "neither": counts.neither if counts else None,
        "clusters": found.clusters,
        "difference": found.difference,
        "low": found.low,
        "high": found.high,
        "interval": INTERVALS.get(found.method, found.method),
        "p_value": found.p_value,
        "log10_e": found.log10_e,
        "outcome": found.outcome,
        "caution": found.caution,
    }


SCORE = "Nam (1997), Biometrics 53(4), 1422-1430, doi:10.2307/2533508"
EQUIVALENCE = "Liu, Hsueh, Hsieh & Chen (2002), Stat. Med. 21(2), 231-245, doi:10.1002/sim.1012 (equivalence, score against Wald)"
TWO_SIDES = "Schuirmann (1987), J. Pharmacokinet. Biopharm. 15(6), 657-680, doi:10.1007/BF01068419 (two one-sided tests)"
PLANNED_LOOKS = "Lan & DeMets (1983), Biometrika 70(3), 659-663, doi:10.1093/biomet/70.3.659 (looks)"
BETTING = "Waudby-Smith & Ramdas (2024), J. R. Stat. Soc. B 86(1), 1-27, arXiv:2010.09686 (tests by betting)"
E_VALUES = "Grünwald, de Heide & Koolen (2024), J. R. Stat. Soc. B 86(5), 1091-1128, arXiv:1906.07801 (e-values)"
OF_MEANS = (GAFFKE, GAFFKE_BOUND, PAIRED_MEANS, CLUSTERS, POOLS)
SOURCES = (TANGO, SCORE, TWO_SIDES, EQUIVALENCE, FAY_LUMBARD, MCNEMAR, *OF_MEANS, PLANNED_LOOKS, BETTING, E_VALUES)


def sources_used(result: NoninferiorityResult) -> tuple[str, ...]:
    """Return the works behind the bounds of a result."""
    intervals = {row.interval for row in result.rows if row.interval}
    counted = "tango" in intervals
    further = {
        SCORE: counted,
        EQUIVALENCE: counted and result.hypothesis == "equivalence",
        TWO_SIDES: bool(intervals) and result.hypothesis == "equivalence",
        MCNEMAR: "fay_lumbard" in intervals,
        PLANNED_LOOKS: bool(intervals) and result.looks is not None,
        BETTING: "e_value" in intervals,
        E_VALUES: "e_value" in intervals,
    }
    return used(SOURCES, behind_pairs(intervals) | {work for work, needed in further.items() if needed})


ANALYSIS = Analysis(
    kind="noninferiority",
    options=NoninferiorityOptions,
    result=NoninferiorityResult,
    compute=compute,
    metrics=("difference",),
    pair_metrics=("difference",),
    ordered=("difference",),
    estimates=estimates,
    tolerance=1e-9,
    template="analyses/noninferiority.html.j2",
    plot=plot,
    least_models=2,
    comparisons=comparisons,
    check_test=check_test,
    refuses=refuses,
    stricter=stricter,
    gate_defaults={"method": "exact"},
    sources=SOURCES,
    sources_used=sources_used,
)
