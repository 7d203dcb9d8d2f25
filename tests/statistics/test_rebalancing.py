from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evalspec.statistics.harmony import harmony
from evalspec.statistics.rebalancing import levelled_sizes, removal_test, thinned


@given(st.lists(st.integers(1, 300), min_size=2, max_size=8), st.floats(0.01, 0.99))
def test_only_the_largest_groups_give_up_questions_and_no_more_than_allowed(sizes: list[int], share: float) -> None:
    kept = levelled_sizes(sizes, most_removed=share)
    gone = np.array(sizes) - kept
    assert kept.min() == min(sizes)
    assert gone.sum() <= share * sum(sizes)
    assert np.all((gone == 0) | (kept == kept.max()))  # whoever gave something is at the common level


def test_the_shift_is_held_against_removing_as_many_at_random() -> None:
    sizes = np.array([120, 20, 20, 20])
    right = np.array([108, 8, 10, 8])
    scores = np.concatenate([np.repeat([1.0, 0.0], [count, size - count]) for count, size in zip(right, sizes, strict=True)])
    codes = np.repeat(range(4), sizes)
    kept = thinned(codes, levelled_sizes(sizes, most_removed=0.9), rng=np.random.default_rng(1))
    assert np.bincount(codes[kept]).tolist() == [20, 20, 20, 20]
    remaining = stats.hypergeom(sizes.sum(), int(right.sum()), int(kept.sum()))
    counts = np.arange(int(kept.sum()) + 1)
    chances = remaining.pmf(counts)
    expected = chances[chances <= remaining.pmf(scores[kept].sum()) * (1 + 1e-9)].sum()
    assert removal_test(scores, kept) == pytest.approx(expected)
    assert removal_test(scores, kept) < 1e-6


def test_balancing_raises_harmony_without_any_change_of_the_model() -> None:
    # A model that is right with probability 0.7 in every group: what the pruning of 100 questions "gains" is sizes alone.
    rng = np.random.default_rng(3)
    sizes = np.array([120, 20, 20, 20])
    codes = np.repeat(range(4), sizes)
    rejected, gains = 0, []
    for _ in range(200):
        scores = (rng.random(180) < 0.7).astype(float)
        kept = thinned(codes, [20, 20, 20, 20], rng=rng)
        before = harmony(np.bincount(codes, scores) / sizes, sizes)
        gains.append(harmony(np.bincount(codes[kept], scores[kept]) / 20, [20] * 4) - before)
        rejected += removal_test(scores, kept) <= 0.05
    assert np.mean(gains) > 0.2
    assert rejected / 200 < 0.1  # 0.05 and three standard errors


def test_fractional_scores_are_held_against_draws_without_replacement() -> None:
    rng = np.random.default_rng(1)
    scores = rng.random(200)
    kept = np.zeros(200, dtype=bool)
    kept[np.argsort(scores)[60:]] = True
    assert removal_test(scores, kept) < 1e-6
    p_values = []
    for _ in range(300):
        chosen = np.zeros(200, dtype=bool)
        chosen[rng.permutation(200)[:80]] = True
        p_values.append(removal_test(scores, chosen))
    assert stats.kstest(p_values, "uniform").pvalue > 0.01


@pytest.mark.parametrize("kept", [np.ones(4, dtype=bool), np.zeros(4, dtype=bool)])
def test_nothing_removed_is_no_test(kept: np.ndarray) -> None:
    with pytest.raises(ValueError, match="removed"):
        removal_test([1, 0, 1, 0], kept)


def test_a_group_cannot_keep_more_than_it_has() -> None:
    with pytest.raises(ValueError, match="cannot keep"):
        thinned([0, 0, 1], [2, 2], rng=np.random.default_rng(1))
