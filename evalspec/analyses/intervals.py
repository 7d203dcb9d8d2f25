"""How accurate is each model, and how sure is that?

One row per benchmark and model, and one per stratum where strata are declared; each row names its interval, which follows from the kind of scores
and from how the questions came about. Each interval holds for its own row, not for all rows at once. Statistics are imported where they are used:
numpy and scipy would double the start-up of verbs that compute nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalspec.analyses.designs import CHOSEN, Average, answered, design_of, subject_design, subject_labels
from evalspec.analyses.intervals_results import IntervalRow, IntervalsOptions, IntervalsResult, RepeatsRow
from evalspec.analyses.scores import declared_scores, measure
from evalspec.analyses.sources import CLOPPER_PEARSON, INTERVALS, behind_intervals, used
from evalspec.artifacts.findings import Estimate
from evalspec.artifacts.thresholds import Check
from evalspec.protocols import Analysis, Axes, CheckTest, Context

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalspec.artifacts.responses import BenchmarkResponses, Responses

MOST_DRAWN = 40
NO_ANSWERS = "no question of this row has a score"


def compute(responses: Responses, options: IntervalsOptions, _context: Context) -> IntervalsResult:
    """Return the accuracy of every model with its interval."""
    return IntervalsResult(
        method=options.method,
        level=options.level,
        average=options.average,
        rows=tuple(row for benchmark in responses.benchmarks for row in _benchmark_rows(benchmark, options)),
        repeats=tuple(row for benchmark in responses.benchmarks for row in _repeats_rows(benchmark, options)),
        scores=declared_scores(responses),
    )


def estimates(result: IntervalsResult) -> tuple[Estimate, ...]:
    """Return one `accuracy` per row of the declared average, and for repeated questions `always_right` and `worst_question`."""
    rows = [row for row in result.rows if row.subject is not None or row.average == result.average]
    return (*(_accuracy(row, result.level) for row in rows), *(found for row in result.repeats for found in _of_repeats(row, result)))


def _accuracy(row: IntervalRow, level: float) -> Estimate:
    named = row.method or "undefined"
    return Estimate(
        analysis="intervals",
        metric="accuracy",
        benchmark=row.benchmark,
        models=(row.model,),
        subject=row.subject,
        value=row.value,
        low=row.low,
        high=row.high,
        confidence_level=level,
        method=f"{named}, average over subjects" if row.average == "macro" else named,
        n=row.n,
        undefined=row.undefined,
    )


def _of_repeats(row: RepeatsRow, result: IntervalsResult) -> Iterator[Estimate]:
    shared = Estimate(
        analysis="intervals",
        metric="always_right",
        benchmark=row.benchmark,
        models=(row.model,),
        value=row.value,
        low=row.low,
        high=row.high,
        confidence_level=result.level,
        method=row.method or "undefined",
        n=row.n,
        undefined=row.undefined,
    )
    yield shared
    nothing = {"low": None, "high": None, "confidence_level": None, "undefined": None}
    yield shared.model_copy(update={"metric": "worst_question", "value": row.worst, "method": "lowest share of right repeats", **nothing})


def plot(result: IntervalsResult, axes: Axes) -> None:
    """Draw each model's accuracy with its interval, grouped by benchmark, best first."""
    overall = [row for row in result.rows if row.subject is None and row.average == result.average]
    crowded = max(Counter(row.benchmark for row in overall).values(), default=0) > MOST_DRAWN
    cut = f"; of many models the {MOST_DRAWN} best are drawn" if crowded else ""
    named = measure(result.scores, [row.benchmark for row in overall])
    axes.caption(f"{named[0].upper()}{named[1:]} of each model with its confidence interval, by benchmark{cut}.")
    axes.scale(f"{named}, average over subjects" if result.average == "macro" else named, percent=True)
    for benchmark in dict.fromkeys(row.benchmark for row in overall):
        sign = 1.0 if benchmark in result.scores and result.scores[benchmark].lower_is_better else -1.0
        rows = [row for row in overall if row.benchmark == benchmark]
        for row in sorted(rows, key=lambda row: 2.0 if row.value is None else sign * row.value)[:MOST_DRAWN]:
            axes.interval(row.model, row.value, row.low, row.high, group=benchmark)


@dataclass(frozen=True, slots=True)
class _Part:
    """Which questions of a benchmark a row speaks of, and how it averages over them."""

    subject: str | None
    average: Average
    which: NDArray[np.bool_]


def _benchmark_rows(benchmark: BenchmarkResponses, options: IntervalsOptions) -> Iterator[IntervalRow]:
    import numpy as np

    scores, labels = benchmark.settled(), subject_labels(benchmark)
    everything = np.ones(labels.size, dtype=np.bool_)
    averages: tuple[Average, ...] = ("macro", "micro") if options.average == "macro" else ("micro",)
    parts = [_Part(None, average, everything) for average in averages]
    if benchmark.strata:
        parts += [_Part(name, "micro", labels == name) for name in sorted(set(labels.tolist()) - {""})]
    for index, model in enumerate(benchmark.models):
        for part in parts:
            yield _row(benchmark, options, model, part, scores[index])


def _row(benchmark: BenchmarkResponses, options: IntervalsOptions, model: str, part: _Part, scores: NDArray[np.float64]) -> IntervalRow:
    import numpy as np

    from evalspec.statistics.accuracies import accuracy

    present = part.which & ~np.isnan(scores)
    empty = IntervalRow(benchmark=benchmark.benchmark, model=model, subject=part.subject, average=part.average, n=int(present.sum()))
    if not present.any():
        return empty.model_copy(update={"undefined": NO_ANSWERS})
    if benchmark.sample == "chosen" and part.subject is None and part.average == "micro":
        weights = benchmark.weights[present]
        return empty.model_copy(update={"value": float(weights @ scores[present] / weights.sum()), "method": "chosen", "caution": CHOSEN})
    try:
        whole = part.subject is None
        design = design_of(benchmark, average=part.average) if whole else subject_design(benchmark, str(part.subject))
        found = accuracy(scores[present], answered(design, present), method=options.method, level=options.level)
    except ValueError as error:
        return empty.model_copy(update={"undefined": str(error)})
    return empty.model_copy(
        update={
            "successes": found.successes,
            "effective_n": found.effective_n,
            "clusters": found.clusters,
            "value": found.mean,
            "low": found.interval.low if found.interval else None,
            "high": found.interval.high if found.interval else None,
            "one_sided": found.one_sided,
            "standard_error": found.standard_error,
            "method": found.method,
            "caution": found.caution,
        }
    )


def _repeats_rows(benchmark: BenchmarkResponses, options: IntervalsOptions) -> Iterator[RepeatsRow]:
    """Yield what repeats show of each model, where questions were repeated and every repeat is a right or wrong answer."""
    import numpy as np

    if benchmark.scores.shape[2] < 2 or benchmark.score is not None:
        return
    scores = benchmark.settled()
    for index, model in enumerate(benchmark.models):
        answers, present = benchmark.scores[index], ~np.isnan(scores[index])
        if present.any() and np.all(np.isin(answers[~np.isnan(answers)], (0.0, 1.0))):
            yield _repeats_row(benchmark, options, model, np.where(present, scores[index], np.nan))


def _repeats_row(benchmark: BenchmarkResponses, options: IntervalsOptions, model: str, scores: NDArray[np.float64]) -> RepeatsRow:
    import numpy as np

    from evalspec.statistics.accuracies import accuracy

    present = ~np.isnan(scores)
    means = scores[present]
    row = RepeatsRow(
        benchmark=benchmark.benchmark,
        model=model,
        repeats=benchmark.scores.shape[2],
        n=int(means.size),
        always=int(np.sum(means == 1.0)),
        never=int(np.sum(means == 0.0)),
        worst=float(means.min()),
    )
    try:
        found = accuracy((means == 1.0).astype(np.float64), answered(design_of(benchmark), present), method=options.method, level=options.level)
    except ValueError as error:
        return row.model_copy(update={"undefined": str(error)})
    limits = {"low": found.interval.low, "high": found.interval.high} if found.interval else {}
    return row.model_copy(update={"value": found.mean, "method": found.method, **limits})


def check_test(options: IntervalsOptions, check: Check, _models: Sequence[str], _benchmarks: int) -> CheckTest | None:
    """Return which bound decides a check of accuracy; None for what is said of repeats."""
    if check.metric != "accuracy":
        return None
    return CheckTest(options.method, (1.0 - options.level) / 2.0, macro=options.average == "macro" and check.subject is None)


def stricter(options: IntervalsOptions, divisor: int) -> IntervalsOptions:
    """Return the same analysis with intervals that miss so many times less often."""
    return options.model_copy(update={"level": 1.0 - (1.0 - options.level) / divisor})


def sources_used(result: IntervalsResult) -> tuple[str, ...]:
    """Return the works behind the intervals of a result."""
    found = behind_intervals({*(row.method for row in result.rows), *(row.method for row in result.repeats)})
    return used(INTERVALS, found | {CLOPPER_PEARSON for row in result.rows if row.one_sided is not None})


ANALYSIS = Analysis(
    kind="intervals",
    options=IntervalsOptions,
    result=IntervalsResult,
    compute=compute,
    metrics=("accuracy", "always_right", "worst_question"),
    ordered=("accuracy", "always_right", "worst_question"),
    estimates=estimates,
    tolerance=1e-9,
    template="analyses/intervals.html.j2",
    plot=plot,
    check_test=check_test,
    stricter=stricter,
    gate_defaults={"method": "clopper_pearson"},
    sources=INTERVALS,
    sources_used=sources_used,
)
