"""Which choice is right?  One reading of the answers, as letters, as numbers or as texts, for a whole file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalspec.artifacts.base import JsonValue
from evalspec.errors import Location
from evalspec.importing.choices import Choices
from evalspec.tables.faults import Faults

ALLOWED = "an answer is the letter of a choice (A), its number counted from 0, or its exact text; the same kind in the whole file"


@dataclass(frozen=True, slots=True)
class WrittenAnswer:
    """An answer as the file has it, beside the choices that it points into."""

    location: Location
    cell: JsonValue
    choices: Choices


def settle_answers(written: Sequence[WrittenAnswer], faults: Faults) -> tuple[int | None, ...]:
    """Return the index of each right choice; None, with the fault noted, where an answer points at no choice or at two.

    A file keeps to one kind of answer: the kind that fits the most rows is taken, and rows that it does not fit are faults. Where two
    kinds fit the whole file and mean different choices, nothing is guessed.
    """
    readings = {
        "letter": tuple(_as_letter(answer) for answer in written),
        "number": tuple(_as_number(answer) for answer in written),
        "text": tuple(_as_text(answer) for answer in written),
    }
    fitting = {kind: sum(index is not None for index in indices) for kind, indices in readings.items()}
    kind = max(fitting, key=fitting.__getitem__)
    for row, answer in enumerate(written):
        meant = {other: readings[other][row] for other in readings if fitting[other] == len(written)}
        if readings[kind][row] is None:
            _note_outside(answer, kind if fitting[kind] else "any", faults)
        elif len(set(meant.values())) > 1:
            hint = "every answer of this file fits both ways: write letters where choices are numbers, and numbers where choices are letters"
            faults.add(answer.location, f"the answer{faults.quote(answer.cell)} can be read as the {_meanings(meant, answer, faults)}", hint=hint)
    return readings[kind]


def _meanings(meant: Mapping[str, int | None], answer: WrittenAnswer, faults: Faults) -> str:
    """Say how an answer can be read; which choice that gives would be the key."""
    named = {kind: f" of choice {answer.choices.labels[index]}" for kind, index in meant.items() if index is not None}
    return " or as the ".join(kind + (choice if faults.disclosure == "full" else "") for kind, choice in named.items())


def _as_letter(answer: WrittenAnswer) -> int | None:
    if not isinstance(answer.cell, str):
        return None
    mark = answer.cell.strip()
    return _position(mark, answer.choices.labels) if mark in answer.choices.labels else _position(mark.upper(), answer.choices.labels)


def _as_number(answer: WrittenAnswer) -> int | None:
    cell = answer.cell
    if isinstance(cell, str) and cell.strip().isascii() and cell.strip().isdigit() and len(cell) < 10:
        cell = int(cell)
    if isinstance(cell, bool) or not isinstance(cell, int):
        return None
    return cell if 0 <= cell < len(answer.choices.texts) else None


def _as_text(answer: WrittenAnswer) -> int | None:
    texts = answer.choices.texts
    return texts.index(answer.cell) if isinstance(answer.cell, str) and texts.count(answer.cell) == 1 else None


def _position(wanted: str, among: tuple[str, ...]) -> int | None:
    return among.index(wanted) if wanted in among else None


def _note_outside(answer: WrittenAnswer, kind: str, faults: Faults) -> None:
    labels = answer.choices.labels
    allowed = {
        "letter": f"the letters {labels[0]} to {labels[-1]}" if faults.disclosure == "full" else f"the {len(labels)} letters",
        "number": f"the numbers 0 to {len(labels) - 1}",
        "text": "the texts that one choice alone has",
        "any": f"the {len(labels)} choices",
    }[kind]
    faults.add(answer.location, f"the answer{faults.quote(answer.cell)} is outside the choices: it is none of {allowed}", hint=ALLOWED)
