"""What did a model answer earlier?  Recorded tables as a source of responses.

Long tables have a row per question (and model, and repeat) with a score, a choice or log-probabilities; wide tables have a row per question and
a column per model. Conventional column names are in `ID`, `MODEL`, `SCORE`, `CHOICE`; log-probabilities stand in a list column `logprobs`, in
`logprob_A`, `logprob_B`, ..., or, in a wide table, in `MODEL|A`, `MODEL|B`, ...  Answer distributions are read from tables that evalspec wrote.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from evalspec.artifacts.journal import TopTokens
from evalspec.artifacts.protocol import ProtocolBenchmark, ProtocolModel, RecordIdentity
from evalspec.artifacts.questions import LETTERS, Question
from evalspec.artifacts.responses import Origin, Reason
from evalspec.errors import InputError
from evalspec.scoring.assemble import ModelRows
from evalspec.scoring.model_names import models_of, refuse_column, unknown
from evalspec.scoring.recorded import CAPITAL, Column, RecordedAnswers, note_mixed_choices, read_answer
from evalspec.scoring.tables import RecordedTable
from evalspec.tables.faults import Faults
from evalspec.tables.foreign import Cell

ID = ("question_id", "item_id", "id", "question")
MODEL = ("model", "model_id")
SCORE = ("score", "correct")
CHOICE = ("choice", "prediction")
BENCHMARK = "benchmark"
DISTRIBUTIONS = ("answer_tokens", "answer_probabilities")

MOST_REPEATS = 1_000
MOST_ROUNDING = 1e-6
WHOLE = re.compile(r"[0-9]{1,9}")

ReadTable = Callable[[Path], RecordedTable]


def identify_record(path: Path, *, name: str, origin: str, sha256: str | None = None, read: ReadTable = RecordedTable.read) -> RecordIdentity:
    """Return which table a model's responses come from, `name` being the table's name for the model.

    `read` can remember tables, of which many models share one. Raises InputError when the file is not the declared one or does not know the model.
    """
    table = read(path)
    if sha256 is not None and table.sha256 != sha256:
        raise InputError(
            f"'{table.name}' has SHA-256 {table.sha256}; the study declares {sha256}", hint="the file has changed, or the digest is another file's"
        )
    answers_of(table, name, None, table.faults())
    return RecordIdentity(sha256=table.sha256, model=name, origin=origin)


def recorded_rows(table: RecordedTable, model: ProtocolModel, benchmark: ProtocolBenchmark, questions: Sequence[Question]) -> ModelRows:
    """Return a model's recorded responses to the drawn questions, in their order.

    A question without a row is missing as `NOT_RECORDED`, an answer that is empty, `-` or none of the choices as `NOT_ANSWERED`.
    Raises InputError with every fault when the table does not fit.
    """
    identity = model.identity
    assert isinstance(identity, RecordIdentity)
    if table.sha256 != identity.sha256:
        raise InputError(f"'{table.name}' is not the file that the protocol names", hint="plan again, or put the file back")
    origin = Origin(model=model.id, benchmark=benchmark.id, route="recorded", precision="as recorded", recorded_sha256=identity.sha256)
    return read_rows(table, identity.model, questions, origin)


def read_rows(table: RecordedTable, name: str, questions: Sequence[Question], origin: Origin) -> ModelRows:
    """Return what the table says that the model of that name answered to `questions`; raises InputError with every fault."""
    faults = table.faults()
    answers = answers_of(table, name, origin.benchmark, faults)
    note_mixed_choices(answers, {question.id: question for question in questions}, faults)
    cells = _by_question(answers, faults)
    if not cells:
        faults.raise_if_any()
    _refuse_strangers(answers, questions)
    repeats = sorted({repeat for _, repeat in cells}) or [0]
    _refuse_many(answers, repeats)
    rows = _filled(answers, questions, (cells, repeats), origin, faults)
    rows = replace(rows, distributions=_distributions(answers, [cells.get((question.id, repeats[0])) for question in questions], faults))
    faults.raise_if_any()
    return rows


def _distributions(answers: RecordedAnswers, found: Sequence[int | None], faults: Faults) -> tuple[TopTokens, ...]:
    """Return the answer distribution of every question, `found` being where its answer stands; none unless every question has one."""
    if not set(DISTRIBUTIONS) <= set(answers.table.columns):
        return ()
    columns = [answers.table.columns[name] for name in DISTRIBUTIONS]
    tops = []
    for index in found:
        tokens, probabilities = (None if index is None else column[answers.rows[index]] for column in columns)
        if index is None or not tokens:
            return ()
        top = _top_tokens(tokens, probabilities)
        if top is None:
            told = "columns 'answer_tokens' and 'answer_probabilities' hold no answer distribution"
            faults.add(answers.place(index), told, hint="as many probabilities as token numbers, which sum to 1 at most; or leave both empty")
            return ()
        tops.append(top)
    return tuple(tops)


def _top_tokens(tokens: Cell, probabilities: Cell) -> TopTokens | None:
    if not isinstance(tokens, list) or not isinstance(probabilities, list) or len(tokens) != len(probabilities):
        return None
    try:
        top = TopTokens(tokens=tuple(tokens), probabilities=tuple(probabilities))
    except ValidationError:
        return None
    return top if sum(top.probabilities) <= 1.0 + MOST_ROUNDING else None


def _filled(
    answers: RecordedAnswers, questions: Sequence[Question], found: tuple[Mapping[tuple[str, int], int], list[int]], origin: Origin, faults: Faults
) -> ModelRows:
    """Return the answers in the order of questions and repeats, `found` being where they stand and which repeats there are."""
    cells, repeats = found
    scores = np.full((len(questions), len(repeats)), np.nan)
    reasons = np.full(scores.shape, Reason.NOT_RECORDED, dtype=np.int8)
    choices = np.full(scores.shape, -1, dtype=np.int16)
    logprobs = None if answers.logprobs is None else np.full((len(questions), max(len(question.choices) for question in questions)), np.nan)
    for position, question in enumerate(questions):
        for column, repeat in enumerate(repeats):
            index = cells.get((question.id, repeat))
            if index is None:
                continue
            answer = read_answer(answers, index, question, faults)
            scores[position, column], reasons[position, column], choices[position, column] = answer.score, answer.reason, answer.choice
            if logprobs is not None and answer.logprobs is not None and column == 0:
                logprobs[position, : len(question.choices)] = answer.logprobs
    return ModelRows(scores, reasons, choices, logprobs, origin)


def answers_of(table: RecordedTable, name: str, benchmark: str | None, faults: Faults) -> RecordedAnswers:
    """Return the rows of one model; without a benchmark, of all of them. Raises InputError when the table has none."""
    kept: Sequence[int] = range(table.length)
    if benchmark is not None and BENCHMARK in table.columns:
        kept = _matching(table, BENCHMARK, benchmark, kept)
    model_column = table.first_of(MODEL)
    if model_column is not None:
        return _long(table, _matching(table, model_column, name, kept), faults)
    if name in table.columns or any(column.startswith(f"{name}|") for column in table.columns):
        refuse_column(table, name)
        return _wide(table, name, kept, faults)
    if table.first_of((*SCORE, *CHOICE, "logprobs", "logprob_A")) is not None:
        return _long(table, kept, faults)
    raise unknown(table, "model", name, models_of(table))


def as_name(cell: Cell) -> str | None:
    """Return what a cell names, a text or a whole number; None for anything else."""
    return cell if isinstance(cell, str) else str(cell) if isinstance(cell, int) and not isinstance(cell, bool) else None


def _matching(table: RecordedTable, column: str, wanted: str, kept: Sequence[int]) -> list[int]:
    cells = table.columns[column]
    matching = [number for number in kept if cells[number] == wanted or as_name(cells[number]) == wanted]
    if not matching:
        what = BENCHMARK if column == BENCHMARK else "model"
        raise unknown(table, what, wanted, sorted({named for number in kept if (named := as_name(cells[number])) is not None}))
    return matching


def _long(table: RecordedTable, kept: Sequence[int], faults: Faults) -> RecordedAnswers:
    score, choice = table.first_of(SCORE), table.first_of(CHOICE)
    letters = [column for letter in LETTERS if (column := f"logprob_{letter}") in table.columns]
    logprobs = None
    if "logprobs" in table.columns:
        logprobs = Column("logprobs", [table.columns["logprobs"][number] for number in kept])
    elif letters:
        logprobs = Column("logprob_A", [[table.columns[column][number] for column in letters] for number in kept])
    if score is None and choice is None and logprobs is None:
        hint = f"name it one of {', '.join((*SCORE, *CHOICE, 'logprobs'))}"
        raise InputError(f"'{table.name}' has no column with results; {table.faults().list_columns(list(table.columns))}", hint=hint)
    if logprobs is not None and all(values is None for values in logprobs.cells):
        logprobs = None
    return _answers(table, kept, (score, choice, logprobs), faults)


def _wide(table: RecordedTable, name: str, kept: Sequence[int], faults: Faults) -> RecordedAnswers:
    letters = [column for letter in LETTERS if (column := f"{name}|{letter}") in table.columns]
    if name not in table.columns:
        logprobs = Column(f"{name}|A", [[table.columns[column][number] for column in letters] for number in kept])
        return _answers(table, kept, (None, None, logprobs), faults)
    lettered = any(isinstance(table.columns[name][number], str) and CAPITAL.fullmatch(table.columns[name][number]) for number in kept)
    return _answers(table, kept, (None, name, None) if lettered else (name, None, None), faults)


def _answers(table: RecordedTable, kept: Sequence[int], results: tuple[str | None, str | None, Column | None], faults: Faults) -> RecordedAnswers:
    id_column = table.first_of(ID)
    if id_column is None:
        hint = f"name it one of {', '.join(ID)}"
        raise InputError(f"'{table.name}' has no column with question ids; {table.faults().list_columns(list(table.columns))}", hint=hint)
    score, choice, logprobs = results
    return RecordedAnswers(
        table=table,
        rows=kept,
        question=_questions(table, kept, id_column, faults),
        repeat=[_repeat(table, number, faults) for number in kept] if "repeat" in table.columns else [0] * len(kept),
        score=_column(table, score, kept),
        choice=_column(table, choice, kept),
        logprobs=logprobs,
        reason=_column(table, table.first_of(("reason",)), kept),
    )


def _column(table: RecordedTable, name: str | None, kept: Sequence[int]) -> Column | None:
    return None if name is None else Column(name, [table.columns[name][number] for number in kept])


def _questions(table: RecordedTable, kept: Sequence[int], column: str, faults: Faults) -> list[str | None]:
    """Return the question ids of some rows; None, with a fault noted, where a cell is none."""
    cells = table.columns[column]
    identifiers = [as_name(cells[number]) or None for number in kept]
    for number, identifier in zip(kept, identifiers, strict=True):
        if identifier is None:
            missing = cells[number] is None or cells[number] == ""
            told = "is missing" if missing else f"{faults.quote(cells[number]).strip()} is neither a text nor a whole number".strip()
            faults.add(table.place(number), f"column '{column}': the question id {told}")
    return identifiers


def _repeat(table: RecordedTable, number: int, faults: Faults) -> int:
    cell = table.columns["repeat"][number]
    if cell is None or cell == "":
        return 0
    if isinstance(cell, str) and WHOLE.fullmatch(cell.strip()):
        cell = int(cell)
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    if isinstance(cell, int) and not isinstance(cell, bool) and 0 <= cell < 10**9:
        return cell
    faults.add(table.place(number), f"column 'repeat':{faults.quote(cell) or ' the cell'} is not a whole number below 1,000,000,000")
    return 0


def _by_question(answers: RecordedAnswers, faults: Faults) -> Mapping[tuple[str, int], int]:
    """Return where in `answers` each (question id, repeat) stands; what stands there twice is noted as a fault."""
    cells: dict[tuple[str, int], int] = {}
    for index, (identifier, repeat) in enumerate(zip(answers.question, answers.repeat, strict=True)):
        if identifier is None:
            continue
        first = cells.setdefault((identifier, repeat), index)
        if first != index:
            message = f"the question{faults.quote_id(identifier)} has a result in line {answers.place(first).line} already"
            faults.add(answers.place(index), message, hint="keep one, or number them in a column 'repeat'")
    return cells


def _refuse_strangers(answers: RecordedAnswers, questions: Sequence[Question]) -> None:
    """Raise InputError when no row is about one of the questions."""
    if not {question.id for question in questions}.isdisjoint(answers.question):
        return
    faults, examples = answers.table.faults(), ""
    if faults.disclosure != "none":
        ours = ",".join(faults.quote_id(question.id) for question in questions[:3])
        theirs = ",".join(faults.quote_id(identifier) for identifier in answers.question[:3])
        examples = f": the table has{theirs}; the study asks{ours}"
    raise InputError(f"'{answers.table.name}' has results for none of the questions{examples}", hint="the ids must be the same texts")


def _refuse_many(answers: RecordedAnswers, repeats: Sequence[int]) -> None:
    if len(repeats) > MOST_REPEATS:
        raise InputError(
            f"'{answers.table.name}' has {len(repeats):,} different repeats; at most {MOST_REPEATS:,} are read",
            hint="'repeat' counts the answers to one question: 0, 1, 2, ...",
        )
