from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalspec.signing.commitments import check_opening, commit, opening

SECRET = bytes(range(32))


@given(st.binary(), st.text(), st.text())
def test_a_commitment_opens_with_its_own_salt_and_content(content: bytes, benchmark: str, question: str) -> None:
    opened = opening(SECRET, benchmark, question, content)
    assert check_opening(commit(SECRET, benchmark, question, content), opened.salt, opened.content)


def test_a_commitment_does_not_open_to_other_content() -> None:
    commitment, opened = commit(SECRET, "b", "q", b"right"), opening(SECRET, "b", "q", b"right")
    assert not check_opening(commitment, opened.salt, b"wrong")


def test_bytes_cannot_move_between_salt_and_content() -> None:
    opened = opening(SECRET, "b", "q", b"right")
    assert not check_opening(commit(SECRET, "b", "q", b"right"), opened.salt[:-2], bytes.fromhex(opened.salt[-2:]) + b"right")


def test_what_is_no_salt_opens_nothing() -> None:
    assert not check_opening(commit(SECRET, "b", "q", b"right"), "no hex", b"right")


def test_equal_questions_have_unrelated_commitments() -> None:
    commitments = {commit(SECRET, benchmark, question, b"same") for benchmark, question in [("ab", "c"), ("a", "bc"), ("b", "a"), ("a", "b")]}
    assert len(commitments) == 4


def test_without_the_secret_the_content_cannot_be_guessed() -> None:
    assert commit(SECRET, "b", "q", b"right") != commit(bytes(32), "b", "q", b"right")


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 32"):
        commit(b"short", "b", "q", b"content")
