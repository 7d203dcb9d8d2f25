"""What did a model answer earlier?  Recorded tables as a source of responses.

Long tables have a row per question (and model, and repeat) with a score, a choice or log-probabilities; wide tables have a row per question and
a column per model. Conventional column names are in `ID`, `MODEL`, `SCORE`, `CHOICE`; log-probabilities stand in a list column `logprobs`, in
`logprob_A`, `logprob_B`, ..., or, in a wide table, in `MODEL|A`, `MODEL|B`, ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from evalspec.artifacts.protocol import ProtocolBenchmark, ProtocolModel, RecordIdentity
from evalspec.artifacts.questions import LETTERS, Question
from evalspec.artifacts.responses import Origin, Reason
from evalspec.errors import InputError
from evalspec.scoring.assemble import ModelRows
from evalspec.scoring.recorded import LETTER, RecordedAnswers, read_answer, read_logprobs
from evalspec.scoring.tables import Cell, RecordedTable

ID = ("question_id", "item_id", "id", "question")
MODEL = ("model", "model_id")
SCORE = ("score", "correct")
CHOICE = ("choice", "prediction")


ReadTable = Callable[[Path], RecordedTable]


def identify_record(path: Path, *, name: str, origin: str, sha256: str | None = None, read: ReadTable = RecordedTable.read) -> RecordIdentity:
    """Return which table a model's responses come from, `name` being the table's name for the model.

    `read` can remember tables, of which many models share one. Raises InputError when the file is not the declared one or does not know the model.
    """
    table = read(path)
    if sha256 is not None and table.sha256 != sha256:
        raise InputError(
            f"'{path.name}' has SHA-256 {table.sha256}; the study declares {sha256}", hint="the file has changed, or the digest is another file's"
        )
    _answers_of(table, name, None)
    return RecordIdentity(sha256=table.sha256, model=name, origin=origin)


def recorded_rows(table: RecordedTable, model: ProtocolModel, benchmark: ProtocolBenchmark, questions: Sequence[Question]) -> ModelRows:
    """Return a model's recorded responses to the drawn questions, in their order.

    A question without a row is missing as `NOT_RECORDED`, an answer that is empty, `-` or none of the choices as `NOT_ANSWERED`.
    Raises InputError when the table does not fit.
    """
    identity = model.identity
    assert isinstance(identity, RecordIdentity)
    if table.sha256 != identity.sha256:
        raise InputError(f"'{table.name}' is not the file that the protocol names", hint="plan again, or put the file back")
    answers = _answers_of(table, identity.model, benchmark.id)
    cells = _by_question(table, answers, questions, named=benchmark.disclosure != "none")
    repeats = sorted({repeat for _, repeat in cells}) or [0]
    scores = np.full((len(questions), len(repeats)), np.nan)
    reasons = np.full(scores.shape, Reason.NOT_RECORDED, dtype=np.int8)
    choices = np.full(scores.shape, -1, dtype=np.int16)
    logprobs = None if answers.logprobs is None else np.full((len(questions), max(len(question.choices) for question in questions)), np.nan)
    for position, question in enumerate(questions):
        for column, repeat in enumerate(repeats):
            index = cells.get((question.id, repeat))
            if index is None:
                continue
            answer = read_answer(table, answers, index, question)
            scores[position, column], reasons[position, column], choices[position, column] = answer.score, answer.reason, answer.choice
            if logprobs is not None and column == 0:
                values = read_logprobs(table, answers, index, question)
                logprobs[position, : len(question.choices)] = np.nan if values is None else values
    origin = Origin(model=model.id, benchmark=benchmark.id, route="recorded", precision="as recorded", recorded_sha256=identity.sha256)
    return ModelRows(scores, reasons, choices, logprobs, origin)


def _answers_of(table: RecordedTable, name: str, benchmark: str | None) -> RecordedAnswers:
    """Return the rows of one model; without a benchmark, of all of them."""
    kept: Sequence[int] = range(table.length)
    if benchmark is not None and "benchmark" in table.columns:
        kept = _matching(table, "benchmark", benchmark, kept)
    model_column = table.first_of(MODEL)
    if model_column is not None:
        return _long(table, _matching(table, model_column, name, kept))
    if name in table.columns or any(column.startswith(f"{name}|") for column in table.columns):
        return _wide(table, name, kept)
    if table.first_of((*SCORE, *CHOICE, "logprobs", "logprob_A")) is not None:
        return _long(table, kept)
    raise _unknown(table, "model", name, [column for column in table.columns if column not in ID])


def _matching(table: RecordedTable, column: str, wanted: str, kept: Sequence[int]) -> list[int]:
    cells = table.columns[column]
    matching = [number for number in kept if str(cells[number]) == wanted]
    if not matching:
        raise _unknown(table, column, wanted, sorted({str(cells[number]) for number in kept}))
    return matching


def _unknown(table: RecordedTable, what: str, wanted: str, known: Sequence[str]) -> InputError:
    close = get_close_matches(wanted, known, n=1)
    listed = ", ".join(f"'{name}'" for name in known[:5]) + (f" and {len(known) - 5} more" if len(known) > 5 else "")
    return InputError(
        f"'{table.name}' has no results of {what} '{wanted}'; it has {listed or 'none'}", hint=f"did you mean '{close[0]}'?" if close else None
    )


def _long(table: RecordedTable, kept: Sequence[int]) -> RecordedAnswers:
    score, choice = table.first_of(SCORE), table.first_of(CHOICE)
    letters = [column for letter in LETTERS if (column := f"logprob_{letter}") in table.columns]
    logprobs = None
    if "logprobs" in table.columns:
        logprobs = [table.columns["logprobs"][number] for number in kept]
    elif letters:
        logprobs = [[table.columns[column][number] for column in letters] for number in kept]
    if score is None and choice is None and logprobs is None:
        raise InputError(
            f"'{table.name}' has no column with results; its columns are {', '.join(list(table.columns)[:8])}",
            hint=f"name it one of {', '.join((*SCORE, *CHOICE, 'logprobs'))}",
        )
    if logprobs is not None and all(values is None for values in logprobs):
        logprobs = None
    return _answers(table, kept, score, choice, logprobs)


def _wide(table: RecordedTable, name: str, kept: Sequence[int]) -> RecordedAnswers:
    letters = [column for letter in LETTERS if (column := f"{name}|{letter}") in table.columns]
    if name not in table.columns:
        return _answers(table, kept, None, None, [[table.columns[column][number] for column in letters] for number in kept])
    lettered = any(isinstance(table.columns[name][number], str) and LETTER.fullmatch(table.columns[name][number]) for number in kept)
    return _answers(table, kept, None if lettered else name, name if lettered else None, None)


def _answers(
    table: RecordedTable, kept: Sequence[int], score: str | None, choice: str | None, logprobs: Sequence[Sequence[Cell] | None] | None
) -> RecordedAnswers:
    id_column = table.first_of(ID)
    if id_column is None:
        raise InputError(
            f"'{table.name}' has no column with question ids; its columns are {', '.join(list(table.columns)[:8])}",
            hint=f"name it one of {', '.join(ID)}",
        )

    def cells(column: str | None) -> list[Cell] | None:
        return None if column is None else [table.columns[column][number] for number in kept]

    return RecordedAnswers(
        row=[number + table.first_row for number in kept],
        question=[str(cell) for cell in cells(id_column) or ()],
        repeat=[_repeat(table, number) for number in kept],
        score=cells(score),
        choice=cells(choice),
        logprobs=logprobs,
        reason=cells(table.first_of(("reason",))),
    )


def _repeat(table: RecordedTable, number: int) -> int:
    cell = table.columns["repeat"][number] if "repeat" in table.columns else 0
    try:
        return int(cell)
    except (TypeError, ValueError) as error:
        raise InputError(f"'{table.name}', row {number + table.first_row}: repeat {cell!r} is not a whole number") from error


def _by_question(table: RecordedTable, answers: RecordedAnswers, questions: Sequence[Question], *, named: bool) -> Mapping[tuple[str, int], int]:
    """Return where in `answers` each (question id, repeat) stands; faults name ids only if questions may be `named`."""
    cells: dict[tuple[str, int], int] = {}
    for index, key in enumerate(zip(answers.question, answers.repeat, strict=True)):
        if key in cells:
            first, second = answers.row[cells[key]], answers.row[index]
            which = f"question '{key[0]}'" if named else "the same question"
            raise InputError(
                f"'{table.name}' has two results for {which}: rows {first} and {second}",
                hint="keep one, or number them in a column 'repeat'",
            )
        cells[key] = index
    asked = {question.id for question in questions}
    if asked.isdisjoint(answers.question):
        ours = ", ".join(f"'{question.id}'" for question in questions[:3])
        theirs = ", ".join(f"'{identifier}'" for identifier in answers.question[:3])
        examples = f": the table has {theirs}; the study asks {ours}" if named else ""
        raise InputError(f"'{table.name}' has results for none of the drawn questions{examples}", hint="the ids must be the same texts")
    return cells
