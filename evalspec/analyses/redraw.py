"""How stable is the ranking: would the first model stay first, and the first few keep their order, on a benchmark of another size?

Questions are drawn again from those at hand, whole rows of answers at a time, so that models stay paired. The frequencies describe how a ranking by
score behaves; they are no confidence in it, and no threshold can rest on them. Statistics are imported where they are used: numpy and scipy would
double the start-up of verbs that compute nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from evalspec.analyses.pools import Drawable, Pool, drawable, refuses
from evalspec.artifacts.base import Artifact, Identifier
from evalspec.artifacts.findings import Estimate
from evalspec.protocols import Analysis, Axes, Context, Point

if TYPE_CHECKING:
    from evalspec.artifacts.responses import Responses
    from evalspec.statistics.rankings import RedrawnRanking

GRID = (30, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000)
LEVEL = 0.95
SHOWN_FROM = 0.01

Size = Annotated[PositiveInt, Field(le=1_000_000)]


class RedrawOptions(Artifact):
    """How often the first model stays first, and the first few keep their order, when questions are drawn again."""

    kind: Literal["redraw"]
    sizes: Annotated[tuple[Size, ...], Field(max_length=30)] = Field(
        default=(), description="Numbers of questions per draw; by default round numbers up to the questions at hand."
    )
    top: Annotated[int, Field(ge=1, le=10)] = Field(default=3, description="How many of the first models must keep their order.")
    draws: Annotated[int, Field(ge=1000, le=1_000_000)] = Field(default=20_000, description="Draws at each size.")
    replacement: Literal["with", "without"] = Field(
        default="with",
        description="`with` replacement: a new sample from a population like these questions; `without`: a smaller version of this very benchmark.",
    )

    @model_validator(mode="after")
    def _sizes_differ(self) -> Self:
        if len(set(self.sizes)) < len(self.sizes):
            raise ValueError("a size is named twice")
        return self


class Frequency(Artifact):
    """A frequency of the simulation, its Monte Carlo standard error, and the Wilson interval of what more draws would give."""

    value: float
    error: float
    low: float
    high: float


class RedrawRow(Artifact):
    """One benchmark at one size. `first` is how often each model comes first, in the order of the pool's models.

    `ahead` is the exact probability that the first model is ahead of the second alone, where a closed form gives it.
    """

    benchmark: Identifier
    questions: int
    top_stays: Frequency | None = None
    order_kept: Frequency | None = None
    first: tuple[float, ...] = ()
    ahead: float | None = None
    undefined: str | None = None


class RedrawResult(Artifact):
    """Every size of every benchmark; `top` is the number of models asked for, of which a benchmark may have fewer.

    `largest_error` is the largest Monte Carlo standard error of a model's share of first places.
    """

    replacement: Literal["with", "without"]
    draws: int
    top: int
    level: float
    shown_from: float
    largest_error: float
    pools: tuple[Pool, ...]
    rows: tuple[RedrawRow, ...]


def compute(responses: Responses, options: RedrawOptions, context: Context) -> RedrawResult:
    """Return how often rankings hold at every size."""
    pools: list[Pool] = []
    rows: list[RedrawRow] = []
    for benchmark in responses.benchmarks:
        try:
            found = drawable(benchmark)
        except ValueError as error:
            pools.append(Pool(benchmark=benchmark.benchmark, n=len(benchmark.questions), undefined=str(error)))
            continue
        pools.append(found.pool)
        rows += _rows(found, options, context)
    return RedrawResult(
        replacement=options.replacement,
        draws=options.draws,
        top=options.top,
        level=LEVEL,
        shown_from=SHOWN_FROM,
        largest_error=max((math.sqrt(share * (1.0 - share) / options.draws) for row in rows for share in row.first), default=0.0),
        pools=tuple(pools),
        rows=tuple(rows),
    )


def estimates(_result: RedrawResult) -> tuple[Estimate, ...]:
    """Return nothing: a frequency of redraws has no interval for what holds beyond these questions."""
    return ()


def plot(result: RedrawResult, axes: Axes) -> None:
    """Draw both frequencies over the number of questions, a panel per benchmark."""
    axes.caption(
        "How often the model with the best score stays first, and the first few keep their order, by number of questions drawn; "
        f"bands are {result.level * 100:g} % Monte Carlo intervals."
    )
    axes.scale("frequency in redraws", span=(0.0, 1.0))
    axes.across("questions in a draw", logarithmic=True)
    for pool in result.pools:
        rows = [row for row in result.rows if row.benchmark == pool.benchmark and row.top_stays is not None]
        top = min(result.top, len(pool.models))
        axes.curve("the first model stays first", [_point(row.questions, row.top_stays) for row in rows if row.top_stays], group=pool.benchmark)
        if top > 1 and len(pool.models) > 2:
            kept = [_point(row.questions, row.order_kept) for row in rows if row.order_kept]
            axes.curve(f"the first {top} keep their order", kept, group=pool.benchmark, muted=True)


def _point(questions: int, frequency: Frequency) -> Point:
    return Point(float(questions), frequency.value, frequency.low, frequency.high)


def _rows(found: Drawable, options: RedrawOptions, context: Context) -> Iterator[RedrawRow]:
    from evalspec.statistics.rankings import RedrawPlan, redraw_rankings

    sizes = sorted(options.sizes) or _grid(found.pool.n, options)
    reasons = {size: _why_undefined(found, size, options) for size in sizes}
    plans = [RedrawPlan(size, options.draws, options.replacement) for size in sizes if reasons[size] is None]
    order = list(range(min(options.top, len(found.pool.models))))
    rankings = iter(redraw_rankings(found.patterns, plans, order=order, rng=context.rng))
    for size in sizes:
        empty = RedrawRow(benchmark=found.pool.benchmark, questions=size, undefined=reasons[size])
        yield _row(empty, next(rankings), found, options) if reasons[size] is None else empty


def _grid(questions: int, options: RedrawOptions) -> list[int]:
    """Choose round sizes below the number of questions, parts of few questions, and their number itself where that does not repeat the set."""
    below = [size for size in GRID if size < questions]
    if len(below) < 2:
        below = sorted({questions // part for part in (8, 4, 2)} - {0})
    return [*below, questions] if options.replacement == "with" else below or [questions]


def _why_undefined(found: Drawable, size: int, options: RedrawOptions) -> str | None:
    from evalspec.statistics.rankings import RedrawPlan
    from evalspec.statistics.redrawn_totals import taken_per_stratum

    try:
        taken_per_stratum(found.patterns, RedrawPlan(size, options.draws, options.replacement))
    except ValueError as error:
        return str(error)
    return None


def _row(empty: RedrawRow, ranking: RedrawnRanking, found: Drawable, options: RedrawOptions) -> RedrawRow:
    from evalspec.statistics.redraws import ahead_with_replacement, ahead_without_replacement

    exactly = ahead_with_replacement if options.replacement == "with" else ahead_without_replacement
    return empty.model_copy(
        update={
            "top_stays": _frequency(ranking.first[0], ranking),
            "order_kept": _frequency(ranking.order, ranking),
            "first": ranking.first,
            "ahead": None if found.leaders is None else exactly(found.leaders, empty.questions),
        }
    )


def _frequency(value: float, ranking: RedrawnRanking) -> Frequency:
    from evalspec.statistics.rankings import monte_carlo_interval

    limits = monte_carlo_interval(value, ranking.draws, level=LEVEL)
    return Frequency(value=value, error=ranking.standard_error(value), low=limits.low, high=limits.high)


SMALLER = "Politis & Romano (1994), Ann. Stat. 22, 2031-2050, doi:10.1214/aos/1176325770 (subsampling)"
AGAIN = "Bickel, Götze & van Zwet (1997), Stat. Sinica 7, 1-31 (drawing fewer questions than there are)"
SOURCES = (
    AGAIN,
    SMALLER,
    "Hall & Miller (2009), Ann. Stat. 37, 3929-3959, doi:10.1214/09-AOS699 (what redrawn rankings cannot show)",
    "Xie, Singh & Zhang (2009), J. Am. Stat. Assoc. 104, 775-788, doi:10.1198/jasa.2009.0142 (ranks under near ties)",
    "Hoeffding (1963), J. Am. Stat. Assoc. 58, 13-30, doi:10.1080/01621459.1963.10500830 (models left out of a draw)",
)


def sources_used(result: RedrawResult) -> tuple[str, ...]:
    """Return the works behind a result, nothing where nothing could be drawn."""
    if not any(row.top_stays for row in result.rows):
        return ()
    return tuple(work for work in SOURCES if work != (SMALLER if result.replacement == "with" else AGAIN))


ANALYSIS = Analysis(
    kind="redraw",
    options=RedrawOptions,
    result=RedrawResult,
    compute=compute,
    metrics=(),
    estimates=estimates,
    tolerance=1e-9,
    template="analyses/redraw.html.j2",
    plot=plot,
    least_models=2,
    refuses=refuses,
    sources=SOURCES,
    sources_used=sources_used,
)
