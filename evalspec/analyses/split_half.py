"""How much of a winner's lead is left on questions that did not choose it?

Questions are split at random into halves, again and again: one half chooses the winner, the other shows its lead over the runner-up of the half that
chose. Splits describe this set of questions; no threshold can rest on them. Statistics are imported where they are used: numpy and scipy would
double the start-up of verbs that compute nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from evalspec.analyses.pools import Drawable, Pool, drawable, refuses
from evalspec.artifacts.base import Artifact, Identifier
from evalspec.artifacts.findings import Estimate
from evalspec.protocols import Analysis, Axes, Context

if TYPE_CHECKING:
    from evalspec.artifacts.responses import BenchmarkResponses, Responses
    from evalspec.statistics.differences import PairedCounts
    from evalspec.statistics.rankings import SimulatedHalves

LEVEL = 0.95
SHOWN_FROM = 0.01
TOO_FEW = "a half of the questions needs at least one question, of every subject where subjects are strata"
NO_LEAD = "the half that chooses shows no lead on average"
SMALL_LEAD = "the lead on the half that chooses is less than one question on average, too little to take a share of"


class SplitHalfOptions(Artifact):
    """How often both halves of the questions choose the same winner, and how much of its lead the other half confirms."""

    kind: Literal["split_half"]
    draws: Annotated[int, Field(ge=1000, le=1_000_000)] = Field(default=20_000, description="Random splits.")


class Simulated(Artifact):
    """A mean over splits, its Monte Carlo standard error, and the interval of what more splits would give."""

    value: float | None
    error: float | None = None
    low: float | None = None
    high: float | None = None
    undefined: str | None = None


class ExactHalves(Artifact):
    """The first two models alone, over all splits: no simulation, so no Monte Carlo error."""

    same_winner: float
    lead_selected: float
    lead_held_out: float
    shrinkage: float | None = None
    undefined: str | None = None


class SplitHalfRow(Artifact):
    """One benchmark: sizes of both halves, what the splits show, and how often each model wins the half that chooses.

    `shrinkage` is the share of the lead on the half that chose which the other half does not confirm.
    """

    benchmark: Identifier
    chosen_on: int
    shown_on: int
    same_winner: Simulated
    lead_selected: Simulated
    lead_held_out: Simulated
    shrinkage: Simulated
    wins: tuple[float, ...]
    exact: ExactHalves | None = None


class SplitHalfResult(Artifact):
    """Every benchmark that can be split; `largest_error` is the largest Monte Carlo standard error of a model's share of wins."""

    draws: int
    level: float
    shown_from: float
    largest_error: float
    pools: tuple[Pool, ...]
    rows: tuple[SplitHalfRow, ...]


def compute(responses: Responses, options: SplitHalfOptions, context: Context) -> SplitHalfResult:
    """Return what random halves show on every benchmark."""
    pools: list[Pool] = []
    rows: list[SplitHalfRow] = []
    for benchmark in responses.benchmarks:
        try:
            found = _splittable(benchmark)
        except ValueError as error:
            pools.append(Pool(benchmark=benchmark.benchmark, n=len(benchmark.questions), undefined=str(error)))
            continue
        pools.append(found.pool)
        rows.append(_row(found, options, context))
    largest = max((math.sqrt(share * (1.0 - share) / options.draws) for row in rows for share in row.wins), default=0.0)
    return SplitHalfResult(draws=options.draws, level=LEVEL, shown_from=SHOWN_FROM, largest_error=largest, pools=tuple(pools), rows=tuple(rows))


def estimates(_result: SplitHalfResult) -> tuple[Estimate, ...]:
    """Return nothing: splits of one set of questions give no interval for what holds beyond it."""
    return ()


def plot(result: SplitHalfResult, axes: Axes) -> None:
    """Draw the lead on the half that chose and on the other, by benchmark."""
    axes.caption(
        "Mean lead of the winner over the runner-up, on the half that chose them and on the other half; "
        f"bars are {result.level * 100:g} % Monte Carlo intervals of the simulation."
    )
    axes.scale("lead over the runner-up")
    axes.reference(0.0, "no lead")
    for row in result.rows:
        for label, lead, muted in (("on the half that chose", row.lead_selected, True), ("on the other half", row.lead_held_out, False)):
            axes.interval(label, lead.value, lead.low, lead.high, group=row.benchmark, muted=muted)


def _splittable(benchmark: BenchmarkResponses) -> Drawable:
    found = drawable(benchmark)
    if found.patterns.sizes.min() < 2:
        raise ValueError(TOO_FEW)
    return found


def _row(found: Drawable, options: SplitHalfOptions, context: Context) -> SplitHalfRow:
    from evalspec.statistics.rankings import monte_carlo_interval, simulated_split_halves

    halves = simulated_split_halves(found.patterns, draws=options.draws, rng=context.rng)
    limits = monte_carlo_interval(halves.same_winner, options.draws, level=LEVEL)
    chosen_on = int((found.patterns.sizes // 2).sum())
    return SplitHalfRow(
        benchmark=found.pool.benchmark,
        chosen_on=chosen_on,
        shown_on=found.pool.n - chosen_on,
        same_winner=Simulated(value=halves.same_winner, error=halves.same_winner_error, low=limits.low, high=limits.high),
        lead_selected=_mean(halves.lead_selected, halves.lead_selected_error),
        lead_held_out=_mean(halves.lead_held_out, halves.lead_held_out_error),
        shrinkage=_shrinkage(halves, chosen_on),
        wins=halves.wins,
        exact=None if found.leaders is None else _exact(found.leaders, chosen_on),
    )


def _mean(value: float | None, error: float | None) -> Simulated:
    from evalspec.statistics.arguments import two_sided_z

    if value is None or error is None:
        return Simulated(value=None, undefined=NO_LEAD)
    reach = two_sided_z(LEVEL) * error
    return Simulated(value=value, error=error, low=value - reach, high=value + reach)


def _shrinkage(halves: SimulatedHalves, chosen_on: int) -> Simulated:
    if halves.shrinkage is not None and halves.lead_selected * chosen_on < 1.0:
        return Simulated(value=None, undefined=SMALL_LEAD)
    return _mean(halves.shrinkage, halves.shrinkage_error)


def _exact(leaders: PairedCounts, chosen_on: int) -> ExactHalves:
    from evalspec.statistics.redraws import split_halves

    halves = split_halves(leaders)
    shrinkage = 1.0 - halves.lead_held_out / halves.lead_selected if halves.lead_selected * chosen_on >= 1.0 else None
    return ExactHalves(
        same_winner=halves.same_winner,
        lead_selected=halves.lead_selected,
        lead_held_out=halves.lead_held_out,
        shrinkage=shrinkage,
        undefined=None if shrinkage is not None else SMALL_LEAD if halves.lead_selected > 0.0 else NO_LEAD,
    )


SOURCES = (
    "Andrews, Kitagawa & McCloskey (2024), Q. J. Econ. 139, 305-358, doi:10.1093/qje/qjad043 (the winner's curse)",
    "Politis & Romano (1994), Ann. Stat. 22, 2031-2050, doi:10.1214/aos/1176325770 (subsampling)",
)


def sources_used(result: SplitHalfResult) -> tuple[str, ...]:
    """Return the works behind a result, nothing where nothing could be split."""
    return SOURCES if result.rows else ()


ANALYSIS = Analysis(
    kind="split_half",
    options=SplitHalfOptions,
    result=SplitHalfResult,
    compute=compute,
    metrics=(),
    estimates=estimates,
    tolerance=1e-9,
    template="analyses/split_half.html.j2",
    plot=plot,
    least_models=2,
    refuses=refuses,
    sources=SOURCES,
    sources_used=sources_used,
)
