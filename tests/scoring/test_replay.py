from __future__ import annotations

import csv
import gzip
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from evalspec.artifacts.questions import LETTERS, Question
from evalspec.artifacts.responses import Reason
from evalspec.artifacts.study import Disclosure, LetterScoring
from evalspec.errors import InputError, ScoringError
from evalspec.protocols import ignore_progress
from evalspec.scoring.assemble import ModelRows
from evalspec.scoring.execute import ScoringTask, score
from evalspec.scoring.replay import identify_record, recorded_rows
from evalspec.scoring.tables import RecordedTable

SCORING = LetterScoring(method="letter")
THREE = tuple(Question(f"q{number}", f"stem {number}", ("w", "x", "y", "z"), number) for number in range(3))


@pytest.fixture
def replayed(make: SimpleNamespace, tmp_path: Path) -> Any:
    """Write a table, identify it and read one model's answers to the three questions from it."""

    def replay(content: str | bytes, *, name: str = "table.csv", model: str = "m", disclosure: Disclosure = "full") -> ModelRows:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        table = RecordedTable.read(path, disclosure)
        identity = identify_record(path, name=model, origin=name, read=lambda _: table)
        protocol = make.protocol({"ours": identity}, [make.benchmark("b", THREE, SCORING)])
        return recorded_rows(table, protocol.models[0], protocol.benchmarks[0], THREE)

    return replay


def test_a_wide_table_of_scores(replayed: Any) -> None:
    rows = replayed("item_id,subject,m,n\nq1,s,0.25,1\nq0,s,1,1\nq2,s,0,1\n")
    assert rows.scores[:, 0].tolist() == [1.0, 0.25, 0.0]
    assert (rows.choices == -1).all()
    assert rows.logprobs is None


def test_a_wide_table_of_letters_uses_the_banks_key(replayed: Any) -> None:
    rows = replayed("item_id,m\nq0,A\nq1,A\nq2,C\n")
    assert rows.scores[:, 0].tolist() == [1.0, 0.0, 1.0]
    assert rows.choices[:, 0].tolist() == [0, 0, 2]


def test_missing_answers_have_their_reasons(replayed: Any) -> None:
    rows = replayed("item_id,m\nq0,-\nq1,J\n")
    assert rows.reasons[:, 0].tolist() == [Reason.NOT_ANSWERED, Reason.NOT_ANSWERED, Reason.NOT_RECORDED]
    assert np.isnan(rows.scores).all()


def test_a_long_table_in_every_form(replayed: Any) -> None:
    records = [{"question_id": f"q{number}", "model": model, "choice": "AAC"[number]} for number in range(3) for model in ("m", "n")]
    as_csv = "question_id,model,choice\n" + "".join(f"{one['question_id']},{one['model']},{one['choice']}\n" for one in records)
    as_jsonl = "".join(json.dumps(one) + "\n" for one in records)
    forms = {
        "t.csv": as_csv.encode(),
        "t.csv.gz": gzip.compress(as_csv.encode()),
        "t.jsonl": as_jsonl.encode(),
        "t.jsonl.gz": gzip.compress(as_jsonl.encode()),
    }
    for name, content in forms.items():
        assert replayed(content, name=name).scores[:, 0].tolist() == [1.0, 0.0, 1.0]


def test_log_probabilities_give_choices_and_exact_ties_are_undetermined(replayed: Any) -> None:
    rows = replayed("id,logprob_A,logprob_B,logprob_C,logprob_D\nq0,-1,-2,-3,-4\nq1,-1,-1,-3,-4\nq2,-1.5,-2,-0.5,-4\n")
    assert rows.scores[[0, 2], 0].tolist() == [1.0, 1.0]
    assert rows.reasons[:, 0].tolist() == [Reason.NONE, Reason.UNDETERMINED, Reason.NONE]
    assert rows.logprobs is not None
    assert rows.logprobs[2].tolist() == [-1.5, -2.0, -0.5, -4.0]


def test_repeats_stand_side_by_side(replayed: Any) -> None:
    rows = replayed("id,repeat,score\nq0,0,1\nq0,1,0\nq1,0,1\nq1,1,1\nq2,1,0\n")
    assert rows.scores.shape == (3, 2)
    assert rows.scores[:2].tolist() == [[1.0, 0.0], [1.0, 1.0]]
    assert rows.reasons[2].tolist() == [Reason.NOT_RECORDED, Reason.NONE]


def with_distributions(*rows: tuple[object, object]) -> str:
    cells = [{"id": f"q{number}", "score": 1, "answer_tokens": row[0], "answer_probabilities": row[1]} for number, row in enumerate(rows)]
    return "".join(json.dumps(cell) + "\n" for cell in cells)


def test_answer_distributions_of_an_earlier_run_are_read(replayed: Any) -> None:
    rows = replayed(with_distributions(([5, 7], [0.6, 0.3]), ([7], [1.0]), ([5, 9, 1], [0.4, 0.3, 0.3])), name="own.jsonl")
    assert [top.tokens for top in rows.distributions] == [(5, 7), (7,), (5, 9, 1)]
    assert rows.distributions[0].probabilities == (0.6, 0.3)


def test_a_question_without_a_distribution_leaves_the_model_without_any(replayed: Any) -> None:
    assert replayed(with_distributions(([5], [1.0]), (None, None), ([5], [1.0])), name="own.jsonl").distributions == ()


@pytest.mark.parametrize(
    "broken", [([5, 7], [0.6]), ([5], [1.2]), ([5, 7], [0.6, 0.5]), ([-1], [0.5]), ("5 7", "0.6 0.3"), ([5], None), ([5], ["x"])]
)
def test_what_is_no_distribution_is_a_fault_at_its_line(replayed: Any, broken: tuple[object, object]) -> None:
    with pytest.raises(InputError) as caught:
        replayed(with_distributions(([5], [1.0]), broken, ([5], [1.0])), name="own.jsonl")
    assert "hold no answer distribution" in lines_of(caught)[0]
    assert ":2:" in lines_of(caught)[0]


def test_our_own_parquet_comes_back(replayed: Any, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    table = pa.table(
        {
            "benchmark": ["b", "b", "b", "other"],
            "model": ["m"] * 4,
            "question_id": ["q0", "q1", "q2", "q0"],
            "repeat": [0, 0, 0, 0],
            "score": [1.0, None, 0.0, 0.5],
            "reason": ["none", "undetermined", "none", "none"],
            "choice": [0, -1, 1, 0],
            "logprobs": [[-1.0, -2.0, -3.0, -4.0], [-1.0, -1.0, -3.0, -4.0], [-2.0, -1.0, -3.0, -4.0], None],
        }
    )
    pq.write_table(table, tmp_path / "own.parquet")
    rows = replayed((tmp_path / "own.parquet").read_bytes(), name="responses.parquet")
    assert rows.reasons[:, 0].tolist() == [Reason.NONE, Reason.UNDETERMINED, Reason.NONE]
    assert rows.choices[:, 0].tolist() == [0, -1, 1]
    assert rows.scores[[0, 2], 0].tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("item_id,m\nq0,1.5\n", r"table\.csv:2:1: column 'm': the score '1\.5' is outside 0 to 1"),
        ("item_id,m\nq0,yes\n", r"table\.csv:2:1: column 'm': 'yes' is not a score"),
        ("item_id,m\nq0,1\nq1,1\nq0,0\n", r"table\.csv:4:1: the question 'q0' has a result in line 2 already"),
        ("item_id,m\nx1,1\nx2,1\n", r"the table has 'x1', 'x2'; the study asks 'q0', 'q1', 'q2'"),
        ("item_id,n\nq0,1\n", r"no results of model 'm'; it has 'n'"),
        ("key,m\nq0,1\n", r"no column with question ids; its columns are key, m"),
        ("item_id,m,m\nq0,1,1\n", r"the column 'm' stands twice"),
        ("item_id,m\nq0\n", r"table\.csv:2:1: the row has 1 cell; the header has 2"),
        ("id,logprob_A,logprob_B\nq0,-1,-2\n", r"table\.csv:2:1: column 'logprob_A': 4 log-probabilities of at most 0 are needed, got '-1, -2'"),
        ("", r"is empty"),
    ],
)
def test_a_table_that_does_not_fit_is_explained(replayed: Any, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        replayed(content)


def lines_of(caught: pytest.ExceptionInfo[InputError]) -> list[str]:
    return [str(fault).splitlines()[0] for fault in caught.value.diagnostics]


def test_every_fault_of_a_table_is_named_at_once_in_file_order(replayed: Any) -> None:
    with pytest.raises(InputError) as caught:
        replayed("id,repeat,score\nq0,0,2\nq1,x,1\n,0,1\nq0,0,1\nq2,0,abc\n")
    assert lines_of(caught) == [
        "table.csv:2:1: column 'score': the score '2' is outside 0 to 1",
        "table.csv:3:1: column 'repeat': 'x' is not a whole number below 1,000,000,000",
        "table.csv:4:1: column 'id': the question id is missing",
        "table.csv:5:1: the question 'q0' has a result in line 2 already",
        "table.csv:6:1: column 'score': 'abc' is not a score",
    ]


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ({"score": "@1e400@"}, "a whole number has 401 digits"),
        ({"score": "@Infinity@"}, "column 'score': the score 'inf' is outside 0 to 1"),
        ({"score": "@1e999@"}, "column 'score': the score 'inf' is outside 0 to 1"),
        ({"score": []}, r"column 'score': '\[\]' is not a score"),
        ({"score": "1_0"}, "column 'score': '1_0' is not a score"),
        ({"score": "٠"}, "column 'score': '٠' is not a score"),
        ({"choice": True}, "column 'choice': 'True' is no choice"),
        ({"choice": 0.5}, "column 'choice': '0.5' is no choice"),
        ({"choice": {"A": 1}}, "column 'choice': .* is no choice"),
        ({"logprobs": 3}, "column 'logprobs': 4 log-probabilities of at most 0 are needed, got '3'"),
        ({"logprobs": "-1 -2 -3 -4"}, "column 'logprobs': 4 log-probabilities"),
        ({"logprobs": [-1, "@-Infinity@", -3, -4]}, "column 'logprobs': 4 log-probabilities"),
        ({"logprobs": [-1, None, -3, -4]}, "column 'logprobs': 4 log-probabilities"),
        ({"logprobs": [-1, None, -3, -4, -5]}, "column 'logprobs': 4 log-probabilities"),
        ({"logprobs": [-1, -2, -3, {}]}, "column 'logprobs': 4 log-probabilities"),
        ({"logprobs": [-1, -2, -3, "@-1e300@", None]}, None),
        ({"logprobs": ["@-9e299@", -2, -3, -4]}, None),
        ({"choice": "A", "repeat": "@Infinity@"}, "column 'repeat': 'inf' is not a whole number"),
        ({"choice": "A", "repeat": 0.5}, "column 'repeat': '0.5' is not a whole number"),
        ({"choice": "A", "repeat": -1}, "column 'repeat': '-1' is not a whole number"),
        ({"choice": "A", "repeat": True}, "column 'repeat': 'True' is not a whole number"),
        ({"choice": "A", "repeat": None}, None),
        ({"choice": "A", "note": "@" + "[" * 5000 + "@"}, "nested too deeply"),
        ({"choice": "A", "note": "@" + "[" * 50 + "]" * 50 + "@"}, "nested too deeply"),
        ({"choice": "A", "choice ": '@0, "choice": "B"@'}, "a key stands twice"),
        ({"choice": "\ud800"}, "lone surrogate"),
        ({"choice": "A", "question_id": None}, "column 'question_id': the question id is missing"),
        ({"choice": "A", "question_id": 1.5}, "column 'question_id': the question id '1.5' is neither a text nor a whole number"),
    ],
)
def test_odd_cells_of_jsonl_are_faults_at_their_line_and_column(replayed: Any, cells: dict[str, Any], told: str | None) -> None:
    row = json.dumps({"question_id": "q1", **cells}).replace('"@', "").replace('@"', "").replace("1e400", "1" + "0" * 400).replace('\\"', '"')
    sound = json.dumps({"question_id": "q0", **({"choice": "A"} if "logprobs" not in cells else {"logprobs": [-1, -2, -3, -4]})})
    content = f"{sound}\n{row}\n"
    if told is None:
        assert replayed(content, name="t.jsonl").scores.shape == (3, 1)
        return
    with pytest.raises(InputError, match=rf"^t\.jsonl:2:1: {told}" if told.startswith("column") else told):
        replayed(content, name="t.jsonl")


@pytest.mark.parametrize(
    "content",
    [
        "id,choice\nq0,A\nq1,1\nq2,C\n",
        "id,choice\nq0,0\nq1,B\nq2,2.0\n",
        "item_id,m\nq0,A\nq1,1\nq2,C\n",
        "id,choice\nq0,a\nq1, 3 \n",
    ],
)
def test_letters_and_numbers_in_one_column_of_choices_are_refused(replayed: Any, content: str) -> None:
    with pytest.raises(InputError, match=r"^table\.csv:3:1: column '\w+' holds a (number|letter) here and a (letter|number) in line 2") as caught:
        replayed(content)
    assert "write letters alone or numbers alone" in str(caught.value.diagnostics[0].hint)


def test_what_is_no_choice_under_any_reading_was_not_answered(replayed: Any) -> None:
    rows = replayed("id,choice\nq0,A\nq1,40\nq2,Z\n")
    assert rows.reasons[:, 0].tolist() == [Reason.NONE, Reason.NOT_ANSWERED, Reason.NOT_ANSWERED]


@pytest.mark.parametrize("cells", ["0,1,2", "0.0,1.0,2.0", "00,01,2."])
def test_whole_numbers_are_choices_however_a_library_wrote_them(replayed: Any, cells: str) -> None:
    content = "id,choice\n" + "".join(f"q{place},{cell}\n" for place, cell in enumerate(cells.split(",")))
    assert replayed(content).scores[:, 0].tolist() == [1.0, 1.0, 1.0]


def test_numbers_without_end_are_no_choices_and_no_scores(replayed: Any) -> None:
    assert replayed(f"id,choice\nq0,{'9' * 5000}\n").reasons[0, 0] == Reason.NOT_ANSWERED
    with pytest.raises(InputError, match="is outside 0 to 1"):
        replayed(f"id,score\nq0,{'9' * 5000}\n")


def test_very_many_repeats_are_refused(replayed: Any) -> None:
    content = "id,repeat,score\n" + "".join(f"q0,{number},1\n" for number in range(1001))
    with pytest.raises(InputError, match="1,001 different repeats; at most 1,000 are read"):
        replayed(content)


CANARIES = {
    "ids that match nothing": "question_id,choice\nCANARY,A\n",
    "two results": "question_id,choice\nq0,A\nq0,B\nCANARY,A\nCANARY,A\n",
    "scores": "question_id,score\nq0,CANARY\nq1,7771\n",
    "mixed choices": "question_id,choice\nq0,A\nq1,1\nq2,CANARY\n",
    "log-probabilities": "question_id,logprob_A,logprob_B\nq0,CANARY,-7771\n",
    "repeats": "question_id,repeat,score\nq0,CANARY,1\nq1,7771.5,1\n",
    "no id column": "CANARY,choice\nq0,A\n",
    "no results": "question_id,CANARY\nq0,A\n",
    "no such model": "question_id,model,choice\nq0,CANARY,A\n",
    "columns twice": "CANARY,CANARY\n1,2\n",
    "no header": "CANARY 7771,CANARYA,A\nCANARY 2,x,B\n",
    "other separators": "CANARY;CANARY2\n1;2\n",
    "rows that do not fit": "question_id,choice\nq0,A,CANARY\n",
    "quotes": 'question_id,choice\nq0,"CANARY\n',
}


@pytest.mark.parametrize("name", CANARIES)
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_where_nothing_is_disclosed_faults_name_line_and_column_and_no_cell(replayed: Any, name: str, form: str) -> None:
    content = CANARIES[name]
    if form == "jsonl":
        table = list(csv.reader(content.replace('"CANARY', "CANARY").splitlines()))
        content = "".join(json.dumps(dict(zip(table[0], row, strict=False))) + "\n" for row in table[1:]) + '{"CANARY": 7771\n'
    with pytest.raises(InputError) as caught:
        replayed(content, name=f"t.{form}", disclosure="none")
    shown = "\n".join(map(str, caught.value.diagnostics))
    assert "CANARY" not in shown
    assert "777" not in shown
    assert "t." in shown


def test_a_misspelt_model_gets_a_hint(replayed: Any) -> None:
    with pytest.raises(InputError) as caught:
        replayed("item_id,llama-3-8b,qwen\nq0,1,1\n", model="llama-3-8B")
    assert caught.value.diagnostics[0].hint == "did you mean 'llama-3-8b'?"


def test_a_table_whose_bytes_changed_is_refused(make: SimpleNamespace, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("item_id,m\nq0,1\n")
    identity = identify_record(path, name="m", origin="t.csv")
    with pytest.raises(InputError, match="the study declares"):
        identify_record(path, name="m", origin="t.csv", sha256="0" * 64)
    path.write_text("item_id,m\nq0,0\n")
    protocol = make.protocol({"m": identity}, [make.benchmark("b", THREE, SCORING)])
    with pytest.raises(InputError, match="not the file that the protocol names"):
        recorded_rows(RecordedTable.read(path), protocol.models[0], protocol.benchmarks[0], THREE)


def replay_all(make: SimpleNamespace, path: Path, models: list[str], questions: tuple[Question, ...], *, missing: str = "wrong") -> Any:
    identities = {f"m{number}": identify_record(path, name=name, origin=path.name) for number, name in enumerate(models)}
    protocol = make.protocol(identities, [make.benchmark("b", questions, SCORING, missing=missing)])
    task = ScoringTask(protocol, {"b": questions}, {}, dict.fromkeys(identities, path))
    return score(task, make.no_executor(), make.journal(path.parent / "no-journal"), ignore_progress).responses


def test_the_gpqa_matrix_gives_its_column_means(make: SimpleNamespace, shared: Path) -> None:
    path = shared / "gpqa_main_correct_420models.csv.gz"
    with gzip.open(path, "rt") as file:
        table = list(csv.DictReader(file))
    models = [name for name in table[0] if name not in ("item_id", "subject")][::140]
    questions = tuple(Question(row["item_id"], "not published", ("a", "b", "c", "d"), 0) for row in table)
    responses = replay_all(make, path, models, questions)
    expected = [np.mean([float(row[model]) for row in table]) for model in models]
    np.testing.assert_allclose(responses.benchmark("b").settled().mean(axis=1), expected, atol=1e-12)
    assert {origin.route for origin in responses.origins} == {"recorded"}


def test_the_mmlu_predictions_give_the_accuracies_of_a_direct_count(make: SimpleNamespace, shared: Path) -> None:
    path = shared / "mmlu_500_predictions_14models.csv"
    bank = [json.loads(line) for line in (shared / "mmlu_500_subject_balanced.jsonl").read_text().splitlines()]
    questions = tuple(Question(one["id"], one["question"], tuple(one["choices"]), LETTERS.index(one["answer"]), one["subject"]) for one in bank)
    with path.open() as file:
        table = {row["item_id"]: row for row in csv.DictReader(file)}
    models = [name for name in next(iter(table.values())) if name not in ("item_id", "subject", "answer", "redux_error_type")]
    answers = replay_all(make, path, models, questions).benchmark("b")
    expected = [np.mean([table[one["id"]][model] == one["answer"] for one in bank]) for model in models]
    np.testing.assert_allclose(answers.settled().mean(axis=1), expected, atol=1e-12)
    unparsed = sum(table[one["id"]][model] not in "ABCD" or not table[one["id"]][model] for one in bank for model in models)
    assert sum(counts.get("not_answered", 0) for counts in answers.missing_counts().values()) == unparsed
    if unparsed:
        with pytest.raises(ScoringError, match="not answered"):
            replay_all(make, path, models, questions, missing="error")


def test_recorded_log_likelihoods_give_choices(make: SimpleNamespace, shared: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    path = shared / "wmdp_bio_option_loglik_64models.parquet"
    table = pq.read_table(path)
    model = table.column_names[2].split("|")[0]
    values = np.array([table.column(f"{model}|{letter}").to_pylist() for letter in "ABCD"]).T
    keys = [LETTERS.index(key) for key in table.column("answer").to_pylist()]
    questions = tuple(
        Question(identifier, "not published", ("a", "b", "c", "d"), key)
        for identifier, key in zip(table.column("item_id").to_pylist(), keys, strict=True)
    )
    answers = replay_all(make, path, [model], questions).benchmark("b")
    tied = np.sum(values == values.max(axis=1, keepdims=True), axis=1) > 1
    assert answers.missing_counts()["m0"].get("undetermined", 0) == int(tied.sum())
    expected = np.mean((values.argmax(axis=1) == keys) & ~tied)
    assert math.isclose(answers.settled().mean(), expected, abs_tol=1e-12)
