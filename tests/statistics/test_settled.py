from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalspec.statistics.designs import Design
from evalspec.statistics.differences import PairedCounts
from evalspec.statistics.one_sided import LimitTest, Method, above, mean_above
from evalspec.statistics.settled import settled_difference

scores = st.lists(st.tuples(st.sampled_from([0.0, 1.0, np.nan]), st.sampled_from([0.0, 1.0, np.nan])), min_size=5, max_size=40)


@pytest.mark.parametrize("method", ["score", "exact", "e_value"])
def test_without_gaps_the_bounds_are_those_of_the_two_one_sided_tests(method: Method) -> None:
    counts = PairedCounts(60, 20, 8, 12)
    first, second = (np.repeat(cells, (60, 20, 8, 12))[:, None].astype(float) for cells in ([1, 1, 0, 0], [1, 0, 1, 0]))
    expected = above(counts, -0.1, method=method)
    found = settled_difference(first, second, Design(), LimitTest(-0.1, method=method))
    assert (found.difference, found.low, found.p_value, found.counts) == (expected.difference, expected.bound, expected.p_value, counts)
    assert found.high == -above(counts.swapped(), -0.1, method=method).bound


@given(scores)
def test_turning_the_models_round_turns_the_bounds_round(answers: list[tuple[float, float]]) -> None:
    first, second = np.array(answers).T[:, :, None]
    test = LimitTest(-0.1, both=True)
    straight, turned = settled_difference(first, second, Design(), test), settled_difference(second, first, Design(), test)
    assert (straight.low, straight.high, straight.outcome) == (-turned.high, -turned.low, turned.outcome)


def test_repeats_are_averaged_before_a_question_counts() -> None:
    first = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, np.nan], [1.0, 0.0]])
    second = np.zeros((4, 2))
    expected = mean_above([0.5, 1.0, 0.0, 0.5], Design(), -0.2)
    found = settled_difference(first, second, Design(), LimitTest(-0.2))
    assert (found.difference, found.low, found.counts) == (expected.difference, expected.bound, None)


def test_what_a_counting_test_cannot_count_is_refused() -> None:
    fractions = np.full((6, 1), 0.5)
    with pytest.raises(ValueError, match="fractional or come in clusters"):
        settled_difference(fractions, np.zeros((6, 1)), Design(), LimitTest(-0.1, method="exact"))
