from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from evalspec.statistics.floors import Floor, floor_questions, floor_truth_needed
from evalspec.statistics.proportions import ProportionMethod, clopper_pearson, jeffreys, wilson

INTERVALS = {"wilson": wilson, "clopper_pearson": clopper_pearson, "jeffreys": jeffreys}
METHODS: tuple[ProportionMethod, ...] = ("wilson", "clopper_pearson", "jeffreys")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("questions", [1, 5, 77, 300])
@pytest.mark.parametrize("limit", [0.25, 0.7, 0.95])
def test_the_answers_needed_are_the_fewest_whose_interval_clears_the_floor(method: ProportionMethod, questions: int, limit: float) -> None:
    cleared = [k for k in range(questions + 1) if INTERVALS[method](k, questions).low >= limit]
    assert Floor(limit, method=method).successes_needed(np.array([questions]))[0] == min(cleared, default=questions + 1)


def test_power_is_a_binomial_tail() -> None:
    floor = Floor(0.7, method="clopper_pearson")
    needed = int(floor.successes_needed(np.array([200]))[0])
    assert floor.power(np.array([200]), 0.78)[0] == pytest.approx(binom.sf(needed - 1, 200, 0.78), rel=1e-10)


@given(st.integers(1, 400), st.floats(0.05, 0.95))
def test_an_exact_floor_is_cleared_wrongly_at_most_as_often_as_declared(questions: int, limit: float) -> None:
    assert Floor(limit, method="clopper_pearson").power(np.array([questions]), limit)[0] <= 0.025 + 1e-12


@settings(max_examples=20, deadline=None)
@given(st.floats(0.1, 0.9), st.floats(0.05, 0.9), st.sampled_from(METHODS), st.sampled_from([0.5, 0.8, 0.95]))
def test_no_larger_number_of_questions_has_less_power(limit: float, share: float, method: ProportionMethod, power: float) -> None:
    truth = limit + share * (0.99 - limit)
    needed = floor_questions(truth, Floor(limit, method=method), power=power).questions
    sizes = np.arange(1, 2 * needed + 300)
    below = sizes[Floor(limit, method=method).power(sizes, truth) < power]
    assert max(below, default=0) + 1 == needed


def test_the_truth_needed_has_that_power_and_some_samples_have_none() -> None:
    floor = Floor(0.9, method="clopper_pearson")
    truth = floor_truth_needed(500, floor)
    assert truth is not None
    assert floor.power(np.array([500]), truth)[0] == pytest.approx(0.8, abs=1e-9)
    assert floor_truth_needed(30, floor) is None  # 30 of 30 right answers leave a lower bound of 88.4%


def test_what_no_number_of_questions_can_show_is_refused() -> None:
    with pytest.raises(ValueError, match="no number of questions"):
        floor_questions(0.7, Floor(0.7))
    with pytest.raises(ValueError, match="would need"):
        floor_questions(0.70001, Floor(0.7))
    with pytest.raises(ValueError, match="limit"):
        Floor(1.0)
