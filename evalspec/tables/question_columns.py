"""Which columns of a table hold the parts of a question?  The names by which files of questions call them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from types import MappingProxyType

from evalspec.artifacts.questions import LETTERS

CONVENTIONAL: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "id": ("id", "question_id", "qid", "item_id", "uid"),
        "question": ("question", "stem", "input", "prompt", "query"),
        "choices": ("choices", "options", "candidates", "endings", "answers"),
        "answer": ("answer", "target", "label", "key", "gold", "answerkey", "answer_key", "correct_answer", "answer_index"),
        "subject": ("subject", "category", "topic"),
        "cluster": ("cluster", "cluster_id"),
        "flags": ("flags", "flag"),
    }
)
CHOICE_PREFIXES = ("", "choice_", "option_", "choice", "option")


def conventional(part: str, present: Sequence[str]) -> str | None:
    """Return the column that holds a part of a question by its name; None where none does."""
    folded = _folded(present)
    return next((folded[name] for name in CONVENTIONAL[part] if name in folded), None)


def choice_columns(present: Sequence[str]) -> tuple[str, ...] | None:
    """Return the columns of the choices where each choice has its own: A, B, ...; choice_a, ...; option1, ..."""
    folded = _folded(present)
    numbers = tuple(str(number) for number in range(len(LETTERS) + 1))
    for prefix in CHOICE_PREFIXES:
        for marks in (tuple(LETTERS.lower()), numbers[:-1], numbers[1:]) if prefix else (tuple(LETTERS.lower()),):
            columns = tuple(folded[name] for name in takewhile(folded.__contains__, (prefix + mark for mark in marks)))
            if len(columns) >= 2:
                return columns
    return None


def parts_in(present: Sequence[str]) -> dict[str, str]:
    """Return the part of a question that columns hold by their names; choices of a column each only beside the answer.

    >>> parts_in(["id", "Answer", "small-7b"])
    {'id': 'id', 'Answer': 'answer'}
    """
    found = {name: part for name in present for part, names in CONVENTIONAL.items() if name.casefold() in names}
    if "answer" in found.values():
        found |= dict.fromkeys(choice_columns(present) or (), "choices")
    return found


def _folded(present: Sequence[str]) -> dict[str, str]:
    return {column.casefold(): column for column in reversed(present)}
