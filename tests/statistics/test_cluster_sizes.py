from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from benchmarks.cluster_sizes import Clusters, SmallerMadeUp, false_pass_rate
from evalspec.statistics.gaffke import Units, gaffke_bound

ALL_TABLES = [
    Clusters((7, 2), (3, 9), 0.4),
    Clusters((25, 10), (2, 12), 0.6),
    Clusters((11, 10), (5, 6), 0.3),
    Clusters((40, 12, 3), (2, 3, 8), 0.55),
    Clusters((5, 5, 5), (2, 3, 4), 0.5),
]


@pytest.mark.parametrize("clusters", ALL_TABLES, ids=str)
@pytest.mark.parametrize("made_up", [Units, SmallerMadeUp])
def test_the_rate_is_that_of_all_tables_whose_bound_lies_above_the_mean(clusters: Clusters, made_up: type[Units]) -> None:
    sizes, numbers = np.array(clusters.sizes, dtype=np.float64), np.array(clusters.numbers)
    rate = 0.0
    for right in product(*(range(number + 1) for number in clusters.numbers)):
        counts = np.concatenate([right, numbers - right]).astype(np.float64)
        units = made_up(np.concatenate([sizes, np.zeros(sizes.size)]), np.tile(sizes, 2), counts, 0.0)
        passes = any(right) and gaffke_bound(units, alpha=0.1) > clusters.mean
        rate += passes * math.prod(float(binom.pmf(count, number, clusters.mean)) for count, number in zip(right, clusters.numbers, strict=True))
    assert false_pass_rate(clusters, 0.1, made_up) == pytest.approx(rate, abs=1e-7)  # what is left out counts as passed
    assert 0.0 < rate < 0.2


@pytest.mark.parametrize(("number", "mean"), [(30, 0.8), (57, 0.93)])
def test_clusters_of_one_size_pass_as_a_binomial_test_does(number: int, mean: float) -> None:
    tails = binom.sf(np.arange(-1, number), number, mean)
    assert false_pass_rate(Clusters((10, 10), (3, number - 3), mean), 0.025) == pytest.approx(max(tails[tails < 0.025]), abs=1e-7)


@pytest.mark.parametrize(
    ("clusters", "alpha", "expected"),
    [
        (Clusters((23, 10), (3, 339), 0.163081), 0.0025, 0.0024),
        (Clusters((20, 10), (1, 370), 0.310122), 0.01, 0.0098),
        (Clusters((18, 10), (1, 187), 0.95402), 0.025, 0.0244),
        (Clusters((817, 10), (6, 8), 0.0424972), 0.025, 0.0241),
        (Clusters((100, 1), (15, 1500), 0.58), 0.025, 0.0170),
        (Clusters((16, 10), (1, 231), 0.805761), 0.1, 0.0982),
    ],
    ids=str,
)
def test_the_worst_designs_found_pass_wrongly_less_often_than_declared(clusters: Clusters, alpha: float, expected: float) -> None:
    assert expected < false_pass_rate(clusters, alpha) < alpha


@pytest.mark.parametrize(
    ("clusters", "alpha", "at_least"),
    [
        (Clusters((229, 10), (8, 400), 0.69428), 0.0025, 0.018),
        (Clusters((300, 216, 10), (7, 12, 298), 0.792592), 0.0025, 0.008),
        (Clusters((240, 10), (8, 192), 0.72), 0.025, 0.056),
        (Clusters((100, 1), (15, 6000), 0.92), 0.025, 0.23),
        (Clusters((341, 10), (5, 399), 0.783976), 0.1, 0.2),
    ],
    ids=str,
)
def test_the_worst_designs_of_a_smaller_made_up_cluster_do_not_pass_too_often(clusters: Clusters, alpha: float, at_least: float) -> None:
    assert false_pass_rate(clusters, alpha, SmallerMadeUp) > at_least
    assert false_pass_rate(clusters, alpha) < alpha
