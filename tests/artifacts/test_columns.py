"""Values of one form are written as a table and read back equal; a table that is not sound is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from evalspec.artifacts.base import Artifact
from evalspec.artifacts.columns import Rows, is_table, lined_json, row_count, row_of, rows_of, to_table


class Part(Artifact):
    divisor: int
    low: float | None = None


class Row(Artifact):
    name: str
    models: tuple[str, ...]
    value: float | None = None
    count: int = 0
    decided: bool | None = None
    parts: tuple[Part, ...] = ()
    missing: dict[str, int] = Field(default_factory=dict)


class Holder(Artifact):
    rows: Rows[Row]


names = st.sampled_from(["a", "b", "c", ""])
numbers = st.none() | st.floats(allow_nan=False, allow_infinity=False)
rows = st.lists(
    st.builds(
        Row,
        name=names,
        models=st.lists(names, max_size=3).map(tuple),
        value=numbers,
        count=st.integers(-5, 5),
        decided=st.none() | st.booleans(),
        parts=st.lists(st.builds(Part, divisor=st.integers(1, 3), low=numbers), max_size=2).map(tuple),
        missing=st.dictionaries(names, st.integers(0, 3), max_size=2),
    ),
    max_size=6,
).map(tuple)


def written(given_rows: tuple[Row, ...]) -> dict[str, Any]:
    table: dict[str, Any] = json.loads(lined_json(Holder(rows=given_rows).model_dump(mode="json")))["rows"]
    return table


@given(rows)
def test_rows_read_back_equal_and_are_written_the_same_again(given_rows: tuple[Row, ...]) -> None:
    content = lined_json(Holder(rows=given_rows).model_dump(mode="json"))
    read = Holder.model_validate_json(content)
    assert read.rows == given_rows
    assert lined_json(read.model_dump(mode="json")) == content


@given(rows)
def test_every_row_of_a_table_can_be_looked_up(given_rows: tuple[Row, ...]) -> None:
    table = written(given_rows)
    assert is_table(table)
    assert row_count(table) == len(given_rows)
    assert rows_of(table) == [row.model_dump(mode="json") for row in given_rows]
    with pytest.raises(IndexError, match="and none at"):
        row_of(table, len(given_rows))


def test_what_is_shared_stands_once_and_texts_are_places_in_a_list() -> None:
    table = written((Row(name="x", models=("a", "b"), value=0.5), Row(name="x", models=("a", "c"), value=0.25)))
    assert table["columns"] == {"models": [[0, 1], [0, 2]], "value": [0.5, 0.25]}
    assert table["words"] == {"models": ["a", "b", "c"]}
    assert table["shared"] == {"name": "x", "count": 0, "decided": None, "parts": [], "missing": {}}


def test_rows_that_are_all_alike_keep_their_number() -> None:
    alike = (Row(name="x", models=("a",)),) * 3
    assert written(alike)["columns"] == {"missing": [{}, {}, {}]}
    assert row_count(written(alike)) == 3
    assert to_table(()) == {"shared": {}, "columns": {}, "words": {}}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"words": None}, "a table has the parts columns, shared, words"),
        ({"further": {}}, "a table has the parts columns, shared, words; got columns, further, shared, words"),
        ({"columns": {"value": [0.5, 0.25], "count": [1]}}, "lists of one length"),
        ({"columns": {"value": 0.5}}, "lists of one length"),
        ({"columns": {"name": ["x", "x"], "value": [0.5, 0.25]}}, "shared or a column"),
        ({"words": {"parts": []}}, "words belong to a column"),
        ({"columns": {"models": [[0, 1], [0, 9]], "value": [0.5, 0.25]}}, "9 is not a place in the words"),
        ({"columns": {"models": [[0, 1], [0, -1]], "value": [0.5, 0.25]}}, "-1 is not a place in the words"),
        ({"columns": {"models": [[0, 1], [0, True]], "value": [0.5, 0.25]}}, "True is not a place in the words"),
        ({"columns": {"models": [[0, 1], [0, 2]], "value": [0.5, "much"]}}, "valid number"),
        ({"columns": {"models": [[0, 1], [0, 2]], "value": [0.5, 0.25], "other": [1, 2]}}, "Extra inputs are not permitted"),
    ],
)
def test_a_table_that_is_not_sound_is_refused(change: dict[str, Any], fault: str) -> None:
    table = written((Row(name="x", models=("a", "b"), value=0.5), Row(name="x", models=("a", "c"), value=0.25))) | change
    with pytest.raises(ValidationError, match=fault):
        Holder.model_validate_json(json.dumps({"rows": table}))


def test_a_list_of_numbers_takes_one_line_and_an_object_a_line_for_each_key() -> None:
    lines = lined_json({"b": [1, [2, 3]], "a": {"é": None}, "c": [{"d": 0.5}]}).decode().splitlines()
    assert lines == ["{", '  "a": {', '    "é": null', "  },", '  "b": [1, [2, 3]],', '  "c": [', "    {", '      "d": 0.5', "    }", "  ]", "}"]
    with pytest.raises(ValueError, match="JSON compliant"):
        lined_json({"a": float("nan")})
