"""Which scores would the study's models have on benchmarks that they were not run on, and how far can such predictions be trusted?

A matrix of published scores is completed, after Zeng and Papailiopoulos; every number about its errors speaks of scores that were hidden from the
fit. A prediction is no measurement: no check can rest on one. Statistics are imported where they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalspec.analyses.benchpress_options import BenchpressOptions
from evalspec.analyses.benchpress_results import BenchpressResult, PredictionRow
from evalspec.artifacts.findings import Estimate
from evalspec.protocols import Analysis, Axes, Context, Point

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalspec.artifacts.responses import Responses
    from evalspec.errors import Diagnostic


def compute(responses: Responses, options: BenchpressOptions, context: Context) -> BenchpressResult:
    """Return predictions with intervals, and their errors on hidden scores; raises AnalysisError with everything that is wrong with the matrix."""
    from evalspec.analyses.benchpress_findings import found

    return found(responses, options, context)


def examine(options: BenchpressOptions, tables: Mapping[str, bytes]) -> Iterator[Diagnostic]:
    """Yield everything that is wrong with the matrix, its declared scales, and what the options say of them."""
    from evalspec.analyses.benchpress_table import examine as examine_matrix

    yield from examine_matrix(options, tables)


def estimates(result: BenchpressResult) -> tuple[Estimate, ...]:
    """Return one `predicted_score` per model and column that is not known of it, marked as predicted."""
    return tuple(_estimate(row, result) for row in result.predictions)


def _estimate(row: PredictionRow, result: BenchpressResult) -> Estimate:
    return Estimate(
        analysis="benchpress",
        metric="predicted_score",
        benchmark=row.column,
        models=(row.model,),
        value=row.value,
        low=row.low,
        high=row.high,
        confidence_level=result.level,
        method=f"matrix completion ({result.mode}), conformal interval",
        n=row.known,
        unit="score",
        polarity="lower_is_better" if row.polarity == "lower" else "higher_is_better",
        basis="predicted",
        undefined=row.undefined,
    )


def plot_hidden(result: BenchpressResult, axes: Axes) -> None:
    """Draw predictions against the scores that they were made for."""
    axes.caption("Predicted against actual score: scores of the matrix that were hidden from the fit, and known scores of the study's models.")
    axes.scale("predicted score, in points", percent=False, span=(0.0, 100.0))
    axes.across("actual score, in points")
    axes.curve("prediction equal to score", [Point(0.0, 0.0), Point(100.0, 100.0)], muted=True)
    axes.scatter("hidden scores of the matrix", [Point(point.actual, point.predicted) for point in result.drawn], muted=True)
    tops = {"percent": 1.0, "fraction": 100.0}
    own = [
        Point(row.score * tops[row.scale], row.predicted * tops[row.scale])
        for row in result.surprises
        if row.predicted is not None and row.scale in tops
    ]
    axes.scatter("known scores of the study's models, each hidden in its turn", own)


def plot_probes(result: BenchpressResult, axes: Axes) -> None:
    """Draw what each further probe leaves to be wrong about."""
    if result.probes is None or not result.probes.rows:
        return
    relative = result.probes.objective == "medape"
    axes.caption("Error that is left after each further probe: of hidden scores, of models that the choice was made without, and as published.")
    axes.scale("median relative error" if relative else "median error, in points", percent=relative, span=(0.0, 0.0))
    axes.across("number of probes")
    rows = list(enumerate(result.probes.rows, start=1))
    axes.curve("hidden scores", [Point(number, row.hidden) for number, row in rows])
    held = [Point(number, row.cross_validated) for number, row in rows if row.cross_validated is not None]
    axes.curve("hidden scores of models that the choice was made without", held)
    published = "the probes' own scores count as errors of 0" if relative else "units mixed, the probes' own scores count as errors of 0"
    axes.curve(f"as published: {published}", [Point(number, row.revealed) for number, row in rows], muted=True)


ANALYSIS = Analysis(
    kind="benchpress",
    options=BenchpressOptions,
    result=BenchpressResult,
    compute=compute,
    metrics=("predicted_score",),
    estimates=estimates,
    tolerance=1e-6,
    template="analyses/benchpress.html.j2",
    predictions=("predicted_score",),
    examine=examine,
    plot=plot_hidden,
    further_plots=(plot_probes,),
    sources=(
        "Zeng & Papailiopoulos (2026), arXiv:2606.24020 (the completion, the folds, probes, order, complete blocks), and the code that they released",
        "Lei, G'Sell, Rinaldo, Tibshirani & Wasserman (2018), J. Am. Stat. Assoc. 113, 1094-1111, doi:10.1080/01621459.2017.1307116 (intervals)",
        "Vovk, Gammerman & Shafer (2005), Algorithmic Learning in a Random World, section 4.5 (a factor for each kind of case)",
        "Barber, Candes, Ramdas & Tibshirani (2021), Inf. Inference 10, 455-482, doi:10.1093/imaiai/iaaa017 (coverage of kinds of cells)",
        "Buja & Eyuboglu (1992), Multivar. Behav. Res. 27, 509-540 (shuffled columns)",
        "Stone (1974), J. R. Stat. Soc. B 36, 111-147 (choosing and judging on different cases)",
    ),
)
