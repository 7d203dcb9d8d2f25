"""Which differences could this sample show, and how many questions would another one need?

The smallest detectable difference follows from the number of questions and from how often two models disagree, which is observed here and printed as
observed. Power is never computed at an observed difference: that says nothing which the p-value does not say. Questions needed are stated for a
difference and a discordance that the study declares. Statistics are imported where they are used: numpy and scipy would double the start-up of verbs
that compute nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from evalspec.analyses.designs import weighted
from evalspec.analyses.sources import WILSON
from evalspec.artifacts.base import Artifact, Identifier, ModelId, Proportion
from evalspec.artifacts.columns import Rows
from evalspec.artifacts.findings import Estimate
from evalspec.protocols import Analysis, Axes, Context, DeclaredDesign, Point

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalspec.artifacts.responses import BenchmarkResponses, Responses
    from evalspec.statistics.planned_tests import PlannedTest

LEVEL = 0.95
CURVE_SIZES = (100, 200, 300, 500, 750, 1000, 1500, 2000, 3000, 5000, 7500, 10_000, 15_000, 20_000)
USUAL_DISCORDANCES = (0.1, 0.2, 0.3)
NOT_BINARY = "scores are not right or wrong, and this power is that of McNemar's test, which counts right and wrong answers"
CLUSTERED = "questions come in clusters, and power depends on how alike those of one cluster are"
WEIGHTED = "the sample is weighted, and McNemar's test needs a sample in which every question counts the same"
NO_COMMON = "the two models have no scored question in common"
NO_DISAGREEMENT = "the two models never disagree on these questions, so nothing shows how often they would"


class PowerOptions(Artifact):
    """What the sample could show: detectable differences, questions needed, and how both change with the number of questions."""

    kind: Literal["power"]
    test: Literal["exact", "mid_p"] = Field(default="exact", description="The version of McNemar's test that is planned for.")
    alpha: Proportion = Field(default=0.05, description="Two-sided error rate of all comparisons together.")
    correction: Literal["holm", "none"] = Field(default="holm", description="`holm` divides alpha by the number of comparisons, its worst case.")
    power: Proportion = Field(default=0.8, description="With which probability a difference is to be found.")
    baseline: ModelId | None = Field(default=None, description="Compare every other model with this one; by default all pairs are compared.")
    difference: Proportion | None = Field(default=None, description="A true difference to plan for, 0.02 for two points; needs `discordance`.")
    discordance: Proportion | None = Field(
        default=None, description="Expected share of questions that exactly one of two models answers correctly, for plans and the curve."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.difference is not None and (self.discordance is None or self.difference > self.discordance):
            raise ValueError("`difference` needs a `discordance` that is at least as large: models differ only where they disagree")
        if self.power <= self.alpha:
            raise ValueError("`power` must exceed alpha")
        return self


class PowerRow(Artifact):
    """One pair on one benchmark: the discordance observed, and the smallest difference detectable at it.

    `low` and `high` hold the detectable differences at the ends of the 95 % Wilson interval of the discordance.
    """

    benchmark: Identifier
    first: Identifier
    second: Identifier
    n: int
    discordant: int | None = None
    discordance: float | None = None
    detectable: float | None = None
    low: float | None = None
    high: float | None = None
    undefined: str | None = None


class PlanRow(Artifact):
    """What the sample of one benchmark does for the declared difference: its power, and the questions that the wanted power needs."""

    benchmark: Identifier
    n: int
    power: float | None = None
    questions: int | None = None
    undefined: str | None = None


class CurvePoint(Artifact):
    """The smallest difference detectable with so many questions; None where none is."""

    n: int
    discordance: float
    detectable: float | None


class PowerResult(Artifact):
    """Detectable differences of every pair, the declared plan, and the curve.

    `pair_alpha` is alpha after the correction's worst case; `level` is that of the intervals of observed discordances.
    """

    test: Literal["exact", "mid_p"]
    alpha: float
    pair_alpha: float
    power: float
    comparisons: int
    level: float
    difference: float | None
    discordance: float | None
    rows: Rows[PowerRow]
    plans: tuple[PlanRow, ...]
    curve: tuple[CurvePoint, ...]

    @property
    def computed(self) -> bool:
        """Whether McNemar's test is one for some of these answers, so that its power says something of them."""
        return any(row.discordant is not None for row in self.rows) or any(row.power is not None for row in self.plans)


def compute(responses: Responses, options: PowerOptions, _context: Context) -> PowerResult:
    """Return what the sample could show, by pair and by benchmark."""
    from evalspec.statistics.planned_tests import PlannedTest

    pairs = {benchmark.benchmark: tuple(_pairs(benchmark.models, options.baseline)) for benchmark in responses.benchmarks}
    comparisons = sum(map(len, pairs.values()))
    alpha = options.alpha / max(1, comparisons) if options.correction == "holm" else options.alpha
    test = PlannedTest(options.test, alpha / 2.0)
    return PowerResult(
        test=options.test,
        alpha=options.alpha,
        pair_alpha=alpha,
        power=options.power,
        comparisons=comparisons,
        level=LEVEL,
        difference=options.difference,
        discordance=options.discordance,
        rows=tuple(row for benchmark in responses.benchmarks for row in _rows(benchmark, pairs[benchmark.benchmark], test, options.power)),
        plans=tuple(_plans(responses, options, test)),
        curve=tuple(_curve(responses, options, test)),
    )


def estimates(result: PowerResult) -> tuple[Estimate, ...]:
    """Return one `detectable_difference` per pair, at the observed discordance, with what the discordance's own interval makes of it."""
    return tuple(
        Estimate(
            analysis="power",
            metric="detectable_difference",
            benchmark=row.benchmark,
            models=(row.first, row.second),
            value=row.detectable,
            low=row.low,
            high=row.high,
            confidence_level=None if row.low is None else result.level,
            method=f"mcnemar_{result.test}",
            n=row.n,
            polarity="lower_is_better",
            undefined=row.undefined,
        )
        for row in result.rows
    )


def plot(result: PowerResult, axes: Axes) -> None:
    """Draw the smallest detectable difference along the number of questions, one curve per discordance."""
    if not result.computed:
        return
    axes.caption("Smallest true difference in accuracy that McNemar's test finds with the wanted power, along the number of questions.")
    axes.scale("smallest detectable difference in accuracy", percent=True)
    axes.across("questions", logarithmic=True)
    for discordance in dict.fromkeys(point.discordance for point in result.curve):
        points = [Point(point.n, point.detectable) for point in result.curve if point.discordance == discordance and point.detectable is not None]
        axes.curve(f"{discordance * 100:.3g} % discordant", points)
    if result.difference is not None:
        axes.reference(result.difference, "declared")


def refuses(_options: PowerOptions, design: DeclaredDesign) -> str | None:
    """Return why no power can be computed of questions that come about so."""
    return CLUSTERED if design.clusters else NOT_BINARY if design.fractional else None


def _pairs(models: tuple[str, ...], baseline: str | None) -> Iterator[tuple[str, str]]:
    if baseline is None:
        yield from combinations(models, 2)
    else:
        yield from ((model, baseline) for model in models if model != baseline)


def _rows(benchmark: BenchmarkResponses, pairs: tuple[tuple[str, str], ...], test: PlannedTest, power: float) -> Iterator[PowerRow]:
    import numpy as np

    from evalspec.statistics.paired_tables import paired_tables

    scores, binary = benchmark.settled(), _binary(benchmark)
    places = {model: place for place, model in enumerate(benchmark.models)}
    first, second = (np.array([places[pair[side]] for pair in pairs], dtype=np.int64) for side in (0, 1))
    tables = paired_tables(scores == 1, ~np.isnan(scores), first, second)
    reason = _why_unknown(benchmark)
    for place, (one, other) in enumerate(pairs):
        row = PowerRow(benchmark=benchmark.benchmark, first=one, second=other, n=int(tables.questions[place]))
        why = reason or (NO_COMMON if not row.n else None) or (None if binary[first[place]] and binary[second[place]] else NOT_BINARY)
        discordant = int(tables.only_first[place] + tables.only_second[place])
        yield row.model_copy(update={"undefined": why} if why else {"discordant": discordant, **_detectable(row.n, discordant, test, power)})


def _binary(benchmark: BenchmarkResponses) -> NDArray[np.bool_]:
    """Return which models have right and wrong answers alone, (M,)."""
    import numpy as np

    scores = benchmark.settled()
    return np.asarray(np.all((scores == 0) | (scores == 1) | np.isnan(scores), axis=1))


def _why_unknown(benchmark: BenchmarkResponses) -> str | None:
    """Return why the power of no pair follows from the number of questions and the discordance."""
    return WEIGHTED if weighted(benchmark) else CLUSTERED if benchmark.clusters else None


@cache
def _detectable(questions: int, discordant: int, test: PlannedTest, power: float) -> dict[str, float | str]:
    """Return what a row says of so many discordant questions; pairs that have as many share it."""
    from evalspec.statistics.proportions import wilson

    if not discordant:
        return {"discordance": 0.0, "undefined": NO_DISAGREEMENT}
    share = discordant / questions
    found = test.detectable(questions, share, power=power)
    if found.difference is None:
        return {"discordance": share, "undefined": found.reason or NO_DISAGREEMENT}
    interval = wilson(discordant, questions, level=LEVEL)
    ends = [test.detectable(questions, end, power=power).difference for end in (interval.low, interval.high)]
    low, high = (found.difference if end is None else end for end in ends)
    # More discordance hides more, but the steps of an exact test may turn neighbours round.
    return {"discordance": share, "detectable": found.difference, "low": min(low, found.difference), "high": max(high, found.difference)}


def _plans(responses: Responses, options: PowerOptions, test: PlannedTest) -> Iterator[PlanRow]:
    if options.difference is None or options.discordance is None:
        return
    needed = test.questions(options.discordance, options.difference, power=options.power).questions
    for benchmark in responses.benchmarks:
        asked = len(benchmark.questions)
        reason = _why_unknown(benchmark) or (None if _binary(benchmark).sum() > 1 else NOT_BINARY)
        if reason:
            yield PlanRow(benchmark=benchmark.benchmark, n=asked, undefined=reason)
            continue
        reached = test.power(asked, options.discordance, options.difference)
        yield PlanRow(benchmark=benchmark.benchmark, n=asked, power=reached, questions=needed)


def _curve(responses: Responses, options: PowerOptions, test: PlannedTest) -> Iterator[CurvePoint]:
    asked = {len(benchmark.questions) for benchmark in responses.benchmarks}
    sizes = sorted({*CURVE_SIZES, *asked} - {0})
    for discordance in USUAL_DISCORDANCES if options.discordance is None else (options.discordance,):
        for questions in sizes:
            found = test.detectable(questions, discordance, power=options.power)
            yield CurvePoint(n=questions, discordance=discordance, detectable=found.difference)


DISCORDANCE = f"{WILSON} (interval of the discordance)"
SOURCES = (
    "Duffy (1984), Biometrics 40(4), 1005-1015, doi:10.2307/2531151 (exact power)",
    DISCORDANCE,
    "Hoenig & Heisey (2001), Am. Stat. 55(1), 19-24, doi:10.1198/000313001300339897 (why not at the observed difference)",
    "Miller (2024), arXiv:2411.00640 (section 5, detectable effects in evaluations)",
)


def sources_used(result: PowerResult) -> tuple[str, ...]:
    """Return the works behind a result: none where no power was computed, one of intervals only where a pair can be planned for."""
    if not result.computed:
        return ()
    planned = any(row.low is not None for row in result.rows)
    return tuple(work for work in SOURCES if planned or work != DISCORDANCE)


ANALYSIS = Analysis(
    kind="power",
    options=PowerOptions,
    result=PowerResult,
    compute=compute,
    metrics=("detectable_difference",),
    pair_metrics=("detectable_difference",),
    estimates=estimates,
    tolerance=1e-6,
    template="analyses/power.html.j2",
    plot=plot,
    least_models=2,
    refuses=refuses,
    sources=SOURCES,
    sources_used=sources_used,
)
