"""Questions are read from JSONL, CSV and Parquet, or every fault is named with its place."""

from __future__ import annotations

import hashlib
import io
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evalspec.artifacts.questions import Question, QuestionSet
from evalspec.artifacts.sources import FieldNames, QuestionFile
from evalspec.artifacts.study import Benchmark, LetterScoring
from evalspec.errors import Diagnostic, InputError
from evalspec.importing.questions import read_questions

ROW = {"id": "q1", "subject": "sums", "question": "1 + 1?", "choices": ["1", "2", "3"], "answer": "B"}
EXPECTED = Question("q1", "1 + 1?", ("1", "2", "3"), 1, "sums")

Read = Callable[..., QuestionSet]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Write a file and read it as a benchmark."""

    def write_and_read(content: str | bytes, name: str = "q.jsonl", *, disclosure: str = "full", **source: Any) -> QuestionSet:
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        benchmark = Benchmark(
            id="b",
            source=QuestionFile(file=name, **source),
            scoring=LetterScoring(method="letter"),
            disclosure=disclosure,  # type: ignore[arg-type]
        )
        return read_questions(benchmark, folder=tmp_path, root=tmp_path, hub_cache=tmp_path)

    return write_and_read


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def without(key: str, **changes: Any) -> dict[str, Any]:
    return {name: value for name, value in {**ROW, **changes}.items() if name != key}


def faults(read: Read, content: str | bytes, name: str = "q.jsonl", **source: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        read(content, name, **source)
    return [str(fault).splitlines()[0] for fault in caught.value.diagnostics]


def parquet(rows: list[dict[str, Any]], path: Path) -> bytes:
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path.read_bytes()


def test_the_three_formats_give_the_same_questions(read: Read, tmp_path: Path) -> None:
    as_csv = 'id,subject,question,choices,answer\nq1,sums,1 + 1?,"[""1"", ""2"", ""3""]",B\n'
    assert read(lines(ROW)).questions == (EXPECTED,)
    assert read(as_csv, "q.csv").questions == (EXPECTED,)
    assert read(parquet([ROW], tmp_path / "made.parquet"), "q.parquet").questions == (EXPECTED,)


def test_the_digest_of_the_file_is_recorded(read: Read) -> None:
    assert read(lines(ROW)).source_sha256 == hashlib.sha256(lines(ROW).encode()).hexdigest()


def test_a_file_with_another_digest_than_declared_is_refused(read: Read) -> None:
    assert "is not the file that the study declares" in faults(read, lines(ROW), sha256="0" * 64)[0]


@pytest.mark.parametrize(
    ("header", "cells"),
    [
        ("question,A,B,C,answer", "1 + 1?,1,2,3,B"),
        ("stem,choice_a,choice_b,choice_c,key", "1 + 1?,1,2,3,b"),
        ("Question,option1,option2,option3,Gold", "1 + 1?,1,2,3,B"),
        ("input,option_0,option_1,option_2,target", "1 + 1?,1,2,3,B"),
    ],
)
def test_choices_can_have_a_column_each(read: Read, header: str, cells: str) -> None:
    question = read(f"{header}\n{cells}\n", "q.csv").questions[0]
    assert (question.stem, question.choices, question.answer) == ("1 + 1?", ("1", "2", "3"), 1)


def test_empty_columns_at_the_end_mean_fewer_choices(read: Read) -> None:
    questions = read("question,A,B,C,D,answer\nfirst,w,x,y,z,D\nsecond,w,x,y,,C\nthird,w,x,,,A\n", "q.csv").questions
    assert [len(question.choices) for question in questions] == [4, 3, 2]


def test_declared_columns_win_over_conventional_ones(read: Read) -> None:
    fields = FieldNames(question="text", choices="opts", answer="right", id="nr", subject="area")
    row = {"nr": 7, "text": "1 + 1?", "opts": ["1", "2"], "right": 1, "area": "sums", "question": "not this", "answer": 0}
    assert read(lines(row), fields=fields).questions == (Question("7", "1 + 1?", ("1", "2"), 1, "sums"),)


def test_a_declared_column_that_is_not_there_is_named_with_the_closest(read: Read) -> None:
    with pytest.raises(InputError, match="did you mean 'answer'"):
        read(lines(ROW), fields=FieldNames(answer="anwser"))


def test_choices_with_labels_of_their_own_are_answered_by_those(read: Read) -> None:
    row = {"question": "?", "choices": {"text": ["w", "x", "y", "z"], "label": ["1", "2", "3", "4"]}, "answerKey": "4"}
    assert read(lines(row)).questions[0].answer == 3


@pytest.mark.parametrize(
    ("answers", "expected"),
    [(("A", "C"), (0, 2)), ((0, 2), (0, 2)), (("red", "blue"), (0, 2)), (("a", "c"), (0, 2)), (("0", "2"), (0, 2))],
)
def test_answers_are_letters_numbers_from_zero_or_texts(read: Read, answers: tuple[Any, Any], expected: tuple[int, int]) -> None:
    rows = [{"question": f"{place}?", "choices": ["red", "green", "blue"], "answer": answer} for place, answer in enumerate(answers)]
    assert tuple(question.answer for question in read(lines(*rows)).questions) == expected


def test_a_letter_is_not_taken_for_a_text_when_the_file_answers_in_letters(read: Read) -> None:
    rows = [without("id", choices=["B", "A"], answer="A"), without("id", question="other", choices=["w", "x"], answer="B")]
    assert [question.answer for question in read(lines(*rows)).questions] == [0, 1]


def test_nothing_is_guessed_when_every_answer_fits_two_ways(read: Read) -> None:
    assert faults(read, lines(without("id", choices=["2", "0", "1"], answer="1"))) == [
        "q.jsonl:1:1: the answer '1' can be read as the number of choice B or as the text of choice C"
    ]


def test_ids_of_a_file_without_ids_come_from_content_and_not_from_the_order(read: Read) -> None:
    rows = [without("id"), without("id", question="2 + 2?"), without("id", question="3 + 3?")]
    forward = read(lines(*rows)).questions
    assert {question.id: question.stem for question in forward} == {question.id: question.stem for question in read(lines(*rows[::-1])).questions}
    assert len({question.id for question in forward}) == 3


def test_the_very_same_question_twice_gets_two_ids(read: Read) -> None:
    first, second = read(lines(without("id"), without("id"))).questions
    assert second.id == f"{first.id}-2"


def test_every_fault_is_named_at_once_in_file_order(read: Read) -> None:
    content = lines(
        ROW,
        {**ROW, "question": " ", "answer": None},
        {**ROW, "id": "q3", "answer": "D"},
        {**ROW, "id": "q4", "choices": ["1", "1", " "]},
        {**ROW, "id": "q5", "choices": ["only"]},
        without("id"),
        {**ROW, "id": 1.5, "choices": ["1", 2]},
        {**ROW, "id": "q8", "choices": 3, "subject": 4},
    )
    assert faults(read, content) == [
        "q.jsonl:2:1: the question is missing",
        "q.jsonl:2:1: the answer is missing",
        "q.jsonl:2:1: the id 'q1' stands at q.jsonl:1 already",
        "q.jsonl:3:1: the answer 'D' is outside the choices: it is none of the letters A to C",
        "q.jsonl:4:1: choices A and B are the same '1'",
        "q.jsonl:4:1: choice C is empty",
        "q.jsonl:5:1: the question has 1 choice; it needs 2 to 26",
        "q.jsonl:6:1: the id is missing",
        "q.jsonl:7:1: the id is neither a text nor a whole number",
        "q.jsonl:7:1: choice B is not a text",
        "q.jsonl:8:1: the choices are not a list",
        "q.jsonl:8:1: the subject is not a text",
    ]


def test_lines_that_are_no_json_objects_are_named(read: Read) -> None:
    content = b"\n".join(
        [
            b"\xef\xbb\xbf" + lines(ROW).strip().encode(),
            b"{",
            b'{"id": "\xff"}',
            b"[1]",
            b'{"id": "a", "id": "b"}',
            b'{"id": NaN}',
            b'{"id": "\\ud800"}',
            b"[" * 5000,
            b'{"id": "' + b"x" * (1 << 20) + b'"}',
        ]
    )
    assert faults(read, content) == [
        "q.jsonl:2:1: not JSON: Expecting property name enclosed in double quotes at character 2",
        "q.jsonl:3:1: byte 9 of the line is not UTF-8",
        "q.jsonl:4:1: a row is a JSON object; this line is another value",
        "q.jsonl:5:1: a key stands twice in one object",
        "q.jsonl:6:1: NaN is not a JSON value",
        "q.jsonl:7:1: half of a character stands alone (a lone surrogate)",
        "q.jsonl:8:1: lists or objects are nested too deeply",
        "q.jsonl:9:1: the line has 1,048,586 bytes; at most 1,048,576 are read",
    ]


def test_csv_faults_carry_the_line_on_which_the_row_begins(read: Read) -> None:
    content = 'id,question,A,B,answer\nq1,"two\nlines",x,y,A\nq2,short,x\nq3,fine,x,x,B\n'
    assert faults(read, content, "q.csv") == ["q.csv:4:1: the row has 3 cells; the header has 5", "q.csv:5:1: choices A and B are the same 'x'"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"id,question\nq1,\xff\n", "q.csv:2:1: the line is not UTF-8"),
        (b'id,question,A,B,answer\nq1,"open,x,y,A\n', "q.csv:2:1: not CSV: unexpected end of data; nothing after this row was read"),
        (b"id,id,question,A,B,answer\nq1,q1,?,x,y,A\n", "q.csv:1:1: the column 'id' stands twice in the header"),
    ],
)
def test_broken_csv_is_named(read: Read, content: bytes, expected: str) -> None:
    assert faults(read, content, "q.csv")[0] == expected


def test_a_broken_parquet_file_is_refused(read: Read) -> None:
    assert "is not a Parquet file that can be read" in faults(read, b"PAR1 nonsense PAR1", "q.parquet")[0]


def test_a_list_written_in_another_way_than_json_is_refused_with_a_hint(read: Read) -> None:
    with pytest.raises(InputError, match="as a JSON list"):
        read("question,choices,answer\n?,\"['w', 'x']\",A\n", "q.csv")


def test_a_missing_column_is_one_fault_that_lists_the_columns(read: Read) -> None:
    assert faults(read, lines({"id": "q1", "text": "?", "choices": ["w", "x"], "answer": "A"})) == [
        "q.jsonl:1:1: no column holds the question; its columns are id, text, choices, answer"
    ]


def test_fifty_faults_are_shown_and_the_others_counted(read: Read) -> None:
    found = faults(read, lines(*({**ROW, "id": f"q{number}", "answer": "Z"} for number in range(73))))
    assert (len(found), found[-1]) == (51, "and 23 more")


def test_kept_duplicate_choices_are_asked_as_they_stand(read: Read) -> None:
    row = {**ROW, "choices": ["x", "y", "x"]}
    assert read(lines(row), duplicate_choices="keep").questions[0].choices == ("x", "y", "x")


@pytest.mark.parametrize("disclosure", ["ids", "none"])
def test_messages_repeat_no_content_that_is_not_disclosed(read: Read, disclosure: str) -> None:
    secret = {**ROW, "id": "canary-id", "question": "canary-stem", "choices": ["canary-choice", "canary-choice"], "answer": "canary-key"}
    other = {**ROW, "id": "canary-id", "answer": "canary-key"}
    shown = "\n".join(faults(read, lines(secret, other), disclosure=disclosure))
    assert "canary" not in shown.replace("'canary-id'", "" if disclosure == "ids" else "'canary-id'")


CANARY = {"id": "CANARYID", "question": "CANARYSTEM", "choices": ["CANARYW", "CANARYX"], "answer": "A", "subject": "sums"}
PLANTED: dict[str, list[dict[str, Any]]] = {
    "answer outside": [CANARY, {**CANARY, "id": "q2", "answer": "CANARYKEY"}],
    "answer of labels": [
        {**CANARY, "choices": {"text": ["w", "x"], "label": ["CANARYL", "CANARYM"]}, "answer": "CANARYL"},
        {**CANARY, "id": "q2", "answer": 7},
    ],
    "answer of two readings": [{**CANARY, "choices": ["1", "0"], "answer": "1"}],
    "choices twice": [{**CANARY, "choices": ["CANARYW", "CANARYW"]}],
    "choices in a cell": [{**CANARY, "choices": '["CANARYW", CANARYX'}],
    "choices of other types": [{**CANARY, "choices": ["CANARYW", {"CANARYX": 1}]}, {**CANARY, "id": "q2", "choices": "CANARYW"}],
    "ids twice": [CANARY, CANARY],
    "ids of other types": [{**CANARY, "id": ["CANARYID"]}, {**CANARY, "id": "CANARYID\x1b"}],
    "labels of other types": [{**CANARY, "subject": ["CANARYS"], "cluster": {"CANARYC": 1}, "flags": '["CANARYF'}],
    "no known columns": [{"CANARYID": 1, "CANARYSTEM": 2, "CANARYW": 3}],
}


@pytest.mark.parametrize("disclosure", ["ids", "none"])
@pytest.mark.parametrize("name", PLANTED)
def test_no_fault_of_a_hidden_file_repeats_what_is_not_disclosed(read: Read, name: str, disclosure: str) -> None:
    shown = "\n".join(faults(read, lines(*PLANTED[name]), disclosure=disclosure))
    assert "CANARY" not in shown.replace("'CANARYID'", "" if disclosure == "ids" else "'CANARYID'")
    assert "of choice" not in shown  # which choice an answer would give is the key


@pytest.mark.parametrize(
    "content",
    [
        "CANARYID,CANARYSTEM,CANARYW,CANARYX,A\nq2,second?,x,y,B\n",
        "CANARYW;CANARYX;A\n1;2;3\n",
        "id,CANARYW,CANARYW,answer\n1,2,3,4\n",
        'id,question,A,B,answer\nq1,"CANARYSTEM,w,x,A\n',
        "id,question,A,B,answer\nq1,CANARYSTEM,w,x,A,CANARYKEY\n",
    ],
)
def test_no_fault_of_a_hidden_csv_file_repeats_what_is_not_disclosed(read: Read, content: str) -> None:
    fields = FieldNames(question="CANARYSTEN")
    for source in ({}, {"fields": fields}):
        shown = "\n".join(str(fault) for fault in refusal(read, content, "q.csv", disclosure="none", **source))
        assert "CANARY" not in shown.replace("'CANARYSTEN'", "")


def refusal(read: Read, content: str | bytes, name: str, **source: Any) -> tuple[Diagnostic, ...]:
    with pytest.raises(InputError) as caught:
        read(content, name, **source)
    return caught.value.diagnostics


def test_a_parquet_file_with_a_date_or_bytes_where_nobody_looks_is_read(read: Read) -> None:
    table = pa.Table.from_pylist([ROW]).append_column("made", pa.array([2**62], pa.timestamp("us"))).append_column("image", pa.array([b"\xff"]))
    sink = io.BytesIO()
    pq.write_table(table, sink)
    assert read(sink.getvalue(), "q.parquet").questions == (EXPECTED,)


def test_a_parquet_file_with_a_date_for_a_question_says_which_part_is_none(read: Read) -> None:
    table = pa.table({"question": pa.array([2**62], pa.timestamp("us")), "A": ["x"], "B": ["y"], "answer": pa.array([1], pa.date32())})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    assert faults(read, sink.getvalue(), "q.parquet") == ["q.parquet:1:1: the question is not a text"]


def test_a_small_parquet_file_of_very_long_questions_is_refused(read: Read) -> None:
    def repeated(text: str, rows: int) -> bytes:
        stems = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]))
        sink = io.BytesIO()
        table = pa.table({"question": stems, "A": ["x"] * rows, "B": ["y"] * rows, "answer": ["A"] * rows})
        pq.write_table(table, sink, dictionary_pagesize_limit=1 << 28)
        return sink.getvalue()

    assert "has 2,000,003 characters; at most 1,048,576 are read" in faults(read, repeated("x" * 2_000_000, 2), "q.parquet")[0]
    assert "1,073,741,824 characters, which is the most that is read" in faults(read, repeated("x" * 1_000_000, 2000), "q.parquet")[-1]


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "q.jsonl").open("wb") as stream:
        stream.truncate((1 << 30) + 1)
    benchmark = Benchmark(id="b", source=QuestionFile(file="q.jsonl"), scoring=LetterScoring(method="letter"))
    with pytest.raises(InputError, match=r"q\.jsonl has 1,073,741,825 bytes; at most 1,073,741,824 are read"):
        read_questions(benchmark, folder=tmp_path, root=tmp_path, hub_cache=tmp_path)


def test_control_characters_of_a_file_do_not_reach_the_terminal(read: Read) -> None:
    row = {**ROW, "choices": ["\x1b[2J", "\x1b[2J"]}
    with pytest.raises(InputError) as caught:
        read(lines(row, {**ROW, "id": "\x1b[31m"}, {**ROW, "id": "q3", "subject": "\x1b"}))
    assert "\x1b" not in str(caught.value)


def test_an_unknown_ending_an_empty_file_and_an_absent_file_are_refused(read: Read, tmp_path: Path) -> None:
    assert "is no question file that can be read" in faults(read, "", "q.txt")[0]
    assert faults(read, "", "q.jsonl") == ["q.jsonl holds no questions"]
    benchmark = Benchmark(id="b", source=QuestionFile(file="absent.jsonl"), scoring=LetterScoring(method="letter"))
    with pytest.raises(InputError, match=r"no file 'absent\.jsonl'"):
        read_questions(benchmark, folder=tmp_path, root=tmp_path, hub_cache=tmp_path)


def test_a_path_or_a_link_that_leaves_the_root_is_refused(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "outside.jsonl").write_text(lines(ROW))
    (inside / "link.jsonl").symlink_to(tmp_path / "outside.jsonl")
    for name in ("../outside.jsonl", "link.jsonl"):
        benchmark = Benchmark(id="b", source=QuestionFile(file=name), scoring=LetterScoring(method="letter"))
        with pytest.raises(InputError, match="leads outside"):
            read_questions(benchmark, folder=inside, root=inside, hub_cache=tmp_path)


def test_five_hundred_questions_of_mmlu_are_read(shared: Path) -> None:
    data = shared / "data"
    source = QuestionFile(file="mmlu_500_subject_balanced.jsonl", duplicate_choices="keep")
    question_set = read_questions(Benchmark(id="mmlu", source=source, scoring=LetterScoring(method="letter")), folder=data, root=data, hub_cache=data)
    assert (len(question_set.questions), len(question_set.strata())) == (500, 57)
    assert question_set.questions[0].letter == "D"


def test_mmlu_has_three_questions_that_offer_a_choice_twice(shared: Path) -> None:
    data = shared / "data"
    source = QuestionFile(file="mmlu_500_subject_balanced.jsonl")
    with pytest.raises(InputError) as caught:
        read_questions(Benchmark(id="mmlu", source=source, scoring=LetterScoring(method="letter")), folder=data, root=data, hub_cache=data)
    assert [fault.location and fault.location.line for fault in caught.value.diagnostics] == [218, 307, 455]


def test_as_many_questions_as_mmlu_has_are_read_within_a_second_and_a_half(read: Read) -> None:
    rows = [{**ROW, "id": f"q{number}", "question": "a rather ordinary question " * 10, "answer": "ABC"[number % 3]} for number in range(14_042)]
    content = lines(*rows)
    start = time.process_time()
    assert len(read(content).questions) == 14_042
    assert time.process_time() - start < 1.5


def test_a_file_without_header_that_is_not_disclosed_shows_nothing_of_its_first_question(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("CANARYSTEM?,CANARYCHOICE,other,A\nsecond?,x,y,B\n", encoding="utf-8")
    hidden = Benchmark(id="b", source=QuestionFile(file="q.csv"), scoring=LetterScoring(method="letter"), disclosure="none")
    with pytest.raises(InputError) as caught:
        read_questions(hidden, folder=tmp_path, root=tmp_path, hub_cache=tmp_path)
    assert "CANARY" not in str(caught.value)
    assert "4 columns" in str(caught.value)
