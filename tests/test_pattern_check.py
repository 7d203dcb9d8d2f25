"""Which patterns can be used?"""

from __future__ import annotations

import pytest

from evalspec.pattern_check import groups_of, pattern_fault


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("answer ([A-D])", None),
        ("answer [A-D]", None),
        ("(?:the )?answer (?P<letter>[A-D])", None),
        ("(answer) ([A-D])", None),
        ("answer ([A-D]", "missing )"),
        ("(?=answer)", "invalid perl operator"),
        (r"(a)\1", "invalid escape sequence"),
        ("(?:a{1000}){1000}", "invalid repetition size"),
    ],
)
def test_patterns_are_those_of_an_engine_that_never_goes_back(pattern: str, fault: str | None) -> None:
    found = pattern_fault(pattern)
    assert found is None if fault is None else fault in (found or "")


@pytest.mark.parametrize(("pattern", "groups"), [("answer", 0), ("(?:the )?answer (?P<letter>[A-D])", 1), ("(a)(b)", 2), ("(a)(b)(c)", 2)])
def test_groups_are_counted_as_far_as_it_matters(pattern: str, groups: int) -> None:
    assert groups_of(pattern) == groups
