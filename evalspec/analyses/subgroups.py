"""Where is one model better or worse, or ahead of another: in which subjects?

One row per stratum. For one model each subject is held against all other subjects, for a pair the two models are compared within each subject.
The test decides, adjusted unless the study says otherwise; one more test asks, for each benchmark, whether subjects differ at all. Statistics are
imported where they are used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evalspec.analyses.designs import design_of, subject_design, subject_labels
from evalspec.analyses.pairs import NO_COMMON, Limits, Part, compare_pairs
from evalspec.analyses.scores import declared_scores, measure
from evalspec.analyses.sources import (
    FAY_LUMBARD,
    FLIPS,
    HOLM,
    INTERVALS,
    MCNEMAR,
    PAIRED_MEANS,
    POOL_TEST,
    TANGO,
    behind_intervals,
    behind_pairs,
    used,
)
from evalspec.analyses.subgroups_results import Heterogeneity, SubgroupRow, SubgroupsOptions, SubgroupsResult
from evalspec.artifacts.findings import Estimate
from evalspec.artifacts.thresholds import Check
from evalspec.protocols import Analysis, Axes, CheckTest, Context

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalspec.artifacts.responses import BenchmarkResponses, Responses
    from evalspec.statistics.accuracies import Accuracy
    from evalspec.statistics.designs import Design

DRAWS = 10_000
NO_ANSWERS = "no question of this subject has a score"
NO_STRATA = "the study does not declare subjects of this benchmark as strata"
ONE_SUBJECT = "all scored questions are of one subject"
CLUSTERED = "questions come in clusters, and labels of clustered questions cannot be reshuffled one by one"


def compute(responses: Responses, options: SubgroupsOptions, context: Context) -> SubgroupsResult:
    """Return every subject with its test and the decision."""
    rows = [row for benchmark in responses.benchmarks for row in _benchmark_rows(benchmark, options, context)]
    return SubgroupsResult(
        model=options.model,
        baseline=options.baseline,
        correction=options.correction,
        alpha=options.alpha,
        level=options.level,
        family_size=len(rows),
        rows=tuple(_adjusted(rows, options)),
        heterogeneity=tuple(_heterogeneity(benchmark, options, context) for benchmark in responses.benchmarks),
        scores=declared_scores(responses),
    )


def estimates(result: SubgroupsResult) -> tuple[Estimate, ...]:
    """Return one estimate per subject: `accuracy` of one model, or `difference` of two."""
    pair = result.baseline is not None
    return tuple(
        Estimate(
            analysis="subgroups",
            metric="difference" if pair else "accuracy",
            benchmark=row.benchmark,
            models=(result.model, result.baseline) if result.baseline is not None else (result.model,),
            subject=row.subject,
            value=row.value,
            low=row.low,
            high=row.high,
            confidence_level=result.level,
            method=row.method or "undefined",
            p_value=row.p_value,
            p_adjusted=row.p_adjusted,
            family_size=result.family_size,
            # Against other subjects, not against a limit: only a difference of models carries the decision.
            separated=row.separated if pair else None,
            n=row.n,
            unit="difference" if pair else "proportion",
            undefined=row.undefined,
        )
        for row in result.rows
    )


def plot(result: SubgroupsResult, axes: Axes) -> None:
    """Draw each subject with its interval, highest first; subjects that the test does not separate are muted."""
    shown = f"{result.model} − {result.baseline}" if result.baseline else result.model
    named = measure(result.scores, [row.benchmark for row in result.rows])
    named = f"difference in {named}" if result.baseline else named
    axes.caption(f"{named[0].upper()}{named[1:]} by subject, each with the interval of that subject alone: {shown}.")
    axes.scale(named, percent=True)
    if result.baseline:
        axes.reference(0.0, "no difference" if result.scores else "equal accuracy")
    for benchmark in dict.fromkeys(row.benchmark for row in result.rows):
        rows = [row for row in result.rows if row.benchmark == benchmark]
        for row in sorted(rows, key=lambda row: -(row.value if row.value is not None else -2.0)):
            axes.interval(row.subject, row.value, row.low, row.high, group=benchmark, muted=not row.separated)


def _benchmark_rows(benchmark: BenchmarkResponses, options: SubgroupsOptions, context: Context) -> Iterator[SubgroupRow]:
    labels = subject_labels(benchmark)
    for subject in sorted(set(labels.tolist()) - {""}) if benchmark.strata else ():
        part = Part(labels == subject, subject_design(benchmark, subject))
        yield _pair_row(benchmark, options, subject, part, context) if options.baseline else _model_row(benchmark, options, subject, part)


def _pair_row(benchmark: BenchmarkResponses, options: SubgroupsOptions, subject: str, part: Part, context: Context) -> SubgroupRow:
    limits = Limits(options.level, exact=options.method == "clopper_pearson")
    (found,) = compare_pairs(benchmark, [(options.model, str(options.baseline))], context, limits, part=part)
    return SubgroupRow(
        benchmark=benchmark.benchmark,
        subject=subject,
        n=found.n,
        value=found.difference,
        low=found.low,
        high=found.high,
        method=found.method,
        only_first=found.only_first,
        only_second=found.only_second,
        p_value=found.p(options.test),
        test=f"mcnemar_{options.test}" if found.test == "mcnemar" else found.test,
        caution=found.caution,
        undefined=found.undefined,
    )


def _model_row(benchmark: BenchmarkResponses, options: SubgroupsOptions, subject: str, part: Part) -> SubgroupRow:
    import numpy as np

    from evalspec.statistics.accuracies import accuracy

    scores = benchmark.settled()[benchmark.models.index(options.model)]
    present = part.which & ~np.isnan(scores)
    row = SubgroupRow(benchmark=benchmark.benchmark, subject=subject, n=int(present.sum()))
    if not present.any():
        return row.model_copy(update={"undefined": NO_ANSWERS})
    try:
        found = accuracy(scores[present], part.design.kept(present), method=options.method, level=options.level)
    except ValueError as error:
        return row.model_copy(update={"undefined": str(error)})
    measured = {"value": found.mean, "method": found.method, "caution": found.caution}
    limits = {"low": found.interval.low, "high": found.interval.high} if found.interval else {}
    return row.model_copy(update={**measured, **limits, **_against_others(benchmark, scores, part, found)})


def _against_others(benchmark: BenchmarkResponses, scores: NDArray[np.float64], part: Part, found: Accuracy) -> dict[str, float | str | int | None]:
    """Hold one subject against all others: Fisher's test of right and wrong answers, Welch's test of means otherwise."""
    import numpy as np

    from evalspec.statistics.accuracies import accuracy
    from evalspec.statistics.designs import design_mean
    from evalspec.statistics.unpaired import TwoSamples, fisher_exact, separate_means_test

    inside, others = part.which & ~np.isnan(scores), ~part.which & ~np.isnan(scores)
    whole = design_of(benchmark)
    rest = whole if whole.shares is None else _without(whole, part)
    try:
        elsewhere = accuracy(scores[others], rest.kept(others))
        numbers: dict[str, float | str | int | None] = {"elsewhere": elsewhere.mean, "elsewhere_n": elsewhere.questions}
        if found.successes is not None and elsewhere.successes is not None and not benchmark.clusters and not benchmark.pool:
            samples = TwoSamples(found.successes, found.questions, elsewhere.successes, elsewhere.questions)
            return {**numbers, "p_value": fisher_exact(samples), "test": "fisher"}
        means = design_mean(scores[inside], part.design.kept(inside)), design_mean(scores[others], rest.kept(others))
        return {**numbers, "p_value": separate_means_test(*means).p_value, "test": "welch"}
    except ValueError:
        return {}


def _without(whole: Design, part: Part) -> Design:
    """Return the design of a weighted sample without one of its strata."""
    gone = set(whole.strata[part.which].tolist()) if whole.strata is not None else set()
    return replace(whole, shares={name: share for name, share in (whole.shares or {}).items() if name not in gone})


def _adjusted(rows: list[SubgroupRow], options: SubgroupsOptions) -> Iterator[SubgroupRow]:
    """Add the decision and, where the study asks for it, the adjusted p-value; a subject without a test counts as p = 1 in the family."""
    from evalspec.statistics.multiplicity import holm

    counted = [1.0 if row.p_value is None else row.p_value for row in rows]
    adjusts = options.correction == "holm"
    deciding = holm(counted) if adjusts and rows else counted
    for row, p in zip(rows, deciding, strict=True):
        decided = {} if row.p_value is None else {"p_adjusted": float(p) if adjusts else None, "separated": bool(p <= options.alpha)}
        yield row.model_copy(update=decided)


def _heterogeneity(benchmark: BenchmarkResponses, options: SubgroupsOptions, context: Context) -> Heterogeneity:
    import numpy as np

    from evalspec.statistics.permutations import reshuffle_groups

    scores, labels = benchmark.settled(), subject_labels(benchmark)
    values = scores[benchmark.models.index(options.model)]
    if options.baseline:
        values = values - scores[benchmark.models.index(options.baseline)]
    present = ~np.isnan(values) & (labels != "")
    subjects = len(set(labels[present].tolist()))
    row = Heterogeneity(benchmark=benchmark.benchmark, subjects=subjects, draws=DRAWS)
    reason = NO_STRATA if not benchmark.strata else CLUSTERED if benchmark.clusters else NO_COMMON if not present.any() else None
    if reason or subjects < 2:
        return row.model_copy(update={"undefined": reason or ONE_SUBJECT})
    found = reshuffle_groups(values[present], labels[present].tolist(), draws=DRAWS, rng=context.rng)
    return row.model_copy(update={"p_value": found.p_value, "p_error": found.standard_error})


def check_test(options: SubgroupsOptions, check: Check, _models: Sequence[str], _benchmarks: int) -> CheckTest:
    """Return what decides a check of a subject: at a limit of 0 on a difference its adjusted test, elsewhere the interval of that subject."""
    if options.baseline is None:
        return CheckTest(options.method, (1.0 - options.level) / 2.0)
    exact = options.method == "clopper_pearson"
    if check.limit != 0.0:
        return CheckTest("fay_lumbard" if exact else "score", (1.0 - options.level) / 2.0)
    return CheckTest(options.test, options.alpha / 2.0, shared_by_subjects=options.correction == "holm", exact_means=exact)


FISHER = "Fisher (1935), J. R. Stat. Soc. 98(1), 39-82, doi:10.2307/2342435"
WELCH = "Welch (1947), Biometrika 34(1-2), 28-35, doi:10.1093/biomet/34.1-2.28"
RESHUFFLED = "Phipson & Smyth (2010), Stat. Appl. Genet. Mol. Biol. 9, 39, doi:10.2202/1544-6115.1585 (reshuffled labels)"
SOURCES = (FISHER, WELCH, MCNEMAR, HOLM, TANGO, FAY_LUMBARD, PAIRED_MEANS, *INTERVALS, POOL_TEST, FLIPS, RESHUFFLED)


def sources_used(result: SubgroupsResult) -> tuple[str, ...]:
    """Return the works behind the tests and the intervals of a result."""
    tests, methods = {row.test for row in result.rows}, {row.method for row in result.rows}
    further = {
        FISHER: "fisher" in tests,
        WELCH: "welch" in tests,
        HOLM: result.correction == "holm" and result.family_size > 1,
        RESHUFFLED: any(row.p_value is not None for row in result.heterogeneity),
    }
    named = {"mcnemar" if test and test.startswith("mcnemar") else test for test in tests}
    found = behind_intervals(methods) if result.baseline is None else behind_pairs(named | methods)
    return used(SOURCES, found | {work for work, needed in further.items() if needed})


ANALYSIS = Analysis(
    kind="subgroups",
    options=SubgroupsOptions,
    result=SubgroupsResult,
    compute=compute,
    metrics=("accuracy", "difference"),
    pair_metrics=("difference",),
    ordered=("accuracy", "difference"),
    estimates=estimates,
    tolerance=1e-9,
    template="analyses/subgroups.html.j2",
    plot=plot,
    check_test=check_test,
    gate_defaults={"method": "clopper_pearson"},
    sources=SOURCES,
    sources_used=sources_used,
)
