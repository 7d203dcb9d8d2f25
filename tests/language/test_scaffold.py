from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalspec.language.compile import compile_study
from evalspec.language.scaffold import QUESTIONS, RECORDED, SCHEMA, STUDY, scaffold, starter_files
from evalspec.protocols import Catalogue


def written(folder: Path, checkpoints: tuple[str, ...], catalogue: Catalogue) -> Path:
    for name, text in starter_files(checkpoints, catalogue).items():
        (folder / name).write_text(text, encoding="utf-8")
    for checkpoint in checkpoints:
        (folder / checkpoint).mkdir(parents=True)
    return folder / STUDY


@pytest.mark.parametrize("checkpoints", [(), ("model",), ("a/model", "b/model", "my model (1)")])
def test_a_first_study_has_no_fault(checkpoints: tuple[str, ...], tmp_path: Path, catalogue: Catalogue) -> None:
    study = compile_study(written(tmp_path, checkpoints, catalogue), catalogue).study
    assert len(study.models) == (len(checkpoints) or 2)
    assert ("comparison" in [analysis.id for analysis in study.analyses]) == (len(study.models) > 1)


def test_a_first_study_without_checkpoints_replays_answers_to_all_its_questions(catalogue: Catalogue) -> None:
    files = starter_files((), catalogue)
    asked = {json.loads(line)["id"] for line in files[QUESTIONS].splitlines()}
    answers = [row.split(",") for row in files[RECORDED].splitlines()[1:]]
    assert {row[0] for row in answers} == asked
    assert {row[1] for row in answers} == {"candidate", "baseline"}


def test_the_questions_are_sound_and_of_two_subjects(catalogue: Catalogue) -> None:
    rows = [json.loads(line) for line in starter_files((), catalogue)[QUESTIONS].splitlines()]
    assert len(rows) >= 8
    assert len({row["subject"] for row in rows}) == 2
    assert all(len(set(row["choices"])) == 4 and row["answer"] in "ABCD" for row in rows)


def test_the_first_line_tells_editors_where_the_schema_is(catalogue: Catalogue) -> None:
    files = starter_files((), catalogue)
    assert files[STUDY].splitlines()[0] == f"# yaml-language-server: $schema={SCHEMA}"
    assert json.loads(files[SCHEMA])["title"] == "evalspec study"


def test_checkpoints_of_one_name_get_ids_of_their_own() -> None:
    assert [line.split()[-1] for line in scaffold(("a/m", "b/m", "c/m")).splitlines() if line.startswith("  - id: m")] == ["m", "m.2", "m.3"]
