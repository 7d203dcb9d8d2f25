"""How far can predictions from this matrix be trusted?  Errors on hidden scores, coverage of intervals, order, directions, starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evalspec.analyses.benchpress_options import BenchpressOptions
from evalspec.analyses.benchpress_results import (
    BenchmarkRow,
    BlockRow,
    CoverageRow,
    DrawnPoint,
    ErrorRow,
    FlawRow,
    MatrixModelRow,
    OrderRow,
    Predictor,
    StartsRow,
)
from evalspec.analyses.benchpress_table import Matrix
from evalspec.statistics.benchpress import AUDIT_SEEDS, PUBLISHED_SEEDS, Method, Standard, between_starts, spreads
from evalspec.statistics.benchpress_blocks import complete_block, directions
from evalspec.statistics.benchpress_folds import HeldOut, hold_out, holdout_folds, small_folds, strengths, summarise
from evalspec.statistics.benchpress_intervals import HeldIntervals, coverage, factors, held_intervals, points, rank_correlation
from evalspec.statistics.benchpress_lint import flaws
from evalspec.statistics.benchpress_ranking import order_kept

FOLD_SEEDS = tuple(range(42, 52))
MARGIN = 5.0
"""Points by which two models must differ to be told apart in the stricter count of pairs."""

SMALL_PARTS = 20
BLOCKS_OF_STARTS = 6
DRAWN = 700


@dataclass(frozen=True, slots=True)
class Ground:
    """What every part of the analysis stands on: the matrix, how it is completed, and its hidden scores with their predictions and intervals.

    `tops` is each benchmark's highest score, as declared or, in mode `compat`, as told from the scores; `point` is what one point is on its scale.
    `held` are scores of which a third was hidden at a time, as published; `tried` those of which a twentieth was, which is nearer to how the study's
    models are predicted, and makes their intervals.
    """

    matrix: Matrix
    method: Method
    tops: NDArray[np.float64]
    point: NDArray[np.float64]
    held: HeldOut
    intervals: HeldIntervals
    tried: HeldOut
    tried_intervals: HeldIntervals
    level: float

    @property
    def scores(self) -> NDArray[np.float64]:
        """The known scores, NaN where there is none."""
        return self.matrix.scores

    @property
    def bounded(self) -> NDArray[np.bool_]:
        """Which hidden scores are on a scale with a highest one."""
        return ~np.isnan(self.tops[self.held.benchmarks])


def ground_of(matrix: Matrix, options: BenchpressOptions, rng: np.random.Generator) -> Ground:
    """Hide and predict every known score, and try intervals on them; raises ValueError where the matrix is too small for that."""
    method = matrix.method(options, AUDIT_SEEDS if options.mode == "audit" else PUBLISHED_SEEDS)
    tops = method.tops_of(matrix.scores)
    held = hold_out(matrix.scores, method, list(holdout_folds(~np.isnan(matrix.scores), FOLD_SEEDS)))
    tried = hold_out(matrix.scores, method, small_folds(~np.isnan(matrix.scores), SMALL_PARTS, rng))
    return Ground(
        matrix=matrix,
        method=method,
        tops=tops,
        point=points(tops, spreads(matrix.scores)),
        held=held,
        intervals=held_intervals(held, tops, options.level),
        tried=tried,
        tried_intervals=held_intervals(tried, tops, options.level),
        level=options.level,
    )


def flaw_rows(ground: Ground) -> tuple[FlawRow, ...]:
    """Return what looks odd in the matrix."""
    names = ground.matrix.columns
    return tuple(
        FlawRow(
            kind=flaw.kind,
            column=names[flaw.benchmark],
            number=flaw.number,
            count=flaw.count,
            other=None if flaw.other is None else names[flaw.other],
        )
        for flaw in flaws(ground.scores, ground.tops)
    )


def error_rows(ground: Ground) -> Iterator[ErrorRow]:
    """Yield the errors of the completion and of both baselines, on bounded scales, on the others, and as published."""
    held, point = ground.held, ground.point[ground.held.benchmarks]
    predicted: dict[Predictor, NDArray[np.float64]] = {"completion": held.predicted, "additive": held.additive, "median": held.median}
    everything = np.ones(len(point), dtype=np.bool_)
    for scope, chosen, unit in (
        ("points", ground.bounded, point),
        ("unbounded", ~ground.bounded, held.apart),
        ("published", everything, np.ones(len(point))),
    ):
        for predictor, values in predicted.items():
            error = np.abs(values - held.actual)[chosen] / unit[chosen]
            if not np.isnan(error).all():
                yield ErrorRow.model_validate(
                    {"predictor": predictor, "scope": scope, **asdict(summarise(error, held.actual[chosen], unit=unit[chosen]))}
                )


def coverage_rows(ground: Ground) -> tuple[CoverageRow, CoverageRow]:
    """Return how often the intervals held hidden scores, of which a third or a twentieth was hidden at a time."""
    return _coverage_row(ground, "third", ground.held, ground.intervals), _coverage_row(ground, "twentieth", ground.tried, ground.tried_intervals)


def _coverage_row(ground: Ground, hidden: Literal["third", "twentieth"], held: HeldOut, intervals: HeldIntervals) -> CoverageRow:
    found = coverage(held, intervals, ground.tops)
    easiest, middle, hardest = found.thirds
    mixed = intervals.difficulty * ground.point[held.benchmarks]
    of_all = factors(held, mixed, ground.level)
    return CoverageRow(
        hidden=hidden,
        n=int((~np.isnan(held.error)).sum()),
        level=ground.level,
        share=found.share,
        median_width=found.median_width,
        easiest_third=easiest,
        middle_third=middle,
        hardest_third=hardest,
        weak=found.weak,
        unbounded=found.unbounded,
        rank_correlation=found.rank_correlation,
        rank_correlation_published=rank_correlation(mixed, held.error),
        easiest_fifth=found.easiest_fifth,
        low_models=found.low_models,
        low_benchmarks=found.low_benchmarks,
        factor=of_all.other,
        factor_weak=of_all.weak,
    )


def starts_row(ground: Ground) -> StartsRow:
    """Return how far the predictions of empty cells move with other starts; nothing where no cell is empty or none is predicted."""
    apart = between_starts(ground.scores, ground.method, BLOCKS_OF_STARTS) / ground.point
    empty = apart[np.isnan(ground.scores) & ~np.isnan(apart)]
    if not empty.size:
        return StartsRow(blocks=BLOCKS_OF_STARTS)
    return StartsRow(blocks=BLOCKS_OF_STARTS, median=float(np.median(empty)), ninth_decile=float(np.quantile(empty, 0.9)), largest=float(empty.max()))


def order_rows(ground: Ground) -> Iterator[OrderRow]:
    """Yield how often predictions keep two models in order: every gap, gaps of five points, and the same as published."""
    for margin, unit in ((0.0, ground.point), (MARGIN, ground.point), (MARGIN, np.ones(len(ground.point)))):
        kept = order_kept(ground.scores, ground.held, margin * unit)
        for hidden, found in (("any", kept.any_hidden), ("both", kept.both_hidden)):
            row = {"margin": margin, "hidden": hidden, "published": unit is not ground.point, **asdict(found)}
            yield OrderRow.model_validate(row)


def block_rows(ground: Ground, options: BenchpressOptions, rng: np.random.Generator) -> Iterator[BlockRow]:
    """Yield how many directions each complete block has, against shuffled benchmarks."""
    for benchmarks in options.blocks:
        try:
            block = complete_block(ground.scores, benchmarks)
            found = directions(ground.scores, block, draws=options.draws, rng=rng)
        except ValueError as error:
            yield BlockRow(benchmarks=benchmarks, models=None, undefined=str(error))
            continue
        yield BlockRow(
            benchmarks=benchmarks,
            models=len(block.models),
            one=found.shares[0],
            two=found.shares[:2][-1],
            two_standardised=found.standardised[:2][-1],
            two_by_chance=found.chance,
            p_value=found.p_value,
        )


def benchmark_rows(ground: Ground) -> Iterator[BenchmarkRow]:
    """Yield the errors on each benchmark."""
    held, matrix = ground.held, ground.matrix
    for place, (name, declared) in enumerate(zip(matrix.columns, matrix.declared, strict=True)):
        own = held.benchmarks == place
        point = ground.point[place]
        yield BenchmarkRow(
            column=name,
            scale=declared.scale,
            polarity=declared.polarity,
            models=int((~np.isnan(matrix.scores[:, place])).sum()),
            n=int(own.sum()),
            median=_median(held.error[own] / point),
            median_additive=_median(np.abs(held.additive - held.actual)[own] / point),
            median_baseline=_median(np.abs(held.median - held.actual)[own] / point),
            coverage=_held(ground, own),
        )


def matrix_model_rows(ground: Ground) -> Iterator[MatrixModelRow]:
    """Yield the errors on each model of the matrix."""
    held = ground.held
    error = held.error / ground.point[held.benchmarks]
    strength = strengths(ground.scores, Standard.of(ground.scores, ground.tops))
    for place, name in enumerate(ground.matrix.models):
        own = held.models == place
        known = int((~np.isnan(ground.scores[place])).sum())
        yield MatrixModelRow(
            model=name, scores=known, strength=float(strength[place]), n=int(own.sum()), median=_median(error[own]), coverage=_held(ground, own)
        )


def drawn_points(ground: Ground) -> tuple[DrawnPoint, ...]:
    """Return hidden scores of one cutting, each model's in turn, thinned to what a drawing can show."""
    held, point = ground.held, ground.point[ground.held.benchmarks]
    shown = np.flatnonzero((held.fold < 3) & ground.bounded & ~np.isnan(held.predicted))
    shown = shown[:: max(1, -(-len(shown) // DRAWN))]
    return tuple(DrawnPoint(actual=float(held.actual[at] / point[at]), predicted=float(held.predicted[at] / point[at])) for at in shown.tolist())


def _median(errors: NDArray[np.float64]) -> float | None:
    found = errors[~np.isnan(errors)]
    return float(np.median(found)) if found.size else None


def _held(ground: Ground, chosen: NDArray[np.bool_]) -> float | None:
    chosen = chosen & ~np.isnan(ground.held.error)
    inside = (ground.intervals.low <= ground.held.actual) & (ground.held.actual <= ground.intervals.high)
    return float(inside[chosen].mean()) if chosen.any() else None
