"""Which ranks can each model hold, and which models are not told apart?

All pairs of models are compared, and the comparisons are judged together: a model's ranks run from one more than the models that are separated
above it to the number of models less those separated below it. Models with the same answers throughout count as one in the comparisons, so that a
copy of a model moves nobody. Statistics are imported where they are used: scipy would double the start-up of verbs that compute nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from evalspec.analyses.designs import design_of, weighted
from evalspec.analyses.pairs import WEIGHTED, PairRow, Part, compare_pairs
from evalspec.artifacts.base import Artifact, Identifier
from evalspec.artifacts.findings import Estimate
from evalspec.artifacts.responses import BenchmarkResponses, Responses
from evalspec.protocols import Analysis, Axes, Context

Method = Literal["holm", "max_t"]
Separated = NDArray[np.bool_]

ONE_MODEL = "a ranking needs at least two models"
NO_COMMON = "fewer than two questions have a score from every model"
MOST_DRAWN = 100
MOST_MAX_T = 100
MOST_LETTERED = 100
TOO_MANY = f"max_t draws the statistics of all pairs, which is done for up to {MOST_MAX_T} models; holm has no such limit"


class TiersOptions(Artifact):
    """Rank intervals, groups of models that are not told apart, and the models that may be the best."""

    kind: Literal["tiers"]
    method: Method = Field(
        default="holm",
        description="`holm`: the paired test of every pair, adjusted by Holm's method; `max_t`: every direction of every pair, judged by the largest "
        "of their correlated statistics, step by step.",
    )
    alpha: Annotated[float, Field(gt=0, le=0.5)] = Field(default=0.05, description="The error rate of all comparisons of all benchmarks together.")
    draws: Annotated[int, Field(ge=1000, le=200_000)] = Field(default=20_000, description="Draws of the largest statistic, for `max_t`.")


class TierRow(Artifact):
    """One model: its score, its observed rank (models with one score share the better rank), the ranks it may hold, and its letters.

    `alike` names the models that have this one's score on every question. Letters are left out among too many models.
    """

    benchmark: Identifier
    model: Identifier
    score: float | None = None
    rank: int | None = None
    low: int | None = None
    high: int | None = None
    letters: tuple[str, ...] = ()
    possible_best: bool | None = None
    alike: tuple[Identifier, ...] = ()
    undefined: str | None = None


class TierBenchmark(Artifact):
    """One benchmark: its questions, those left out, comparisons made and separated, and the last critical value of `max_t` with its error."""

    benchmark: Identifier
    n: int
    dropped: int = 0
    comparisons: int = 0
    separated: int = 0
    undecided: int = 0
    critical: float | None = None
    critical_error: float | None = None
    undefined: str | None = None


class TiersResult(Artifact):
    """Every model of every benchmark, by score; `family_size` counts the comparisons that are judged together."""

    method: Method
    alpha: float
    draws: int | None
    family_size: int
    most_lettered: int
    benchmarks: tuple[TierBenchmark, ...]
    rows: tuple[TierRow, ...]


@dataclass(frozen=True, slots=True)
class _Field:
    """The models of a benchmark on the questions that all of them have a score for; `kinds` are models of equal scores throughout, best first."""

    benchmark: BenchmarkResponses
    complete: NDArray[np.bool_]
    scores: NDArray[np.float64]
    kinds: tuple[tuple[int, ...], ...]

    @property
    def representatives(self) -> list[int]:
        """One model of each kind."""
        return [kind[0] for kind in self.kinds]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Every two kinds, the one with the higher score first."""
        return list(combinations(range(len(self.kinds)), 2))


@dataclass(frozen=True, slots=True)
class _Judged:
    """Which kinds are better than which, (K, K), and what is said about the benchmark."""

    better: Separated
    about: TierBenchmark


def compute(responses: Responses, options: TiersOptions, context: Context) -> TiersResult:
    """Return rank intervals and letters of all models."""
    fields: list[_Field] = []
    refused: dict[str, str] = {}
    for benchmark in responses.benchmarks:
        try:
            fields.append(_field(benchmark, options))
        except ValueError as error:
            refused[benchmark.benchmark] = str(error)
    judge = _by_holm if options.method == "holm" else _by_max_t
    judged = {field.benchmark.benchmark: found for field, found in zip(fields, judge(fields, options, context), strict=True)}
    about: list[TierBenchmark] = []
    rows: list[TierRow] = []
    for benchmark in responses.benchmarks:
        name, reason = benchmark.benchmark, refused.get(benchmark.benchmark)
        if reason is None:
            field = next(field for field in fields if field.benchmark is benchmark)
            about.append(judged[name].about)
            rows += _rows(field, judged[name].better)
        else:
            about.append(TierBenchmark(benchmark=name, n=len(benchmark.questions), undefined=reason))
            rows += [TierRow(benchmark=name, model=model, undefined=reason) for model in benchmark.models]
    return TiersResult(
        method=options.method,
        alpha=options.alpha,
        draws=options.draws if options.method == "max_t" else None,
        family_size=sum(entry.comparisons for entry in about),
        most_lettered=MOST_LETTERED,
        benchmarks=tuple(about),
        rows=tuple(rows),
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
    """Return the same analysis with a family that errs so many times less often."""
    return options.model_copy(update={"alpha": options.alpha / divisor})


def _models(result: TiersResult) -> Counter[str]:
    return Counter(row.benchmark for row in result.rows)


def _field(benchmark: BenchmarkResponses, options: TiersOptions) -> _Field:
    if len(benchmark.models) < 2:
        raise ValueError(ONE_MODEL)
    if weighted(benchmark):
        raise ValueError(WEIGHTED)
    if options.method == "max_t" and len(benchmark.models) > MOST_MAX_T:
        raise ValueError(TOO_MANY)
    scores = benchmark.settled()
    complete = np.asarray(~np.isnan(scores).any(axis=0))
    if complete.sum() < 2:
        raise ValueError(NO_COMMON)
    means = scores[:, complete].mean(axis=1)
    alike: dict[bytes, list[int]] = {}
    for model in sorted(range(len(means)), key=lambda model: (-round(float(means[model]), 12), benchmark.models[model])):
        alike.setdefault(scores[model, complete].tobytes(), []).append(model)
    return _Field(benchmark, complete, scores, tuple(tuple(kind) for kind in alike.values()))


def _by_holm(fields: Sequence[_Field], options: TiersOptions, context: Context) -> Iterator[_Judged]:
    """Adjust the paired tests of all pairs of all benchmarks together; a pair without a test counts as p = 1."""
    from evalspec.statistics.multiplicity import holm

    rows = [_compared(field, context) for field in fields]
    raw = [1.0 if row.p_value is None else row.p_value for group in rows for row in group]
    adjusted = iter(holm(raw).tolist())
    for field, group in zip(fields, rows, strict=True):
        better = np.zeros((len(field.kinds), len(field.kinds)), dtype=np.bool_)
        for (first, second), row in zip(field.pairs, group, strict=True):
            if next(adjusted) <= options.alpha and row.difference:
                better[(first, second) if row.difference > 0 else (second, first)] = True
        yield _Judged(better, _about(field, better, undecided=sum(row.p_value is None for row in group)))


def _compared(field: _Field, context: Context) -> tuple[PairRow, ...]:
    names, one = field.benchmark.models, field.representatives
    pairs = [(names[one[first]], names[one[second]]) for first, second in field.pairs]
    part = Part(field.complete, design_of(field.benchmark))
    return compare_pairs(field.benchmark, pairs, context, level=0.95, part=part) if pairs else ()


def _by_max_t(fields: Sequence[_Field], options: TiersOptions, context: Context) -> Iterator[_Judged]:
    """Test both directions of every pair, step by step; each benchmark takes its part of alpha."""
    from evalspec.statistics.max_t import pair_statistics, stepped_down

    for field in fields:
        better = np.zeros((len(field.kinds), len(field.kinds)), dtype=np.bool_)
        if not field.pairs:
            yield _Judged(better, _about(field, better, undecided=0))
            continue
        clusters = [label for label, kept in zip(field.benchmark.clusters, field.complete, strict=True) if kept] if field.benchmark.clusters else None
        directions = [*field.pairs, *((second, first) for first, second in field.pairs)]
        scores = field.scores[field.representatives][:, field.complete]
        statistics = pair_statistics(scores, directions, clusters=clusters)
        found = stepped_down(statistics, alpha=options.alpha / len(fields), draws=options.draws, rng=context.rng)
        for direction, rejected in zip(directions, found.rejected.tolist(), strict=True):
            better[direction] = rejected
        about = _about(field, better, undecided=int(np.sum(statistics.errors == 0.0)) // 2)
        yield _Judged(better, about.model_copy(update={"critical": found.critical_value, "critical_error": found.standard_error}))


def _about(field: _Field, better: Separated, *, undecided: int) -> TierBenchmark:
    return TierBenchmark(
        benchmark=field.benchmark.benchmark,
        n=int(field.complete.sum()),
        dropped=int((~field.complete).sum()),
        comparisons=len(field.pairs),
        separated=int(better.sum()),
        undecided=undecided,
    )


def _rows(field: _Field, better: Separated) -> Iterator[TierRow]:
    from evalspec.statistics.tiers import compact_letters, rank_intervals

    kind_of = {model: place for place, kind in enumerate(field.kinds) for model in kind}
    models = list(kind_of)
    places = [kind_of[model] for model in models]
    ranks = rank_intervals(better[places][:, places])
    lettered = len(models) <= MOST_LETTERED
    apart = [(int(first), int(second)) for first, second in np.argwhere(better)] if lettered else []
    letters = compact_letters(len(field.kinds), apart) if lettered else ((),) * len(field.kinds)
    means = field.scores[:, field.complete].mean(axis=1)
    for row, model in enumerate(models):
        kind = field.kinds[kind_of[model]]
        yield TierRow(
            benchmark=field.benchmark.benchmark,
            model=field.benchmark.models[model],
            score=float(means[model]),
            rank=1 + int(np.sum(means > means[model] + 1e-12)),
            low=ranks.low[row],
            high=ranks.high[row],
            letters=tuple(_letter(number) for number in letters[kind_of[model]]),
            possible_best=ranks.low[row] == 1,
            alike=tuple(field.benchmark.models[other] for other in kind if other != model),
        )


def _letter(number: int) -> str:
    """Name group 0 a, 25 z, 26 aa, 27 ab."""
    name = ""
    while number >= 0:
        name = chr(ord("a") + number % 26) + name
        number = number // 26 - 1
    return name


ANALYSIS = Analysis(
    kind="tiers",
    options=TiersOptions,
    result=TiersResult,
    compute=compute,
    metrics=("rank",),
    estimates=estimates,
    tolerance=1e-9,
    template="analyses/tiers.html.j2",
    plot=plot,
    stricter=stricter,
    least_models=2,
    sources=(
        "Mogstad, Romano, Shaikh & Wilhelm (2024), Rev. Econ. Stud. 91, 476-518, doi:10.1093/restud/rdad006 (rank intervals, possible best)",
        "Holm (1979), Scand. J. Statist. 6(2), 65-70",
        "Romano & Wolf (2005), Econometrica 73, 1237-1282, doi:10.1111/j.1468-0262.2005.00615.x (step-down max-T)",
        "Piepho (2004), J. Comput. Graph. Statist. 13, 456-466, doi:10.1198/1061860043515 (letters)",
        "McNemar (1947), Psychometrika 12(2), 153-157, doi:10.1007/BF02295996",
    ),
)
