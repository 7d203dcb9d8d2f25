"""A number's address is a JSON pointer into a named file."""

from __future__ import annotations

import pytest

from evalspec.reporting.documents import Documents, pointer_key

DOCUMENTS = Documents({"findings.json": {"a/b": [{"~": 1.5, "low": 1}]}, "verdict.json": {"checks": []}})


def test_an_address_without_a_file_points_into_the_findings() -> None:
    place = DOCUMENTS.find(f"/{pointer_key('a/b')}/0/{pointer_key('~')}")
    assert place.value == 1.5
    assert place.holder == {"~": 1.5, "low": 1}


def test_an_address_may_name_another_file() -> None:
    assert DOCUMENTS.find("verdict.json#/checks").value == []


@pytest.mark.parametrize("address", ["/nothing", "verdict.json#/checks/0", "absent.json#/x", "/a~1b/-1", "/a~1b/0/~0/deeper"])
def test_an_address_where_nothing_stands_is_an_error_that_names_it(address: str) -> None:
    with pytest.raises(KeyError, match="nothing stands at"):
        DOCUMENTS.find(address)
