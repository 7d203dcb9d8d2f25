"""Known answers: the closed forms and simulated biases of section 4 of the house's notes on harmony, computed there by another program."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evalspec.statistics.harmony import Kernel, harmonies, harmony, masses, size_harmony, spread

TEN = np.linspace(0.55, 0.85, 10)
groups = st.lists(st.tuples(st.floats(0, 1), st.integers(1, 500)), min_size=2, max_size=12)


@pytest.mark.parametrize(
    ("accuracies", "weights", "expected"),
    [
        ([0.0, 1.0], [1, 1], 1.000),  # blind to a symmetric split
        ([0.3, 0.3, 0.9, 0.9], [1, 1, 1, 1], 1.000),
        ([0.7] * 4, [700, 100, 100, 100], 0.678),  # sizes alone
        ([0.7] * 4, [970, 10, 10, 10], 0.121),
        ([0.8] * 9 + [0.3], [1] * 10, 0.954),  # one failing group is nearly invisible
        ([0.9, 0.7, 0.6, 0.4], [1] * 4, 0.512),
        ([0.65, 0.68, 0.72, 0.75], [1] * 4, 0.996),
        ([0.8, 0.8, 0.8, 0.5], [1] * 4, 0.807),
    ],
)
def test_closed_forms(accuracies: list[float], weights: list[int], expected: float) -> None:
    assert harmony(accuracies, weights) == pytest.approx(expected, abs=5e-4)


def test_one_dominating_group_drags_the_mean_and_the_others_vanish() -> None:
    assert harmony([0.9, 0.5, 0.5], [800, 100, 100]) == pytest.approx(0.0002, abs=5e-5)


def test_a_failing_group_costs_at_most_its_own_share_of_the_entropy() -> None:
    assert harmony([0.8] * 19 + [0.0], [1] * 20) == pytest.approx(math.log(19) / math.log(20), abs=1e-4)


@pytest.mark.parametrize(("bandwidth", "expected"), [(0.05, 0.64), (0.1, 0.91), (0.2, 0.99)])
def test_the_bandwidth_decides(bandwidth: float, expected: float) -> None:
    assert harmony(TEN, np.ones(10), Kernel(bandwidth)) == pytest.approx(expected, abs=5e-3)


@pytest.mark.parametrize("reach", [0.01, 0.1, 0.4])
def test_a_bandwidth_tied_to_the_observed_spread_would_be_blind_to_it(reach: float) -> None:
    accuracies = np.linspace(0.5 - reach, 0.5 + reach, 10)
    assert harmony(accuracies, np.ones(10), Kernel(spread(accuracies, np.ones(10)).deviation)) == pytest.approx(0.898, abs=5e-4)


@pytest.mark.parametrize(
    ("size", "questions", "expected"), [(10, 100, (0.60, 0.83, 0.96)), (10, 1000, (0.93, 0.99, 1.0)), (20, 300, (0.74, 0.91, 0.98))]
)
def test_few_questions_bias_it_down(size: int, questions: int, expected: tuple[float, ...]) -> None:
    each = questions // size
    accuracies = np.random.default_rng(1).binomial(each, 0.7, size=(4000, size)) / each
    means = [harmonies(accuracies, np.ones(size), Kernel(bandwidth)).mean() for bandwidth in (0.05, 0.1, 0.2)]
    assert means == pytest.approx(expected, abs=0.015)  # printed to two digits from 200 draws or more


def test_a_narrow_bandwidth_neither_under_nor_overflows() -> None:
    assert harmony([0.0, 1.0, 1.0], [1, 1, 1], Kernel(0.001)) == pytest.approx(math.log(2) / math.log(3))


@given(groups)
def test_it_is_the_entropy_of_the_masses(rows: list[tuple[float, int]]) -> None:
    accuracies, weights = zip(*rows, strict=True)
    mass = masses(accuracies, weights)
    assert mass.sum() == pytest.approx(1.0)
    assert harmony(accuracies, weights) == pytest.approx(stats.entropy(mass) / math.log(len(rows)), abs=1e-9)


@given(groups, st.randoms(use_true_random=False))
def test_the_order_of_groups_does_not_matter_and_the_value_stays_within_bounds(rows: list[tuple[float, int]], random: object) -> None:
    turned = sorted(rows, key=lambda _: random.random())
    first, second = (harmony(*zip(*order, strict=True)) for order in (rows, turned))
    assert first == pytest.approx(second, abs=1e-9)
    assert 0.0 <= first <= 1.0


@given(groups)
def test_equal_accuracies_leave_the_sizes(rows: list[tuple[float, int]]) -> None:
    weights = [weight for _, weight in rows]
    assert harmony([0.7] * len(rows), weights) == pytest.approx(size_harmony(weights), abs=1e-9)


def test_what_it_hides_is_said_beside_it() -> None:
    found = spread([0.8, 0.8, 0.5], [2, 1, 1])
    assert (found.mean, found.macro, found.gap) == (pytest.approx(0.725), pytest.approx(0.7), pytest.approx(0.3))
    assert (found.worst, found.best) == (2, 0)
    assert found.deviation == pytest.approx(math.sqrt(np.average((np.array([0.8, 0.8, 0.5]) - 0.725) ** 2, weights=[2, 1, 1])))


@pytest.mark.parametrize(("accuracies", "weights"), [([0.5], [1]), ([0.5, 0.5], [1, 0]), ([0.5, 0.5, 0.5], [1, 1]), ([0.5, math.nan], [1, 1])])
def test_what_has_no_harmony_is_refused(accuracies: list[float], weights: list[int]) -> None:
    with pytest.raises(ValueError, match=r"group|weights|accuracies"):
        harmony(accuracies, weights)


def test_a_bandwidth_must_be_positive() -> None:
    with pytest.raises(ValueError, match="positive"):
        Kernel(0.0)
