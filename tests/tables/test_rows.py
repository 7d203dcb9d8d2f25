"""JSONL and CSV of others: every row with its line, every fault with its place, within limits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evalspec.artifacts.study import Disclosure
from evalspec.errors import InputError
from evalspec.tables.faults import MOST, Faults, strictest
from evalspec.tables.rows import MOST_CELLS, MOST_COLUMNS, MOST_ROWS, csv_rows, jsonl_rows

Reader = Callable[[str, bytes, Faults], object]


def read_csv(content: bytes, disclosure: Disclosure = "full") -> tuple[list[tuple[int, dict[str, object]]], list[str]]:
    faults = Faults(disclosure)
    rows = [(row.location.line, dict(row.cells)) for row in csv_rows("t.csv", content, faults)]
    return rows, [str(fault).splitlines()[0] for fault in faults.found]


def read_jsonl(content: bytes) -> tuple[list[tuple[int, dict[str, object]]], list[str]]:
    faults = Faults()
    rows = [(row.location.line, dict(row.cells)) for row in jsonl_rows("t.jsonl", content, faults)]
    return rows, [str(fault).splitlines()[0] for fault in faults.found]


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_csv_has_its_lines_whatever_ends_them_and_whatever_mark_begins_it(newline: bytes, mark: bytes) -> None:
    content = mark + newline.join([b"id,a", b"q1,1", b"", b'q2,"two', b'lines"', b"q3,3", b""])
    rows, faults = read_csv(content)
    assert faults == []
    assert [(line, cells["id"]) for line, cells in rows] == [(2, "q1"), (4, "q2"), (6, "q3")]


@pytest.mark.parametrize(("separator", "named"), [(b";", "semicolons"), (b"\t", "tabs")])
def test_another_separator_is_recognised_and_the_hint_says_what_to_do(separator: bytes, named: str) -> None:
    faults = Faults()
    content = separator.join([b"id", b'"question, with comma"', b"answer"]) + b"\n" + separator.join([b"1", b"what, then?", b"A"])
    assert list(csv_rows("t.csv", content, faults)) == []
    assert [fault.message for fault in faults.found] == [f"read with commas the header has 2 columns, read with {named} 3"]
    assert f"{named} are not read as separators" in str(faults.found[0].hint)


def test_a_separator_inside_quotes_is_none() -> None:
    rows, faults = read_csv(b'id,"a;b;c"\nq1,1\n')
    assert (len(rows), faults) == (1, [])


@pytest.mark.parametrize("content", [b"", b'""', b"\n\n", b'"', b"\xef\xbb\xbf"])
def test_a_file_of_next_to_nothing_has_no_rows(content: bytes) -> None:
    assert read_csv(content)[0] == []


def test_a_column_that_stands_twice_is_named_as_far_as_it_may_be() -> None:
    assert read_csv(b"id,CANARY,CANARY\n1,2,3\n")[1] == ["t.csv:1:1: the column 'CANARY' stands twice in the header"]
    assert read_csv(b"id,CANARY,CANARY\n1,2,3\n", "none")[1] == ["t.csv:1:1: the column stands twice in the header"]


def test_the_null_character_is_a_character_like_others() -> None:
    assert read_csv(b"id,a\nq\x001,1\n") == ([(2, {"id": "q\x001", "a": "1"})], [])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"\n" * (MOST_ROWS + 1), f"the file has {MOST_ROWS + 1:,} lines; at most {MOST_ROWS:,} are read"),
        (b"," * (MOST_CELLS + 1), f"the file has {MOST_CELLS + 1:,} commas; at most {MOST_CELLS:,} are read"),
    ],
)
def test_a_text_of_very_many_lines_or_values_is_refused_before_a_row_is_made(content: bytes, told: str) -> None:
    assert read_csv(content) == ([], [f"t.csv:1:1: {told}"])
    assert read_jsonl(content) == ([], [f"t.jsonl:1:1: {told}"])


def test_very_many_columns_or_rows_are_refused() -> None:
    header = ",".join(f"c{number}" for number in range(MOST_COLUMNS + 1)).encode()
    assert read_csv(header + b"\n") == ([], [f"t.csv:1:1: the file has {MOST_COLUMNS + 1:,} columns; at most {MOST_COLUMNS:,} are read"])


def test_reading_stops_after_very_many_faults() -> None:
    with pytest.raises(InputError) as caught:
        read_jsonl(b"{,\n" * (MOST + 100))
    assert caught.value.diagnostics[-1].message == f"and {MOST - 50:,} more; what follows was not read"


def test_the_disclosure_of_a_shared_table_is_the_strictest() -> None:
    assert strictest(("full", "ids")) == "ids"
    assert strictest(("ids", "none", "full")) == "none"
    assert strictest(()) == "none"


@pytest.mark.parametrize("content", [b'[{"id": "q1"}]\n', b'\n[\n {"id": "q1"},\n {"id": "q2"}\n]\n', b'{\n  "id": "q1"\n}\n', b"[" * 10_000])
def test_one_json_document_over_many_lines_is_one_fault_and_not_one_for_every_line(content: bytes) -> None:
    line = 2 if content.startswith(b"\n") else 1
    told = f"t.jsonl:{line}:1: the file is one JSON list or object over many lines; nothing of it was read"
    assert read_jsonl(content) == ([], [told])


def test_a_list_below_an_object_is_a_fault_of_its_own_line() -> None:
    rows, faults = read_jsonl(b'{"id": "q1"}\n[1]\n{"id": "q3"}\n')
    assert ([line for line, _ in rows], faults) == ([1, 3], ["t.jsonl:2:1: a row is a JSON object; this line is another value"])
