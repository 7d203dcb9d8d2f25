from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalspec.statistics.designs import Design
from evalspec.statistics.differences import PairedCounts
from evalspec.statistics.gaffke import gaffke_bound, gaffke_p, units_of
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


def test_bets_on_right_and_wrong_answers_refuse_what_they_cannot_count() -> None:
    fractions = np.full((6, 1), 0.5)
    with pytest.raises(ValueError, match="fractional or come in clusters"):
        settled_difference(fractions, np.zeros((6, 1)), Design(), LimitTest(-0.1, method="e_value"))


FOUR = Design(clusters=np.repeat(list("abcd"), (6, 4, 2, 8)))


@pytest.mark.parametrize(
    ("design", "method"), [(Design(), "gaffke"), (FOUR, "gaffke_clustered"), (replace(FOUR, by_cluster=True), "gaffke_cluster_means")]
)
def test_the_exact_method_bounds_means_of_fractional_scores_and_of_clusters(design: Design, method: str) -> None:
    rng = np.random.default_rng(8)
    first, second = rng.random((20, 3)), rng.random((20, 3))
    differences = (first - second).mean(axis=1)
    found = settled_difference(first, second, design, LimitTest(-0.3, 0.05, "exact"))
    units = units_of(differences, design, smallest=-1.0)
    assert (found.method, found.counts) == (method, None)
    assert found.low == pytest.approx(gaffke_bound(units, alpha=0.05), rel=1e-9)
    assert found.p_value == pytest.approx(gaffke_p(units, -0.3), rel=1e-9)
    assert found.high == pytest.approx(-gaffke_bound(units_of(-differences, design, smallest=-1.0), alpha=0.05), rel=1e-9)
    assert (found.p_value < 0.05) == (found.low > -0.3)


def test_the_exact_method_bounds_what_has_no_spread() -> None:
    # No t test can say how sure this mean is; a made-up question at -1 can.
    found = settled_difference(np.full((40, 1), 0.5), np.full((40, 1), 0.5), Design(), LimitTest(-0.1, method="exact"))
    assert (found.difference, found.outcome) == (0.0, "shown")
    assert found.low == pytest.approx(0.025 ** (1 / 40) - 1.0)
    few = settled_difference(np.full((4, 1), 0.5), np.full((4, 1), 0.5), Design(), LimitTest(-0.1, method="exact"))
    assert few.outcome == "open"


def test_missing_answers_are_settled_against_the_first_model_by_the_exact_method_too() -> None:
    first, second = np.full((30, 2), 0.5), np.full((30, 2), 0.25)
    first[0, 0] = np.nan
    found = settled_difference(first, second, Design(), LimitTest(0.0, method="exact"))
    first[0, 0] = 0.0
    assert found.low == settled_difference(first, second, Design(), LimitTest(0.0, method="exact")).low
