"""Many starts at once, held to the plain loop: start by start, row by row, one small system each."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from evalspec.statistics.benchpress import Standard, cells_of
from evalspec.statistics.benchpress_als import PENALTY, Cells, als, starts

from .benchpress_matrix import made_up, made_up_tops


def loop(cells: Cells, seed: int) -> NDArray[np.float64]:
    known, z = cells.known > 0, cells.values
    models, benchmarks = z.shape
    generator = np.random.RandomState(seed)
    u, v = generator.normal(0.0, 0.01, (models, 2)), generator.normal(0.0, 0.01, (benchmarks, 2))
    a, c, mu = np.zeros(models), np.zeros(benchmarks), z[known].mean()
    for _ in range(40):
        for model in np.flatnonzero(known.any(axis=1)):
            seen = known[model]
            a[model], *u[model] = solved(v[seen], z[model, seen] - mu - c[seen])
        for benchmark in np.flatnonzero(known.any(axis=0)):
            seen = known[:, benchmark]
            c[benchmark], *v[benchmark] = solved(u[seen], z[seen, benchmark] - mu - a[seen])
        mu = (z - a[:, None] - c - u @ v.T)[known].mean()
    return mu + a[:, None] + c + u @ v.T


def solved(factors: NDArray[np.float64], residuals: NDArray[np.float64]) -> NDArray[np.float64]:
    features = np.column_stack([np.ones(len(factors)), factors])
    return np.linalg.solve(features.T @ features + PENALTY * np.eye(3), features.T @ residuals)


def cells(seed: int = 3, *, empty_row: int | None = None, empty_column: int | None = None) -> Cells:
    scores = made_up(seed=seed)
    if empty_row is not None:
        scores[empty_row] = np.nan
    if empty_column is not None:
        scores[:, empty_column] = np.nan
    return cells_of(scores, Standard.of(scores, made_up_tops()))


@pytest.mark.parametrize("seed", range(5))
def test_all_starts_at_once_are_the_plain_loop_of_each(seed: int) -> None:
    table, seeds = cells(seed), [42, 7, 1000]
    tables = als(table, seeds).completed()
    for start, expected in zip(tables, (loop(table, one) for one in seeds), strict=True):
        assert np.abs(start - expected).max() < 1e-10


def test_a_model_or_benchmark_without_a_score_keeps_its_drawn_factors_and_no_bias() -> None:
    table = cells(empty_row=2, empty_column=5)
    found = als(table, [42])
    drawn_models, drawn_benchmarks = starts(table.known.shape, [42])
    assert np.array_equal(found.models[:, 2], drawn_models[:, 2])
    assert np.array_equal(found.benchmarks[:, 5], drawn_benchmarks[:, 5])
    assert np.abs(found.completed()[0] - loop(table, 42)).max() < 1e-10


def test_sweeps_end_where_no_bias_or_factor_can_be_improved_when_there_are_none_to_find() -> None:
    ability = np.linspace(-1, 1, 8)[:, None] * np.ones(6)
    found = als(Cells(np.ones((8, 6)), ability), [42])
    # The penalty pulls the biases in by less than 0.1 of 6 cells.
    assert np.abs(found.completed()[0] - ability).max() < 0.05


def test_the_row_of_a_completed_table_is_that_of_its_factors() -> None:
    found = als(cells(), [42, 43])
    assert np.allclose(found.completed()[:, 4], found.completed_row(4).T, rtol=0, atol=1e-12)
