from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evalspec.errors import Diagnostic
from evalspec.language.compile import compile_study
from evalspec.places import find_root
from evalspec.protocols import Catalogue

Faults = Callable[..., tuple[Diagnostic, ...]]
STUDY = """\
apiVersion: evalspec/v1
title: Paths
seed: 1
models: [{{id: m, source: {{path: {path}}}}}]
benchmarks: [{{id: b, source: {{file: {file}}}, scoring: {{method: letter}}}}]
analyses: [{{id: a, kind: intervals}}]
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "repository" / "studies"
    folder.mkdir(parents=True)
    (tmp_path / "repository" / "model").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "questions.jsonl").write_text("")
    (folder / "questions.jsonl").write_text("")
    return folder


def write(folder: Path, *, path: str, file: str = "questions.jsonl") -> Path:
    study = folder / "study.yaml"
    study.write_text(STUDY.format(path=path, file=file))
    return study


def test_without_a_mark_the_root_is_the_folder_of_the_study(place: Path) -> None:
    assert find_root(place) == place


def test_the_repository_is_the_root(place: Path) -> None:
    (place.parent / ".git").mkdir()
    assert find_root(place) == place.parent


def test_a_settings_file_above_the_repository_is_the_root(place: Path) -> None:
    (place.parent / ".git").mkdir()
    (place.parent.parent / "evalspec.toml").write_text("")
    assert find_root(place) == place.parent.parent


def test_a_path_may_leave_the_study_and_not_the_repository(place: Path, catalogue: Catalogue, faults: Faults) -> None:
    (place.parent / ".git").mkdir()
    compiled = compile_study(write(place, path="../model"), catalogue)
    assert compiled.folder == place
    assert compiled.root == place.parent
    (fault,) = faults(write(place, path="../model").read_text(), place)
    assert "leads out of the folder" in fault.message


def test_a_link_that_leads_outside_is_refused(place: Path, faults: Faults) -> None:
    (place / "link").symlink_to(place.parent.parent / "outside")
    (place / "linked.jsonl").symlink_to(place.parent.parent / "questions.jsonl")
    found = faults(STUDY.format(path="link", file="linked.jsonl"), place)
    assert [("symbolic link" in fault.message) for fault in found] == [True, True]


def test_a_link_that_stays_inside_is_followed(place: Path, faults: Faults) -> None:
    (place / "real").mkdir()
    (place / "link").symlink_to("real")
    assert faults(STUDY.format(path="link", file="questions.jsonl"), place) == ()


def test_a_loop_of_links_is_a_fault(place: Path, faults: Faults) -> None:
    (place / "loop").symlink_to("loop")
    assert len(faults(STUDY.format(path="loop", file="questions.jsonl"), place)) == 1


@pytest.mark.parametrize("written", ["~/model", "/etc", "C:/model", "\\\\server\\model", "https://example.org/m", "'x" + "y" * 900 + "'"])
def test_paths_that_cannot_be_meant_are_refused(written: str, place: Path, faults: Faults) -> None:
    (fault,) = faults(STUDY.format(path=written, file="questions.jsonl"), place)
    assert fault.location
    assert fault.location.line == 4
