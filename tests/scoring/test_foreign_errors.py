"""What becomes of an error that a library raises over a checkpoint's files?"""

from __future__ import annotations

import pytest

from evalspec.errors import ScoringError
from evalspec.scoring.checkpoint import LONGEST_REASON, foreign_errors


def told(error: BaseException) -> str:
    with pytest.raises(ScoringError) as raised, foreign_errors("'m' cannot be loaded"):
        raise error
    return raised.value.diagnostics[0].message


def test_the_reason_is_told_in_one_line() -> None:
    assert told(ValueError("no such type\n\n  martian\nthird line")) == "'m' cannot be loaded: no such type martian"
    assert told(RuntimeError()) == "'m' cannot be loaded: RuntimeError"


def test_the_advice_of_a_library_is_cut_at_a_word() -> None:
    message = told(ValueError("the type martian is not known. " + "You can update with a command. " * 40))
    assert message.startswith("'m' cannot be loaded: the type martian is not known. ")
    assert message.endswith(" ...")
    assert len(message) <= len("'m' cannot be loaded: ") + LONGEST_REASON
