"""Numbers are printed as far as their interval supports them, and never as something else than they are."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalspec.reporting.numbers import Style, decimals_apart, decimals_from_interval, decimals_of, format_number

proportions = st.floats(0, 1)


@pytest.mark.parametrize(
    ("value", "style", "expected"),
    [
        (0.7018, "percent", "70.2 %"),
        (0.0, "percent", "0.0 %"),
        (0.5745, "percent", "57.5 %"),  # half up, though a computer holds 57.449999
        (37 / 2000, "points_bare", "+1.9"),
        (-37 / 2000, "points_bare", "−1.9"),
        (0.019, "points", "+1.9 points"),
        (-0.019, "points", "−1.9 points"),
        (0.0, "points", "0.0 points"),
        (-0.0001, "points", "−0.01 points"),
        (0.0004, "points_bare", "+0.04"),
        (1e-9, "points_bare", "less than +0.0001"),
        (-1e-9, "points_bare", "above −0.0001"),
        (-0.0001, "percent", "−0.01 %"),
        (0.0004, "percent", "< 0.1 %"),
        (0.9996, "percent", "> 99.9 %"),
        (0.9996, "percent_bare", "> 99.9"),
        (1.0, "percent", "100.0 %"),
        (0.019, "points_bare", "+1.9"),
        (0.0468, "gap", "4.7 points"),
        (0.0468, "gap_bare", "4.7"),
        (0.0004, "gap", "0.04 points"),
        (0.9963, "index", "0.996"),
        (0.9998, "index", "0.9998"),
        (0.99999, "index_bare", "> 0.9999"),
        (1 - 1e-12, "index", "1.000"),  # of groups of one size, up to what summing leaves
        (1.0, "index", "1.000"),
        (0.95, "level", "95 %"),
        (1 - 0.05 / 12, "level", "99.58 %"),
        (1 - 1.5e-5, "level", "99.9985 %"),
        (0.0719, "p_equation", "p = 0.072"),
        (3e-9, "p_equation", "p < 0.0001"),
        (0.00213, "p", "0.0021"),
        (0.9996, "p", "> 0.999"),
        (1.0, "p", "1"),
        (1 - 2e-16, "p", "1"),  # the two halves of an exact test, summed
        (1 - 2e-16, "p_equation", "p = 1"),
        (2000, "count", "2,000"),
        (20261129, "plain", "20261129"),
        (0.004166, "plain", "0.00417"),
        (1.52e-5, "plain", "0.0000152"),
        (1.357e-12, "plain", "1.36e-12"),  # the level of an early look of several
        (3e-21, "plain", "3e-21"),
        (1.4, "ratio", "1.40"),
        (12.61, "ratio", "12.6"),
        (1261.4, "ratio", "1,261"),
        (0.0000592, "ratio", "0.0000592"),
        (0.2, "correlation", "0.20"),
        (-0.00355, "correlation", "0.00"),
        (1.0, "correlation", "1.00"),
        (0.9999, "correlation", "> 0.99"),
        (4.2, "log10", "16,000"),
        (-1.3, "log10", "0.0501"),
        (400.0, "log10", "1e400"),
        (1_873_216, "bytes", "1.9 MB"),
        (934_912, "millions", "934,912"),
        (134_515_008, "millions", "134.52 million"),
        (4_022_468_096, "millions", "4.02 billion"),
        (405_000_000_000, "millions", "405 billion"),
        (70_600_000_000, "millions", "70.6 billion"),
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


@pytest.mark.parametrize(
    ("p_value", "limit", "expected"),
    [
        (0.0504, 0.05, "0.0504"),
        (0.0496, 0.05, "0.050"),
        (0.05, 0.05, "0.050"),
        (0.050001, 0.05, "0.05000"),
        (0.00714, 0.0071, "0.00714"),
        (0.3, 0.05, "0.300"),
    ],
)
def test_a_p_value_above_alpha_is_never_printed_as_one_at_or_below_it(p_value: float, limit: float, expected: str) -> None:
    shown = format_number(p_value, "p", limit=limit)
    assert shown.startswith(expected)
    assert (float(shown) <= limit) == (p_value <= limit)


@given(st.floats(0.0001, 0.9), st.floats(0.001, 0.5))
def test_a_printed_p_value_lies_on_its_own_side_of_alpha(p_value: float, alpha: float) -> None:
    shown = format_number(p_value, "p", limit=alpha)
    assert (float(shown) <= alpha) == (p_value <= alpha) or abs(p_value - alpha) < 1e-9


@given(st.floats(-1, 1))
def test_a_difference_that_is_not_zero_is_never_printed_as_zero(difference: float) -> None:
    assert (difference == 0) == (not format_number(difference, "points_bare").strip("0."))


@given(proportions)
def test_a_share_is_printed_as_nothing_or_all_only_when_it_is(share: float) -> None:
    shown = format_number(share, "percent_bare")
    assert (shown in {"0.0", "100.0"}) == (share in {0.0, 1.0})


def test_a_bound_is_printed_on_its_own_side_of_the_margin() -> None:
    assert format_number(-0.02003, "points_bare", limit=-0.02) == "−2.003"
    assert format_number(-0.0199, "points_bare", limit=-0.02) == "−1.99"


def test_a_table_gets_the_decimals_that_half_of_its_rows_support() -> None:
    class Row(NamedTuple):
        low: float | None
        high: float | None

    assert decimals_of([Row(0.4, 0.8), Row(0.66, 0.74), Row(0.701, 0.709), Row(None, None)]) == 1
    assert decimals_of([]) == 1
