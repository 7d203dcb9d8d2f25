"""Which ranks can each model hold, and which models are not told apart?

All pairs of models are compared, and the comparisons are judged together: a model's ranks run from one more than the models that are separated above
it to the number of models less those separated below it. Which models are separated is the question of `separations`. Statistics are imported where
they are used: numpy and scipy would double the start-up of verbs that compute nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from evalspec.analyses.scores import as_recorded, declared_scores
from evalspec.analyses.sources import DIFFERENCES, FLIPS, HOLM, MCNEMAR, RANDOM_FLIPS, behind_pairs, used
from evalspec.analyses.tiers_results import TierBenchmark, TierRow, TiersOptions, TiersResult
from evalspec.artifacts.findings import Estimate
from evalspec.artifacts.thresholds import Check
from evalspec.protocols import Analysis, Axes, CheckTest, Context

if TYPE_CHECKING:
    from evalspec.analyses.separations import Contest, Separation
    from evalspec.artifacts.responses import BenchmarkResponses, Responses

MOST_DRAWN = 40
MOST_MAX_T = 100
MOST_LETTERED = 100
TOO_MANY = f"max_t draws the statistics of all pairs, which is done for up to {MOST_MAX_T} models; holm has no such limit"
ONE_CLUSTER = "needs at least 2 clusters; got 1, and one cluster has no spread between clusters"


def compute(responses: Responses, options: TiersOptions, context: Context) -> TiersResult:
    """Return rank intervals and letters of all models."""
    contests: dict[str, Contest] = {}
    refused: dict[str, str] = {}
    for benchmark in responses.benchmarks:
        try:
            contests[benchmark.benchmark] = _contest(benchmark, options)
        except ValueError as error:
            refused[benchmark.benchmark] = str(error)
    separations = dict(zip(contests, _separated(tuple(contests.values()), options, context), strict=True))
    about: list[TierBenchmark] = []
    rows: list[TierRow] = []
    for benchmark in responses.benchmarks:
        name = benchmark.benchmark
        if name in refused:
            about.append(TierBenchmark(benchmark=name, n=len(benchmark.questions), undefined=refused[name]))
            rows += [TierRow(benchmark=name, model=model, undefined=refused[name]) for model in benchmark.models]
        else:
            about.append(_about(contests[name], separations[name]))
            rows += _rows(contests[name], separations[name])
    return TiersResult(
        method=options.method,
        alpha=options.alpha,
        draws=options.draws if options.method == "max_t" else None,
        family_size=sum(entry.comparisons for entry in about),
        most_lettered=MOST_LETTERED,
        benchmarks=tuple(about),
        rows=tuple(rows),
        scores=declared_scores(responses),
    )


def estimates(result: TiersResult) -> tuple[Estimate, ...]:
    """Return one `rank` estimate per model; 1 is the best rank."""
    questions = {entry.benchmark: entry.n for entry in result.benchmarks}
    return tuple(
        Estimate(
            analysis="tiers",
            metric="rank",
            benchmark=row.benchmark,
            models=(row.model,),
            value=row.rank,
            low=row.low,
            high=row.high,
            confidence_level=1.0 - result.alpha,
            method=f"{result.method}, all pairs",
            family_size=result.family_size,
            jointly=True,
            n=questions[row.benchmark],
            unit="rank",
            polarity="lower_is_better",
            undefined=row.undefined,
        )
        for row in result.rows
    )


def plot(result: TiersResult, axes: Axes) -> None:
    """Draw the ranks that each model may hold, by benchmark."""
    cut = f"; only the first {MOST_DRAWN} models of a benchmark are drawn" if max(_models(result).values(), default=0) > MOST_DRAWN else ""
    axes.caption(f"Ranks that each model may hold, given which models are separated, with its observed rank{cut}.")
    axes.scale("rank, 1 is best", percent=False, whole=True)
    drawn: Counter[str] = Counter()
    for row in result.rows:
        drawn[row.benchmark] += 1
        if drawn[row.benchmark] <= MOST_DRAWN:
            axes.interval(row.model, row.rank, row.low, row.high, group=row.benchmark)


def stricter(options: TiersOptions, divisor: int) -> TiersOptions:
    """Return the same analysis with a family that errs so many times less often; its rank intervals hold all together."""
    return options.model_copy(update={"alpha": options.alpha / divisor})


def check_test(options: TiersOptions, _check: Check, models: Sequence[str], benchmarks: int) -> CheckTest:
    """Return what a check of a rank rests on; with which power is not known before scoring."""
    # Holm's method asks of a two-sided p-value of a pair what it asks of the smaller one of its two directions.
    directions = None if options.method == "max_t" else len(models) * (len(models) - 1) * benchmarks
    return CheckTest(f"ranks_{options.method}", options.alpha, exact_means=options.method == "exact", directions=directions)


def _models(result: TiersResult) -> Counter[str]:
    return Counter(row.benchmark for row in result.rows)


def _contest(benchmark: BenchmarkResponses, options: TiersOptions) -> Contest:
    from evalspec.analyses.separations import contest_of

    contest = contest_of(benchmark)
    if options.method == "max_t" and len(benchmark.models) > MOST_MAX_T:
        raise ValueError(TOO_MANY)
    if options.method == "max_t" and len(set(contest.clusters)) == 1:
        raise ValueError(ONE_CLUSTER)
    return contest


def _separated(contests: Sequence[Contest], options: TiersOptions, context: Context) -> Iterator[Separation]:
    from evalspec.analyses.separations import separated_by_holm, separated_by_max_t

    if options.method == "max_t":
        return separated_by_max_t(contests, context, alpha=options.alpha, draws=options.draws)
    return separated_by_holm(contests, context, alpha=options.alpha, exact=options.method == "exact")


def _about(contest: Contest, separation: Separation) -> TierBenchmark:
    asked = int(contest.complete.sum())
    return TierBenchmark(
        benchmark=contest.benchmark.benchmark,
        n=asked,
        dropped=contest.complete.size - asked,
        comparisons=len(contest.pairs),
        separated=int(separation.better.sum()),
        undecided=separation.undecided,
        critical=separation.critical,
        critical_error=separation.critical_error,
        tests=separation.tests,
        caution=separation.caution,
    )


def _rows(contest: Contest, separation: Separation) -> Iterator[TierRow]:
    from evalspec.statistics.tiers import compact_letters, rank_intervals

    kind_of = {model: place for place, kind in enumerate(contest.kinds) for model in kind}
    places = list(kind_of.values())
    ranks = rank_intervals(separation.better[places][:, places])
    lettered = len(kind_of) <= MOST_LETTERED
    apart = zip(*(index.tolist() for index in separation.better.nonzero()), strict=True)
    letters = compact_letters(len(contest.kinds), apart) if lettered else ((),) * len(contest.kinds)
    means = contest.means
    for row, (model, place) in enumerate(kind_of.items()):
        yield TierRow(
            benchmark=contest.benchmark.benchmark,
            model=contest.benchmark.models[model],
            score=as_recorded(float(means[model]), contest.benchmark),
            rank=1 + int((means > means[model] + 1e-12).sum()),
            low=ranks.low[row],
            high=ranks.high[row],
            letters=tuple(_letter(number) for number in letters[place]),
            possible_best=ranks.low[row] == 1,
            alike=tuple(contest.benchmark.models[other] for other in contest.kinds[place] if other != model),
        )


def _letter(number: int) -> str:
    """Name group 0 a, 25 z, 26 aa, 27 ab."""
    name = ""
    while number >= 0:
        name = chr(ord("a") + number % 26) + name
        number = number // 26 - 1
    return name


RANKS = "Mogstad, Romano, Shaikh & Wilhelm (2024), Rev. Econ. Stud. 91, 476-518, doi:10.1093/restud/rdad006 (rank intervals, possible best)"
MAX_T = "Romano & Wolf (2005), Econometrica 73, 1237-1282, doi:10.1111/j.1468-0262.2005.00615.x (step-down max-T)"
LETTERS = "Piepho (2004), J. Comput. Graph. Stat. 13, 456-466, doi:10.1198/1061860043515 (letters)"
SOURCES = (RANKS, HOLM, MAX_T, FLIPS, RANDOM_FLIPS, LETTERS, MCNEMAR, *DIFFERENCES)


def sources_used(result: TiersResult) -> tuple[str, ...]:
    """Return the works behind a result, nothing where no ranks could be given."""
    if not any(row.rank for row in result.rows):
        return ()
    judged = (MAX_T, FLIPS, RANDOM_FLIPS) if result.method == "max_t" else (HOLM,)
    works = {RANKS, *judged, *((LETTERS,) if any(row.letters for row in result.rows) else ())}
    return used(SOURCES, works | behind_pairs(test for entry in result.benchmarks for test in entry.tests))


ANALYSIS = Analysis(
    kind="tiers",
    options=TiersOptions,
    result=TiersResult,
    compute=compute,
    metrics=("rank",),
    ordered=("rank",),
    estimates=estimates,
    tolerance=1e-9,
    template="analyses/tiers.html.j2",
    plot=plot,
    check_test=check_test,
    stricter=stricter,
    gate_defaults={"method": "exact"},
    least_models=2,
    most_models={("method", "max_t"): MOST_MAX_T},
    sources=SOURCES,
    sources_used=sources_used,
)
