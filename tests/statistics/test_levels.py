"""Groups are parted into the fewest levels that fit, by the best parting of them in order."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from evalspec.statistics.levels import fewest_levels


def fewest_by_trying(right: np.ndarray, asked: np.ndarray, tail: float) -> list[set[int]]:
    """Try every parting of the groups in order, few levels first."""
    order = np.argsort(right / asked, kind="stable")
    for levels in range(1, len(order) + 1):
        found = []
        for cuts in combinations(range(1, len(order)), levels - 1):
            parts = np.split(order, cuts)
            misfit = 0.0
            for part in parts:
                counts = np.array([right[part], (asked - right)[part]])
                if counts.sum(axis=1).min() > 0:
                    misfit += stats.chi2_contingency(counts, correction=False).statistic
            found.append((misfit, parts))
        least, parts = min(found, key=lambda pair: pair[0])
        if levels == len(order) or least <= stats.chi2.isf(tail, len(order) - levels):
            return [set(part.tolist()) for part in parts]
    raise AssertionError


@pytest.mark.parametrize("seed", range(20))
def test_levels_are_those_of_the_best_of_all_partings(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = int(rng.integers(2, 8))
    asked = rng.integers(10, 200, groups)
    right = rng.binomial(asked, rng.choice([0.3, 0.6, 0.9, 1.0], groups))
    levels = fewest_levels(right / asked, asked, tail=0.025, shares=True)
    found = [set(np.flatnonzero(levels.labels == level).tolist()) for level in range(levels.count)]
    assert found == fewest_by_trying(right, asked, 0.025)


def test_a_level_is_the_weighted_mean_of_its_groups() -> None:
    means = np.array([0.8, 0.2, 0.82])
    levels = fewest_levels(means, [100, 50, 300], tail=0.025, shares=True)
    assert levels.labels.tolist() == [1, 0, 1]
    assert levels.means(means) == pytest.approx([0.2, (80 + 246) / 400])


def test_with_errors_from_elsewhere_the_misfit_is_cochrans_q() -> None:
    means, errors = np.array([0.5, 0.6]), np.array([0.03, 0.04])
    p_value = stats.chi2.sf((0.1 / 0.05) ** 2, 1)
    assert fewest_levels(means, errors**-2, tail=p_value * 0.99, shares=False).count == 1
    assert fewest_levels(means, errors**-2, tail=p_value * 1.01, shares=False).count == 2


def test_answers_that_are_all_right_are_one_level() -> None:
    assert fewest_levels([1.0, 1.0, 1.0], [5, 50, 500], tail=0.025, shares=True).count == 1


def test_weights_that_mean_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        fewest_levels([0.5, 0.6], [1.0, 0.0], tail=0.025, shares=True)
