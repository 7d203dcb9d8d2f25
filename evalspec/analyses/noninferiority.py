"""Is a candidate no worse than a baseline by a margin, equivalent within it, or better?

The margin, the error rate and the number of looks are declared in the protocol. A missing answer counts against the candidate: wrong for it, right
for the baseline. "Not significantly different" never passes: what passes is a bound that lies on the right side of the limit. Statistics are
imported where they are used: numpy and scipy would double the start-up of verbs that compute nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from evalspec.analyses.designs import design_of, weighted
from evalspec.analyses.pairs import WEIGHTED
from evalspec.analyses.sources import CLUSTERS, PAIRED_MEANS, POOLS, TANGO, behind_pairs, used
from evalspec.artifacts.base import Artifact, Identifier, ModelId, Proportion
from evalspec.artifacts.findings import Estimate
from evalspec.artifacts.thresholds import Check
from evalspec.protocols import Analysis, Axes, CheckTest, Comparison, Context

if TYPE_CHECKING:
    from evalspec.artifacts.responses import BenchmarkResponses, Responses
    from evalspec.statistics.settled import SettledDifference

Hypothesis = Literal["noninferiority", "equivalence", "superiority"]
Method = Literal["score", "exact", "e_value"]
Outcome = Literal["shown", "open", "refuted"]
TESTS = {"score": "score", "exact": "fay_lumbard", "e_value": "e_value"}
INTERVALS = {"score": "tango", "exact": "fay_lumbard", "e_value": "e_value"}


class Looks(Artifact):
    """How often the comparison is looked at while questions accumulate: at how many questions, and which look this is."""

    at: Annotated[tuple[PositiveInt, ...], Field(min_length=2)] = Field(description="Questions asked at each planned look, rising.")
    this: PositiveInt = Field(description="Which of the looks this study is, from 1.")
    spending: Literal["obrien_fleming", "pocock"] = Field(
        default="obrien_fleming", description="How alpha is spent: almost all of it at the end, or about evenly."
    )

    @model_validator(mode="after")
    def _rise(self) -> Self:
        if list(self.at) != sorted(set(self.at)):
            raise ValueError("the looks `at` must rise: each one has more questions than the one before")
        if self.this > len(self.at):
            raise ValueError(f"`this` is look {self.this}, and {len(self.at)} are planned")
        return self


class NoninferiorityOptions(Artifact):
    """Comparison of a candidate with a baseline against a margin that is named beforehand."""

    kind: Literal["noninferiority"]
    candidate: ModelId
    baseline: ModelId
    hypothesis: Hypothesis = Field(
        default="noninferiority",
        description="What is to be shown: a loss smaller than the margin, a difference smaller than it in either direction, or any gain.",
    )
    margin: Proportion | None = Field(default=None, description="Largest acceptable loss of accuracy, 0.02 for two points.")
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = Field(default=0.025, description="One-sided chance of a false pass, over all looks together.")
    method: Method = Field(
        default="score",
        description="`score`: Tango's score test. `exact`: Fay and Lumbard's. `e_value`: a test that holds however often one looks.",
    )
    looks: Looks | None = Field(default=None, description="Planned looks with alpha spending; without it there is one look.")
    discordance: Proportion | None = Field(
        default=None, description="Expected share of questions that exactly one of the two models answers correctly; for planning."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.candidate == self.baseline:
            raise ValueError("`candidate` and `baseline` must be two different models")
        if (self.margin is None) != (self.hypothesis == "superiority"):
            raise ValueError("`margin` goes with non-inferiority and equivalence, which need it, and not with superiority")
        if self.looks is not None and self.method == "e_value":
            raise ValueError("`looks` are not planned with `method: e_value`, which holds at any number of looks")
        return self


class NoninferiorityRow(Artifact):
    """The comparison on one benchmark; `difference` is candidate - baseline.

    `difference`, `low`, `p_value` and the four counts settle missing answers against the candidate, `high` settles them in its favour, so that
    the bounds hold whatever those answers would have been. Each bound is one-sided at the level of this look.
    """

    benchmark: Identifier
    n: int
    candidate_missing: int
    baseline_missing: int
    both: int | None = None
    only_candidate: int | None = None
    only_baseline: int | None = None
    neither: int | None = None
    clusters: int | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    interval: str | None = None
    p_value: float | None = None
    log10_e: float | None = None
    outcome: Outcome | None = None
    caution: str | None = None
    undefined: str | None = None


class NoninferiorityResult(Artifact):
    """The comparison on every benchmark; `look_alpha` is the one-sided level of each bound at this look, `alpha` that of all looks."""

    candidate: Identifier
    baseline: Identifier
    hypothesis: Hypothesis
    margin: float | None
    method: Method
    alpha: float
    look_alpha: float
    looks: Looks | None
    rows: tuple[NoninferiorityRow, ...]


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
    )


def look_alpha(options: NoninferiorityOptions) -> float:
    """Return the one-sided level at which this look is tested."""
    if options.looks is None:
        return options.alpha
    from evalspec.statistics.sequential import LookPlan, nominal_alpha, spent_alpha

    plan = LookPlan(options.looks.at, options.looks.spending)
    # An exact test has no normal statistic: its looks may spend their parts of alpha and no more.
    level = spent_alpha if options.method == "exact" else nominal_alpha
    return level(plan, options.looks.this, alpha=options.alpha)


def estimates(result: NoninferiorityResult) -> tuple[Estimate, ...]:
    """Return one `difference` estimate per benchmark, whose bounds are those of the test."""
    both_sides = result.hypothesis == "equivalence"
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
            sides="two" if both_sides else "lower",
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
    axes.caption(
        f"Difference in accuracy, {result.candidate} minus {result.baseline}, with one-sided bounds, and the limit that the bound must clear."
    )
    axes.scale("difference in accuracy", percent=True)
    axes.reference(0.0, "no difference")
    if result.margin is not None:
        axes.reference(-result.margin, "margin")
    if result.margin is not None and result.hypothesis == "equivalence":
        axes.reference(result.margin, "margin")
    for row in result.rows:
        axes.interval(row.benchmark, row.difference, row.low, row.high, muted=row.outcome != "shown")


def comparisons(options: NoninferiorityOptions, _models: Sequence[str], _benchmarks: int) -> tuple[Comparison, ...]:
    """Return what will be tested, at the level of this look."""
    label = f"{options.candidate} − {options.baseline}"
    limit, both = -(options.margin or 0.0), options.hypothesis == "equivalence"
    return (Comparison(label, look_alpha(options), TESTS[options.method], options.discordance, limit, both_limits=both),)


def check_test(options: NoninferiorityOptions, _check: Check, _models: Sequence[str], _benchmarks: int) -> CheckTest:
    """Return how a check on the difference is decided."""
    return CheckTest(TESTS[options.method], look_alpha(options), options.discordance, no_difference=options.hypothesis != "superiority")


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
    test = LimitTest(-(options.margin or 0.0), alpha, options.method, both=options.hypothesis == "equivalence")
    try:
        found = settled_difference(candidate, baseline, design_of(benchmark), test)
    except ValueError as error:
        return row.model_copy(update={"undefined": str(error)})
    return row.model_copy(update=_numbers(found))


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
EXACT = "Fay & Lumbard (2021), Stat. Med. 40(5), 1147-1159, doi:10.1002/sim.8829"
PLANNED_LOOKS = "Lan & DeMets (1983), Biometrika 70(3), 659-663, doi:10.1093/biomet/70.3.659 (looks)"
BETTING = "Waudby-Smith & Ramdas (2024), J. R. Stat. Soc. B 86(1), 1-27, arXiv:2010.09686 (tests by betting)"
E_VALUES = "Grünwald, de Heide & Koolen (2024), J. R. Stat. Soc. B 86(5), 1091-1128, arXiv:1906.07801 (e-values)"
SOURCES = (TANGO, SCORE, EQUIVALENCE, EXACT, PAIRED_MEANS, CLUSTERS, POOLS, PLANNED_LOOKS, BETTING, E_VALUES)


def sources_used(result: NoninferiorityResult) -> tuple[str, ...]:
    """Return the works behind the bounds of a result."""
    intervals = {row.interval for row in result.rows}
    counted = "tango" in intervals
    further = {
        SCORE: counted,
        EQUIVALENCE: counted and result.hypothesis == "equivalence",
        EXACT: "fay_lumbard" in intervals,
        PLANNED_LOOKS: result.looks is not None,
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
    estimates=estimates,
    tolerance=1e-9,
    template="analyses/noninferiority.html.j2",
    plot=plot,
    least_models=2,
    comparisons=comparisons,
    check_test=check_test,
    stricter=stricter,
    sources=SOURCES,
    sources_used=sources_used,
)
