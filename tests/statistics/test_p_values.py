from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from evalspec.statistics.clustered_pairs import durkalski, obuchowski
from evalspec.statistics.designs import Design, design_mean
from evalspec.statistics.differences import PairedCounts
from evalspec.statistics.mcnemar import mcnemar_asymptotic, mcnemar_continuity, mcnemar_exact, mcnemar_mid_p
from evalspec.statistics.means import t_test
from evalspec.statistics.one_sided import above, mean_above
from evalspec.statistics.p_values import SMALLEST_P, chi_square, normal_p, student_p
from evalspec.statistics.paired_designs import design_difference
from evalspec.statistics.unpaired import TwoSamples, fisher_exact, separate_means_test, two_sample_z

WON = PairedCounts(0, 5000, 0, 0)
SURE = np.linspace(0.99, 1.0, 5000)
EACH = np.arange(5000)

OVERWHELMING: dict[str, Callable[[], float]] = {
    "mcnemar_exact": lambda: mcnemar_exact(WON).p_value,
    "mcnemar_mid_p": lambda: mcnemar_mid_p(WON),
    "mcnemar_asymptotic": lambda: mcnemar_asymptotic(WON).p_value,
    "mcnemar_continuity": lambda: mcnemar_continuity(WON).p_value,
    "durkalski": lambda: durkalski(np.ones(5000), np.zeros(5000), EACH).p_value,
    "obuchowski": lambda: obuchowski(np.ones(5000), np.zeros(5000), EACH).p_value,
    "t_test": lambda: t_test(SURE).p_value,
    "separate_means_test": lambda: separate_means_test(design_mean(SURE, Design()), design_mean(1.0 - SURE, Design())).p_value,
    "design_difference": lambda: design_difference(SURE, 1.0 - SURE, Design(), rng=np.random.default_rng(1)).p_value,
    "above": lambda: above(WON, 0.0).p_value,
    "mean_above": lambda: mean_above(SURE, Design(), 0.0).p_value,
    "two_sample_z": lambda: two_sample_z(TwoSamples(5000, 5000, 0, 5000)).p_value,
    "fisher_exact": lambda: fisher_exact(TwoSamples(5000, 5000, 0, 5000)),
}


@pytest.mark.parametrize("test", OVERWHELMING)
def test_evidence_beyond_what_a_double_can_hold_still_gives_a_p_value_above_0(test: str) -> None:
    assert OVERWHELMING[test]() == SMALLEST_P > 0.0


@pytest.mark.parametrize("statistic", [0.0, 0.3, -2.5, 6.0])
def test_two_sided_p_values_agree_with_scipy(statistic: float) -> None:
    # Both sides compute the same special functions: only rounding may differ.
    assert normal_p(statistic) == pytest.approx(2.0 * stats.norm.sf(abs(statistic)), rel=1e-12)
    assert student_p(statistic, 4.5) == pytest.approx(2.0 * stats.t.sf(abs(statistic), 4.5), rel=1e-12)
    assert chi_square(statistic**2, 1.0).p_value == pytest.approx(stats.chi2.sf(statistic**2, 1), rel=1e-12)
