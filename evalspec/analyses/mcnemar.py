"""Which models differ, asked on the same questions?

Each pair is compared on the questions that both answered: by McNemar's test where answers are right or wrong and questions independent, by the
mean of the question differences otherwise; each row says which. The family of pairs is declared before scoring; the adjusted test decides, and
the interval beside it is for its own comparison only unless the study asks for simultaneous ones. Statistics are imported where they are used:
scipy would double the start-up of verbs that compute nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from evalspec.analyses.pairs import PairRow, compare_pairs, simultaneous
from evalspec.artifacts.base import Artifact, Identifier
from evalspec.artifacts.findings import Estimate
from evalspec.artifacts.responses import BenchmarkResponses, Responses
from evalspec.artifacts.study import Check, ModelId, Proportion
from evalspec.protocols import Analysis, Axes, CheckTest, Comparison, Context

Test = Literal["exact", "mid_p"]
Family = Literal["adjacent", "vs_baseline", "all_pairs", "named"]
Correction = Literal["holm", "none"]
Intervals = Literal["per_comparison", "simultaneous"]
MOST_DRAWN = 100
MOST_FORECAST = 50


class McnemarOptions(Artifact):
    """Paired comparison of models on the same questions."""

    kind: Literal["mcnemar"]
    family: Family = Field(description="Which pairs are compared: neighbours by score, each with a baseline, all, or the pairs named.")
    test: Test = "exact"
    correction: Correction = "holm"
    alpha: Proportion = 0.05
    level: Proportion = 0.95
    intervals: Intervals = Field(
        default="per_comparison",
        description="Whether `level` holds for each interval by itself, or (`simultaneous`) for all intervals of the family together.",
    )
    baseline: ModelId | None = None
    pairs: tuple[tuple[ModelId, ModelId], ...] = ()
    discordance: Proportion | None = Field(
        default=None, description="Expected share of questions that exactly one of two models answers correctly; for planning."
    )

    @model_validator(mode="after")
    def _family_is_complete(self) -> Self:
        if (self.baseline is not None) != (self.family == "vs_baseline"):
            raise ValueError("`baseline` goes with `family: vs_baseline`, and only with it")
        if bool(self.pairs) != (self.family == "named"):
            raise ValueError("`pairs` go with `family: named`, and only with it")
        if any(first == second for first, second in self.pairs):
            raise ValueError("a pair needs two different models")
        if len({frozenset(pair) for pair in self.pairs}) < len(self.pairs):
            raise ValueError("a pair is named twice")
        return self


class McnemarRow(PairRow):
    """One comparison of the family: what its pair shows, the adjusted p-value, and the decision.

    `disagrees` marks a row whose interval and whose decision say different things about zero.
    """

    p_adjusted: float | None = None
    separated: bool | None = None
    disagrees: bool = False


class McnemarResult(Artifact):
    """Every comparison of the family, and the models of each benchmark in order of their scores.

    `critical` is how many standard errors the simultaneous intervals reach out, with its Monte Carlo standard error where it was drawn.
    """

    test: Test
    family: Family
    correction: Correction
    alpha: float
    level: float
    intervals: Intervals
    critical: float | None = None
    critical_error: float | None = None
    critical_by: Literal["max_t", "bonferroni"] | None = None
    family_size: int
    rows: tuple[McnemarRow, ...]
    order: dict[Identifier, tuple[Identifier, ...]]


def compute(responses: Responses, options: McnemarOptions, context: Context) -> McnemarResult:
    """Return every comparison of the family with its adjusted p-value."""
    order = {benchmark.benchmark: _order(benchmark) for benchmark in responses.benchmarks}
    pairs = {benchmark.benchmark: tuple(_pairs(options, benchmark.models, order[benchmark.benchmark])) for benchmark in responses.benchmarks}
    critical = simultaneous(responses.benchmarks, pairs, context, level=options.level) if options.intervals == "simultaneous" else None
    rows = [
        row
        for benchmark in responses.benchmarks
        for row in compare_pairs(benchmark, pairs[benchmark.benchmark], context, level=critical.level if critical else options.level)
    ]
    return McnemarResult(
        test=options.test,
        family=options.family,
        correction=options.correction,
        alpha=options.alpha,
        level=options.level,
        intervals=options.intervals,
        critical=critical.value if critical else None,
        critical_error=critical.error if critical else None,
        critical_by=critical.by if critical else None,
        family_size=len(rows),
        rows=tuple(_adjusted(rows, options)),
        order=order,
    )


def estimates(result: McnemarResult) -> tuple[Estimate, ...]:
    """Return one `difference` estimate per comparison."""
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
            p_value=row.p(result.test),
            p_adjusted=row.p_adjusted,
            family_size=result.family_size,
            separated=row.separated,
            n=row.n,
            unit="difference",
            undefined=row.undefined,
        )
        for row in result.rows
    )


def plot(result: McnemarResult, axes: Axes) -> None:
    """Draw each difference with its interval around a line at zero; comparisons that are not separated are muted."""
    rows = _drawn(result.rows)
    chosen = f"; only the {MOST_DRAWN} comparisons with the smallest p are drawn" if len(rows) < len(result.rows) else ""
    whose = "intervals that hold for all comparisons together" if result.intervals == "simultaneous" else "the interval of that comparison alone"
    axes.caption(f"Difference in accuracy of each pair, on the same questions, with {whose}{chosen}.")
    axes.scale("difference in accuracy", percent=True)
    axes.reference(0.0, "equal accuracy")
    for row in rows:
        axes.interval(f"{row.first} − {row.second}", row.difference, row.low, row.high, group=row.benchmark, muted=not row.separated)


def _drawn(rows: tuple[McnemarRow, ...]) -> tuple[McnemarRow, ...]:
    """Return the rows that a figure has room for, in their order."""
    by_evidence = sorted(range(len(rows)), key=lambda place: (rows[place].p_adjusted is None, rows[place].p_adjusted))
    return tuple(rows[place] for place in sorted(by_evidence[:MOST_DRAWN]))


def comparisons(options: McnemarOptions, models: Sequence[str], benchmarks: int) -> tuple[Comparison, ...]:
    """Return what will be tested, each at the smallest alpha that Holm's first step may ask for."""
    pairs = tuple(_pairs(options, tuple(models), tuple(models)))
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
    if check.limit != 0.0:
        return CheckTest("score", (1.0 - options.level) / 2.0, options.discordance) if options.intervals == "per_comparison" else None
    tested = comparisons(options, models, benchmarks)
    return CheckTest(options.test, tested[0].alpha / 2.0, options.discordance) if tested else None


def stricter(options: McnemarOptions, divisor: int) -> McnemarOptions:
    """Return the same analysis with a family that errs, and intervals that miss, so many times less often."""
    return options.model_copy(update={"alpha": options.alpha / divisor, "level": 1.0 - (1.0 - options.level) / divisor})


def _order(benchmark: BenchmarkResponses) -> tuple[str, ...]:
    """Sort models by their mean score over the questions they answered, best first, equal ones by id; unscored ones last."""
    scores = benchmark.settled()
    present = ~np.isnan(scores)
    totals = np.where(present, scores * benchmark.weights, 0.0).sum(axis=1)
    counts = np.where(present, benchmark.weights, 0.0).sum(axis=1)
    means = np.divide(totals, counts, out=np.full(len(counts), -1.0), where=counts > 0)
    ranked = sorted(range(len(means)), key=lambda index: (-means[index], benchmark.models[index]))
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


def _adjusted(rows: Sequence[PairRow], options: McnemarOptions) -> Iterator[McnemarRow]:
    """Add the adjusted p-value and the decision; an undefined comparison counts as p = 1 in its family."""
    from evalspec.statistics.multiplicity import holm

    raw = [row.p(options.test) for row in rows]
    counted = [1.0 if p is None else p for p in raw]
    adjusted = holm(counted) if options.correction == "holm" and rows else counted
    for row, p, p_adjusted in zip(rows, raw, adjusted, strict=True):
        found = dict(row)
        if p is not None:
            separated = bool(p_adjusted <= options.alpha)
            excludes = row.low is not None and row.high is not None and (row.low > 0 or row.high < 0)
            found |= {"p_adjusted": float(p_adjusted), "separated": separated, "disagrees": row.low is not None and excludes != separated}
        yield McnemarRow.model_construct(**found)


ANALYSIS = Analysis(
    kind="mcnemar",
    options=McnemarOptions,
    result=McnemarResult,
    compute=compute,
    metrics=("difference",),
    estimates=estimates,
    tolerance=1e-9,
    template="analyses/mcnemar.html.j2",
    plot=plot,
    comparisons=comparisons,
    check_test=check_test,
    stricter=stricter,
    sources=(
        "McNemar (1947), Psychometrika 12(2), 153-157, doi:10.1007/BF02295996",
        "Fagerland, Lydersen & Laake (2013), BMC Med. Res. Methodol. 13:91, doi:10.1186/1471-2288-13-91",
        "Holm (1979), Scand. J. Statist. 6(2), 65-70",
        "Tango (1998), Statist. Med. 17(8), 891-908",
        "Fay (2010), The R Journal 2(1), 53-58 (odds ratio and its exact interval)",
        "Miller (2024), arXiv:2411.00640 (means of question differences, repeats, clusters)",
        "Bell & McCaffrey (2002), Survey Methodology 28(2), 169-181 (clusters)",
        "Phipson & Smyth (2010), Stat. Appl. Genet. Mol. Biol. 9, 39, doi:10.2202/1544-6115.1585 (sign flips)",
        "Westfall & Young (1993), Resampling-Based Multiple Testing (simultaneous intervals)",
    ),
)
