"""A number's address is a JSON pointer into a named file."""

from __future__ import annotations

import pytest

from evalspec.reporting.documents import Documents, length_of, pointer_key

TABLE = {"shared": {"high": 0.9}, "columns": {"low": [0.1, 0.2], "why/not": [0, 1]}, "words": {"why/not": ["so", "thus"]}}
DOCUMENTS = Documents({"findings.json": {"a/b": [{"~": 1.5, "low": 1}], "rows": TABLE}, "verdict.json": {"checks": []}})


def test_a_table_is_read_by_its_rows_and_names_where_a_number_really_stands() -> None:
    low, high, why = (DOCUMENTS.find(f"/rows/1/{field}") for field in ("low", "high", "why~1not"))
    assert (low.value, low.at, low.holder) == (0.2, "/rows/columns/low/1", {"low": 0.2, "high": 0.9, "why/not": "thus"})
    assert (high.value, high.at) == (0.9, "/rows/shared/high")
    assert (why.value, why.at) == ("thus", "/rows/columns/why~1not/1")
    assert DOCUMENTS.find(low.at).value == low.value
    assert DOCUMENTS.find("verdict.json#/checks").at == "verdict.json#/checks"


def test_the_length_of_a_table_is_the_number_of_its_rows() -> None:
    assert [length_of(DOCUMENTS.find(address).value) for address in ("/rows", "/a~1b", "verdict.json#")] == [2, 1, 1]
    with pytest.raises(TypeError, match="float has no length"):
        length_of(1.5)


def test_an_address_without_a_file_points_into_the_findings() -> None:
    place = DOCUMENTS.find(f"/{pointer_key('a/b')}/0/{pointer_key('~')}")
    assert place.value == 1.5
    assert place.holder == {"~": 1.5, "low": 1}


def test_an_address_may_name_another_file() -> None:
    assert DOCUMENTS.find("verdict.json#/checks").value == []


@pytest.mark.parametrize(
    "address",
    ["/nothing", "verdict.json#/checks/0", "absent.json#/x", "/a~1b/-1", "/a~1b/0/~0/deeper", "/rows/2/low", "/rows/0/nothing"],
)
def test_an_address_where_nothing_stands_is_an_error_that_names_it(address: str) -> None:
    with pytest.raises(KeyError, match="nothing stands at"):
        DOCUMENTS.find(address)
