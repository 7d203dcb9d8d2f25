from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from evalspec.statistics.isotonic import isotonic, rising_crossings

curves = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 20)), min_size=1, max_size=12)
"""Right and asked of each bin; right is cut to asked."""


def arrays(curve: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    asked = np.array([float(entry[1]) for entry in curve])
    return np.minimum([float(entry[0]) for entry in curve], asked), asked


@given(curves)
def test_the_fit_is_scipy_s(curve: list[tuple[int, int]]) -> None:
    right, asked = arrays(curve)
    expected = isotonic_regression(right / asked, weights=asked).x
    assert isotonic(right / asked, asked) == pytest.approx(expected, abs=1e-12)


@given(curves, st.sampled_from([0.3, 0.5, 0.75, 0.8]))
def test_the_crossing_is_that_of_the_fit(curve: list[tuple[int, int]], level: float) -> None:
    right, asked = arrays(curve)
    reached = np.flatnonzero(isotonic(right / asked, asked) >= level - 1e-12)
    expected = int(reached[0]) if reached.size else len(curve)
    assert int(rising_crossings(right, asked, level)) == expected


def test_empty_bins_are_passed_over() -> None:
    assert int(rising_crossings([0.0, 0.0, 9.0], [5.0, 0.0, 10.0], 0.8)) == 2
    assert int(rising_crossings([0.0, 0.0], [0.0, 0.0], 0.8)) == 2


@pytest.mark.parametrize("weights", [[1.0], [1.0, 0.0], [1.0, -1.0]])
def test_weights_must_be_positive_and_one_per_mean(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="weights"):
        isotonic([0.5, 0.6], weights)
