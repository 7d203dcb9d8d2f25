from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalspec.errors import UsageError
from evalspec.language.compile import compile_study
from evalspec.language.scaffold import QUESTIONS, RECORDED, SCHEMA, STUDY, checkpoints_seen_from, scaffold, starter_files, write_new
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


def test_checkpoints_are_named_as_the_study_will_see_them(tmp_path: Path) -> None:
    (tmp_path / "evalspec.toml").write_text("")
    (tmp_path / "models" / "step-9").mkdir(parents=True)
    (tmp_path / "studies" / "first").mkdir(parents=True)
    (tmp_path / "shortcut").symlink_to(tmp_path / "studies")
    assert checkpoints_seen_from(tmp_path / "studies" / "first", [tmp_path / "models" / "step-9"]) == ("../../models/step-9",)
    assert checkpoints_seen_from(tmp_path / "shortcut" / "first", [tmp_path / "models" / "step-9"]) == ("../../models/step-9",)


def test_every_checkpoint_that_a_first_study_could_not_read_is_refused_with_what_would_help(tmp_path: Path) -> None:
    (tmp_path / "work" / "inside").mkdir(parents=True)
    (tmp_path / "work" / "file").write_text("")
    (tmp_path / "outside").mkdir()
    (tmp_path / "work" / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(UsageError) as caught:
        checkpoints_seen_from(tmp_path / "work", [tmp_path / "work" / name for name in ("inside", "absent", "file", "../outside", "link")])
    told = [fault.message for fault in caught.value.diagnostics]
    assert [("there is no folder" in one, "is a file" in one, "lies outside" in one) for one in told] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
        (False, False, True),
    ]
    assert f"put an empty evalspec.toml into {tmp_path}" in str(caught.value.diagnostics[-1].hint)


def test_a_declared_root_is_not_widened_by_a_hint(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "work" / "evalspec.toml").write_text("")
    with pytest.raises(UsageError) as caught:
        checkpoints_seen_from(tmp_path / "work" / "study", [tmp_path / "outside"])
    assert caught.value.diagnostics[0].hint == f"copy it into {(tmp_path / 'work').resolve()}; nothing was written"


def test_nothing_is_written_where_a_file_stands_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    (tmp_path / "b.txt").write_text("mine")
    with pytest.raises(UsageError, match="is a file"):
        write_new(tmp_path / "taken", {"a.txt": "new"})
    with pytest.raises(UsageError, match=r"already holds b\.txt"):
        write_new(tmp_path, {"a.txt": "new", "b.txt": "new"})
    assert sorted((path.name, path.read_text()) for path in tmp_path.iterdir()) == [("b.txt", "mine"), ("taken", "mine")]
