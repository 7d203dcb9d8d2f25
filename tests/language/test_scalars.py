from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalspec.language.scalars import read_plain


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("False", False),
        ("0", 0),
        ("-12", -12),
        ("0o17", 15),
        ("0xff", 255),
        ("1e-3", 0.001),
        ("4.0e9", 4.0e9),
        (".5", 0.5),
        ("1.", 1.0),
        ("2026-11-29", "2026-11-29"),
        ("2026-11-29 10:00:00", "2026-11-29 10:00:00"),
        ("1.2.3", "1.2.3"),
        ("evalspec/v1", "evalspec/v1"),
        ("tRUE", "tRUE"),
        ("nope", "nope"),
        ("0b1", "0b1"),
    ],
)
def test_plain_words_follow_the_core_schema_of_yaml_1_2(text: str, value: object) -> None:
    read = read_plain(text)
    assert read.refused is None
    assert read.value == value
    assert type(read.value) is type(value)


@pytest.mark.parametrize(
    "text", ["yes", "No", "ON", "off", "y", "N", "010", "-007", "00", "01.5", "1:30", "190:20:30", "1_000", "1_0.5", ".inf", "-.Inf", ".NaN"]
)
def test_words_that_yaml_readers_disagree_about_are_refused_with_a_hint(text: str) -> None:
    read = read_plain(text)
    assert read.refused
    assert read.hint
    assert read.value is None


@pytest.mark.parametrize("text", ["-0", "-0.0", "-0e5", "-.0"])
def test_a_zero_has_no_sign(text: str) -> None:
    assert repr(read_plain(text).value) in {"0", "0.0"}


def test_numbers_that_no_study_needs_are_refused() -> None:
    assert read_plain("9" * 5000).refused
    assert read_plain("1e999").refused


@settings(deadline=None)
@given(st.integers(-(10**18), 10**18))
def test_whole_numbers_are_read_as_written(number: int) -> None:
    assert read_plain(str(number)).value == number


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_read_as_written(number: float) -> None:
    assert read_plain(repr(number)).value == number
