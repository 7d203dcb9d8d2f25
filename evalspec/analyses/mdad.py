"""From which gap on does a small sample of the questions rank two models as all of them do?

MDAD, the minimum detectable ability difference: half of the questions is the reference, a sample of it is all that is asked, and pairs of models
are grouped by their gap on the reference. The answer is the smallest gap at which the sample ranks a wanted share of pairs the right way round.
It speaks of rankings among the models at hand and detects nothing: no test stands behind it, and no threshold can rest on it. Statistics are
imported where they are used: scipy would double the start-up of verbs that compute nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evalspec.analyses.mdad_results import MdadBenchmark, MdadOptions, MdadResult, MdadRow
from evalspec.artifacts.findings import Estimate
from evalspec.protocols import Analysis, Axes, Context, Point

if TYPE_CHECKING:
    from evalspec.artifacts.responses import Responses

MOST_DRAWN = 4
"""Curves of one panel that can be told apart."""


def compute(responses: Responses, options: MdadOptions, context: Context) -> MdadResult:
    """Return MDAD of every sampler and size on every benchmark."""
    from evalspec.analyses.mdad_rows import draw, rows

    about: list[MdadBenchmark] = []
    found: list[MdadRow] = []
    for benchmark, rng in zip(responses.benchmarks, context.rng.spawn(len(responses.benchmarks)), strict=True):
        try:
            drawn = draw(benchmark, options, rng)
        except ValueError as error:
            about.append(MdadBenchmark(benchmark=benchmark.benchmark, n=len(benchmark.questions), undefined=str(error)))
            continue
        about.append(drawn.about)
        found += rows(drawn, options, rng)
    return MdadResult(
        agreement=options.agreement,
        ties=options.ties,
        bin_width=options.bin_width,
        bins=options.bins,
        min_pairs=options.min_pairs,
        trials=options.trials,
        resamples=options.resamples,
        level=options.level,
        benchmarks=tuple(about),
        rows=tuple(found),
    )


def estimates(_result: MdadResult) -> tuple[Estimate, ...]:
    """Return nothing: an agreement of rankings is a property of many pairs, no estimate of a model that a check could hold against a limit."""
    return ()


def plot(result: MdadResult, axes: Axes) -> None:
    """Draw the agreement over the gap, a panel per benchmark and sampler, with MDAD marked on each curve."""
    axes.caption(
        "Share of pairs of models that a sample ranks as the half it was taken from, by the gap of the pair on that half, for several "
        "numbers of questions: dots are bins, lines the rising fit; a mark shows the smallest gap at which the wanted agreement is reached "
        f"and which at least {result.min_pairs} pairs have or exceed."
    )
    axes.scale("agreement", span=(0.0, 1.0))
    axes.across("gap of the pair, in points")
    axes.reference(result.agreement, f"{100 * result.agreement:.0f} % agreement")
    for benchmark in result.benchmarks:
        for sampler in dict.fromkeys(row.sampler for row in result.rows if row.benchmark == benchmark.benchmark):
            rows = [row for row in result.rows if (row.benchmark, row.sampler) == (benchmark.benchmark, sampler)]
            _panel(f"{benchmark.benchmark}: {sampler.replace('_', ' ')}", tuple(_drawn(rows)), result, axes)


def _panel(group: str, rows: tuple[MdadRow, ...], result: MdadResult, axes: Axes) -> None:
    """Draw the curves of one sampler, their bins as dots behind."""
    bins: list[Point] = []
    for row in rows:
        assert row.seen is not None
        reached = row.seen.rising
        label = "not reached" if reached.gap is None else f"MDAD {100 * reached.gap:.1f} points"
        axes.curve(f"{row.questions:,} questions: {label}", [Point(100 * one.gap, one.rising) for one in row.seen.curve], group=group)
        bins += [Point(100 * one.gap, one.agreement) for one in row.seen.curve if one.pairs >= result.min_pairs]
        if reached.gap is not None and reached.agreement is not None:
            axes.mark(100 * reached.gap, reached.agreement, group=group)
    if bins:
        axes.scatter(f"bins of {result.min_pairs} pairs or more", bins, group=group, muted=True)


def _drawn(rows: list[MdadRow]) -> Iterator[MdadRow]:
    """Choose sizes that spread over all of them."""
    known = [row for row in rows if row.seen is not None]
    places = {round(number * (len(known) - 1) / (MOST_DRAWN - 1)) for number in range(MOST_DRAWN)}
    yield from (row for place, row in enumerate(known) if len(known) <= MOST_DRAWN or place in places)


SOURCES = (
    "Yauney, Warraich & Swayamdipta (2026), ICLR, arXiv:2510.08730 (MDAD)",
    "Ayer, Brunk, Ewing, Reid & Silverman (1955), Ann. Math. Stat. 26, 641-647, doi:10.1214/aoms/1177728423 (the rising fit)",
    "Snijders & Borgatti (1999), Connections 22, 161-170 (resampling what pairs are made of)",
    "Kendall (1945), Biometrika 33, 239-251 (rank correlation with ties)",
    "Cochran (1977), Sampling Techniques, 3rd ed. (random and stratified samples of a finite set)",
)
"""What every MDAD rests on."""

BEHIND_SAMPLERS = {
    "anchor_points": "Vivek, Ethayarajh, Yang & Kiela (2024), EACL, arXiv:2309.08638 (anchor points)",
    "item_response": "Maia Polo, Weber, Choshen, Sun, Xu & Yurochkin (2024), ICML, arXiv:2402.14992 (item response)",
    "diversity": "Bardenet, Ghosh & Lin (2021), NeurIPS, arXiv:2112.06007 (diversity)",
}


def sources_used(result: MdadResult) -> tuple[str, ...]:
    """Return the works behind the samplers of a result."""
    return (*SOURCES, *(cited for name, cited in BEHIND_SAMPLERS.items() if name in {row.sampler for row in result.rows}))


ANALYSIS = Analysis(
    kind="mdad",
    options=MdadOptions,
    result=MdadResult,
    compute=compute,
    metrics=(),
    estimates=estimates,
    tolerance=1e-9,
    template="analyses/mdad.html.j2",
    plot=plot,
    least_models=2,
    sources=(*SOURCES, *BEHIND_SAMPLERS.values()),
    sources_used=sources_used,
)
