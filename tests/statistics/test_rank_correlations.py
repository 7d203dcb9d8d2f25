from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evalspec.statistics.rank_correlations import spearman

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("size", [5, 7, 12, 40])
def test_the_coefficient_is_spearmans_ties_by_mean_rank(size: int) -> None:
    first, second = RNG.integers(0, 6, size), RNG.integers(0, 6, size)
    expected = stats.spearmanr(first, second).statistic
    assert spearman(first, second, draws=200, rng=RNG).coefficient == pytest.approx(expected)


def test_few_pairs_are_enumerated_and_more_are_drawn() -> None:
    first, second = np.array([1, 2, 3, 4, 5, 6.0]), np.array([2, 1, 4, 3, 6, 5.0])
    enumerated = spearman(first, second, draws=1, rng=RNG)
    peer = stats.permutation_test((first,), lambda x: stats.spearmanr(x, second).statistic, permutation_type="pairings", n_resamples=np.inf)
    assert (enumerated.p_value, enumerated.standard_error) == (pytest.approx(peer.pvalue), 0.0)
    long = np.arange(30.0)
    drawn = spearman(long, long + RNG.normal(0, 12, 30), draws=999, rng=RNG)
    assert 0.001 <= drawn.p_value < 0.05
    assert drawn.standard_error > 0


def test_values_that_are_all_equal_order_nothing() -> None:
    with pytest.raises(ValueError, match="one value"):
        spearman([1, 1, 1], [1, 2, 3], draws=10, rng=RNG)
