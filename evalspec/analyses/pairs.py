"""How far is each pair of models apart on the questions that both answered?  The one comparison that analyses of pairs share.

What is computed follows from the kind of scores and from how the questions came about: right and wrong answers of independent questions get
McNemar's tests and Tango's interval; everything else gets the mean of the question differences. Statistics are imported where they are used.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from evalspec.analyses.designs import CHOSEN, answered, design_of, weighted
from evalspec.artifacts.base import Artifact, Identifier
from evalspec.protocols import Context

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalspec.artifacts.responses import BenchmarkResponses
    from evalspec.statistics.designs import Design
    from evalspec.statistics.paired_designs import DesignDifference
    from evalspec.statistics.paired_tables import PairedTables

DRAWS = 20_000
NO_COMMON = "the two models have no scored question in common"
WEIGHTED = "the sample is weighted (equal allocation), and paired tests need a sample in which every question counts the same"
TOO_MANY_FOR_FLIPS = (
    "By {:,} random flips no p-value is below {:.2g}, and Holm's method takes the smallest of {:,} comparisons times their number: none that is "
    "tested so can be separated before {:,} others are"
)
ONE_QUESTION = "the two models have a single scored question in common, which shows no spread"

Pair = tuple[str, str]
Gaffke = Literal["gaffke", "gaffke_clustered"]
RowTest = Literal["mcnemar", "t", "stratified_t", "cluster_means_t", "cluster_sign_flip", "pool_exact"] | Gaffke
IntervalMethod = Literal["tango", "tango_effective_n", "t", "stratified_t", "cr2_t", "cluster_means_t", "fay_lumbard"] | Gaffke


class PairRow(Artifact):
    """One pair on one benchmark, or on a part of it; `difference` is first - second.

    The four counts, the odds ratio and `p_mid` stand only where scores are right or wrong and questions independent draws, `p_value` is McNemar's
    exact one there. `test` and `method` name the test and the interval of this row; `p_error` is the Monte Carlo standard error of `p_value`.
    """

    benchmark: Identifier
    first: Identifier
    second: Identifier
    n: int
    both: int | None = None
    only_first: int | None = None
    only_second: int | None = None
    neither: int | None = None
    clusters: int | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    method: IntervalMethod | None = None
    standard_error: float | None = None
    correlation: float | None = None
    p_value: float | None = None
    p_mid: float | None = None
    p_error: float | None = None
    log10_p: float | None = None
    test: RowTest | None = None
    odds_ratio: float | None = None
    odds_low: float | None = None
    odds_high: float | None = None
    caution: str | None = None
    undefined: str | None = None

    def p(self, test: Literal["exact", "mid_p"]) -> float | None:
        """Return the p-value that decides when the study asks for this version of McNemar's test."""
        return self.p_mid if test == "mid_p" and self.p_mid is not None else self.p_value


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a benchmark: which of its questions, and the design behind them, whose arrays are as long as those of the benchmark."""

    which: NDArray[np.bool_]
    design: Design


@dataclass(frozen=True, slots=True)
class Limits:
    """The interval that each pair gets: its level, and whether it is one that keeps its error rate at every sample size.

    `exact` are Fay and Lumbard's interval of right and wrong answers, and Gaffke's of means, whose test agrees with it.
    """

    level: float
    exact: bool = False


def compare_pairs(
    benchmark: BenchmarkResponses, pairs: Sequence[Pair], context: Context, limits: Limits, *, part: Part | None = None
) -> tuple[PairRow, ...]:
    """Return a row per pair, in their order; each pair is compared on the questions that both of its models have a score for."""
    import numpy as np

    from evalspec.statistics.paired_tables import paired_tables

    if weighted(benchmark) and part is None:
        return tuple(_refused(benchmark, pairs))
    part = part or Part(np.ones(len(benchmark.questions), dtype=np.bool_), design_of(benchmark))
    scores = np.where(part.which, benchmark.settled(), np.nan)
    binary = np.all((scores == 0) | (scores == 1) | np.isnan(scores), axis=1)
    places = {model: place for place, model in enumerate(benchmark.models)}
    first, second = (np.array([places[pair[side]] for pair in pairs], dtype=np.int64) for side in (0, 1))
    tables = paired_tables(scores == 1, ~np.isnan(scores), first, second)
    counted = binary[first] & binary[second] & (tables.questions > 0) & (part.design.clusters is None)
    numbers = iter(_counted(tables.chosen(counted), part.design, limits))
    rows = []
    for place, (pair, questions) in enumerate(zip(pairs, tables.questions.tolist(), strict=True)):
        row = PairRow(benchmark=benchmark.benchmark, first=pair[0], second=pair[1], n=questions)
        if counted[place]:
            rows.append(row.model_copy(update=next(numbers)))
        else:
            rows.append(_by_means(row, (scores[first[place]], scores[second[place]]), part.design, context, limits))
    return tuple(rows)


def _refused(benchmark: BenchmarkResponses, pairs: Sequence[Pair]) -> Iterator[PairRow]:
    """Give the rows of pairs that are not compared: how many questions both answered, and why that is all."""
    import numpy as np

    answered = dict(zip(benchmark.models, ~np.isnan(benchmark.settled()), strict=True))
    for first, second in pairs:
        common = int(np.sum(answered[first] & answered[second]))
        why = CHOSEN if benchmark.sample == "chosen" else WEIGHTED
        yield PairRow(benchmark=benchmark.benchmark, first=first, second=second, n=common, undefined=why)


def _counted(tables: PairedTables, design: Design, limits: Limits) -> Iterator[dict[str, float | str | None]]:
    """Test comparisons of 0/1 scores all at once, and give the numbers of each one's row."""
    columns = _columns(tables, limits)
    fixed: dict[str, float | str | None] = {"method": "fay_lumbard" if limits.exact else "tango", "test": "mcnemar"}
    # The test for a part of a pool is exact for a simple random one; McNemar's own is cautious for any part.
    for_part = design.pool and not (limits.exact and design.strata is not None)
    for place, values in enumerate(zip(*(column.tolist() for column in columns.values()), strict=True)):
        row = {**dict(zip(columns, values, strict=True)), **fixed}
        yield {**row, **_in_pool(tables, place, design, limits)} if for_part else row


def _columns(tables: PairedTables, limits: Limits) -> dict[str, NDArray[np.generic]]:
    """Return the numbers of all comparisons of 0/1 scores by their names, each of shape (K,)."""
    import numpy as np

    from evalspec.statistics.all_pairs import compare_tables, exact_limits
    from evalspec.statistics.odds_ratios import odds_ratio_limits

    found = compare_tables(tables, level=limits.level)
    low, high = exact_limits(tables, level=limits.level) if limits.exact else (found.low, found.high)
    a, b, c, d = (cells.astype(np.float64) for cells in (tables.both, tables.only_first, tables.only_second, tables.neither))
    n = a + b + c + d
    odds = odds_ratio_limits(tables.only_first, tables.only_second, level=limits.level)
    margins = np.sqrt((a + b) * (a + c) * (c + d) * (b + d))
    spread = np.sqrt(np.maximum((b + c) / n - ((b - c) / n) ** 2, 0.0) / np.maximum(n - 1.0, 1.0))
    return {
        "both": tables.both,
        "only_first": tables.only_first,
        "only_second": tables.only_second,
        "neither": tables.neither,
        "difference": found.difference,
        "low": low,
        "high": high,
        "standard_error": _where(spread, spread > 0.0),
        "correlation": _where(np.divide(a * d - b * c, margins, out=np.zeros_like(n), where=margins > 0.0), margins > 0.0),
        "p_value": found.p_value,
        "p_mid": found.p_mid,
        "log10_p": found.log10_p,
        "odds_ratio": _where(np.divide(b, c, out=np.zeros_like(n), where=c > 0.0), c > 0.0),
        "odds_low": _where(odds.low, b + c > 0.0),
        "odds_high": _where(odds.high, c > 0.0),
    }


def _where(values: NDArray[np.float64], defined: NDArray[np.bool_]) -> NDArray[np.object_]:
    """Return values as Python numbers, None where they are not defined."""
    cells = values.astype(object)
    cells[~defined] = None
    return cells


def _in_pool(tables: PairedTables, place: int, design: Design, limits: Limits) -> dict[str, float | str | None]:
    """Return what a finite pool changes: the test is exact for the part that was asked; the standard error, and Tango's interval, shrink with it."""
    from evalspec.statistics.differences import PairedCounts
    from evalspec.statistics.paired_designs import pool_difference

    counts = PairedCounts(*(int(cells[place]) for cells in (tables.both, tables.only_first, tables.only_second, tables.neither)))
    pool = sum((design.pool or {}).values())
    if not 0 < counts.questions < pool:
        return {}
    found = pool_difference(counts, pool, drawn_within=design.strata is not None, level=limits.level)
    kept = {"correlation", "low", "high", "method", "caution"} if limits.exact else {"correlation"}
    return {name: value for name, value in {**_numbers(found), "p_mid": None}.items() if name not in kept}


def _by_means(row: PairRow, scores: tuple[NDArray[np.float64], NDArray[np.float64]], design: Design, context: Context, limits: Limits) -> PairRow:
    import numpy as np

    from evalspec.statistics.paired_designs import bounded_difference, design_difference

    common = ~np.isnan(scores[0]) & ~np.isnan(scores[1])
    if common.sum() < 2:
        return row.model_copy(update={"undefined": ONE_QUESTION if common.any() else NO_COMMON})
    first, second = scores[0][common], scores[1][common]
    try:
        kept = answered(design, common)
        if limits.exact:
            found = bounded_difference(first, second, kept, level=limits.level)
        else:
            found = design_difference(first, second, kept, level=limits.level, draws=DRAWS, rng=context.rng)
    except ValueError as error:
        return row.model_copy(update={"undefined": str(error)})
    return row.model_copy(update=_numbers(found))


def about_random_flips(family: Sequence[PairRow], *, alpha: float) -> str | None:
    """Return that Holm's method asks for a smaller p-value than random flips can give, where it does so of a family with such rows."""
    before = len(family) - math.floor(alpha * (DRAWS + 1) + 1e-9)
    drawn = any(row.p_error is not None for row in family)
    return TOO_MANY_FOR_FLIPS.format(DRAWS, 1.0 / (DRAWS + 1), len(family), before) if drawn and before > 0 else None


def _numbers(found: DesignDifference) -> dict[str, float | str | None]:
    from evalspec.statistics.p_values import SMALLEST_P

    methods = {"pool_exact": "tango_effective_n", "cluster_sign_flip": "cr2_t"}
    return {
        "clusters": found.clusters,
        "difference": found.difference,
        "low": found.interval.low if found.interval else None,
        "high": found.interval.high if found.interval else None,
        "method": methods.get(found.test, found.test),
        "standard_error": found.standard_error,
        "correlation": found.correlation,
        "p_value": found.p_value,
        "p_error": found.p_error,
        "log10_p": math.log10(found.p_value) if found.p_value > SMALLEST_P else None,
        "test": found.test,
        "caution": found.caution,
    }


def macro_difference(benchmark: BenchmarkResponses, pair: Pair, context: Context, *, level: float) -> PairRow:
    """Return the pair's difference with every subject counting the same: the mean of the differences within subjects."""
    import numpy as np

    scores = benchmark.settled()
    first, second = (scores[benchmark.models.index(model)] for model in pair)
    row = PairRow(benchmark=benchmark.benchmark, first=pair[0], second=pair[1], n=int(np.sum(~np.isnan(first) & ~np.isnan(second))))
    try:
        return _by_means(row, (first, second), design_of(benchmark, average="macro"), context, Limits(level))
    except ValueError as error:
        return row.model_copy(update={"undefined": str(error)})
