"""Secrets of a user: lost, damaged, foreign, or without a place to lie."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Command, Run

RUN = ("run", "study.yaml", "--no-pdf", "--throwaway-key")


@pytest.fixture
def hidden(tmp_path: Path, make: SimpleNamespace) -> Path:
    """The folder of a study of recorded answers to questions of which nothing is disclosed."""
    study = make.recorded(tmp_path / "hidden")
    study.write_text(study.read_text().replace("scoring: {method: letter}", "scoring: {method: letter}, disclosure: none"))
    return study.parent


def commitments(folder: Path) -> set[str]:
    protocol = json.loads((folder / "reports" / "study" / "protocol.json").read_bytes())
    return {question["sha256"] for question in protocol["benchmarks"][0]["questions"]}


def test_a_new_secret_for_hidden_questions_is_told_and_the_same_one_is_not(hidden: Path, evalspec: Command) -> None:
    first, secret = evalspec(*RUN, cwd=hidden), hidden / ".evalspec" / "commitments.secret"
    assert (first.code, "a new secret for hidden questions is made" in first.err, "is gone" in first.err) == (0, True, False)
    before = commitments(hidden)
    assert "secret" not in evalspec(*RUN, cwd=hidden).err
    assert commitments(hidden) == before
    secret.unlink()
    again = evalspec(*RUN, cwd=hidden)
    assert again.code == 0
    assert "what was committed to under it cannot be opened with the new one" in again.err
    assert "reports/study holds a report whose hidden questions were committed to under a secret that is gone" in again.err
    assert commitments(hidden).isdisjoint(before)


def test_a_plan_tells_of_a_new_secret_too(hidden: Path, evalspec: Command) -> None:
    content = evalspec("plan", "study.yaml", "--json", cwd=hidden).content
    assert ["a new secret for hidden questions is made" in warning for warning in content["warnings"]] == [True]


@pytest.mark.parametrize("verb", [RUN, ("plan", "study.yaml")], ids=["run", "plan"])
@pytest.mark.parametrize("content", [b"", b"short", b"x" * 10_000])
def test_a_damaged_secret_is_3_and_stays_as_it_is(hidden: Path, evalspec: Command, verb: tuple[str, ...], content: bytes) -> None:
    secret = hidden / ".evalspec" / "commitments.secret"
    secret.parent.mkdir()
    secret.write_bytes(content)
    spoken = evalspec(*verb, cwd=hidden)
    assert (spoken.code, "commitments.secret is no whole secret" in spoken.err, "Traceback" in spoken.err) == (3, True, False)
    assert secret.read_bytes() == content


def test_a_study_that_hides_nothing_needs_no_secret(tmp_path: Path, make: SimpleNamespace, evalspec: Command) -> None:
    folder = make.recorded(tmp_path / "open").parent
    spoken = evalspec(*RUN, cwd=folder)
    assert (spoken.code, "secret" in spoken.err, list(folder.rglob("*.secret"))) == (0, False, [])


def test_a_passphrase_that_is_no_text_is_3_and_leaves_no_key(tmp_path: Path, process: Command) -> None:
    spoken = process("keygen", "--organisation", "Lab", "--out", "key.p12", cwd=tmp_path, env={"EVALSPEC_KEY_PASSPHRASE": "caf\udce9"})
    assert (spoken.code, "not text in UTF-8" in spoken.err, "Traceback" in spoken.err) == (3, True, False)
    assert list(tmp_path.iterdir()) == []


def test_a_faulty_trust_file_is_told_before_there_is_a_key(tmp_path: Path, evalspec: Command) -> None:
    (tmp_path / "team.yaml").write_text('signers:\n- name: "\\UFFFFFFFF"\n')
    spoken = evalspec("keygen", "--organisation", "Lab", "--out", "key.p12", "--no-passphrase", "--trust", "team.yaml", cwd=tmp_path)
    assert (spoken.code, "stands for no character" in spoken.err, (tmp_path / "key.p12").exists()) == (3, True, False)


def nobody(_uid: int) -> None:
    raise KeyError("uid not found")


def test_a_user_without_a_home_folder_cannot_remember_keys_and_verifies_all_the_same(
    recorded: Run, evalspec: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    spoken = evalspec("verify", recorded.folder, "--tofu", cwd=recorded.workplace)
    assert (spoken.code, "there is no home folder to remember a key in" in spoken.err) == (2, True)
    assert evalspec("verify", recorded.folder, "--trust", recorded.trust, "--recompute", cwd=recorded.workplace).code == 0
    assert evalspec("plan", "study.yaml", cwd=recorded.workplace).code == 0


@pytest.mark.slow
def test_a_cache_that_came_from_another_user_is_not_taken_for_scored_here(
    scored: Run, tmp_path: Path, make: SimpleNamespace, process: Command
) -> None:
    place = Path(shutil.copytree(scored.workplace, tmp_path / "place", ignore=shutil.ignore_patterns("reports")))
    command = ("run", "study.yaml", "--key", "signer.p12", "--cache", "whole", "--token-budget", str(make.budget), "--no-pdf")
    spoken = process(*command, cwd=place, env={"XDG_CONFIG_HOME": str(tmp_path / "mine")})
    assert spoken.code == 0, spoken.err
    assert "are not under this user's secret: they were scored by another user or on another machine" in spoken.err
    assert "already in the journal" not in spoken.err
    assert (place / "reports" / "study" / "responses.parquet").read_bytes() == (scored.folder / "responses.parquet").read_bytes()
    assert (tmp_path / "mine" / "evalspec" / "journal.secret").stat().st_mode & 0o777 == 0o600
    again = process(*command, cwd=place, env={"XDG_CONFIG_HOME": str(tmp_path / "mine")})
    assert (again.code, "already in the journal" in again.err, "secret" in again.err) == (0, True, False)
