"""Which ranks can a model hold, and which models belong together, given which differences are established?

Assumption: the separations given come from tests that control their whole family. What is not separated is not equal: groups
overlap, and no partition of the models is implied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc

from evalspec.statistics.arguments import require_counts, require_fraction
from evalspec.statistics.max_t import Pair, pair_statistics, step_down
from evalspec.statistics.multiplicity import holm


@dataclass(frozen=True, slots=True)
class RankIntervals:
    """For each model the best (``low``) and the worst (``high``) rank that it may hold; 1 is the best rank."""

    low: tuple[int, ...]
    high: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RankInterval:
    """The best (``low``) and the worst (``high``) rank that one model may hold; 1 is the best rank."""

    low: int
    high: int


def rank_intervals(better: ArrayLike) -> RankIntervals:
    """Ranks compatible with established separations: from 1 + those better to M - those worse.

    Parameters
    ----------
    better
        Shape (M, M), boolean: entry (i, j) is true when i is established as better than j.

    Raises
    ------
    ValueError
        When the matrix is not square, or calls two models better than each other.

    References
    ----------
    Mogstad, Romano, Shaikh and Wilhelm (2024), Rev. Econ. Stud. 91, 476-518, doi:10.1093/restud/rdad006.

    Examples
    --------
    >>> rank_intervals([[False, False, True], [False, False, True], [False, False, False]])
    RankIntervals(low=(1, 1, 3), high=(2, 2, 3))
    """
    matrix = np.asarray(better, dtype=np.bool_)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"better must be a square matrix; got shape {matrix.shape}")
    if np.any(matrix & matrix.T):
        raise ValueError("two models cannot each be better than the other")
    models = matrix.shape[0]
    low, high = 1 + matrix.sum(axis=0), models - matrix.sum(axis=1)
    return RankIntervals(tuple(low.tolist()), tuple(high.tolist()))


def simultaneous_rank_intervals(scores: ArrayLike, *, alpha: float = 0.05, draws: int, rng: np.random.Generator) -> RankIntervals:
    """Rank intervals of all models that hold together at ``1 - alpha``: step-down max-T over every ordered pair.

    Parameters
    ----------
    scores
        Shape (M, Q), M at least 2.
    alpha
        Probability that any model's true rank falls outside its interval.
    draws, rng
        Number of Monte Carlo draws, and where they come from.

    Raises
    ------
    ValueError
        For missing scores or impossible arguments.

    References
    ----------
    As `rank_intervals`.

    Examples
    --------
    >>> scores = np.vstack([np.ones(40), np.arange(40) % 2, np.arange(40) % 2])
    >>> simultaneous_rank_intervals(scores, draws=1000, rng=np.random.default_rng(1))
    RankIntervals(low=(1, 2, 2), high=(1, 3, 3))
    """
    models = np.shape(scores)[0]
    pairs = [(i, j) for i in range(models) for j in range(models) if i != j]
    rejected = step_down(pair_statistics(scores, pairs), alpha=alpha, draws=draws, rng=rng).rejected
    return rank_intervals(_matrix(pairs, rejected, models))


def marginal_rank_interval(scores: ArrayLike, model: int, *, alpha: float = 0.05, draws: int, rng: np.random.Generator) -> RankInterval:
    """Rank interval of one model named beforehand, which holds by itself at ``1 - alpha``.

    Parameters
    ----------
    scores, alpha, draws, rng
        As `simultaneous_rank_intervals`.
    model
        Position of the model.

    Raises
    ------
    ValueError
        As `simultaneous_rank_intervals`.

    References
    ----------
    As `rank_intervals`.

    Examples
    --------
    >>> scores = np.vstack([np.ones(40), np.arange(40) % 2])
    >>> marginal_rank_interval(scores, 0, draws=1000, rng=np.random.default_rng(1))
    RankInterval(low=1, high=1)
    """
    models = np.shape(scores)[0]
    pairs = [pair for j in range(models) if j != model for pair in ((model, j), (j, model))]
    rejected = step_down(pair_statistics(scores, pairs), alpha=alpha, draws=draws, rng=rng).rejected
    intervals = rank_intervals(_matrix(pairs, rejected, models))
    return RankInterval(intervals.low[model], intervals.high[model])


def possible_best(scores: ArrayLike, *, alpha: float = 0.05, draws: int, rng: np.random.Generator) -> tuple[bool, ...]:
    """Which models may be the best one: those that no other is established as better than, all judged together.

    Parameters
    ----------
    scores, alpha, draws, rng
        As `simultaneous_rank_intervals`.

    Returns
    -------
    tuple of bool
        The truly best model is among those marked with probability at least ``1 - alpha``.

    Raises
    ------
    ValueError
        As `simultaneous_rank_intervals`.

    References
    ----------
    As `rank_intervals`: the lower ends of simultaneous rank intervals give the set.

    Examples
    --------
    >>> possible_best(np.vstack([np.ones(40), np.arange(40) % 2]), draws=1000, rng=np.random.default_rng(1))
    (True, False)
    """
    low = simultaneous_rank_intervals(scores, alpha=alpha, draws=draws, rng=rng).low
    return tuple(rank == 1 for rank in low)


def compact_letters(models: int, different: Iterable[Pair]) -> tuple[tuple[int, ...], ...]:
    """Groups such that two models share one exactly when they are not separated: for each model, its group numbers from 0.

    Raises
    ------
    ValueError
        When a pair names one model twice or a position outside the models.

    References
    ----------
    Piepho (2004), J. Comput. Graph. Stat. 13, 456-466, doi:10.1198/1061860043515 (insert and absorb).

    Examples
    --------
    >>> compact_letters(4, [(0, 1), (0, 2), (2, 3)])
    ((0,), (1, 2), (1,), (0, 2))
    """
    columns = [frozenset(range(models))]
    for first, second in different:
        if first == second or not (0 <= first < models and 0 <= second < models):
            raise ValueError(f"a pair must name two different models below {models}; got {(first, second)}")
        split = [part for column in columns for part in _insert(column, first, second)]
        columns = _absorb(split)
    columns.sort(key=sorted)
    return tuple(tuple(number for number, column in enumerate(columns) if model in column) for model in range(models))


def _insert(column: frozenset[int], first: int, second: int) -> tuple[frozenset[int], ...]:
    return (column - {first}, column - {second}) if {first, second} <= column else (column,)


def _absorb(columns: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    distinct = list(dict.fromkeys(columns))
    return [column for column in distinct if not any(column < other for other in distinct)]


def count_rank_intervals(counts: ArrayLike, *, alpha: float = 0.05) -> RankIntervals:
    """Rank intervals of categories by how often each was chosen, such as votes for models: exact tests with Holm.

    Parameters
    ----------
    counts
        Shape (M,), whole numbers of independent choices.
    alpha
        Probability that any true rank falls outside its interval.

    Raises
    ------
    ValueError
        For counts that are not whole, or an impossible level.

    References
    ----------
    Bazylik, Mogstad, Romano, Shaikh and Wilhelm (2021), NBER working paper 29519, doi:10.3386/w29519.

    Examples
    --------
    >>> count_rank_intervals([50, 40, 10, 5, 1])
    RankIntervals(low=(1, 1, 3, 3, 3), high=(2, 2, 5, 5, 5))
    """
    chosen = require_counts("counts", counts)
    pairs = [(i, j) for i in range(chosen.size) for j in range(chosen.size) if i != j]
    more = np.array([chosen[i] for i, _ in pairs], dtype=np.float64)
    fewer = np.array([chosen[j] for _, j in pairs], dtype=np.float64)
    # P(X >= more) for X ~ Binomial(more + fewer, 1/2): given either of two, they are equally likely under H0.
    tails = np.where(more > 0.0, betainc(np.maximum(more, 1.0), fewer + 1.0, 0.5), 1.0)
    return rank_intervals(_matrix(pairs, holm(tails) <= require_fraction("alpha", alpha), chosen.size))


def _matrix(pairs: Sequence[Pair], rejected: NDArray[np.bool_], models: int) -> NDArray[np.bool_]:
    better = np.zeros((models, models), dtype=np.bool_)
    for (i, j), separated in zip(pairs, rejected, strict=True):
        better[i, j] = separated
    return better
