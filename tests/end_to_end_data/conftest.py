"""Studies that replay recorded answers of real models, from the question file to the signed report.

The matrices hold no question text, so the questions that are asked here are stand-ins with the true ids, subjects, keys and flags.
"""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evalspec.artifacts.columns import is_table, rows_of
from evalspec.artifacts.findings import Findings
from evalspec.artifacts.verdict import Verdict
from evalspec.cli import main
from evalspec.store import RunDirectory

LETTERS = "ABCDEFGHIJ"

HEAD = """apiVersion: evalspec/v1
title: {title}
seed: 20261129
models:
{models}
benchmarks:
  - id: {id}
    source: {{file: questions.jsonl}}
{design}
    scoring: {{method: letter}}
    disclosure: ids
analyses:
{analyses}
"""


@dataclass(frozen=True, slots=True)
class Matrix:
    """A recorded table of real models: its rows, and the names of its models in the order of the file."""

    file: Path
    rows: list[dict[str, str]]
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """A finished run."""

    folder: Path
    code: int
    findings: Findings
    verdict: Verdict
    html: str

    def result(self, analysis: str) -> dict[str, Any]:
        """The result of one analysis as plain JSON, its tables as lists of rows."""
        result = next(finding.result for finding in self.findings.findings if finding.request.id == analysis)
        return {name: rows_of(value) if is_table(value) else value for name, value in result.items()}


def read_matrix(file: Path, first_model: int) -> Matrix:
    """Read a gzipped table whose models begin at this column."""
    with gzip.open(file, "rt", newline="") as stream:
        rows = list(csv.DictReader(stream))
    return Matrix(file, rows, tuple(rows[0])[first_model:])


@pytest.fixture(scope="session")
def published_redux(shared: Path) -> Matrix:
    """14 frontier models on MMLU-Redux: 5,700 questions, 57 subjects, 370 questions with a human-found problem (CC-BY-4.0, aryopg/mmlu-redux)."""
    return read_matrix(shared / "data" / "mmlu_redux_helm_predictions_14models.csv.gz", 6)


@pytest.fixture(scope="session")
def redux(published_redux: Matrix, tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    """The same without the answer of one model that is a bare number, which could be read as a choice."""
    file = tmp_path_factory.mktemp("redux") / published_redux.file.name
    rows = [{name: "" if name in published_redux.models and cell.isdigit() else cell for name, cell in row.items()} for row in published_redux.rows]
    with gzip.open(file, "wt", newline="") as stream:
        table = csv.DictWriter(stream, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return read_matrix(file, 6)


@pytest.fixture(scope="session")
def pro(shared: Path) -> Matrix:
    """29 models on MMLU-Pro: 12,032 questions, 14 subjects, answers that could not be extracted (Apache-2.0, TIGER-AI-Lab/MMLU-Pro)."""
    return read_matrix(shared / "data" / "mmlu_pro_predictions_29models.csv.gz", 6)


@pytest.fixture(scope="session")
def gpqa(shared: Path) -> Matrix:
    """420 models on GPQA main: 448 questions, right or wrong (MIT, mpg05883/micro-benchmarking-reliability)."""
    return read_matrix(shared / "data" / "gpqa_main_correct_420models.csv.gz", 2)


def short(name: str) -> str:
    """Return a model's name as an id of a study: at most 64 characters, beginning with a letter or digit."""
    return name[-64:].lstrip("._-")


@pytest.fixture(scope="session")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Done]:
    """Write a study of recorded answers beside its questions, and run it through the command line."""

    def run(matrix: Matrix, *, title: str, design: str, analyses: Sequence[str], thresholds: str = "") -> Done:
        tmp_path = tmp_path_factory.mktemp("study")
        shutil.copy2(matrix.file, tmp_path / matrix.file.name)
        (tmp_path / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in _questions(matrix)))
        listed = "\n".join(
            f"  - {{id: {short(name)}, source: {{responses: {matrix.file.name}, model: {json.dumps(name)}}}}}" for name in matrix.models
        )
        lines = "\n".join(f"  - {line}" for line in analyses)
        placed = "\n".join(f"    {line}" for line in design.splitlines())
        text = HEAD.format(title=title, id="questions", models=listed, design=placed, analyses=lines)
        study = tmp_path / "study.yaml"
        study.write_text(text + thresholds)
        out = tmp_path / "out"
        code = main(["run", str(study), "--out", str(out), "--cache", str(tmp_path / "cache"), "--no-pdf"])
        directory = RunDirectory(out)
        return Done(out, code, directory.read_findings(), directory.read_verdict(), (out / "report.html").read_text(encoding="utf-8"))

    return run


def _questions(matrix: Matrix) -> Iterator[dict[str, object]]:
    for row in matrix.rows:
        letters = LETTERS[: int(row.get("n_options") or 4)]
        yield {
            "id": row["item_id"],
            "subject": row["subject"],
            "question": "not published",
            "choices": [f"choice {letter}" for letter in letters],
            "answer": row.get("answer", "A"),
            "flags": row.get("redux_error_type", ""),
        }
