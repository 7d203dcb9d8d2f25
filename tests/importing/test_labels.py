from __future__ import annotations

import json

import pytest

from evalspec.artifacts.sources import FieldNames
from evalspec.errors import Location
from evalspec.importing.columns import Columns
from evalspec.importing.labels import Labels, read_labels
from evalspec.tables.faults import Faults
from evalspec.tables.rows import Row

COLUMNS = Columns("question", "answer", "choices", None, "subject", "passage", "problems")


def read(**cells: object) -> tuple[Labels, list[str]]:
    faults = Faults()
    return read_labels(Row(Location("q.jsonl", 3), cells), COLUMNS, faults), [fault.message for fault in faults.found]


def test_subject_cluster_and_flags_are_labels_of_a_question() -> None:
    assert read(subject="law", passage="text 7", problems="wrong_groundtruth") == (Labels("law", "text 7", ("wrong_groundtruth",)), [])


@pytest.mark.parametrize("cell", [None, "", "ok", "OK", " ok ", [], ["ok", ""]])
def test_nothing_and_ok_mean_that_no_problem_is_known(cell: object) -> None:
    assert read(problems=cell) == (Labels(), [])


@pytest.mark.parametrize("cell", [["wrong key", "unclear", "wrong key"], json.dumps(["wrong key", "unclear"])])
def test_several_flags_stand_in_a_list_or_in_a_json_list(cell: object) -> None:
    assert read(problems=cell)[0].flags == ("wrong key", "unclear")


def test_a_number_can_name_a_cluster_and_nothing_else() -> None:
    assert read(passage=7)[0].cluster == "7"
    assert read(subject=7)[1] == ["the subject is not a text"]
    assert read(problems=[7])[1] == ["the flag is not a text"]


def test_labels_that_cannot_be_printed_are_faults_with_their_line() -> None:
    assert "cannot be printed" in read(passage="a\x00b")[1][0]
    assert "longer than 200" in read(problems="x" * 201)[1][0]
    assert "the flags are not JSON" in read(problems="[1, ")[1][0]


def test_the_fields_of_a_source_name_their_columns() -> None:
    assert set(FieldNames.model_fields) >= {"cluster", "flags"}
