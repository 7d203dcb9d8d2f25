"""Which few questions stand for many: centres by k-means, and medoids by FasterPAM?

Both begin at random and end where no single step betters them. Medoids are found on whole-number distances, so that every machine takes the same
steps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evalspec.statistics.arguments import FloatArray, IntArray
from evalspec.statistics.kmeans import kmeans

_DECIMALS = 12
"""Of squared distances: points that are equally near may differ beyond, by the order of sums."""


def nearest_members(points: FloatArray, clusters: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Cluster points of shape (N, D) by k-means; return the point nearest to each cluster's mean, and the cluster of each point.

    Where fewer points differ than there are clusters, points leave the largest clusters for clusters of their own.

    References
    ----------
    As `evalspec.statistics.kmeans.kmeans`.

    Examples
    --------
    >>> members, cluster = nearest_members(np.array([[0.0], [1.0], [2.0], [9.0]]), 2, np.random.default_rng(1))
    >>> sorted(members.tolist()), bool(cluster[0] == cluster[1] == cluster[2])
    ([1, 3], True)
    """
    if clusters >= len(points):
        everyone = np.arange(len(points))
        return everyone, everyone
    cluster = kmeans(points, clusters, starts=1, rng=rng).labels
    for empty in range(int(cluster.max()) + 1, clusters):
        cluster[np.flatnonzero(cluster == np.bincount(cluster).argmax())[-1]] = empty
    means = np.stack([np.bincount(cluster, column) for column in points.T], axis=1) / np.bincount(cluster)[:, None]
    away = np.round(np.sum((points - means[cluster]) ** 2, axis=1), _DECIMALS)
    order = np.lexsort((np.arange(len(points)), away, cluster))
    return order[np.searchsorted(cluster[order], np.arange(clusters))], cluster


def medoids(distances: NDArray[np.int32], count: int, rng: np.random.Generator) -> IntArray:
    """Choose the ``count`` points whose summed distances to all others, each to its nearest, no single swap makes smaller.

    Parameters
    ----------
    distances
        Shape (N, N), symmetric, whole numbers.
    count
        Number of medoids.
    rng
        Where the random start comes from.

    References
    ----------
    Schubert and Rousseeuw (2021), Inf. Syst. 101, 101804, doi:10.1016/j.is.2021.101804 (FasterPAM).

    Examples
    --------
    >>> positions = np.array([0, 1, 2, 50, 51, 52])
    >>> sorted(medoids(np.abs(positions[:, None] - positions).astype(np.int32), 2, np.random.default_rng(1)).tolist())
    [1, 4]
    """
    size = len(distances)
    if count >= size:
        return np.arange(size)
    state = _Swapping(distances, rng.choice(size, count, replace=False).astype(np.int64))
    unmoved, candidate = 0, 0
    while unmoved < size:
        unmoved = 0 if state.try_candidate(candidate) else unmoved + 1
        candidate = (candidate + 1) % size
    return np.sort(state.medoids)


class _Swapping:
    """Medoids with, per point, its nearest and second nearest of them."""

    def __init__(self, distances: NDArray[np.int32], chosen: IntArray) -> None:
        self._distances = distances
        self.medoids = chosen
        everyone = np.arange(len(distances))
        self._nearest, self._first = np.zeros_like(everyone), np.zeros_like(everyone)
        self._runner, self._second = np.zeros_like(everyone), np.zeros_like(everyone)
        self._find(everyone)

    def try_candidate(self, candidate: int) -> bool:
        """Swap the candidate for the medoid whose loss it outweighs most; return whether it was."""
        if candidate in self.medoids:
            return False
        to_it = self._distances[candidate].astype(np.int64)
        # Schubert and Rousseeuw (2021), algorithm 3: what is gained wherever it is put, and what losing each medoid costs then.
        gained = np.minimum(to_it - self._first, 0).sum()
        lost = np.minimum(np.maximum(to_it, self._first), self._second) - self._first
        costs = np.bincount(self._nearest, lost, minlength=self.medoids.size)
        place = int(np.argmin(costs))
        if costs[place] + gained >= 0:
            return False
        self._swap(place, candidate, to_it)
        return True

    def _swap(self, place: int, candidate: int, to_it: IntArray) -> None:
        if self.medoids.size == 1:
            self.medoids[place] = candidate
            self._find(np.arange(len(to_it)))
            return
        stale = (self._nearest == place) | (self._runner == place)
        self.medoids[place] = candidate
        closest, second = ~stale & (to_it < self._first), ~stale & (to_it >= self._first) & (to_it < self._second)
        self._runner[closest], self._second[closest] = self._nearest[closest], self._first[closest]
        self._nearest[closest], self._first[closest] = place, to_it[closest]
        self._runner[second], self._second[second] = place, to_it[second]
        self._find(np.flatnonzero(stale))

    def _find(self, points: IntArray) -> None:
        """Look up the two nearest medoids of some points."""
        to_all = self._distances[points[:, None], self.medoids].astype(np.int64)
        rows = np.arange(points.size)
        self._nearest[points] = np.argmin(to_all, axis=1)
        self._first[points] = to_all[rows, self._nearest[points]]
        if self.medoids.size == 1:
            self._second[points] = np.iinfo(np.int32).max
            return
        to_all[rows, self._nearest[points]] = np.iinfo(np.int64).max
        self._runner[points] = np.argmin(to_all, axis=1)
        self._second[points] = to_all[rows, self._runner[points]]
