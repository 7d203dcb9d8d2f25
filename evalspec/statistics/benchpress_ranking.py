"""Do predicted scores keep the order of models?

Two models of one benchmark are in order when prediction and truth put the same one first. A pair with one hidden cell is easier than one with
both hidden, because one of its scores is known; both kinds are counted. Pairs of one benchmark share models, and pairs of one model share cells:
no interval is given.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalspec.statistics.arguments import FloatArray, IntArray
from evalspec.statistics.benchpress_folds import HeldOut


@dataclass(frozen=True, slots=True)
class Order:
    """Pairs with a true gap of at least a margin: how many, the share in order over all of them, and the median over benchmarks of their shares.

    Shares are None without any pair.
    """

    pairs: int
    pooled: float | None
    median: float | None


@dataclass(frozen=True, slots=True)
class OrderKept:
    """The order of pairs with at least one hidden cell, and of those with both hidden."""

    any_hidden: Order
    both_hidden: Order


def order_kept(scores: FloatArray, held: HeldOut, margins: FloatArray) -> OrderKept:
    """Count pairs of models whose order on a benchmark survives the prediction of hidden cells, over all folds.

    True ties are left out, and predicted ties count as wrong.

    Parameters
    ----------
    scores
        The table that cells were hidden from, (N, D).
    held
        The hidden cells with their predictions.
    margins
        Smallest true gap that counts, by benchmark, (D,).

    References
    ----------
    Zeng and Papailiopoulos (2026), arXiv:2606.24020; their share is the median over benchmarks with at least one cell of a pair hidden.

    Examples
    --------
    >>> table = np.array([[90.0], [80.0], [70.0]])
    >>> one = HeldOut(*(np.array([0]),) * 3, np.array([90.0]), np.array([75.0]), *(np.ones(1),) * 5)
    >>> order_kept(table, one, np.zeros(1)).any_hidden
    Order(pairs=2, pooled=0.5, median=0.5)
    """
    counts = np.zeros((2, 2, scores.shape[1]), dtype=np.int64)  # any or both hidden; pairs and those in order; benchmark
    for benchmark, truth, shown, hidden in _leaderboards(scores, held):
        gap, found = truth[:, None] - truth, shown[:, None] - shown
        counted = np.triu((np.abs(gap) >= margins[benchmark]) & (gap != 0.0), 1) & (hidden[:, None] | hidden)
        both = hidden[:, None] & hidden
        kept = gap * found > 0.0
        counts[0, :, benchmark] += [np.count_nonzero(counted), np.count_nonzero(counted & kept)]
        counts[1, :, benchmark] += [np.count_nonzero(counted & both), np.count_nonzero(counted & both & kept)]
    return OrderKept(_order(*counts[0]), _order(*counts[1]))


def _leaderboards(scores: FloatArray, held: HeldOut) -> Iterator[tuple[int, FloatArray, FloatArray, NDArray[np.bool_]]]:
    """Yield benchmark, true scores, scores with predictions for hidden cells, and which are hidden, for each benchmark of each fold."""
    for fold in np.unique(held.fold):
        part = held.kept((held.fold == fold) & ~np.isnan(held.predicted))
        shown, hidden = scores.copy(), np.zeros(scores.shape, dtype=np.bool_)
        shown[part.models, part.benchmarks], hidden[part.models, part.benchmarks] = part.predicted, True
        for benchmark in np.unique(part.benchmarks).tolist():
            known = ~np.isnan(scores[:, benchmark])
            yield benchmark, scores[known, benchmark], shown[known, benchmark], hidden[known, benchmark]


def _order(pairs: IntArray, kept: IntArray) -> Order:
    present = pairs > 0
    if not present.any():
        return Order(0, None, None)
    return Order(int(pairs.sum()), float(kept.sum() / pairs.sum()), float(np.median(kept[present] / pairs[present])))
