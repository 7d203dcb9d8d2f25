from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta, binom, multinomial

from evalspec.statistics.designs import Design
from evalspec.statistics.differences import PairedCounts
from evalspec.statistics.mcnemar import mcnemar_exact
from evalspec.statistics.one_sided import LimitTest, Method, above, log_e_value_above, mean_above, passing
from evalspec.statistics.one_sided_power import limit_detectable, limit_power, limit_questions
from evalspec.statistics.sequential import LookPlan, log_e_value, nominal_alpha, spending_boundaries, spent_alpha

METHODS: tuple[Method, ...] = ("score", "exact", "e_value")
CELLS = st.integers(0, 60)


@settings(max_examples=25, deadline=None)
@given(CELLS, CELLS, CELLS, st.floats(-0.3, 0.3), st.sampled_from(METHODS), st.sampled_from([0.025, 0.1]))
def test_a_bound_lies_above_the_limit_exactly_where_the_p_value_is_below_alpha(
    agreeing: int, wins: int, losses: int, limit: float, method: Method, alpha: float
) -> None:
    counts = PairedCounts(agreeing + 1, wins, losses, 0)
    test = above(counts, limit, alpha=alpha, method=method)
    if abs(test.p_value - alpha) > 1e-6:
        assert test.passed == (test.p_value < alpha)
        table = np.array([wins]), np.array([losses])
        assert bool(passing(*table, counts.questions, LimitTest(limit, alpha, method))[0]) == test.passed


@settings(max_examples=20, deadline=None)
@given(CELLS, CELLS, st.sampled_from(METHODS))
def test_more_wins_never_hurt_and_a_lower_limit_is_never_harder(wins: int, losses: int, method: Method) -> None:
    one, more = PairedCounts(200, wins, losses, 10), PairedCounts(199, wins + 1, losses, 10)
    assert above(more, -0.02, method=method).p_value <= above(one, -0.02, method=method).p_value + 1e-12
    assert above(one, -0.05, method=method).p_value <= above(one, -0.02, method=method).p_value + 1e-12


def test_at_a_limit_of_zero_the_exact_method_is_half_of_mcnemar_s_test() -> None:
    counts = PairedCounts(1217, 219, 182, 382)
    assert above(counts, 0.0, method="exact").p_value == pytest.approx(mcnemar_exact(counts).p_value / 2, rel=1e-9)


@pytest.mark.parametrize(("wins", "losses"), [(40, 10), (219, 182), (3, 9), (0, 0)])
def test_the_two_one_sided_e_values_average_to_the_closed_form(wins: int, losses: int) -> None:
    counts = PairedCounts(100, wins, losses, 10)
    both = np.logaddexp(log_e_value_above(counts, 0.0), log_e_value_above(counts.swapped(), 0.0)) - math.log(2.0)
    assert both == pytest.approx(log_e_value(counts), abs=1e-9)


def test_the_closed_form_has_the_published_values() -> None:
    assert math.exp(log_e_value(PairedCounts(1217, 219, 182, 382))) == pytest.approx(0.22003115181255398, rel=1e-9)
    assert math.exp(log_e_value(PairedCounts(0, 40, 10, 0))) == pytest.approx(1717.392581888076, rel=1e-9)


@pytest.mark.parametrize("limit", [-0.1, 0.0, 0.05])
def test_the_mixture_of_bets_is_what_adaptive_integration_gives(limit: float) -> None:
    wins, losses, agreeing = 30, 22, 148

    def wealth(share: float) -> float:
        bet = (2 * share - 1) / (1 + limit)
        logs = wins * math.log1p(bet * (1 - limit)) + losses * math.log1p(-bet * (1 + limit)) + agreeing * math.log1p(-bet * limit)
        return 2 * float(beta.pdf(share, 0.5, 0.5)) * math.exp(logs)

    expected = quad(wealth, 0.5, 1.0 - 1e-12, epsabs=0, epsrel=1e-10, limit=500)[0]
    assert log_e_value_above(PairedCounts(agreeing, wins, losses, 0), limit) == pytest.approx(math.log(expected), abs=1e-5)


@pytest.mark.parametrize("limit", [-0.1, 0.0, 0.1])
@pytest.mark.parametrize("discordance", [0.15, 0.4])
def test_an_e_value_has_expectation_at_most_1_where_the_hypothesis_is_true(limit: float, discordance: float) -> None:
    n, total = 20, 0.0
    shares = [(discordance + limit) / 2, (discordance - limit) / 2, 1 - discordance]
    for wins in range(n + 1):
        for losses in range(n + 1 - wins):
            chance = float(multinomial.pmf([wins, losses, n - wins - losses], n, shares))
            total += chance * math.exp(log_e_value_above(PairedCounts(n - wins - losses, wins, losses, 0), limit))
    assert total == pytest.approx(1.0, abs=1e-9)  # at the limit itself every bet is fair


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("discordance", "limit"), [(0.2, -0.05), (0.4, -0.1), (0.3, 0.0)])
def test_power_is_the_sum_over_every_table_that_passes(method: Method, discordance: float, limit: float) -> None:
    n, difference = 40 if method == "score" else 20, 0.05
    tables = np.array([(b, c) for b in range(n + 1) for c in range(n + 1 - b)])
    shares = [(discordance + difference) / 2, (discordance - difference) / 2, 1 - discordance]
    chances = multinomial.pmf(np.column_stack([tables, n - tables.sum(axis=1)]), n, shares)
    passed = [above(PairedCounts(n - b - c, int(b), int(c), 0), limit, method=method).p_value < 0.025 for b, c in tables]
    assert limit_power(n, discordance, difference, LimitTest(limit, method=method)) == pytest.approx(float(chances[passed].sum()), abs=1e-9)


def test_equivalence_power_is_the_sum_over_the_tables_that_pass_on_both_sides() -> None:
    n, discordance, limit = 60, 0.2, -0.12
    tables = np.array([(b, c) for b in range(n + 1) for c in range(n + 1 - b)])
    chances = multinomial.pmf(np.column_stack([tables, n - tables.sum(axis=1)]), n, [0.11, 0.09, 0.8])
    sides = [[above(PairedCounts(n - b - c, int(b), int(c), 0), limit, alpha=0.05).passed for b, c in table] for table in (tables, tables[:, ::-1])]
    test = LimitTest(limit, 0.05, both=True)
    assert limit_power(n, discordance, 0.02, test) == pytest.approx(float(chances[np.all(sides, axis=0)].sum()), abs=1e-9)


def test_questions_needed_are_those_of_the_published_plans_for_the_score_test() -> None:
    # 644 and 2,005 by the normal approximation of Nam; the exact sum reaches 80% a little earlier.
    assert limit_questions(0.2, 0.0, LimitTest(-0.05)).questions == pytest.approx(644, abs=10)
    assert limit_questions(0.1, 0.0, LimitTest(-0.02)).questions == pytest.approx(2005, abs=15)


@pytest.mark.parametrize(
    ("discordance", "difference", "test"),
    [
        (0.02, 0.0, LimitTest(-0.03)),
        (0.05, 0.05, LimitTest(0.02)),
        (0.01, 0.0, LimitTest(-0.03, method="e_value")),  # the last drop lies 17 questions behind the first number that reaches 0.8
        (0.05, 0.05, LimitTest(0.02, method="e_value")),
    ],
)
@pytest.mark.parametrize("power", [0.8, 0.95])
def test_power_drops_below_its_target_for_no_larger_number_of_questions(discordance: float, difference: float, test: LimitTest, power: float) -> None:
    found = limit_questions(discordance, difference, test, power=power)
    assert found.power >= power > limit_power(found.questions - 1, discordance, difference, test)
    assert min(limit_power(found.questions + more, discordance, difference, test) for more in range(150)) >= power


@pytest.mark.parametrize("method", METHODS)
def test_the_questions_needed_are_the_first_that_reach_the_power(method: Method) -> None:
    test = LimitTest(-0.1, method=method)
    needed = limit_questions(0.2, 0.0, test)
    powers = [limit_power(n, 0.2, 0.0, test) for n in range(needed.questions - 1, needed.questions + 9)]
    assert powers[0] < 0.8 <= min(powers[1:])
    assert needed.power == pytest.approx(powers[1])


def test_the_detectable_difference_is_the_smallest_that_reaches_the_power() -> None:
    test = LimitTest(-0.02)
    found = limit_detectable(1000, 0.2, test)
    assert found.difference is not None
    assert 0.8 <= limit_power(1000, 0.2, found.difference, test) < 0.8 + 1e-5
    none = limit_detectable(20, 0.1, LimitTest(0.05))
    assert none.difference is None
    assert "20 question(s)" in (none.reason or "")


def test_a_mean_is_tested_by_student_s_t() -> None:
    from scipy.stats import ttest_1samp

    differences = np.random.default_rng(2).choice([-1.0, -0.5, 0.0, 0.5, 1.0], size=80)
    test = mean_above(differences, Design(), -0.1)
    peer = ttest_1samp(differences, -0.1, alternative="greater")
    assert test.p_value == pytest.approx(peer.pvalue, rel=1e-9)
    assert test.bound == pytest.approx(peer.confidence_interval(0.975).low, rel=1e-9)


def test_looks_spend_what_lan_and_demets_say() -> None:
    plan = LookPlan((400, 800, 1200, 1600, 2000))
    levels = [nominal_alpha(plan, look, alpha=0.025) for look in range(1, 6)]
    # R package ldbounds, five equal looks: the upper boundaries as normal quantiles.
    assert levels == pytest.approx([5.36e-7, 0.000394, 0.00368, 0.01102, 0.02112], rel=2e-2)
    assert sum(spent_alpha(plan, look, alpha=0.025) for look in range(1, 6)) == pytest.approx(0.025)
    assert spending_boundaries(plan.fractions)[-1] == pytest.approx(2.0310, abs=2e-4)


def test_student_s_t_of_questions_that_are_lost_whole_errs_as_often_as_the_documentation_says() -> None:
    asked, lost = 400, np.arange(1, 60)
    bounds = np.array([mean_above(np.repeat([-1.0, 0.0], [count, asked - count]), Design(), 0.0).bound for count in lost])
    few, any_where_ten_clear = 0.0, 0.0
    for share in 1e-9 - bounds[:30]:  # just past where one more lost question can clear the margin
        passes = bounds > -share
        chances = binom.pmf(lost, asked, share) * passes
        few = max(few, float(chances[lost < 10].sum()))
        any_where_ten_clear = max(any_where_ten_clear, float(chances.sum()) if passes[lost == 10].all() else 0.0)
    assert (few, any_where_ten_clear) == (pytest.approx(0.152, abs=0.002), pytest.approx(0.068, abs=0.002))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: above(PairedCounts(1, 1, 1, 1), -1.0), "strictly"),
        (lambda: above(PairedCounts(1, 1, 1, 1), -1.0, method="exact"), "strictly"),
        (lambda: above(PairedCounts(1, 1, 1, 1), -1.0, method="e_value"), "strictly"),
        (lambda: above(PairedCounts(1, 1, 1, 1), 0.0, alpha=0.5), "alpha"),
        (lambda: LimitTest(1.0), "strictly"),
        (lambda: LimitTest(0.1, both=True), "two limits"),
        (lambda: limit_questions(0.2, -0.05, LimitTest(-0.05)), "no number of questions"),
        (lambda: limit_questions(0.2, 0.05, LimitTest(-0.05, both=True)), "between"),
        (lambda: limit_questions(0.5, 1e-5, LimitTest(0.0)), "would need"),
        (lambda: mean_above([0.5, 0.5], Design(), 0.0), "equal"),
        (lambda: LookPlan((20, 10)), "rise"),
        (lambda: nominal_alpha(LookPlan((10, 20)), 3), "2 look"),
    ],
)
def test_impossible_arguments_are_refused(call: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()  # type: ignore[operator]
