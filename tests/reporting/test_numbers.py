"""Numbers are printed as far as their interval supports them, and never as something else than they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalspec.reporting.numbers import Style, decimals_apart, decimals_from_interval, format_number

proportions = st.floats(0, 1)


@pytest.mark.parametrize(
    ("value", "style", "expected"),
    [
        (0.7018, "percent", "70.2 %"),
        (0.0, "percent", "0.0 %"),
        (0.019, "points", "+1.9 points"),
        (-0.019, "points", "−1.9 points"),
        (0.0, "points", "0.0 points"),
        (-0.0001, "points", "0.0 points"),
        (-0.0001, "percent", "0.0 %"),
        (0.019, "points_bare", "+1.9"),
        (0.95, "level", "95 %"),
        (1 - 0.05 / 12, "level", "99.58 %"),
        (0.0719, "p_equation", "p = 0.072"),
        (3e-9, "p_equation", "p < 0.0001"),
        (0.00213, "p", "0.0021"),
        (0.9996, "p", "> 0.999"),
        (1.0, "p", "1"),
        (2000, "count", "2,000"),
        (20261129, "plain", "20261129"),
        (0.004166, "plain", "0.00417"),
        (1_873_216, "bytes", "1.9 MB"),
        (934_912, "millions", "934,912"),
        (134_515_008, "millions", "134.52 million"),
        (4_022_468_096, "millions", "4.02 billion"),
        (0.123, "seconds", "0.12 s"),
        (150.0, "seconds", "2 min"),
    ],
)
def test_a_number_is_printed_in_its_style(value: float, style: Style, expected: str) -> None:
    assert format_number(value, style) == expected


@given(st.floats(0, 1))
def test_no_p_value_is_printed_as_zero(p_value: float) -> None:
    assert format_number(p_value, "p").strip("0.") != ""


@given(proportions, proportions)
def test_a_wider_interval_never_gets_more_decimals(first: float, second: float) -> None:
    narrow, wide = sorted((abs(first), abs(second)))
    if narrow > 0:
        assert decimals_from_interval(0, wide) <= decimals_from_interval(0, narrow)


@given(proportions, proportions)
def test_an_observed_value_and_a_different_limit_never_look_the_same(observed: float, limit: float) -> None:
    decimals = decimals_apart(observed, limit, decimals=1)
    same = format_number(observed, "percent", decimals=decimals) == format_number(limit, "percent", decimals=decimals)
    assert not same or abs(observed - limit) < 1e-9
