"""How wrong are predicted scores?  Known cells are hidden, predicted from the rest, and compared.

Every number here speaks of cells that were hidden from the fit. Cells are hidden at random, each model losing a third of its own at a time;
scores that nobody published are not missing at random, so on truly new results errors are larger.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalspec.statistics.arguments import FloatArray, IntArray
from evalspec.statistics.benchpress import Method, Standard, additive, fit, medians, spreads

PARTS = 3
"""Into how many parts each model's known cells are cut."""

SMALLEST = 1e-6
"""A score this near to 0 has no relative error."""


@dataclass(frozen=True, slots=True)
class Fold:
    """Cells that are hidden together, by model and benchmark, (K,) each."""

    models: IntArray
    benchmarks: IntArray

    def hidden_from(self, scores: FloatArray) -> FloatArray:
        """Return the table without these cells."""
        rest = scores.copy()
        rest[self.models, self.benchmarks] = np.nan
        return rest


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Hidden cells with what was predicted for them, all (K,), in the order of the folds.

    ``strength`` is the mean standardised score that the fit knew of the model; ``apart`` is the spread of the benchmark's known scores, by which
    errors compare across units; ``additive`` and ``median`` are the predictions of the two baselines.
    """

    models: IntArray
    benchmarks: IntArray
    fold: IntArray
    actual: FloatArray
    predicted: FloatArray
    spread: FloatArray
    additive: FloatArray
    median: FloatArray
    strength: FloatArray
    apart: FloatArray

    def kept(self, chosen: NDArray[np.bool_]) -> HeldOut:
        """Return the chosen cells alone."""
        return HeldOut(*(getattr(self, name)[chosen] for name in self.__slots__))

    @property
    def error(self) -> FloatArray:
        """How far each prediction is from the score."""
        return np.abs(self.predicted - self.actual)


@dataclass(frozen=True, slots=True)
class ErrorSummary:
    """Errors of predictions: median, mean, root mean square and ninth decile, the median relative one, and shares within 3 and 5.

    ``n`` counts the cells that could be predicted and ``unpredicted`` those that could not. ``median_relative`` is None where every score is 0.
    """

    n: int
    unpredicted: int
    median: float
    mean: float
    root_mean_square: float
    ninth_decile: float
    median_relative: float | None
    within_3: float
    within_5: float


def holdout_folds(known: NDArray[np.bool_], seeds: Sequence[int]) -> Iterator[Fold]:
    """Cut each model's known cells in three at random, once for each seed; each part is hidden in turn, of all models together.

    Parameters
    ----------
    known
        Which cells have a score, (N, D).
    seeds
        Seeds of NumPy's legacy generator, which cut the published folds.

    References
    ----------
    Zeng and Papailiopoulos (2026), arXiv:2606.24020; the released folds come out cell by cell for seeds 42 to 51.

    Examples
    --------
    >>> [fold.benchmarks.tolist() for fold in holdout_folds(np.ones((1, 4), dtype=bool), [42])]
    [[1], [3], [0, 2]]
    """
    for seed in seeds:
        generator = np.random.RandomState(seed)  # the stream of the published folds
        parts: list[list[tuple[int, int]]] = [[] for _ in range(PARTS)]
        for model, row in enumerate(known):
            columns = np.flatnonzero(row).tolist()
            generator.shuffle(columns)
            size = max(1, len(columns) // PARTS)
            cuts = [columns[:size], columns[size : 2 * size], columns[2 * size :]]
            for part, cut in zip(parts, cuts, strict=True):
                part += [(model, column) for column in cut]
        for part in parts:
            cells = np.array(part, dtype=np.int64).reshape(-1, 2)
            yield Fold(cells[:, 0], cells[:, 1])


def small_folds(known: NDArray[np.bool_], parts: int, rng: np.random.Generator) -> list[Fold]:
    """Deal each model's known cells out at random over many parts; each part is hidden in turn, of all models together.

    So few cells are hidden at a time that the rest tells about them almost what it tells about cells that nobody knows. Starts of a fit agree
    better the more is known, so intervals that are tried on a third of the cells are too narrow for predictions from all of them.

    Parameters
    ----------
    known
        Which cells have a score, (N, D).
    parts, rng
        How many parts there are, and where the random order comes from.

    References
    ----------
    Stone (1974), J. R. Stat. Soc. B 36, 111-147.

    Examples
    --------
    >>> sum(len(fold.models) for fold in small_folds(np.ones((2, 4), dtype=bool), 20, np.random.default_rng(1)))
    8
    """
    dealt: list[list[tuple[int, int]]] = [[] for _ in range(parts)]
    for model, row in enumerate(known):
        first = int(rng.integers(parts))
        for place, column in enumerate(rng.permutation(np.flatnonzero(row)).tolist()):
            dealt[(first + place) % parts].append((model, column))
    cells = [np.array(part, dtype=np.int64) for part in dealt if part]
    return [Fold(part[:, 0], part[:, 1]) for part in cells]


def hold_out(scores: FloatArray, method: Method, folds: Sequence[Fold]) -> HeldOut:
    """Hide the cells of each fold and predict them from the rest; beside it, from model and benchmark alone, and by the benchmark's median.

    References
    ----------
    Zeng and Papailiopoulos (2026), arXiv:2606.24020.

    Examples
    --------
    >>> table = np.array([[90.0, 70.0], [80.0, 60.0], [70.0, 50.0]])
    >>> hold_out(table, Method((42,)), [Fold(np.array([2]), np.array([1]))]).actual.tolist()
    [50.0]
    """
    return joined([_of_fold(scores, method, fold, number) for number, fold in enumerate(folds)])


def joined(parts: Sequence[HeldOut]) -> HeldOut:
    """Put hidden cells together.

    Examples
    --------
    >>> one = HeldOut(*(np.zeros(1, dtype=np.int64),) * 3, *(np.ones(1),) * 7)
    >>> joined([one, one]).actual.tolist()
    [1.0, 1.0]
    """
    return HeldOut(*(np.concatenate([getattr(part, name) for part in parts]) for name in HeldOut.__slots__))


def summarise(error: FloatArray, actual: FloatArray, *, unit: FloatArray | float = 1.0) -> ErrorSummary:
    """Summarise errors; cells without a prediction are counted and left out.

    ``error`` is in multiples of ``unit``, ``actual`` in units of the score, (K,) each.

    Raises
    ------
    ValueError
        When no cell has a prediction.

    Examples
    --------
    >>> summarise(np.array([1.0, 3.0, 8.0]), np.array([50.0, 60.0, 80.0])).median
    3.0
    """
    found = ~np.isnan(error)
    if not found.any():
        raise ValueError("no hidden cell could be predicted")
    size, score = error[found], np.abs(actual[found])
    relative = (error * unit)[found][score > SMALLEST] / score[score > SMALLEST]
    return ErrorSummary(
        n=int(found.sum()),
        unpredicted=int((~found).sum()),
        median=float(np.median(size)),
        mean=float(size.mean()),
        root_mean_square=float(np.sqrt(np.mean(size**2))),
        ninth_decile=float(np.quantile(size, 0.9)),
        median_relative=float(np.median(relative)) if relative.size else None,
        within_3=float(np.mean(size <= 3.0)),
        within_5=float(np.mean(size <= 5.0)),
    )


def strengths(scores: FloatArray, standard: Standard) -> FloatArray:
    """Return the mean standardised score of each model's known cells, (N,); NaN for a model without any.

    Examples
    --------
    >>> table = np.array([[90.0], [80.0]])
    >>> strengths(table, Standard.of(table, np.array([np.nan]))).tolist()
    [1.0, -1.0]
    """
    known, standardised = ~np.isnan(scores), standard.standardised(scores)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, standardised, 0.0).sum(axis=1) / known.sum(axis=1))


def _of_fold(scores: FloatArray, method: Method, fold: Fold, number: int) -> HeldOut:
    rest, place = fold.hidden_from(scores), (fold.models, fold.benchmarks)
    fitted = fit(rest, method)
    predictions = fitted.at(*place)
    return HeldOut(
        models=fold.models,
        benchmarks=fold.benchmarks,
        fold=np.full(len(fold.models), number, dtype=np.int64),
        actual=scores[place],
        predicted=predictions.value,
        spread=predictions.spread,
        additive=additive(rest, fitted.standard.tops)[place],
        median=medians(rest)[fold.benchmarks],
        strength=strengths(rest, fitted.standard)[fold.models],
        apart=spreads(scores)[fold.benchmarks],
    )
