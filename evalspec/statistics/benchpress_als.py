"""How are the empty cells of a standardised models-by-benchmarks table filled?  Biased alternating least squares, many starts at once.

The completed table is z[i, j] = mu + a[i] + c[j] + u[i] . v[j] with two factors. Alternating least squares lowers the sum over the known cells of
(z - completed)^2, plus 0.1 (|a|^2 + |c|^2 + |U|^2 + |V|^2); mu is free. Assumption: what decides over a score acts along two directions that all
benchmarks share, and which cells are known does not depend on what they hold. The second is not so where results are published by choice.

All starts are solved together: the sums over known cells of a sweep are products of the table with a stack of features, and the 3 x 3 systems of
all models, or of all benchmarks, are eliminated side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalspec.statistics.arguments import FloatArray

PENALTY = 0.1
SWEEPS = 40
FACTORS = 2
SPREAD_OF_STARTS = 0.01

_PRODUCTS = ((0, 0), (0, 1), (1, 1))


@dataclass(frozen=True, slots=True)
class Cells:
    """Known cells of N models on D benchmarks: `known` (N, D) is 1 where there is one, `values` (N, D) its standardised score, else 0."""

    known: FloatArray
    values: FloatArray


@dataclass(frozen=True, slots=True)
class VaryingRow:
    """One model whose known cells differ from start to start, and with them how each benchmark is standardised.

    ``model`` is its row, empty in `Cells`; ``known`` (D, S) is 1 where a start knows its cell; ``values`` (D,) are its scores on the scale of
    `Cells`, anything where there is none. A start's own standardised score is ``scale`` (D, S) times that value, less ``shift`` (D, S).
    """

    model: int
    known: FloatArray
    values: FloatArray
    scale: FloatArray
    shift: FloatArray


@dataclass(frozen=True, slots=True)
class Factors:
    """What S starts came to: ``level`` (S,) is mu; ``models`` (3, N, S) and ``benchmarks`` (3, D, S) hold the bias, then the two factors."""

    level: FloatArray
    models: FloatArray
    benchmarks: FloatArray

    def completed(self) -> FloatArray:
        """Return the completed tables, (S, N, D)."""
        biases = self.level[:, None, None] + self.models[0].T[:, :, None] + self.benchmarks[0].T[:, None, :]
        return np.asarray(biases + np.matmul(self.models[1:].transpose(2, 1, 0), self.benchmarks[1:].transpose(2, 0, 1)))

    def completed_row(self, model: int) -> FloatArray:
        """Return one model's row of the completed tables, (D, S)."""
        bias, first, second = self.models[:, model]
        return np.asarray(self.level + bias + self.benchmarks[0] + first * self.benchmarks[1] + second * self.benchmarks[2])


def als(cells: Cells, seeds: Sequence[int], varying: VaryingRow | None = None) -> Factors:
    """Fit the biased two-factor model by 40 sweeps of alternating least squares from each seed.

    Parameters
    ----------
    cells
        The known cells.
    seeds
        One per start; each draws its factors from NumPy's legacy generator of that seed, as the published fit does. With ``varying``, one
        per start of it.
    varying
        A further model whose known cells differ from start to start.

    Notes
    -----
    There is no stopping rule, and 40 sweeps do not lead all starts to one answer. A model or benchmark without a known cell keeps its drawn
    factors and a bias of 0.

    References
    ----------
    Zeng and Papailiopoulos (2026), arXiv:2606.24020, and the code that they released; Hastie, Mazumder, Lee and Zadeh (2015), J. Mach. Learn.
    Res. 16, 3367-3402 (alternating least squares for completion).

    Examples
    --------
    >>> table = Cells(np.array([[1.0, 1.0], [1.0, 0.0]]), np.array([[1.0, -1.0], [0.5, 0.0]]))
    >>> als(table, [42]).completed().shape
    (1, 2, 2)
    """
    table = _Table(cells, varying)
    models, benchmarks = starts(cells.known.shape, seeds)
    drawn_models, drawn_benchmarks = models.copy(), benchmarks.copy()
    level = _level(table, table.total) + np.zeros(len(seeds))
    for _ in range(SWEEPS):
        models = _solved(table.sums_of_models(level, benchmarks))
        models[:, table.empty_models] = drawn_models[:, table.empty_models]
        sums = table.sums_of_benchmarks(level, models)
        benchmarks = _solved(sums)
        benchmarks[:, table.empty_benchmarks] = drawn_benchmarks[:, table.empty_benchmarks]
        explained = np.sum(table.models * models[0], axis=0) + np.sum(sums.count * benchmarks[0], axis=0)
        explained += np.sum(sums.features[0] * benchmarks[1] + sums.features[1] * benchmarks[2], axis=0)
        level = _level(table, table.total - explained)
    return Factors(level, models, benchmarks)


def starts(shape: tuple[int, ...], seeds: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """Draw where the starts begin: biases of 0, factors of spread 0.01, first those of all models and then those of all benchmarks.

    References
    ----------
    Zeng and Papailiopoulos (2026), arXiv:2606.24020, and the code that they released.

    Examples
    --------
    >>> models, benchmarks = starts((2, 3), [42])
    >>> models.shape, benchmarks.shape, float(models[1, 0, 0].round(6))
    ((3, 2, 1), (3, 3, 1), 0.004967)
    """
    models, benchmarks = np.zeros((3, shape[0], len(seeds))), np.zeros((3, shape[1], len(seeds)))
    drawn: dict[int, tuple[FloatArray, FloatArray]] = {}
    for start, seed in enumerate(seeds):
        if seed not in drawn:
            generator = np.random.RandomState(seed)  # the published fit's own stream: only it gives the published numbers
            drawn[seed] = (
                generator.normal(0.0, SPREAD_OF_STARTS, (shape[0], FACTORS)).T,
                generator.normal(0.0, SPREAD_OF_STARTS, (shape[1], FACTORS)).T,
            )
        models[1:, :, start], benchmarks[1:, :, start] = drawn[seed]
    return models, benchmarks


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums over known cells that the normal equations need, each (P, S): cells, features, their products, and residuals with each of them."""

    count: FloatArray
    features: FloatArray  # (2, P, S)
    products: FloatArray  # (3, P, S)
    residuals: FloatArray  # (3, P, S)


class _Table:
    """The known cells with what every sweep reads of them, and the varying row where there is one."""

    def __init__(self, cells: Cells, varying: VaryingRow | None) -> None:
        self._known, self._values = cells.known, cells.values
        self._known_turned, self._values_turned = np.ascontiguousarray(cells.known.T), np.ascontiguousarray(cells.values.T)
        self._row = varying
        self._scale = np.ones((cells.known.shape[1], 1)) if varying is None else varying.scale
        self._shift = np.zeros((cells.known.shape[1], 1)) if varying is None else varying.shift
        self.models = cells.known.sum(axis=1)[:, None]
        self._benchmarks = cells.known.sum(axis=0)[:, None]
        self._of_models = self._values @ self._scale
        self._of_benchmarks = self._scale * self._values.sum(axis=0)[:, None] - self._shift * self._benchmarks
        if varying is not None:
            self._own = varying.known * (varying.scale * varying.values[:, None] - varying.shift)
            self.models = np.repeat(self.models, varying.known.shape[1], axis=1)
            self.models[varying.model] = varying.known.sum(axis=0)
            self._benchmarks = self._benchmarks + varying.known
            self._of_benchmarks += self._own
        self.count = self._benchmarks.sum(axis=0)
        self.total = self._of_benchmarks.sum(axis=0)
        self.empty_models, self.empty_benchmarks = _empty(self.models), _empty(self._benchmarks)

    def sums_of_models(self, level: FloatArray, benchmarks: FloatArray) -> _Sums:
        """Return the sums over each model's known cells."""
        bias, factors = benchmarks[0] + self._shift, benchmarks[1:]
        sums = np.matmul(self._known, _stacked(bias, factors))
        found = np.matmul(self._values, self._scale * factors)
        residuals = np.concatenate([(self._of_models - self.models * level)[None], found - level * sums[:2]]) - sums[5:]
        made = _Sums(self.models, sums[:2], sums[2:5], residuals)
        if self._row is not None:
            self._place_row(made, level, benchmarks)
        return made

    def _place_row(self, made: _Sums, level: FloatArray, benchmarks: FloatArray) -> None:
        row = self._row
        assert row is not None
        known = row.known * benchmarks[1:]
        residual = self._own - row.known * (level + benchmarks[0])
        made.features[:, row.model] = known.sum(axis=1)
        for place, (first, second) in enumerate(_PRODUCTS):
            made.products[place, row.model] = np.einsum("ds,ds->s", known[first], benchmarks[1 + second])
        made.residuals[0, row.model] = residual.sum(axis=0)
        made.residuals[1:, row.model] = np.einsum("ds,kds->ks", residual, benchmarks[1:])

    def sums_of_benchmarks(self, level: FloatArray, models: FloatArray) -> _Sums:
        """Return the sums over each benchmark's known cells."""
        sums = np.matmul(self._known_turned, _stacked(models[0], models[1:]))
        found = self._scale * np.matmul(self._values_turned, models[1:]) - self._shift * sums[:2]
        if self._row is not None:
            # Without its row the table says nothing of this model; its cells come in here.
            bias, *factors = models[:, self._row.model]
            own = _stacked(bias[None], np.array(factors)[:, None])
            sums += self._row.known * own
            found += self._own * own[:2]
        residuals = np.concatenate([(self._of_benchmarks - self._benchmarks * level)[None], found - level * sums[:2]]) - sums[5:]
        return _Sums(self._benchmarks, sums[:2], sums[2:5], residuals)


def _level(table: _Table, total: FloatArray) -> FloatArray:
    """Return the mean over known cells, (S,); NaN where no cell is known."""
    return np.asarray(np.divide(total, table.count, out=np.full(total.shape, np.nan), where=table.count > 0))


def _empty(counts: FloatArray) -> NDArray[np.bool_]:
    """Return where nothing is known: (P,) where that is alike in all starts, otherwise (P, S)."""
    return np.asarray(counts[:, 0] == 0 if counts.shape[1] == 1 else counts == 0)


def _stacked(bias: FloatArray, factors: FloatArray) -> FloatArray:
    """Return the factors, their products, the bias, and the bias with each factor, (8, P, S)."""
    stack = np.empty((8, *factors.shape[1:]))
    stack[:2] = factors
    for place, (first, second) in enumerate(_PRODUCTS, start=2):
        np.multiply(factors[first], factors[second], out=stack[place])
    stack[5] = bias
    np.multiply(bias, factors, out=stack[6:])
    return stack


def _solved(sums: _Sums) -> FloatArray:
    """Solve (F'F + 0.1 I) x = F'r with F = (1, first factor, second factor), by elimination, for all systems at once: (3, P, S)."""
    first, second = sums.features
    both_first, across, both_second = sums.products
    inverse = 1.0 / (sums.count + PENALTY)
    by_first, by_second = first * inverse, second * inverse
    corner = both_first + PENALTY - by_first * first
    off = across - by_first * second
    right_first = sums.residuals[1] - by_first * sums.residuals[0]
    right_second = sums.residuals[2] - by_second * sums.residuals[0]
    ratio = off / corner
    found = np.empty((3, *first.shape))
    np.divide(right_second - ratio * right_first, both_second + PENALTY - by_second * second - ratio * off, out=found[2])
    np.divide(right_first - off * found[2], corner, out=found[1])
    np.multiply(sums.residuals[0] - first * found[1] - second * found[2], inverse, out=found[0])
    return found
