"""Into which k groups do points fall so that they lie near the means of their groups?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalspec.statistics.arguments import FloatArray, IntArray, require_count
from evalspec.statistics.eigenvectors import Floats

STARTED_ON = 1024
"""Starts are tried on a random part of at most so many points; the best is finished on all of them."""

_MOST_STEPS = 300
_SETTLED = 1e-4
"""A start has settled when its means move less than this share of the points' variance."""


@dataclass(frozen=True, slots=True, eq=False)
class Clustering:
    """The group of each point, shape (N,), numbered in order of first appearance, and the sum of squared distances to the groups' means."""

    labels: IntArray
    inertia: float


def kmeans(points: FloatArray, groups: int, *, starts: int, rng: np.random.Generator) -> Clustering:
    """k-means: several greedy k-means++ starts, of which the best is kept, improved by Lloyd's steps until no point changes its group.

    Parameters
    ----------
    points
        Shape (N, d).
    groups
        Number of groups, at most N.
    starts, rng
        Number of random starts, and where they come from.

    Raises
    ------
    ValueError
        When there are fewer points than groups, or no start.

    References
    ----------
    Lloyd (1982), IEEE Trans. Inf. Theory 28, 129-137. Arthur and Vassilvitskii (2007), SODA '07, 1027-1035 (k-means++).

    Examples
    --------
    >>> points = np.array([[0.0], [0.1], [5.0], [5.2]])
    >>> kmeans(points, 2, starts=3, rng=np.random.default_rng(1)).labels
    array([0, 0, 1, 1])
    """
    require_count("groups", groups, minimum=1)
    require_count("starts", starts, minimum=1)
    if points.ndim != 2 or len(points) < groups:
        raise ValueError(f"points must be (at least {groups}, d); got shape {points.shape}")
    # Single precision is three times as fast here; centred and scaled points lose nothing that tells groups apart.
    centred = points - points.mean(axis=0)
    centred = (centred / (np.abs(centred).max() or 1.0)).astype(np.float32)
    part = centred if len(points) <= STARTED_ON else centred[np.sort(rng.permutation(len(points))[:STARTED_ON])]
    begun = [_settle(part, _spread_out(part, groups, rng), _SETTLED) for _ in range(starts)]
    centres = min(begun, key=lambda pair: pair[1])[0]
    labels = in_order(_nearest(centred, _settle(centred, centres, 0.0)[0]))
    return Clustering(labels, _inertia(points, labels))


def in_order(labels: NDArray[np.intp]) -> IntArray:
    """Number groups in order of first appearance.

    Examples
    --------
    >>> in_order(np.array([2, 0, 2, 1]))
    array([0, 1, 0, 2])
    """
    _, first, place = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[place].astype(np.int64)


def _inertia(points: FloatArray, labels: IntArray) -> float:
    sizes = np.bincount(labels)
    means = np.stack([np.bincount(labels, column) for column in points.T], axis=1) / sizes[:, None]
    return float(np.sum((points - means[labels]) ** 2))


def _settle(points: Floats, centres: Floats, tolerance: float) -> tuple[Floats, float]:
    """Take Lloyd's steps until the means have settled; return them and the sum of squared distances."""
    limit = tolerance * float(points.var(axis=0).mean())
    before: NDArray[np.intp] | None = None
    for _ in range(_MOST_STEPS):
        labels = _nearest(points, centres)
        if before is not None and np.array_equal(labels, before):
            break
        moved = _means(points, labels, centres)
        shift = float(np.sum((moved - centres) ** 2))
        centres, before = moved, labels
        if shift <= limit:
            break
    return centres, float(np.sum((points - centres[_nearest(points, centres)]) ** 2))


def _nearest(points: Floats, centres: Floats) -> NDArray[np.intp]:
    return np.asarray(np.argmax(points @ centres.T - np.float32(0.5) * np.sum(centres**2, axis=1), axis=1))


def _means(points: Floats, labels: NDArray[np.intp], centres: Floats) -> Floats:
    """Return the mean of each group; a group that has lost its points takes the point that is farthest from its own mean."""
    marked = (labels == np.arange(len(centres))[:, None]).astype(np.float32)
    sizes = marked.sum(axis=1)
    means = np.divide(marked @ points, sizes[:, None], out=centres.copy(), where=sizes[:, None] > 0)
    empty = np.flatnonzero(sizes == 0)
    if empty.size:
        means[empty] = points[np.argsort(-np.sum((points - means[labels]) ** 2, axis=1), kind="stable")[: empty.size]]
    return np.asarray(means)


def _spread_out(points: Floats, groups: int, rng: np.random.Generator) -> Floats:
    """Choose points as first means: each next one with probability by its squared distance, the best of a few candidates."""
    candidates = 2 + int(np.log(groups))
    squares = np.sum(points**2, axis=1)
    chosen = [int(rng.integers(len(points)))]
    nearest = _squared_distances(points, squares, chosen)[:, 0]
    for _ in range(groups - 1):
        total = np.cumsum(nearest, dtype=np.float64)
        drawn = np.searchsorted(total, rng.random(candidates) * total[-1]) if total[-1] > 0.0 else rng.integers(len(points), size=candidates)
        drawn = np.minimum(drawn, len(points) - 1)
        closer = np.minimum(nearest[:, None], _squared_distances(points, squares, drawn.tolist()))
        best = int(closer.sum(axis=0).argmin())
        chosen.append(int(drawn[best]))
        nearest = closer[:, best]
    return points[chosen]


def _squared_distances(points: Floats, squares: Floats, chosen: list[int]) -> Floats:
    return np.maximum(squares[:, None] + squares[chosen] - np.float32(2.0) * (points @ points[chosen].T), np.float32(0.0))
