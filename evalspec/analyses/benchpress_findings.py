"""How does a matrix of scores become findings?  Read, hidden scores predicted, then the study's models, then what else was asked."""

from __future__ import annotations

import numpy as np

from evalspec.analyses.benchpress_accuracy import (
    Ground,
    benchmark_rows,
    block_rows,
    coverage_rows,
    drawn_points,
    error_rows,
    flaw_rows,
    ground_of,
    matrix_model_rows,
    order_rows,
    starts_row,
)
from evalspec.analyses.benchpress_models import study_models
from evalspec.analyses.benchpress_options import BenchpressOptions
from evalspec.analyses.benchpress_results import BenchpressResult, MatrixSummary
from evalspec.analyses.benchpress_search import find_probes
from evalspec.analyses.benchpress_table import Matrix, examine, read_matrix
from evalspec.artifacts.responses import Responses
from evalspec.errors import AnalysisError
from evalspec.protocols import Context
from evalspec.tables.faults import Faults


def found(responses: Responses, options: BenchpressOptions, context: Context) -> BenchpressResult:
    """Return everything that is found; raises AnalysisError with everything that is wrong with the matrix."""
    matrix = _read(options, context)
    of_parts, of_blocks, of_folds = context.rng.spawn(3)
    try:
        ground = ground_of(matrix, options, of_parts)
    except ValueError as error:
        raise AnalysisError(f"the matrix is too small for intervals: {error}") from error
    models = study_models(ground, responses, options)
    return BenchpressResult(
        mode=options.mode,
        level=options.level,
        widest=options.widest,
        folds=int(ground.held.fold.max()) + 1,
        matrix=_summary(ground, options),
        flaws=flaw_rows(ground),
        errors=tuple(error_rows(ground)),
        coverage=coverage_rows(ground),
        starts=starts_row(ground),
        order=tuple(order_rows(ground)),
        blocks=tuple(block_rows(ground, options, of_blocks)),
        draws=options.draws,
        models=models.models,
        predictions=models.predictions,
        surprises=models.surprises,
        surprise_counts=models.counts,
        probes=None if options.probes is None else find_probes(ground, options, options.probes, of_folds, context.progress),
        benchmarks=tuple(benchmark_rows(ground)),
        matrix_models=tuple(matrix_model_rows(ground)),
        drawn=drawn_points(ground),
    )


def _read(options: BenchpressOptions, context: Context) -> Matrix:
    faults = tuple(examine(options, context.tables))
    matrix = read_matrix(options, context.tables, Faults())
    if faults or matrix is None:
        raise AnalysisError(faults)
    return matrix


def _summary(ground: Ground, options: BenchpressOptions) -> MatrixSummary:
    models, benchmarks = ground.scores.shape
    known = int((~np.isnan(ground.scores)).sum())
    unbounded = int(np.isnan(ground.tops).sum())
    return MatrixSummary(
        models=models,
        benchmarks=benchmarks,
        scores=known,
        share=known / (models * benchmarks),
        left_out=options.leave_out,
        starts=len(ground.method.seeds),
        points=benchmarks - unbounded,
        unbounded=unbounded,
    )
