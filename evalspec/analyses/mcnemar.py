"""Which models differ, asked on the same questions?

Each pair is tested by McNemar's test on the questions that exactly one of the two answers correctly. The family of pairs is declared
before scoring; the adjusted test decides, and the interval beside it is for its own comparison only. Statistics are imported where they
are used: scipy would double the start-up of verbs that compute nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from evalspec.artifacts.base import Artifact, Identifier
from evalspec.artifacts.findings import Estimate
from evalspec.artifacts.responses import BenchmarkResponses, Responses
from evalspec.artifacts.study import ModelId, Proportion
from evalspec.protocols import Analysis, Axes, Comparison, Context

if TYPE_CHECKING:
    from evalspec.statistics.all_pairs import PairedTables

Test = Literal["exact", "mid_p"]
Family = Literal["adjacent", "vs_baseline", "all_pairs", "named"]
Correction = Literal["holm", "none"]
NOT_BINARY = "scores are not 0 or 1, and McNemar's test counts right and wrong answers"
WEIGHTED = "the sample is weighted (equal allocation), and McNemar's test needs a sample in which every question counts the same"
MOST_DRAWN = 100
MOST_FORECAST = 50
NO_COMMON = "the two models have no scored question in common"


class McnemarOptions(Artifact):
    """Paired comparison of models on the same questions."""

    kind: Literal["mcnemar"]
    family: Family = Field(description="Which pairs are compared: neighbours by score, each with a baseline, all, or the pairs named.")
    test: Test = "exact"
    correction: Correction = "holm"
    alpha: Proportion = 0.05
    level: Proportion = 0.95
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


class McnemarRow(Artifact):
    """One pair on one benchmark; `only_first` and `only_second` are the discordant counts, `difference` is first - second."""

    benchmark: Identifier
    first: Identifier
    second: Identifier
    n: int
    both: int | None = None
    only_first: int | None = None
    only_second: int | None = None
    neither: int | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    p_mid: float | None = None
    log10_p: float | None = None
    p_adjusted: float | None = None
    separated: bool | None = None
    odds_ratio: float | None = None
    undefined: str | None = None


class McnemarResult(Artifact):
    """Every comparison of the family, and the models of each benchmark in order of their scores."""

    test: Test
    family: Family
    correction: Correction
    alpha: float
    level: float
    family_size: int
    rows: tuple[McnemarRow, ...]
    order: dict[Identifier, tuple[Identifier, ...]]


def compute(responses: Responses, options: McnemarOptions, _context: Context) -> McnemarResult:
    """Return every comparison of the family with its adjusted p-value."""
    order = {benchmark.benchmark: _order(benchmark) for benchmark in responses.benchmarks}
    rows = [
        row
        for benchmark in responses.benchmarks
        for row in _rows(benchmark, options, tuple(_pairs(options, benchmark.models, order[benchmark.benchmark])))
    ]
    return McnemarResult(
        test=options.test,
        family=options.family,
        correction=options.correction,
        alpha=options.alpha,
        level=options.level,
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
            method="tango",
            p_value=row.p_value if result.test == "exact" else row.p_mid,
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
    axes.caption(f"Difference in accuracy of each pair, on the same questions, with the interval of that comparison alone{chosen}.")
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


def _rows(benchmark: BenchmarkResponses, options: McnemarOptions, pairs: Sequence[tuple[str, str]]) -> Iterator[McnemarRow]:
    """Return a row per pair, in their order; each pair is compared on the questions that both of its models have a score for."""
    from evalspec.statistics.all_pairs import paired_tables

    scores = benchmark.settled()
    binary = np.all((scores == 0) | (scores == 1) | np.isnan(scores), axis=1)
    places = {model: place for place, model in enumerate(benchmark.models)}
    first, second = (np.array([places[pair[side]] for pair in pairs], dtype=np.int64) for side in (0, 1))
    tables = paired_tables(scores == 1, ~np.isnan(scores), first, second)
    reasons = [
        _why_undefined(benchmark, questions, binary=yes) for questions, yes in zip(tables.questions, binary[first] & binary[second], strict=True)
    ]
    numbers = _numbers(tables.chosen(np.array([reason is None for reason in reasons], dtype=np.bool_)), options.level)
    for pair, questions, reason in zip(pairs, tables.questions, reasons, strict=True):
        row = McnemarRow(benchmark=benchmark.benchmark, first=pair[0], second=pair[1], n=int(questions), undefined=reason)
        yield row if reason else row.model_copy(update=next(numbers))


def _numbers(tables: PairedTables, level: float) -> Iterator[dict[str, float | None]]:
    """Test comparisons of 0/1 scores all at once, and give the numbers of each one's row."""
    from evalspec.statistics.all_pairs import compare_tables

    found = compare_tables(tables, level=level)
    columns = {
        "both": tables.both,
        "only_first": tables.only_first,
        "only_second": tables.only_second,
        "neither": tables.neither,
        "difference": found.difference,
        "low": found.low,
        "high": found.high,
        "p_value": found.p_value,
        "p_mid": found.p_mid,
        "log10_p": found.log10_p,
    }
    for values in zip(*(column.tolist() for column in columns.values()), strict=True):
        row = dict(zip(columns, values, strict=True))
        yield {**row, "odds_ratio": row["only_first"] / row["only_second"] if row["only_second"] else None}


def _why_undefined(benchmark: BenchmarkResponses, questions: int, *, binary: bool) -> str | None:
    if not questions:
        return NO_COMMON
    if np.ptp(benchmark.weights) > 0:
        return WEIGHTED
    return None if binary else NOT_BINARY


def _adjusted(rows: list[McnemarRow], options: McnemarOptions) -> Iterator[McnemarRow]:
    """Add the adjusted p-value and the decision; an undefined comparison counts as p = 1 in its family."""
    from evalspec.statistics.multiplicity import holm

    raw = [row.p_value if options.test == "exact" else row.p_mid for row in rows]
    counted = [1.0 if p is None else p for p in raw]
    adjusted = holm(counted) if options.correction == "holm" and rows else counted
    for row, p, p_adjusted in zip(rows, raw, adjusted, strict=True):
        decided = {} if p is None else {"p_adjusted": float(p_adjusted), "separated": bool(p_adjusted <= options.alpha)}
        yield row.model_copy(update=decided)


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
    sources=(
        "McNemar (1947), Psychometrika 12(2), 153-157, doi:10.1007/BF02295996",
        "Fagerland, Lydersen & Laake (2013), BMC Med. Res. Methodol. 13:91, doi:10.1186/1471-2288-13-91",
        "Holm (1979), Scand. J. Statist. 6(2), 65-70",
        "Tango (1998), Statist. Med. 17(8), 891-908",
    ),
)
