from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evalspec.statistics.differences import PairedCounts
from evalspec.statistics.mcnemar import mcnemar_exact
from evalspec.statistics.pool_tests import MISSED, most_discordant, pool_mcnemar


@pytest.mark.parametrize(("questions", "pool"), [(100, 200), (100, 400), (800, 1000), (200, 2000)])
@pytest.mark.parametrize("won_by_each", [2, 3, 5, 8, 15, 40])
def test_equal_models_of_a_pool_are_separated_at_most_as_often_as_the_level_says(questions: int, pool: int, won_by_each: int) -> None:
    # The score test that shrinks with the part asked separates up to 12.5 % here.
    drawn = np.random.default_rng(1).multivariate_hypergeometric([won_by_each, won_by_each, pool - 2 * won_by_each], questions, size=20_000)
    tables, times = np.unique(drawn[:, :2], axis=0, return_counts=True)
    p_values = np.array([pool_mcnemar(int(first), int(second), questions=questions, pool=pool) for first, second in tables])
    for level in (0.01, 0.05, 0.2):
        size = times[p_values <= level].sum() / times.sum()
        assert size <= level + 4 * (level * (1 - level) / 20_000) ** 0.5


@pytest.mark.parametrize("discordant", [1, 2, 5, 8, 21])
def test_tails_widen_with_the_discordant_questions_of_the_pool(discordant: int) -> None:
    """The most that there can be stand for all smaller numbers, whatever was observed below the middle."""
    for fewer in range((discordant + 1) // 2):
        tails = [stats.hypergeom.cdf(fewer, 2 * own, own, discordant) for own in range(discordant, discordant + 60)]
        assert np.all(np.diff(tails) >= -1e-12)
        assert tails[-1] <= stats.binom.cdf(fewer, discordant, 0.5) + 1e-12


@pytest.mark.parametrize(("discordant", "questions", "pool"), [(0, 10, 30), (3, 10, 12), (4, 50, 100), (401, 2000, 14_042), (50, 50, 60)])
def test_the_limit_of_discordant_questions_is_scipy_s(discordant: int, questions: int, pool: int) -> None:
    most = most_discordant(discordant, questions=questions, pool=pool)
    assert stats.hypergeom.cdf(discordant, pool, most, questions) > MISSED
    assert most == pool - questions + discordant or stats.hypergeom.cdf(discordant, pool, most + 1, questions) <= MISSED


def test_the_p_value_is_the_hypergeometric_tail_at_that_limit() -> None:
    own = most_discordant(401, questions=2000, pool=14_042) // 2
    expected = 2 * stats.hypergeom.cdf(182, 2 * own, own, 401) + MISSED
    assert pool_mcnemar(219, 182, questions=2000, pool=14_042) == pytest.approx(expected, rel=1e-9)  # logarithms of factorials of thousands
    assert pool_mcnemar(182, 219, questions=2000, pool=14_042) == pool_mcnemar(219, 182, questions=2000, pool=14_042)


def test_it_gains_on_the_test_for_a_population_and_never_loses_to_it() -> None:
    plain = mcnemar_exact(PairedCounts(1217, 219, 182, 382)).p_value
    found = [pool_mcnemar(219, 182, questions=2000, pool=pool) for pool in (2200, 4000, 14_042, 10**9)]
    assert found == sorted(found)
    assert found[-1] == pytest.approx(plain, abs=1e-6)
    assert found[0] < 0.02 < plain


def test_nothing_discordant_and_impossible_counts() -> None:
    assert pool_mcnemar(0, 0, questions=5, pool=10) == 1.0
    with pytest.raises(ValueError, match="must not exceed the pool"):
        pool_mcnemar(1, 1, questions=5, pool=4)
    with pytest.raises(ValueError, match="questions"):
        pool_mcnemar(3, 3, questions=5, pool=10)
