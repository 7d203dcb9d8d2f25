from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from evalspec.statistics.multiplicity import (
    benjamini_hochberg,
    benjamini_yekutieli,
    bonferroni_critical_value,
    hochberg,
    holm,
    hommel,
    sidak_critical_value,
)

p_values = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8)
METHODS = {"holm": holm, "simes-hochberg": hochberg, "hommel": hommel, "fdr_bh": benjamini_hochberg, "fdr_by": benjamini_yekutieli}


@given(p_values)
def test_adjusted_p_values_are_never_below_the_raw_ones_and_keep_their_order(raw: list[float]) -> None:
    for method in METHODS.values():
        adjusted = method(raw)
        assert np.all(adjusted >= np.array(raw) - 1e-15)
        assert np.all(adjusted <= 1.0)
        assert np.all(np.diff(adjusted[np.argsort(raw, kind="stable")]) >= -1e-15)


@pytest.mark.usefixtures("quick_garbage")
@settings(max_examples=15, deadline=None)
@given(p_values)
def test_adjustment_agrees_with_statsmodels(raw: list[float]) -> None:
    for name, method in METHODS.items():
        assert method(raw) == pytest.approx(multipletests(raw, method=name)[1], abs=1e-12)


@given(p_values, st.randoms(use_true_random=False))
def test_each_adjusted_p_value_stays_with_its_raw_one_in_any_order(raw: list[float], random: object) -> None:
    order = sorted(range(len(raw)), key=lambda _: random.random())  # type: ignore[attr-defined]
    assert holm([raw[place] for place in order]).tolist() == holm(raw)[order].tolist()


@given(p_values)
def test_holm_is_never_kinder_than_the_methods_that_assume_dependence(raw: list[float]) -> None:
    assert np.all(holm(raw) >= hochberg(raw) - 1e-15)
    assert np.all(hochberg(raw) >= hommel(raw) - 1e-12)


@pytest.mark.parametrize("wrong", [[0.01, float("nan")], [0.01, None], ["a"], [1.5], [-0.1], [[0.1]]])
def test_a_p_value_that_is_missing_or_impossible_is_refused(wrong: list[object]) -> None:
    for method in METHODS.values():
        with pytest.raises(ValueError, match="p_values"):
            method(wrong)  # type: ignore[operator]


def test_an_empty_family_stays_empty() -> None:
    assert all(method([]).size == 0 for method in METHODS.values())


def test_critical_values_of_one_comparison_are_the_plain_quantile() -> None:
    assert bonferroni_critical_value(1) == pytest.approx(sidak_critical_value(1)) == pytest.approx(1.959964, abs=1e-6)


def test_sidak_reaches_a_little_less_far_than_bonferroni() -> None:
    assert sidak_critical_value(28) == pytest.approx(3.116, abs=5e-4)
    assert sidak_critical_value(28) < bonferroni_critical_value(28)
