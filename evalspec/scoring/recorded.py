"""What does one row of a recorded table say about a question: a score, a choice, or why there is neither?"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from evalspec.artifacts.questions import LETTERS, Question
from evalspec.artifacts.responses import Reason
from evalspec.errors import Location
from evalspec.scoring.tables import RecordedTable
from evalspec.tables.faults import Faults
from evalspec.tables.foreign import Cell

CAPITAL = re.compile(r"[A-Z]")
LETTER = {written: index for letters in (LETTERS, LETTERS.lower()) for index, written in enumerate(letters)}
WHOLE = re.compile(r"[0-9]{1,9}(\.0*)?")
NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,4})?")
NO_ANSWER = ("", "-")
NOT_A_NUMBER = ("nan", "+nan", "-nan")
TRUTH = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True, slots=True)
class Column:
    """A column's name, and its cells in the rows of one model."""

    name: str
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class RecordedAnswers:
    """The rows of one model: their places in the table, question ids, repeats, and the columns that there are.

    A cell of `logprobs` holds one number for each choice, or nothing.
    """

    table: RecordedTable
    rows: Sequence[int]
    question: Sequence[str | None]
    repeat: Sequence[int]
    score: Column | None
    choice: Column | None
    logprobs: Column | None
    reason: Column | None

    def place(self, index: int) -> Location:
        """Return where the row at `index` stands."""
        return self.table.place(self.rows[index])


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """One answer: a score or the reason why there is none, the choice, -1 where unknown, and log-probabilities, one for each choice."""

    score: float = math.nan
    reason: Reason = Reason.NONE
    choice: int = -1
    logprobs: Sequence[float] | None = None


def read_answer(answers: RecordedAnswers, index: int, question: Question, faults: Faults) -> RecordedAnswer:
    """Return the answer at `index`; log-probabilities that tie exactly are undetermined unless the table has a score.

    What cannot be read is noted as a fault and counts as not answered.
    """
    logprobs = _logprobs(answers, index, question, faults)
    choice = -1 if answers.choice is None else _choice(answers, answers.choice, index, question, faults)
    if answers.choice is None and logprobs is not None:
        choice = _highest(logprobs)
        if choice < 0 and answers.score is None:
            return RecordedAnswer(reason=Reason.UNDETERMINED, logprobs=logprobs)
    score = float(choice == question.answer) if choice >= 0 else None
    if answers.score is not None:
        score = _score(answers, answers.score, index, faults)
    if score is None:
        return RecordedAnswer(reason=_reason(answers, index), choice=choice if answers.score is not None else -1, logprobs=logprobs)
    return RecordedAnswer(score, Reason.NONE, choice, logprobs)


def note_mixed_choices(answers: RecordedAnswers, questions: Mapping[str, Question], faults: Faults) -> None:
    """Note as a fault that a column names choices by letters in some rows and by numbers in others: one of the two is misread.

    What is none of its question's choices under either reading was not answered under either, and is passed over.
    """
    if answers.choice is None:
        return
    first: dict[str, int] = {}
    for index, (cell, identifier) in enumerate(zip(answers.choice.cells, answers.question, strict=True)):
        kind, number = _reading(cell)
        if kind in first or kind is None:
            continue
        question = questions.get(identifier or "")
        if question is not None and 0 <= number < len(question.choices):
            first[kind] = index
    if len(first) < 2:
        return
    (earlier, before), (later, index) = first.items()
    message = f"column '{answers.choice.name}' holds a {later} here and a {earlier} in line {answers.place(before).line}"
    hint = "a number counts choices from 0: write letters alone or numbers alone, and leave the cell of an unusable answer empty"
    faults.add(answers.place(index), message, hint=hint)


def _reason(answers: RecordedAnswers, index: int) -> Reason:
    """Return why an answer is missing: what the table says in a column `reason`, by name or number, else that it was not answered."""
    written = None if answers.reason is None else answers.reason.cells[index]
    for reason in Reason:
        if reason and written in (reason.value, str(reason.value), reason.name, reason.name.lower()):
            return reason
    return Reason.NOT_ANSWERED


def _reading(cell: Cell) -> tuple[Literal["letter", "number"] | None, int]:
    """Return how a cell names a choice, and the number of that choice; no way and -1 where it names none."""
    if isinstance(cell, str):
        written = cell.strip()
        if written in LETTER:
            return "letter", LETTER[written]
        return ("number", int(float(written))) if WHOLE.fullmatch(written) else (None, -1)
    whole = not isinstance(cell, bool) and (isinstance(cell, int) or (isinstance(cell, float) and cell.is_integer()))
    return ("number", int(cell)) if whole else (None, -1)


def _choice(answers: RecordedAnswers, column: Column, index: int, question: Question, faults: Faults) -> int:
    """Return the index of the choice, -1 for what is none of the question's choices."""
    cell = column.cells[index]
    kind, number = _reading(cell)
    if kind is None and not (cell is None or isinstance(cell, str) or (isinstance(cell, float) and math.isnan(cell))):
        told = f"column '{column.name}':{faults.quote(cell) or ' the cell'} is no choice"
        faults.add(answers.place(index), told, hint="a choice is a letter, or a number counted from 0")
    return number if 0 <= number < len(question.choices) else -1


def _score(answers: RecordedAnswers, column: Column, index: int, faults: Faults) -> float | None:
    cell = column.cells[index]
    if cell is None or (isinstance(cell, str) and cell.strip() in NO_ANSWER):
        return None
    try:
        score = TRUTH[cell.strip().lower()] if isinstance(cell, str) and cell.strip().lower() in TRUTH else _number(cell)
    except ValueError:
        told = f"column '{column.name}':{faults.quote(cell) or ' the cell'} is not a score"
        faults.add(answers.place(index), told, hint="scores are numbers from 0 to 1; choices are letters")
        return None
    if math.isnan(score):
        return None
    if not 0 <= score <= 1:
        faults.add(answers.place(index), f"column '{column.name}': the score{faults.quote(cell)} is outside 0 to 1", hint="divide percentages by 100")
        return None
    return score


def _logprobs(answers: RecordedAnswers, index: int, question: Question, faults: Faults) -> list[float] | None:
    """Return one number per choice, or None when the model has none for this question; cells behind the last choice may be empty."""
    if answers.logprobs is None:
        return None
    cells, count = answers.logprobs.cells[index], len(question.choices)
    try:
        numbers = [_number_or_nothing(cell) for cell in cells] if isinstance(cells, list | tuple) else None if cells in (None, "") else [math.inf]
    except ValueError:
        numbers = [math.inf]
    while numbers and math.isnan(numbers[-1]):
        numbers.pop()
    if not numbers:
        return None
    if len(numbers) != count or not all(-math.inf < number <= 0 for number in numbers):
        message = f"column '{answers.logprobs.name}': {count} log-probabilities of at most 0 are needed"
        written = ", ".join("" if cell is None else str(cell) for cell in cells) if isinstance(cells, list | tuple) else cells
        got = f", got{faults.quote(written)}" if faults.disclosure == "full" else ""
        faults.add(answers.place(index), message + got, hint="one natural logarithm of a probability for each choice, in the order of the choices")
        return None
    return numbers


def _number_or_nothing(cell: Cell) -> float:
    number = math.nan if cell is None or cell == "" else _number(cell)
    if math.isnan(number) and isinstance(cell, str) and cell:
        raise ValueError  # an empty cell says that there is none; a written one that the model's numbers are broken
    return number


def _number(cell: Cell) -> float:
    """Return a cell's number, NaN included; raises ValueError when it is none."""
    if isinstance(cell, str):
        written = cell.strip()
        if written.lower() in NOT_A_NUMBER:
            return math.nan
        if not NUMBER.fullmatch(written):
            raise ValueError
        return float(written)
    if not isinstance(cell, int | float):
        raise ValueError  # noqa: TRY004 - a cell of another type is no number, as a text is that is none
    try:
        return float(cell)
    except OverflowError as error:
        raise ValueError from error


def _highest(values: Sequence[float]) -> int:
    """Return the index of the highest value, -1 when it stands twice."""
    highest = max(values)
    return values.index(highest) if values.count(highest) == 1 else -1
