"""Recorded tables are held against all questions of the sources before anything is drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalspec.artifacts.questions import Question
from evalspec.artifacts.sources import FieldNames, QuestionFile, RecordedResponses
from evalspec.artifacts.study import AnalysisRequest, Benchmark, Disclosure, LetterScoring, Model, Study
from evalspec.errors import InputError, StudyError
from evalspec.scoring.records import Record, check_records, left_out, read_records

FIRST = tuple(Question(f"q{number}", "?", ("w", "x"), 0) for number in range(3))
SECOND = tuple(Question(f"r{number}", "?", ("w", "x"), 0) for number in range(2))


def study_of(*models: Model, disclosures: tuple[Disclosure, ...] = ("full",)) -> Study:
    benchmarks = tuple(
        Benchmark(id=f"b{number}", source=QuestionFile(file="q.jsonl"), scoring=LetterScoring(method="letter"), disclosure=disclosure)
        for number, disclosure in enumerate(disclosures)
    )
    asked = AnalysisRequest(id="accuracy", kind="intervals", benchmarks=("b0",), options={})
    return Study(apiVersion="evalspec/v1", title="t", seed=1, models=models, benchmarks=benchmarks, analyses=(asked,), source_sha256="0" * 64)


def recorded(identifier: str, file: str = "t.csv", name: str | None = None) -> Model:
    return Model(id=identifier, source=RecordedResponses(responses=file, model=name))


def read(study: Study, folder: Path) -> tuple[Record, ...]:
    """The records of a study that lies in this folder; its faults name no place in it."""
    return read_records(study, folder=folder, root=folder, at=lambda _number, error: error.diagnostics)


def test_every_fault_of_every_table_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,model,score\nq0,a,1\nq1,a,2\nq0,b,1\nq1,b,x\n")
    (tmp_path / "empty.csv").write_text("")
    study = study_of(recorded("a"), recorded("b"), recorded("c", "empty.csv"), recorded("d", "empty.csv"), recorded("e", "absent.csv"))
    with pytest.raises(InputError) as caught:
        read(study, tmp_path)
    assert [fault.message for fault in caught.value.diagnostics] == [
        "'empty.csv' is empty: it holds no row of results",
        "there is no file 'absent.csv'",
    ]
    records = read(study_of(recorded("a"), recorded("b")), tmp_path)
    with pytest.raises(InputError) as caught:
        check_records(records, {"b0": FIRST})
    assert [fault.location and fault.location.line for fault in caught.value.diagnostics] == [3, 5]


def test_faults_stand_in_the_order_of_the_file_whichever_model_they_are_about(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,model,score\nq0,b,x\nq0,a,2\nq1,b,3\nq1,a,y\n")
    (tmp_path / "u.csv").write_text("id,c\nq0,4\n")
    records = read(study_of(recorded("a"), recorded("c", "u.csv"), recorded("b")), tmp_path)
    with pytest.raises(InputError) as caught:
        check_records(records, {"b0": FIRST})
    assert [str(fault.location) for fault in caught.value.diagnostics] == ["t.csv:2:1", "t.csv:3:1", "t.csv:4:1", "t.csv:5:1", "u.csv:2:1"]


def test_tables_of_one_name_in_two_folders_are_told_apart(tmp_path: Path) -> None:
    for folder in ("first", "second", "third"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "t.csv").write_text("id,score\nq0,2\n" if folder != "third" else "")
    records = read(study_of(recorded("a", "first/t.csv"), recorded("b", "second/t.csv")), tmp_path)
    with pytest.raises(InputError) as caught:
        check_records(records, {"b0": FIRST})
    assert [str(fault.location) for fault in caught.value.diagnostics] == ["first/t.csv:2:1", "second/t.csv:2:1"]
    with pytest.raises(InputError, match=r"'third/t\.csv' is empty"):
        read(study_of(recorded("a", "third/t.csv")), tmp_path)


def test_rows_of_unknown_questions_and_models_are_counted_with_their_first_line(tmp_path: Path) -> None:
    rows = ["id,model,score", "q0,a,1", "r0,a,1", "zz,a,1", "yy,a,1", "q0,other,1", "q1,third,1", "q1,third,x"]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    records = read(study_of(recorded("mine", name="a")), tmp_path)
    assert list(left_out(records, {"b0": FIRST, "b1": SECOND})) == [
        "'t.csv': 2 rows of questions that the source does not have left out, the first in line 4",
        "'t.csv': 3 rows of 2 models that the study does not name left out",
    ]
    check_records(records, {"b0": FIRST, "b1": SECOND})


def test_a_column_of_benchmarks_says_which_source_must_know_a_question(tmp_path: Path) -> None:
    rows = ["benchmark,id,score", "b0,q0,1", "b0,r0,1", "b1,r0,1", "elsewhere,zz,1"]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    records = read(study_of(recorded("a")), tmp_path)
    assert list(left_out(records, {"b0": FIRST, "b1": SECOND})) == [
        "'t.csv': 1 row of questions that the source does not have left out, the first in line 3"
    ]


def test_a_wide_table_that_fits_leaves_nothing_out(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,a,b\nq0,1,0\nq1,0,1\n")
    records = read(study_of(recorded("a"), recorded("b")), tmp_path)
    assert list(left_out(records, {"b0": FIRST})) == []


def test_ids_that_match_no_question_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,a\nQ0,1\nQ1,0\n")
    records = read(study_of(recorded("a")), tmp_path)
    with pytest.raises(InputError, match="has results for none of the questions: the table has 'Q0', 'Q1'; the study asks 'q0', 'q1', 'q2'"):
        check_records(records, {"b0": FIRST})


def test_a_table_shows_no_more_than_the_most_secret_benchmark_allows(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,a\nCANARY,1\nq1,CANARY\n")
    records = read(study_of(recorded("a"), disclosures=("full", "none")), tmp_path)
    with pytest.raises(InputError) as caught:
        check_records(records, {"b0": FIRST, "b1": SECOND})
    assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize(
    ("column", "held"),
    [
        ("answer", "answer keys"),
        ("Answer", "answer keys"),
        ("answer_key", "answer keys"),
        ("subject", "subjects of questions"),
        ("category", "subjects of questions"),
        ("cluster", "clusters of questions"),
        ("flags", "flags of questions"),
        ("question_id", "ids of questions"),
        ("uid", "ids of questions"),
        ("benchmark", "benchmarks"),
        ("repeat", "numbers of repeats"),
        ("reason", "why answers are missing"),
    ],
)
def test_a_column_of_a_wide_table_that_holds_something_else_is_no_model(tmp_path: Path, column: str, held: str) -> None:
    (tmp_path / "t.csv").write_text(f"id,{column},small,large\nq0,A,A,B\nq1,B,B,A\n")
    with pytest.raises(StudyError) as caught:
        read(study_of(recorded("ours", name=column)), tmp_path)
    assert [fault.message for fault in caught.value.diagnostics] == [
        f"column '{column}' of 't.csv' holds {held}, and is no model; it has 'small', 'large'"
    ]


def test_a_column_that_the_study_reads_the_key_from_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,right,ours\nq0,A,B\n")
    study = study_of(recorded("ours", name="right"))
    source = study.benchmarks[0].source.model_copy(update={"fields": FieldNames(answer="right")})
    study = study.model_copy(update={"benchmarks": (study.benchmarks[0].model_copy(update={"source": source}),)})
    with pytest.raises(StudyError, match=r"column 'right' of 't\.csv' holds answer keys, and is no model; it has 'ours'"):
        read(study, tmp_path)


def test_a_choice_beside_a_key_is_no_model_and_letters_alone_may_be(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,A,B,answer,ours\nq0,0,1,A,B\n")
    with pytest.raises(InputError, match=r"holds choices of questions, and is no model; it has 'ours'"):
        read(study_of(recorded("A")), tmp_path)
    (tmp_path / "t.csv").write_text("question,A,B\nq0,0,1\n")
    assert len(read(study_of(recorded("A"), recorded("B")), tmp_path)) == 2


def test_a_column_of_models_may_hold_any_name(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,model,answer,score\nq0,answer,A,1\n")
    (record,) = read(study_of(recorded("answer")), tmp_path)
    assert record.identity.model == "answer"


@pytest.mark.parametrize("wide", [True, False])
def test_a_misspelt_model_is_told_the_models_that_there_are_the_closest_first(tmp_path: Path, *, wide: bool) -> None:
    models = [f"family-{number}b" for number in range(1, 25)]
    columns = ",".join(models)
    cells = ",".join("1" for _ in models)
    table = f"question_id,subject,answer,{columns}\nq0,s,A,{cells}\n" if wide else "id,model,score\n" + "".join(f"q0,{m},1\n" for m in models)
    (tmp_path / "t.csv").write_text(table)
    with pytest.raises(StudyError) as caught:
        read(study_of(recorded("ours", name="famly-17b")), tmp_path)
    (fault,) = caught.value.diagnostics
    assert fault.message.startswith("'t.csv' has no results of model 'famly-17b'; it has 'family-17b', ")
    assert fault.message.endswith(" and 4 more")
    assert fault.message.count("'family-") == 20
    assert "'subject'" not in fault.message
    assert "'answer'" not in fault.message
    assert fault.hint == "did you mean 'family-17b'?"


def test_names_of_a_hidden_table_are_counted_and_not_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,answer,CANARY\nq0,A,1\n")
    for name in ("answer", "Canari"):
        with pytest.raises(StudyError) as caught:
            read(study_of(recorded("ours", name=name), disclosures=("none",)), tmp_path)
        assert "CANARY" not in str(caught.value)
        assert "it has 1 other" in str(caught.value)
