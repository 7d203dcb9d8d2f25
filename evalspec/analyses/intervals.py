"""How accurate is each model, and how sure is that?

One row per benchmark and model, and one per stratum where strata are declared. Questions are taken as independent draws; each
interval holds for its own row, not for all rows at once. Statistics are imported where they are used: scipy would double the start-up
of verbs that compute nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evalspec.artifacts.base import Artifact, Identifier
from evalspec.artifacts.findings import Estimate
from evalspec.artifacts.responses import BenchmarkResponses, Responses
from evalspec.artifacts.study import Proportion
from evalspec.protocols import Analysis, Axes, Context

Method = Literal["wilson", "clopper_pearson"]
NOT_BINARY = "scores are not 0 or 1, and this interval is for shares of right answers"
NO_ANSWERS = "no question of this row has a score"
TOO_FEW = "a stratum of a weighted sample has fewer than two scored questions"


class IntervalsOptions(Artifact):
    """Accuracy with a confidence interval, per model and per stratum."""

    kind: Literal["intervals"]
    method: Method = "wilson"
    level: Proportion = 0.95


class IntervalRow(Artifact):
    """One model on one benchmark, or on one stratum of it.

    `successes` is the number of right answers, None for a weighted sample, where `effective_n` stands for the sample size instead.
    """

    benchmark: Identifier
    model: Identifier
    subject: str | None
    n: int
    successes: int | None = None
    effective_n: float | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    undefined: str | None = None


class IntervalsResult(Artifact):
    """Every row, in the order of benchmarks and models of the study."""

    method: Method
    level: float
    rows: tuple[IntervalRow, ...]


def compute(responses: Responses, options: IntervalsOptions, _context: Context) -> IntervalsResult:
    """Return the accuracy of every model with its interval."""
    rows = tuple(row for benchmark in responses.benchmarks for row in _benchmark_rows(benchmark, options))
    return IntervalsResult(method=options.method, level=options.level, rows=rows)


def estimates(result: IntervalsResult) -> tuple[Estimate, ...]:
    """Return one `accuracy` estimate per row."""
    return tuple(
        Estimate(
            analysis="intervals",
            metric="accuracy",
            benchmark=row.benchmark,
            models=(row.model,),
            subject=row.subject,
            value=row.value,
            low=row.low,
            high=row.high,
            confidence_level=result.level,
            method=result.method if row.effective_n is None else f"{result.method}, effective n",
            n=row.n,
            undefined=row.undefined,
        )
        for row in result.rows
    )


def plot(result: IntervalsResult, axes: Axes) -> None:
    """Draw each model's accuracy with its interval, grouped by benchmark, best first."""
    overall = [row for row in result.rows if row.subject is None]
    axes.caption("Accuracy of each model with its confidence interval, by benchmark.")
    axes.scale("accuracy", percent=True)
    for benchmark in dict.fromkeys(row.benchmark for row in overall):
        rows = [row for row in overall if row.benchmark == benchmark]
        for row in sorted(rows, key=lambda row: -(row.value if row.value is not None else -1.0)):
            axes.interval(row.model, row.value, row.low, row.high, group=benchmark)


def _benchmark_rows(benchmark: BenchmarkResponses, options: IntervalsOptions) -> Iterator[IntervalRow]:
    scores = benchmark.settled()
    subjects = np.array([subject or "" for subject in benchmark.subjects])
    names = sorted({subject for subject in benchmark.subjects if subject}) if benchmark.strata else []
    for index, model in enumerate(benchmark.models):
        yield _row(benchmark, options, (model, None), scores[index], subjects)
        for name in names:
            inside = subjects == name
            yield _row(benchmark, options, (model, name), np.where(inside, scores[index], np.nan), subjects)


def _row(
    benchmark: BenchmarkResponses,
    options: IntervalsOptions,
    key: tuple[str, str | None],
    scores: NDArray[np.float64],
    subjects: NDArray[np.str_],
) -> IntervalRow:
    present = ~np.isnan(scores)
    kept, weights, groups = scores[present], benchmark.weights[present], subjects[present]
    model, subject = key
    empty = IntervalRow(benchmark=benchmark.benchmark, model=model, subject=subject, n=int(kept.size))
    if not kept.size:
        return empty.model_copy(update={"undefined": NO_ANSWERS})
    if not np.all((kept == 0) | (kept == 1)):
        return empty.model_copy(update={"undefined": NOT_BINARY})
    if np.ptp(weights) > 0:
        return _weighted(empty, options, kept, weights, groups)
    from evalspec.statistics.proportions import clopper_pearson, wilson

    successes = int(kept.sum())
    limits = wilson if options.method == "wilson" else clopper_pearson
    interval = limits(successes, int(kept.size), level=options.level)
    return empty.model_copy(update={"successes": successes, "value": successes / kept.size, "low": interval.low, "high": interval.high})


def _weighted(
    empty: IntervalRow, options: IntervalsOptions, scores: NDArray[np.float64], weights: NDArray[np.float64], groups: NDArray[np.str_]
) -> IntervalRow:
    from evalspec.statistics.weighted import clopper_pearson_effective, weighted_proportion, wilson_effective

    try:
        share = weighted_proportion(scores, weights, groups)
    except ValueError:
        return empty.model_copy(update={"undefined": TOO_FEW})
    limits = wilson_effective if options.method == "wilson" else clopper_pearson_effective
    interval = limits(share, level=options.level)
    return empty.model_copy(update={"effective_n": share.effective_n, "value": share.value, "low": interval.low, "high": interval.high})


ANALYSIS = Analysis(
    kind="intervals",
    options=IntervalsOptions,
    result=IntervalsResult,
    compute=compute,
    metrics=("accuracy",),
    estimates=estimates,
    tolerance=1e-9,
    template="analyses/intervals.html.j2",
    plot=plot,
    sources=(
        "Wilson (1927), J. Amer. Statist. Assoc. 22(158), 209-212, doi:10.1080/01621459.1927.10502953",
        "Clopper & Pearson (1934), Biometrika 26(4), 404-413, doi:10.1093/biomet/26.4.404",
        "Brown, Cai & DasGupta (2001), Statistical Science 16(2), 101-133, doi:10.1214/ss/1009213286",
        "Korn & Graubard (1998), Survey Methodology 24(2), 193-201 (effective sample size of a weighted sample)",
    ),
)
