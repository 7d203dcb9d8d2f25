from __future__ import annotations

from pathlib import Path

import pytest

from evalspec.artifacts.lock import Earlier
from evalspec.attempts import ATTEMPTS, Attempt, Attempts

A, B, C = ("a" * 64, "b" * 64, "c" * 64)


def attempt(kind: str = "run", *, file: str = "study.yaml", about: str = A, protocol: str = B, seed: int = 1) -> Attempt:
    return Attempt.model_validate({"kind": kind, "file": file, "about": about, "protocol": protocol, "seed": seed})


def test_a_first_attempt_knows_of_none(tmp_path: Path) -> None:
    assert Attempts(tmp_path / "cache").earlier(attempt()) == Earlier()


def test_the_record_is_kept_out_of_git(tmp_path: Path) -> None:
    Attempts(tmp_path / "cache").remember(attempt())
    assert (tmp_path / "cache" / ".gitignore").read_text() == "*\n"


def test_different_protocols_and_seeds_are_counted_once_each(tmp_path: Path) -> None:
    record = Attempts(tmp_path / "cache")
    for one in (attempt(), attempt(), attempt(protocol=C, seed=7), attempt("lock", protocol=C, seed=7)):
        record.remember(one)
    assert record.earlier(attempt(protocol="d" * 64)) == Earlier(locks=1, runs=2, seeds=(1, 7))


def test_the_same_study_is_the_same_file_or_the_same_systems_and_sources(tmp_path: Path) -> None:
    record = Attempts(tmp_path)
    record.remember(attempt(file="one.yaml", about=A))
    assert record.earlier(attempt(file="one.yaml", about=C)).runs == 1
    assert record.earlier(attempt(file="copied.yaml", about=A)).runs == 1
    assert record.earlier(attempt(file="other.yaml", about=C)).runs == 0


@pytest.mark.parametrize("content", [b"", b"[", b"{}", b'[{"kind": "walk"}]', b"\xff"])
def test_a_record_that_cannot_be_read_is_begun_anew(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ATTEMPTS).write_bytes(content)
    record = Attempts(tmp_path)
    assert record.earlier(attempt()) == Earlier()
    record.remember(attempt())
    assert record.earlier(attempt()).runs == 1
