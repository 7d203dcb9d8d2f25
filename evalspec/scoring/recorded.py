"""What does one row of a recorded table say about a question: a score, a choice, or why there is neither?"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from evalspec.artifacts.questions import LETTERS, Question
from evalspec.artifacts.responses import Reason
from evalspec.errors import InputError
from evalspec.scoring.tables import Cell, RecordedTable

LETTER = re.compile(r"[A-Z]")
NO_ANSWER = ("", "-")


@dataclass(frozen=True, slots=True)
class RecordedAnswers:
    """The rows of one model: row number for a human, question id, repeat, and the columns that there are."""

    row: Sequence[int]
    question: Sequence[str]
    repeat: Sequence[int]
    score: Sequence[Cell] | None
    choice: Sequence[Cell] | None
    logprobs: Sequence[Sequence[Cell] | None] | None
    reason: Sequence[Cell] | None


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """One answer: a score or the reason why there is none, and the choice, -1 where unknown."""

    score: float = math.nan
    reason: Reason = Reason.NONE
    choice: int = -1


def read_answer(table: RecordedTable, answers: RecordedAnswers, index: int, question: Question) -> RecordedAnswer:
    """Return the answer at `index`; log-probabilities that tie exactly are undetermined unless the table has a score."""
    choice = -1 if answers.choice is None else _choice(answers.choice[index], question)
    if answers.choice is None and answers.logprobs is not None:
        values = read_logprobs(table, answers, index, question)
        choice = -1 if values is None else _highest(values)
        if choice < 0 and values is not None and answers.score is None:
            return RecordedAnswer(reason=Reason.UNDETERMINED)
    if answers.score is not None:
        score = _score(table, answers.row[index], answers.score[index])
        return RecordedAnswer(reason=_reason(answers, index), choice=choice) if score is None else RecordedAnswer(score, Reason.NONE, choice)
    return RecordedAnswer(reason=_reason(answers, index)) if choice < 0 else RecordedAnswer(float(choice == question.answer), Reason.NONE, choice)


def _reason(answers: RecordedAnswers, index: int) -> Reason:
    """Return why an answer is missing: what the table says in a column `reason`, by name or number, else that it was not answered."""
    written = None if answers.reason is None else answers.reason[index]
    for reason in Reason:
        if reason and written in (reason.value, str(reason.value), reason.name, reason.name.lower()):
            return reason
    return Reason.NOT_ANSWERED


def _choice(cell: Cell, question: Question) -> int:
    """Return the index of the choice, -1 for what is none of the question's choices."""
    if isinstance(cell, str):
        written = cell.strip().upper()
        index = LETTERS.index(written) if LETTER.fullmatch(written) else int(written) if written.isdecimal() else -1
    else:
        index = cell if isinstance(cell, int) else -1
    return index if 0 <= index < len(question.choices) else -1


def _score(table: RecordedTable, row: int, cell: Cell) -> float | None:
    if cell is None or (isinstance(cell, str) and cell in NO_ANSWER):
        return None
    try:
        score = float({"true": 1.0, "false": 0.0}.get(cell.lower(), cell) if isinstance(cell, str) else cell)
    except (TypeError, ValueError) as error:
        raise InputError(f"'{table.name}', row {row}: {cell!r} is not a score", hint="scores are numbers from 0 to 1; choices are letters") from error
    if math.isnan(score):
        return None
    if not 0 <= score <= 1:
        raise InputError(f"'{table.name}', row {row}: the score {cell!r} is outside 0 to 1", hint="divide percentages by 100")
    return score


def read_logprobs(table: RecordedTable, answers: RecordedAnswers, index: int, question: Question) -> list[float] | None:
    """Return one number per choice, or None when the model has none for this question."""
    cells = answers.logprobs[index] if answers.logprobs is not None else None
    present = [cell for cell in cells or () if cell is not None and cell != "" and cell == cell]  # noqa: PLR0124 - NaN differs from itself
    if not present:
        return None
    try:
        values = [float(cell) for cell in present]
    except (TypeError, ValueError) as error:
        raise InputError(f"'{table.name}', row {answers.row[index]}: {present!r} are not log-probabilities") from error
    if len(values) != len(question.choices) or max(values) > 0 or not all(map(math.isfinite, values)):
        raise InputError(
            f"'{table.name}', row {answers.row[index]}: {len(question.choices)} log-probabilities of at most 0 are needed, got {values}",
            hint="one natural logarithm of a probability for each choice, in the order of the choices",
        )
    return values


def _highest(values: Sequence[float]) -> int:
    """Return the index of the highest value, -1 when it stands twice."""
    highest = max(values)
    return values.index(highest) if values.count(highest) == 1 else -1
