from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalspec.statistics.difference_alternatives import agresti_min, bonett_price, paired_correlation, paired_wald
from evalspec.statistics.differences import PairedCounts, newcombe_paired, only_first_matrix, paired_difference, tango, tango_statistic
from evalspec.statistics.exact_differences import fay_lumbard
from evalspec.statistics.mcnemar import mcnemar_asymptotic, mcnemar_exact
from evalspec.statistics.noninferiority import equivalence, noninferiority
from evalspec.statistics.proportions import clopper_pearson
from evalspec.statistics.unpaired import TwoSamples, miettinen_nurminen, newcombe_independent

cell = st.integers(0, 60)
tables = st.tuples(cell, cell, cell, cell).filter(any).map(lambda cells: PairedCounts(*cells))
METHODS = (tango, newcombe_paired, fay_lumbard, agresti_min, bonett_price)


@settings(max_examples=60, deadline=None)
@given(tables)
def test_every_interval_holds_the_difference_or_is_drawn_towards_0(counts: PairedCounts) -> None:
    difference = paired_difference(counts)
    for method in METHODS:
        limits = method(counts)
        assert -1.0 <= limits.low <= limits.high <= 1.0
        if method in (tango, fay_lumbard, newcombe_paired):
            assert limits.low - 1e-9 <= difference <= limits.high + 1e-9


@settings(max_examples=40, deadline=None)
@given(tables)
def test_swapping_the_models_flips_every_sign(counts: PairedCounts) -> None:
    swapped = counts.swapped()
    assert paired_difference(swapped) == -paired_difference(counts)
    assert tango_statistic(swapped, -0.1) == pytest.approx(-tango_statistic(counts, 0.1), abs=1e-9)
    for method in METHODS:
        straight, flipped = method(counts), method(swapped)
        assert (straight.low, straight.high) == pytest.approx((-flipped.high, -flipped.low), abs=1e-9)


@given(tables)
def test_the_score_statistic_at_0_is_the_root_of_mcnemars_chi_square(counts: PairedCounts) -> None:
    assert tango_statistic(counts, 0.0) ** 2 == pytest.approx(mcnemar_asymptotic(counts).statistic, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(tables)
def test_the_exact_interval_holds_0_exactly_when_the_exact_test_does_not_reject(counts: PairedCounts) -> None:
    limits, p_value = fay_lumbard(counts), mcnemar_exact(counts).p_value
    assert (limits.low <= 0.0 <= limits.high) == (p_value >= 0.05)


@given(tables, st.floats(0.01, 0.5))
def test_the_lower_tango_bound_clears_the_margin_exactly_when_the_gate_passes(counts: PairedCounts, margin: float) -> None:
    test = noninferiority(counts, margin)
    assert test.lower_bound == tango(counts, level=0.95).low
    assert test.passed == (test.lower_bound > -margin)


@given(tables, st.floats(0.01, 0.4))
def test_a_wider_margin_never_turns_a_pass_into_a_failure(counts: PairedCounts, margin: float) -> None:
    assert noninferiority(counts, margin).passed <= noninferiority(counts, margin + 0.1).passed


@given(tables, st.floats(0.01, 0.5))
def test_equivalence_passes_exactly_when_its_interval_lies_inside_the_margins(counts: PairedCounts, margin: float) -> None:
    test = equivalence(counts, margin)
    assert test.passed == (-margin < test.interval.low and test.interval.high < margin)
    assert test.passed == (test.p_value < 0.05)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_the_order_of_questions_does_not_matter(answers: list[tuple[bool, bool]], random: object) -> None:
    shuffled = sorted(answers, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert PairedCounts.from_scores(*zip(*answers, strict=True)) == PairedCounts.from_scores(*zip(*shuffled, strict=True))


def test_forty_identical_answers_do_not_clear_a_margin_of_five_points() -> None:
    test = noninferiority(PairedCounts(30, 0, 0, 10), 0.05)
    assert not test.passed
    assert test.p_value == pytest.approx(0.073, abs=5e-4)


def test_pairs_of_many_models_are_counted_as_pairs_of_two() -> None:
    scores = np.random.default_rng(3).integers(0, 2, size=(4, 50))
    only = only_first_matrix(scores)
    for i in range(4):
        for j in range(4):
            counts = PairedCounts.from_scores(scores[i], scores[j])
            assert (counts.only_first, counts.only_second) == (only[i, j], only[j, i])


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        ([1, float("nan")], [1, 0], "missing"),
        ([None, 1], [1, 1], "missing"),
        ([0.5, 1], [1, 1], "only 0 and 1"),
        ([1, 0, 1], [1, 0], "one length"),
    ],
)
def test_scores_that_cannot_be_paired_are_refused(first: list[float], second: list[float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        PairedCounts.from_scores(first, second)


@pytest.mark.parametrize("cells", [(0, 0, 0, 0), (1, -1, 0, 0), (1, 0.5, 0, 0), (True, 0, 0, 1)])
def test_impossible_tables_are_refused(cells: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match=r"at least|whole"):
        PairedCounts(*cells)


@pytest.mark.parametrize("edge", [-1.0, 1.0, float("nan")])
def test_a_null_difference_at_the_edge_is_refused(edge: float) -> None:
    with pytest.raises(ValueError, match="strictly between"):
        tango_statistic(PairedCounts(1, 1, 1, 1), edge)


def test_a_matrix_of_pairs_needs_models_and_questions() -> None:
    with pytest.raises(ValueError, match="models, questions"):
        only_first_matrix([1, 0])
    with pytest.raises(ValueError, match="exceed first_trials"):
        TwoSamples(3, 2, 1, 2)


def test_when_no_question_agrees_the_exact_interval_is_that_of_the_share() -> None:
    limits, share = fay_lumbard(PairedCounts(0, 3, 2, 0)), clopper_pearson(3, 5)
    assert (limits.low, limits.high) == pytest.approx((2 * share.low - 1, 2 * share.high - 1), abs=1e-9)
    assert fay_lumbard(PairedCounts(0, 0, 5, 0)).low == -1.0


def test_a_correlation_without_spread_is_none() -> None:
    assert paired_correlation(PairedCounts(3, 2, 0, 0)) is None


def test_the_wald_interval_says_when_it_misleads() -> None:
    assert "never disagree" in (paired_wald(PairedCounts(30, 0, 0, 10)).caution or "")
    assert "300" in (paired_wald(PairedCounts(30, 1, 0, 10)).caution or "")
    assert paired_wald(PairedCounts(300, 30, 20, 100)).caution is None


# Newcombe (1998), Stat. Med. 17, 873-890, table II, method 6.
@pytest.mark.parametrize(
    ("samples", "low", "high"),
    [((56, 70, 48, 80), 0.0528, 0.3382), ((9, 10, 3, 10), 0.1700, 0.8406), ((6, 7, 2, 7), 0.0342, 0.8534), ((5, 56, 0, 29), -0.0326, 0.1933)],
)
def test_the_unpaired_score_interval_gives_the_published_limits(samples: tuple[int, int, int, int], low: float, high: float) -> None:
    limits = miettinen_nurminen(TwoSamples(*samples))
    assert (limits.low, limits.high) == pytest.approx((low, high), abs=6e-5)


@given(st.integers(1, 80), st.integers(1, 80), st.data())
def test_unpaired_intervals_hold_their_estimate_and_flip_with_the_samples(n1: int, n2: int, data: st.DataObject) -> None:
    samples = TwoSamples(data.draw(st.integers(0, n1)), n1, data.draw(st.integers(0, n2)), n2)
    flipped = TwoSamples(samples.second_successes, n2, samples.first_successes, n1)
    for method in (miettinen_nurminen, newcombe_independent):
        limits, mirrored = method(samples), method(flipped)
        assert -1.0 <= limits.low <= limits.high <= 1.0
        assert limits.low - 1e-9 <= samples.first - samples.second <= limits.high + 1e-9
        assert (limits.low, limits.high) == pytest.approx((-mirrored.high, -mirrored.low), abs=1e-8)


@pytest.mark.parametrize("counts", [PairedCounts(0, 0, 1, 0), PairedCounts(0, 0, 40, 0)])
def test_a_model_that_loses_every_question_gets_tangos_closed_form(counts: PairedCounts) -> None:
    # With every question lost the statistic is -sqrt(n (1 + D) / (1 - D)).
    square = 1.959963984540054**2 / counts.questions
    limits = tango(counts)
    assert limits.low == -1.0
    assert limits.high == pytest.approx((square - 1) / (square + 1), abs=1e-9)
