"""Which column of a question file holds what?  Declared names first, conventional ones otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from evalspec.artifacts.sources import FieldNames
from evalspec.tables.faults import Faults
from evalspec.tables.question_columns import CONVENTIONAL, choice_columns, conventional
from evalspec.tables.rows import Row

NEEDED = ("question", "choices", "answer")


@dataclass(frozen=True, slots=True)
class Columns:
    """The column of each part; `choices` is one column with a list, or one column for each choice."""

    question: str
    answer: str
    choices: str | tuple[str, ...]
    id: str | None
    subject: str | None
    cluster: str | None = None
    flags: str | None = None


def find_columns(rows: Sequence[Row], declared: FieldNames, faults: Faults) -> Columns | None:
    """Tell the columns apart; None, with the faults noted at the first row, when a declared or a needed one is not there."""
    present = tuple(dict.fromkeys(column for row in rows for column in row.cells))
    wanted: dict[str, str | None] = declared.model_dump()
    unknown = {part: name for part, name in wanted.items() if name is not None and name not in present}
    found = {part: wanted[part] or conventional(part, present) for part in CONVENTIONAL}
    choices = found["choices"] or choice_columns(present)
    missing = [part for part in NEEDED if (choices if part == "choices" else found[part]) is None]
    for part, name in unknown.items():
        close = get_close_matches(name, present, n=1) if faults.disclosure == "full" else []
        message = f"column '{name}', declared for the {part}, is not in the file; {faults.list_columns(present)}"
        faults.add(rows[0].location, message, hint=f"did you mean '{close[0]}'?" if close else None)
    for part in missing:
        faults.add(rows[0].location, f"no column holds the {part}; {faults.list_columns(present)}", hint=_how_to_declare(part))
    question, answer = found["question"], found["answer"]
    if unknown or question is None or answer is None or choices is None:
        return None
    return Columns(question, answer, choices, found["id"], found["subject"], found["cluster"], found["flags"])


def _how_to_declare(part: str) -> str:
    also = "; or give each choice its own column: A, B, C, ..." if part == "choices" else ""
    return f"name it in the study under the source's 'fields', or call it one of {', '.join(CONVENTIONAL[part][:5])}{also}"
