from __future__ import annotations

import time
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalspec.statistics.mcnemar import Variant
from evalspec.statistics.paired_power import (
    PowerTarget,
    detectable_difference,
    exact_power,
    exact_power_favoured,
    questions_needed,
)
from evalspec.statistics.rejections import PowerCurve
from evalspec.statistics.sample_sizes import (
    PairedVariance,
    connor_power,
    connor_questions,
    miettinen_questions,
    miller_detectable_difference,
    miller_questions,
    nam_questions,
    simple_questions,
)

TESTS: tuple[Variant, ...] = ("exact", "mid_p")


def enumerated_power(questions: int, wins: Fraction, losses: Fraction, *, mid: bool) -> float:
    """Sum the trinomial probabilities of every table that the test rejects, in whole-number arithmetic."""
    total = Fraction(0)
    for m in range(questions + 1):
        tail, given_m = 0, Fraction(0)
        for k in range((m + 1) // 2):
            tail += comb(m, k)
            if Fraction(2 * tail - (comb(m, k) if mid else 0), 2**m) > Fraction(1, 20):
                break
            given_m += comb(m, k) * (wins ** (m - k) * losses**k + wins**k * losses ** (m - k))
        total += comb(questions, m) * (1 - wins - losses) ** (questions - m) * given_m
    return float(total)


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("questions", [7, 60, 200])
def test_power_is_the_sum_over_every_possible_table(questions: int, test: Variant) -> None:
    expected = enumerated_power(questions, Fraction(1, 8), Fraction(3, 40), mid=test == "mid_p")
    assert exact_power(questions, 0.2, 0.05, test=test) == pytest.approx(expected, rel=1e-11)


# Sample sizes of the exact and mid-p tests, from a separate coding, good to 10 questions.
@pytest.mark.parametrize(
    ("discordance", "difference", "exact", "mid_p"),
    [(0.2005, 0.0185, 4695, 4596), (0.2, 0.05, 658, 622), (0.27, 0.03, 2415, 2351), (0.1, 0.05, 337, 305)],
)
def test_questions_needed_agree_with_a_separate_coding(discordance: float, difference: float, exact: int, mid_p: int) -> None:
    assert questions_needed(discordance, difference).questions == pytest.approx(exact, abs=10)
    assert questions_needed(discordance, difference, test="mid_p").questions == pytest.approx(mid_p, abs=10)


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize(("discordance", "difference"), [(1.0, 0.5), (0.9, 0.3), (0.1, 0.1), (0.3, 0.2)])
def test_power_never_drops_below_its_target_again(discordance: float, difference: float, test: Variant) -> None:
    needed = questions_needed(discordance, difference, test=test)
    later = [exact_power(n, discordance, difference, test=test) for n in range(needed.questions, 3 * needed.questions)]
    assert min(later) >= 0.8
    assert exact_power(needed.questions - 1, discordance, difference, test=test) < 0.8 <= needed.power


@settings(max_examples=60, deadline=None)
@given(st.integers(20, 3000), st.floats(0.02, 1.0), st.sampled_from(TESTS))
def test_the_detectable_difference_is_the_smallest_that_reaches_the_power(questions: int, discordance: float, test: Variant) -> None:
    found = detectable_difference(questions, discordance, test=test)
    if found.difference is None:
        assert found.reason
        assert exact_power(questions, discordance, discordance, test=test) < 0.8
    else:
        assert 0.8 <= found.power <= 0.8 + 1e-4
        assert exact_power(questions, discordance, 0.999 * found.difference, test=test) < 0.8


def test_a_sample_too_small_to_detect_anything_says_so() -> None:
    found = detectable_difference(10, 0.1)
    assert found.difference is None
    assert "10 question(s)" in (found.reason or "")


@given(st.integers(10, 400), st.floats(0.05, 1.0))
def test_the_test_keeps_its_level_when_there_is_no_difference(questions: int, discordance: float) -> None:
    assert exact_power(questions, discordance, 0.0) <= 0.05 + 1e-12


@given(st.integers(10, 400), st.floats(0.1, 1.0), st.floats(0.0, 1.0))
def test_the_mid_p_test_is_at_least_as_powerful_and_the_sign_does_not_matter(n: int, discordance: float, share: float) -> None:
    difference = share * discordance
    exact, mid = (exact_power(n, discordance, difference, test=test) for test in TESTS)
    assert exact <= mid + 1e-12
    assert exact == exact_power(n, discordance, -difference)
    assert exact_power_favoured(n, discordance, difference) <= exact + 1e-12


def test_a_hundred_detectable_differences_take_at_most_a_second() -> None:
    settings_ = [(n, q) for n in range(100, 2100, 80) for q in (0.1, 0.15, 0.2, 0.3)]
    start = time.process_time()
    assert all(detectable_difference(n, q).reason is None or n * q < 15 for n, q in settings_)
    assert time.process_time() - start < 3.0  # a second on an idle machine; three leave room for a busy one


def test_connors_power_inverts_his_sample_size() -> None:
    questions = connor_questions(0.2, 0.05)
    assert connor_power(round(questions), 0.2, 0.05) == pytest.approx(0.8, abs=1e-3)
    assert connor_power(10, 1.0, 1.0) == 1.0


def test_the_simple_formula_is_near_connors_for_small_differences() -> None:
    assert simple_questions(0.27, 0.01) == pytest.approx(21_168)
    assert simple_questions(0.2, 0.0185) == pytest.approx(connor_questions(0.2, 0.0185), rel=1e-3)


def test_a_non_inferiority_plan_gives_the_published_numbers() -> None:
    assert nam_questions(0.2, 0.0, -0.05) == pytest.approx(644, abs=1.0)
    assert nam_questions(0.1, 0.0, -0.02) == pytest.approx(2005, abs=1.0)


def test_millers_detectable_difference_inverts_his_sample_size() -> None:
    variance = PairedVariance(1 / 9, 1 / 6, 1 / 6, 10, 10)
    questions = miller_questions(variance, 0.05)
    assert miller_detectable_difference(variance, round(questions)) == pytest.approx(0.05, rel=1e-3)


@pytest.mark.parametrize(("discordance", "difference", "says"), [(0.02, 0.05, "exceed"), (0.0, 0.0, "discordance"), (1.5, 0.1, "discordance")])
def test_impossible_settings_are_refused(discordance: float, difference: float, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        exact_power(100, discordance, difference)


def test_what_no_number_of_questions_can_do_is_refused() -> None:
    with pytest.raises(ValueError, match="no number of questions"):
        questions_needed(0.2, 0.0)
    with pytest.raises(ValueError, match="limit"):
        questions_needed(0.5, 1e-5)
    with pytest.raises(ValueError, match="exceed alpha"):
        PowerTarget(power=0.01)
    with pytest.raises(ValueError, match="no number of questions"):
        miller_questions(PairedVariance(0.1), 0.0)
    with pytest.raises(ValueError, match="no number of questions"):
        miettinen_questions(0.2, 0.0)
    with pytest.raises(ValueError, match="must not be negative"):
        PairedVariance(-0.1)
    with pytest.raises(ValueError, match="repeats"):
        PairedVariance(0.1, first_repeats=0.5)
    with pytest.raises(ValueError, match=r"between 0 and 0\.5"):
        nam_questions(0.2, 0.0, -0.05, alpha=0.5)
    with pytest.raises(ValueError, match="limit must lie between"):
        nam_questions(0.2, -0.05, -0.05)


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize(("discordance", "difference"), [(0.2, 0.05), (0.05, 0.04), (0.97, 0.3), (0.3, 0.3)])
def test_a_curve_of_power_has_the_power_of_each_number_of_questions(discordance: float, difference: float, test: Variant) -> None:
    sizes = np.arange(190, 211)
    curve = PowerCurve(discordance, difference, 0.05, test).at(sizes)
    assert curve.tolist() == pytest.approx([exact_power(int(n), discordance, difference, test=test) for n in sizes], abs=1e-12)


def test_a_hundred_sample_sizes_take_at_most_a_second() -> None:
    shares = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8)
    settings_ = [(q, q * share) for q in (0.05, 0.08, 0.1, 0.13, 0.16, 0.2, 0.25, 0.3, 0.4, 0.5) for share in shares]
    start = time.process_time()
    assert all(questions_needed(q, d).power >= 0.8 for q, d in settings_)
    assert time.process_time() - start < 3.0  # half a second on an idle machine; three leave room for a busy one
