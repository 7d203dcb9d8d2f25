from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from evalspec.statistics.clustering import medoids, nearest_members


def distances(seed: int, size: int = 18) -> NDArray[np.int32]:
    points = np.random.default_rng(seed).normal(size=(size, 2))
    return np.rint(1000 * np.linalg.norm(points[:, None] - points, axis=2)).astype(np.int32)


def cost(between: NDArray[np.int32], chosen: NDArray[np.int64]) -> int:
    return int(between[:, chosen].min(axis=1).sum())


@pytest.mark.parametrize("count", [1, 2, 3, 6])
@pytest.mark.parametrize("seed", range(6))
def test_no_single_swap_betters_medoids(seed: int, count: int) -> None:
    between = distances(seed)
    found = medoids(between, count, np.random.default_rng(seed))
    assert len(set(found.tolist())) == count
    best = cost(between, found)
    for place in range(count):
        for other in set(range(18)) - set(found.tolist()):
            swapped = found.copy()
            swapped[place] = other
            assert cost(between, swapped) >= best


def test_medoids_are_often_the_best_of_all() -> None:
    hits = 0
    for seed in range(10):
        between = distances(seed)
        best = min(cost(between, np.array(chosen)) for chosen in combinations(range(18), 3))
        found = cost(between, medoids(between, 3, np.random.default_rng(seed)))
        assert found <= 1.15 * best
        hits += found == best
    assert hits >= 5


def test_as_many_medoids_as_points_are_all_points() -> None:
    assert medoids(distances(1), 30, np.random.default_rng(1)).tolist() == list(range(18))


@pytest.mark.parametrize("clusters", [1, 4, 25])
def test_every_cluster_has_one_nearest_member_of_its_own(clusters: int) -> None:
    points = np.random.default_rng(3).normal(size=(40, 3))
    members, cluster = nearest_members(points, clusters, np.random.default_rng(1))
    assert cluster[members].tolist() == list(range(clusters))
    centres = np.stack([points[cluster == place].mean(axis=0) for place in range(clusters)])
    to_centres = np.linalg.norm(points[:, None] - centres, axis=2)
    for place, member in enumerate(members):
        assert to_centres[member, place] == pytest.approx(to_centres[cluster == place, place].min())
    # Lloyd's steps have ended: each point lies with its nearest centre.
    assert np.mean(np.argmin(to_centres, axis=1) == cluster) == 1.0


def test_clusters_far_apart_are_found() -> None:
    points = np.repeat([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]], 8, axis=0) + np.random.default_rng(1).normal(0, 0.1, (24, 2))
    _, cluster = nearest_members(points, 3, np.random.default_rng(1))
    assert [len(set(cluster[start : start + 8].tolist())) for start in (0, 8, 16)] == [1, 1, 1]
    assert len(set(cluster.tolist())) == 3


def test_equal_points_are_shared_out_among_clusters() -> None:
    members, cluster = nearest_members(np.zeros((5, 2)), 3, np.random.default_rng(1))
    assert len(set(members.tolist())) == 3
    assert sorted(set(cluster.tolist())) == [0, 1, 2]
