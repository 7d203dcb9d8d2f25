"""Does one accuracy speak for the groups of a benchmark's questions?

Harmony over declared subjects, over clusters of the questions' words, or over clusters of the models' answer distributions; always beside its
value from sizes alone, its value by chance, the gap and the worst group. The method is Uzunoglu, Li and Khashabi's; bandwidth, similarity
constants and the default partition are evalspec's own choices. Statistics are imported where they are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evalspec.analyses.harmony_induced import (
    CHOICES_ONLY,
    FOLLOWS,
    NO_DISTRIBUTIONS,
    AnswerDistributions,
    encoded_partition,
    likeness_to_answers,
    predictive_partition,
    recorded_distributions,
    word_partition,
)
from evalspec.analyses.harmony_overview import mean_variance_plane, trait_correlations
from evalspec.analyses.harmony_partitions import Partition, declared_partition
from evalspec.analyses.harmony_results import EmbeddingOptions, HarmonyOptions, HarmonyResult, HarmonyRow, PartitionSummary, PredictiveOptions
from evalspec.analyses.harmony_rows import Streams, harmony_row
from evalspec.analyses.harmony_vectors import examine_vectors
from evalspec.analyses.sources import HOLM, used
from evalspec.artifacts.findings import Estimate
from evalspec.protocols import Analysis, Axes, Context, Point

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalspec.artifacts.questions import QuestionSet
    from evalspec.artifacts.responses import BenchmarkResponses, Responses
    from evalspec.errors import Diagnostic

DRAWN_GROUPS = 20
DRAWN_ROWS = 24


def compute(responses: Responses, options: HarmonyOptions, context: Context) -> HarmonyResult:
    """Return the groups of every benchmark and the row of every model, with p-values adjusted over all rows."""
    partitions: list[PartitionSummary] = []
    rows: list[HarmonyRow] = []
    for benchmark in responses.benchmarks:
        streams = Streams(context.rng, int(context.rng.integers(2**63)))
        made: dict[int, HarmonyRow] = {}
        for models, found in _groupings(benchmark, options, context):
            partitions.append(found.summary if isinstance(found, Partition) else found)
            made |= {model: _row(benchmark, model, found, options, streams) for model in models}
        rows += [made[model] for model in sorted(made)]
    tested = _adjusted(rows)
    return HarmonyResult(
        b=options.b,
        level=options.level,
        draws=options.null_draws,
        min_cluster=options.min_cluster,
        partition=options.partition,
        partitions=tuple(partitions),
        rows=tuple(tested),
        family_size=len(tested),
        plane=mean_variance_plane(tested),
        traits=trait_correlations(tested, context.background.models, draws=options.null_draws, rng=context.rng),
    )


Grouping = tuple[Sequence[int], Partition | PartitionSummary]
"""Positions of models, and the groups for them, or the summary that says why there are none."""


def _groupings(benchmark: BenchmarkResponses, options: HarmonyOptions, context: Context) -> Iterator[Grouping]:
    everybody = range(len(benchmark.models))
    if options.partition == "predictive":
        yield from _predictive(benchmark, options.predictive or PredictiveOptions(), context)
        return
    try:
        if options.partition == "declared":
            yield everybody, declared_partition(benchmark)
        else:
            yield everybody, _embedding(benchmark, options.embedding or EmbeddingOptions(), context)
    except ValueError as error:
        yield everybody, PartitionSummary(benchmark=benchmark.benchmark, source=options.partition, label="", undefined=str(error))


def _embedding(benchmark: BenchmarkResponses, options: EmbeddingOptions, context: Context) -> Partition:
    if options.encoder is not None:
        return encoded_partition(benchmark, context.tables, options, context.rng)
    return word_partition(benchmark, _questions(benchmark, context), options, context.rng)


def _predictive(benchmark: BenchmarkResponses, options: PredictiveOptions, context: Context) -> Iterator[Grouping]:
    """Yield the groups by answer distributions: one for all models that have any, or one for each."""
    nothing = PartitionSummary(benchmark=benchmark.benchmark, source="predictive", label="")
    try:
        recorded = recorded_distributions(benchmark, options)
    except ValueError as error:
        yield range(len(benchmark.models)), nothing.model_copy(update={"undefined": str(error)})
        return
    without = [model for model in range(len(benchmark.models)) if model not in recorded.tables]
    if without:
        named = tuple(benchmark.models[model] for model in without)
        yield without, nothing.model_copy(update={"undefined": NO_DISTRIBUTIONS, "models": named})
    for models in [list(recorded.tables)] if options.shared == "consensus" else [[model] for model in recorded.tables]:
        named = tuple(benchmark.models[model] for model in models)
        try:
            found = predictive_partition(benchmark, recorded, models, options, context.rng)
            yield models, replace(found, summary=_judged(found.summary, recorded))
        except ValueError as error:
            yield models, nothing.model_copy(update={"undefined": str(error), "models": named})


def _judged(summary: PartitionSummary, recorded: AnswerDistributions) -> PartitionSummary:
    """Say of groups by the probabilities of choices that they are a diagnostic of the answers, whatever they look like."""
    return summary.model_copy(update={"undefined": CHOICES_ONLY}) if recorded.over == "choices" else summary


def _questions(benchmark: BenchmarkResponses, context: Context) -> QuestionSet | None:
    if context.background.read_questions is None:
        return None
    return next((entry for entry in context.background.read_questions().sets if entry.benchmark == benchmark.benchmark), None)


def _row(benchmark: BenchmarkResponses, model: int, found: Partition | PartitionSummary, options: HarmonyOptions, streams: Streams) -> HarmonyRow:
    empty = HarmonyRow(benchmark=benchmark.benchmark, model=benchmark.models[model], n=0)
    if isinstance(found, PartitionSummary):
        return empty.model_copy(update={"undefined": found.undefined})
    if not found.from_answers:
        return harmony_row(benchmark, model, found, options, streams)
    like = likeness_to_answers(benchmark, model, found)
    reason = found.summary.undefined or (FOLLOWS if like.circular else None)
    row = empty.model_copy(update={"undefined": reason}) if reason else harmony_row(benchmark, model, found, options, streams)
    return row.model_copy(update={"follows_choice": like.choice, "follows_correctness": like.correctness})


def examine(options: HarmonyOptions, tables: Mapping[str, bytes]) -> Iterator[Diagnostic]:
    """Yield everything that is wrong with the vectors of an encoder."""
    if options.embedding is not None and options.embedding.encoder is not None:
        yield from examine_vectors(options.embedding.encoder, tables)


def _adjusted(rows: list[HarmonyRow]) -> list[HarmonyRow]:
    """Add p-values adjusted by Holm over all rows; a row without a test counts as p = 1."""
    from evalspec.statistics.multiplicity import holm

    adjusted = [holm([1.0 if p is None else p for p in column]) for column in ([row.p_value for row in rows], [row.homogeneity_p for row in rows])]
    return [
        row.model_copy(
            update={
                "p_adjusted": None if row.p_value is None else float(of_harmony),
                "homogeneity_adjusted": None if row.homogeneity_p is None else float(of_homogeneity),
            }
        )
        for row, of_harmony, of_homogeneity in zip(rows, *adjusted, strict=True)
    ]


def estimates(result: HarmonyResult) -> tuple[Estimate, ...]:
    """Return per row `harmony`, `size_harmony`, `worst_group` and `group_gap`; all are undefined where the result is inconclusive."""
    return tuple(estimate for row in result.rows for estimate in _of_row(row, result))


def _of_row(row: HarmonyRow, result: HarmonyResult) -> Iterator[Estimate]:
    doubtful = f"inconclusive: {'; '.join(row.flags)}" if row.flags else None
    shared = Estimate(
        analysis="harmony",
        metric="harmony",
        benchmark=row.benchmark,
        models=(row.model,),
        value=None,
        method=f"empirical Bayes over {result.partition} groups",
        n=row.n,
        unit="index",
        undefined=row.undefined or doubtful,
    )
    tested = {"p_value": row.p_value, "p_adjusted": row.p_adjusted, "family_size": result.family_size}
    found = {"value": row.value, "low": row.low, "high": row.high, "confidence_level": result.level, **tested}
    yield shared if shared.undefined else shared.model_copy(update=found)
    # Groups of induced partitions that are doubtful say nothing; small subjects are subjects all the same.
    groups = shared.model_copy(update={"undefined": row.undefined or (doubtful if result.partition != "declared" else None)})
    if groups.undefined or row.lowest is None:
        yield from (groups.model_copy(update={"metric": metric, "unit": UNITS[metric]}) for metric in METRICS[1:])
        return
    yield groups.model_copy(update={"metric": "size_harmony", "value": row.size_harmony, "method": "sizes of the groups alone"})
    lowest = row.lowest
    limits = {} if lowest.low is None else {"low": lowest.low, "high": lowest.high, "confidence_level": result.level}
    about = f"lowest of {row.k} {'subjects' if result.partition == 'declared' else 'groups'}: {row.worst}"
    least = {"metric": "worst_group", "unit": "proportion", "value": lowest.value, "n": lowest.n, "method": about}
    yield groups.model_copy(update={**least, **limits})
    yield groups.model_copy(update={"metric": "group_gap", "unit": "proportion", "value": row.gap, "method": "best less worst group"})


def plot(result: HarmonyResult, axes: Axes) -> None:
    """Draw the groups of the models of least harmony, lowest group first."""
    axes.caption("Accuracy by group, each with the interval of that group alone: the lowest groups of the models of least harmony.")
    axes.scale("accuracy", percent=True)
    rows = sorted((row for row in result.rows if row.groups), key=lambda row: (row.value or 0.0, row.benchmark, row.model))
    most = max((min(DRAWN_GROUPS, len(row.groups)) for row in rows), default=1)
    for row in rows[: max(1, DRAWN_ROWS // most)]:
        for group in sorted(row.groups, key=lambda group: (group.value, group.group))[:DRAWN_GROUPS]:
            axes.interval(group.group, group.value, group.low, group.high, group=f"{row.model} on {row.benchmark}")


def plot_plane(result: HarmonyResult, axes: Axes) -> None:
    """Draw the mean and the variance of harmony over models, a point for each benchmark."""
    axes.caption("Mean and variance of harmony over models, by benchmark: upper left is where one accuracy speaks for the groups of most models.")
    axes.scale("mean harmony", percent=False)
    axes.across("variance of harmony over models")
    for point in result.plane:
        if point.mean is not None and point.variance is not None:
            axes.curve(point.benchmark, [Point(x=point.variance, y=point.mean)])


UNITS = {"harmony": "index", "size_harmony": "index", "worst_group": "proportion", "group_gap": "proportion"}
METRICS = tuple(UNITS)

HARMONY = "Uzunoglu, Li & Khashabi (2025), arXiv:2509.25671 (harmony; its constants and the declared partition are evalspec's choice)"
INTERVAL = (
    "DerSimonian & Laird (1986), Control. Clin. Trials 7, 177-188; Viechtbauer (2007), Stat. Med. 26, 37-52 (spread between groups); "
    "Fisher (1958), J. Am. Stat. Assoc. 53, 789-798 (groups in few levels)"
)
RESHUFFLED = "Phipson & Smyth (2010), Stat. Appl. Genet. Mol. Biol. 9, 39, doi:10.2202/1544-6115.1585 (reshuffled scores)"
HOMOGENEITY = "Cochran (1954), Biometrics 10, 417-451, doi:10.2307/3001616 (equal accuracy in all groups)"
REMOVED = "Fisher (1935), J. R. Stat. Soc. 98(1), 39-82, doi:10.2307/2342435 (removed questions)"
SPECTRAL = "von Luxburg (2007), Stat. Comput. 17, 395-416, doi:10.1007/s11222-007-9033-z (spectral clustering)"
WORDS = "Deerwester et al. (1990), J. Am. Soc. Inf. Sci. 41, 391-407 (vectors of words)"
SILHOUETTE = "Rousseeuw (1987), J. Comput. Appl. Math. 20, 53-65, doi:10.1016/0377-0427(87)90125-7 (silhouettes)"
AGREEMENT = "Hubert & Arabie (1985), J. Classif. 2, 193-218, doi:10.1007/BF01908075 (agreement of groups)"
SOURCES = (HARMONY, INTERVAL, RESHUFFLED, HOMOGENEITY, HOLM, REMOVED, SPECTRAL, WORDS, SILHOUETTE, AGREEMENT)


def sources_used(result: HarmonyResult) -> tuple[str, ...]:
    """Return the works behind the groups and the numbers of a result."""
    rows = result.rows
    made = {groups.source for groups in result.partitions if groups.swept}
    tested = any(row.p_value is not None or row.homogeneity_p is not None for row in rows)
    needed = {
        INTERVAL: any(row.value is not None for row in rows),
        RESHUFFLED: any(row.p_value is not None for row in rows),
        HOMOGENEITY: any(row.homogeneity_p is not None for row in rows),
        HOLM: tested and result.family_size > 1,
        REMOVED: any(row.rebalanced is not None and row.rebalanced.p_value is not None for row in rows),
        SPECTRAL: "predictive" in made,
        WORDS: any(groups.swept and groups.source == "embedding" and groups.vectors_sha256 is None for groups in result.partitions),
        SILHOUETTE: bool(made),
        AGREEMENT: bool(made),
    }
    return used(SOURCES, {HARMONY} | {work for work, wanted in needed.items() if wanted})


def stricter(options: HarmonyOptions, divisor: int) -> HarmonyOptions:
    """Return the same analysis with intervals that miss so many times less often."""
    return options.model_copy(update={"level": 1.0 - (1.0 - options.level) / divisor})


ANALYSIS = Analysis(
    kind="harmony",
    options=HarmonyOptions,
    result=HarmonyResult,
    compute=compute,
    metrics=METRICS,
    ordered=("worst_group",),
    estimates=estimates,
    tolerance=1e-6,
    template="analyses/harmony.html.j2",
    plot=plot,
    further_plots=(plot_plane,),
    examine=examine,
    stricter=stricter,
    sources=SOURCES,
    sources_used=sources_used,
)
