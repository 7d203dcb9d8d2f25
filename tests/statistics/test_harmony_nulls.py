from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from evalspec.statistics.harmony import Kernel, harmony
from evalspec.statistics.harmony_nulls import harmony_null, homogeneous_counts, homogeneous_means

LABELS = ["x"] * 4 + ["y"] * 2 + ["z"] * 2
SCORES = np.array([1, 1, 1, 1, 0, 0, 1, 0], dtype=float)


def over_all_arrangements(scores: np.ndarray) -> tuple[float, float]:
    """The mean of harmony, and the share as low as observed, over all placements of the right answers."""
    groups = [[0, 1, 2, 3], [4, 5], [6, 7]]
    values = []
    for chosen in combinations(range(8), int(scores.sum())):
        placed = np.zeros(8)
        placed[list(chosen)] = 1
        values.append(harmony([placed[group].mean() for group in groups], [4, 2, 2]))
    observed = harmony([scores[group].mean() for group in groups], [4, 2, 2])
    return float(np.mean(values)), float(np.mean(np.array(values) <= observed + 1e-9))


def test_drawn_counts_agree_with_the_enumeration_of_all_arrangements() -> None:
    mean, p_value = over_all_arrangements(SCORES)
    found = harmony_null(SCORES, LABELS, draws=40_000, rng=np.random.default_rng(1))
    assert found.mean == pytest.approx(mean, abs=0.005)  # the standard deviation of harmony here is 0.3: five standard errors
    assert found.p_value == pytest.approx(p_value, abs=0.0125)


def test_fractional_scores_are_reshuffled_as_whole_ones_are_counted() -> None:
    found = harmony_null(SCORES / 2, LABELS, draws=20_000, rng=np.random.default_rng(1), kernel=Kernel(0.05))
    mean, p_value = over_all_arrangements(SCORES)
    assert found.mean == pytest.approx(mean, abs=0.008)  # half the scores and half the bandwidth are the same harmony
    assert found.p_value == pytest.approx(p_value, abs=0.02)


def test_the_order_of_questions_moves_nothing() -> None:
    order = np.array([3, 1, 2, 0, 5, 4, 7, 6])
    draws = [harmony_null(scores, LABELS, draws=500, rng=np.random.default_rng(2)) for base in (SCORES, SCORES / 3) for scores in (base, base[order])]
    assert (draws[0], draws[2]) == (draws[1], draws[3])


def test_under_the_null_it_rejects_at_most_as_often_as_it_says_and_finds_what_differs() -> None:
    rng = np.random.default_rng(20261129)

    def rejections(truth: list[float], each: int) -> tuple[float, float]:
        found = []
        for _ in range(300):
            right = rng.binomial(each, truth)
            scores = np.concatenate([np.repeat([1.0, 0.0], [count, each - count]) for count in right])
            null = harmony_null(scores, np.repeat(range(len(truth)), each).tolist(), draws=400, rng=rng)
            found.append((null.p_value <= 0.05, homogeneous_counts(right, [each] * len(truth)).p_value <= 0.05))
        return tuple(np.mean(found, axis=0))

    level = rejections([0.7] * 4, 250)
    assert max(level) < 0.088  # 0.05 and three standard errors of 300 simulations
    mild = rejections([0.65, 0.68, 0.72, 0.75], 250)
    assert mild == pytest.approx((0.48, 0.51), abs=0.1)
    symmetric = rejections([0.6, 0.6, 0.8, 0.8], 50)
    assert symmetric[1] > symmetric[0] + 0.1  # harmony is blind to symmetric splits: the chi-square test is not


def test_the_homogeneity_of_counts_is_pearsons() -> None:
    right, asked = np.array([60, 80, 30]), np.array([100, 100, 50])
    peer = stats.chi2_contingency([right, asked - right], correction=False)
    found = homogeneous_counts(right, asked)
    assert (found.statistic, found.p_value) == (pytest.approx(peer.statistic), pytest.approx(peer.pvalue))
    assert found.smallest_expected == pytest.approx(peer.expected_freq.min())


def test_the_homogeneity_of_means_is_cochrans_q() -> None:
    means, errors = np.array([0.6, 0.8, 0.7]), np.array([0.05, 0.04, 0.1])
    weights = errors**-2.0
    expected = np.sum(weights * (means - np.average(means, weights=weights)) ** 2)
    found = homogeneous_means(means, errors)
    assert (found.statistic, found.p_value) == (pytest.approx(expected), pytest.approx(stats.chi2.sf(expected, 2)))


def test_answers_that_are_all_alike_leave_nothing_to_test() -> None:
    with pytest.raises(ValueError, match="alike"):
        homogeneous_counts([10, 20], [10, 20])
