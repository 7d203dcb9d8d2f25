"""Which models does a recorded table have, and which of its columns are none?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches
from types import MappingProxyType

from evalspec.artifacts.questions import LETTERS
from evalspec.artifacts.study import Study
from evalspec.errors import InputError, counted
from evalspec.scoring.tables import RecordedTable
from evalspec.tables.question_columns import parts_in

MOST_LISTED = 20
MOST_COMPARED = 10_000
"""Names of a table after which no more are held against a misspelt one."""

HELD: Mapping[str, str] = MappingProxyType(
    {
        "id": "ids of questions",
        "question": "questions",
        "choices": "choices of questions",
        "answer": "answer keys",
        "subject": "subjects of questions",
        "cluster": "clusters of questions",
        "flags": "flags of questions",
        "benchmark": "benchmarks",
        "repeat": "numbers of repeats",
        "reason": "why answers are missing",
    }
)
"""What a column holds, by the part of a question, or by the name of a column of results."""

OF_RESULTS = ("benchmark", "repeat", "reason")
RESULTS = ("answer_tokens", "answer_probabilities")
"""Columns of long tables that no reader of wide ones asks for."""


class UnknownModel(InputError):
    """A study that names a model which its table does not have, or a column that is no model."""

    exit_code = 2


def declared_columns(study: Study) -> dict[str, str]:
    """Return the columns that the study reads parts of questions from, by the name that it gives them, with their parts."""
    fields = (benchmark.source.fields.model_dump() for benchmark in study.benchmarks)
    return {name: part for declared in fields for part, name in declared.items() if name is not None}


def columns_of_questions(table: RecordedTable) -> dict[str, str]:
    """Return the columns of a table that are no model's, with what they hold: parts of questions, or what results are about."""
    parts = parts_in(list(table.columns)) | {name: name for name in OF_RESULTS} | dict(table.declared)
    return {name: HELD[part] for name, part in parts.items() if name in table.columns}


def models_of(table: RecordedTable) -> list[str]:
    """Return the models of a wide table, in the order of its columns."""
    others = {*columns_of_questions(table), *RESULTS}
    marks = tuple(f"|{letter}" for letter in LETTERS)
    return list(dict.fromkeys(name[:-2] if name.endswith(marks) else name for name in table.columns if name not in others))


def refuse_column(table: RecordedTable, name: str) -> None:
    """Raise UnknownModel where a column of that name holds something other than a model's answers."""
    held = columns_of_questions(table).get(name)
    if held is not None:
        message = f"column '{name}' of '{table.name}' holds {held}, and is no model; {_it_has(table, models_of(table))}"
        raise UnknownModel(message, hint="name another column; a model's column that is called so needs another name")


def unknown(table: RecordedTable, what: str, wanted: str, known: Sequence[str]) -> InputError:
    """Return the fault that a table has no results of a model, or of a benchmark; it names those that there are, the closest first."""
    shown = known if table.disclosure == "full" else ()
    close = get_close_matches(wanted, shown[:MOST_COMPARED], n=1)
    kind = InputError if what == "benchmark" else UnknownModel
    hint = f"did you mean '{close[0]}'?" if close else None
    return kind(f"'{table.name}' has no results of {what} '{wanted}'; {_it_has(table, _closest_first(wanted, known))}", hint=hint)


def _it_has(table: RecordedTable, known: Sequence[str]) -> str:
    if table.disclosure != "full":
        return f"it has {counted(len(known), 'other')}" if known else "it has none"
    listed = ",".join(map(table.faults().quote, known[:MOST_LISTED])) or " none"
    return f"it has{listed}" + (f" and {len(known) - MOST_LISTED:,} more" if len(known) > MOST_LISTED else "")


def _closest_first(wanted: str, known: Sequence[str]) -> list[str]:
    matcher = SequenceMatcher(b=wanted.casefold())

    def likeness(name: str) -> float:
        matcher.set_seq1(name.casefold())
        return matcher.ratio()

    return [*sorted(known[:MOST_COMPARED], key=likeness, reverse=True), *known[MOST_COMPARED:]]
