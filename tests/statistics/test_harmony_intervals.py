from __future__ import annotations

import numpy as np
import pytest

from evalspec.statistics.harmony import harmony
from evalspec.statistics.harmony_intervals import between_groups, empirical_bayes_interval, proportion_errors

SAMPLES = 150


def coverage(truth: list[float], questions: int) -> tuple[float, float]:
    """The share of simulated samples whose interval holds the true harmony, and the mean length of the interval."""
    rng = np.random.default_rng(20261129)
    each = np.full(len(truth), questions // len(truth))
    true = harmony(truth, each)
    held, lengths = 0, []
    for _ in range(SAMPLES):
        right = rng.binomial(each, truth)
        limits = empirical_bayes_interval(right / each, proportion_errors(right, each), each, draws=1000, rng=rng, asked=each)
        held += limits.low - 1e-9 <= true <= limits.high + 1e-9
        lengths.append(limits.high - limits.low)
    return held / SAMPLES, float(np.mean(lengths))


@pytest.mark.parametrize(
    ("truth", "questions", "published"),
    [
        ([0.7] * 4, 200, (0.98, 0.13)),
        ([0.7] * 4, 1000, (1.00, None)),
        ([0.65, 0.68, 0.72, 0.75], 200, (0.91, 0.17)),
        ([0.9, 0.7, 0.6, 0.4], 200, (0.99, 0.46)),
        ([0.8, 0.8, 0.8, 0.5], 200, (0.91, 0.44)),
        ([0.8, 0.8, 0.8, 0.5], 1000, (0.85, None)),
        (list(np.linspace(0.55, 0.85, 10)), 1000, (0.94, None)),
    ],
)
def test_it_holds_the_truth_at_least_as_often_as_the_reference_and_is_about_as_long(
    truth: list[float], questions: int, published: tuple[float, float | None]
) -> None:
    held, length = coverage(truth, questions)
    assert held >= published[0] - 0.06  # two simulations of 150 and 200 samples: two standard errors
    if published[1] is not None:
        assert length == pytest.approx(published[1], abs=0.07)  # a little longer: a group may stand apart as far as its own limits allow


@pytest.mark.parametrize(
    ("truth", "questions"),
    [
        ([0.85] * 7 + [0.35], 800),  # one fails: harmony is as large as it can be with one group lost
        ([0.8] * 9 + [0.3], 500),
        ([0.9, 0.9, 0.5, 0.5], 200),  # a symmetric split, of which harmony is exactly 1
        ([0.6, 0.6, 0.8, 0.8], 400),
        ([0.9] * 3 + [0.7] * 3 + [0.5] * 2, 800),
        ([0.9] * 57, 57 * 30),  # many alike and easy: their variances are hard to tell
        ([0.95] * 57, 57 * 100),
    ],
)
def test_it_holds_the_harmony_of_groups_that_are_exactly_alike(truth: list[float], questions: int) -> None:
    assert coverage(truth, questions)[0] >= 0.91  # 0.95 less two standard errors of 150 samples


@pytest.mark.parametrize(
    ("truth", "questions"),
    [
        ([0.9, 0.99, 0.99], 90),
        ([0.95, 0.99, 0.99], 90),  # one sample in eight has right answers alone
        ([0.95, 1.0, 1.0], 90),
        ([0.9] + [0.99] * 5, 180),
        ([0.85] + [0.98] * 9, 300),
        ([0.1, 0.01, 0.01], 90),
    ],
)
def test_it_holds_the_harmony_of_groups_that_are_nearly_always_right_or_wrong(truth: list[float], questions: int) -> None:
    assert coverage(truth, questions)[0] >= 0.91


def test_right_answers_alone_do_not_show_that_groups_are_alike() -> None:
    each = np.full(3, 30)
    for right in (each, 0 * each):
        limits = empirical_bayes_interval(right / each, proportion_errors(right, each), each, draws=2000, rng=np.random.default_rng(1), asked=each)
        # 30 right answers of 30 leave a true accuracy down to 0.025 ** (1 / 30), by Clopper and Pearson's limit.
        assert limits.low == pytest.approx(harmony([0.025 ** (1 / 30), 1.0, 1.0], each), abs=1e-9)
        assert limits.high == pytest.approx(1.0)


def test_a_group_may_stand_apart_as_far_as_its_own_limits_allow() -> None:
    own = [[0.5, 0.6, 0.6], [0.8, 0.8, 0.8]]
    limits = empirical_bayes_interval([0.7] * 3, [0.001] * 3, [1] * 3, draws=500, rng=np.random.default_rng(1), own=own)
    assert limits.low == pytest.approx(harmony([0.5, 0.7, 0.7], [1] * 3), abs=1e-6)


@pytest.mark.parametrize("own", [[[0.5, 0.6], [0.8, 0.8]], [[0.8, 0.6, 0.6], [0.9, 0.8, 0.8]], [[0.5, 0.6, np.nan], [0.8, 0.8, 0.8]]])
def test_limits_of_groups_that_do_not_hold_their_means_are_refused(own: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="own"):
        empirical_bayes_interval([0.7] * 3, [0.05] * 3, [1] * 3, draws=10, rng=np.random.default_rng(1), own=own)


def test_it_holds_the_harmony_of_means_whose_errors_come_from_elsewhere() -> None:
    rng = np.random.default_rng(1)
    truth, errors = np.array([0.8] * 7 + [0.4]), np.full(8, 0.04)
    true, held = harmony(truth, [1] * 8), 0
    for _ in range(SAMPLES):
        limits = empirical_bayes_interval(truth + errors * rng.standard_normal(8), errors, [1] * 8, draws=1000, rng=rng)
        held += limits.low - 1e-9 <= true <= limits.high + 1e-9
    assert held / SAMPLES >= 0.91


def test_it_can_reach_1_which_a_bootstrap_of_questions_cannot() -> None:
    limits = empirical_bayes_interval([0.7] * 4, [0.03] * 4, [1] * 4, draws=2000, rng=np.random.default_rng(1))
    assert limits.high == pytest.approx(1.0)


def test_the_spread_between_groups_is_dersimonian_and_lairds() -> None:
    means, errors = np.array([0.9, 0.7, 0.5, 0.6]), np.array([0.05, 0.04, 0.06, 0.05])
    weights = errors**-2.0
    q = np.sum(weights * (means - np.average(means, weights=weights)) ** 2)
    expected = (q - 3) / (weights.sum() - np.sum(weights**2) / weights.sum())
    assert between_groups(means, errors) == pytest.approx(np.sqrt(expected))


def test_errors_of_proportions_are_never_0() -> None:
    assert proportion_errors([10, 0], [10, 10]).min() > 0
    assert proportion_errors([10, 10], [10, 10]).min() > 0


def test_more_questions_shorten_it() -> None:
    lengths = []
    for questions in (50, 500, 5000):
        asked = np.full(4, questions)
        right = np.rint(np.array([0.9, 0.7, 0.6, 0.4]) * questions).astype(int)
        limits = empirical_bayes_interval(right / asked, proportion_errors(right, asked), asked, draws=4000, rng=np.random.default_rng(1))
        lengths.append(limits.high - limits.low)
    assert lengths == sorted(lengths, reverse=True)


def test_an_error_of_0_is_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        empirical_bayes_interval([0.5, 0.6], [0.1, 0.0], [1, 1], draws=10, rng=np.random.default_rng(1))
