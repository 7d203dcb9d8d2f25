"""What is asked?  The questions of a benchmark's source, or every fault in it at once.

A source that has no column of ids gets ids from its content, so that they do not depend on the order of its lines; a source that has
one must fill it on every line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evalspec.artifacts.base import canonical_json, sha256_hex
from evalspec.artifacts.questions import Question, QuestionSet
from evalspec.artifacts.sources import QuestionFile
from evalspec.artifacts.study import Benchmark
from evalspec.errors import InputError, Location
from evalspec.importing.answers import WrittenAnswer, settle_answers
from evalspec.importing.choices import Choices, read_choices
from evalspec.importing.columns import Columns, find_columns
from evalspec.importing.labels import LONGEST_NAME, Labels, read_labels
from evalspec.importing.question_sources import read_file_source, read_hub_source
from evalspec.importing.rows import read_rows
from evalspec.tables.faults import Faults
from evalspec.tables.rows import Row


def read_questions(benchmark: Benchmark, *, folder: Path, root: Path, hub_cache: Path) -> QuestionSet:
    """Return the questions of a benchmark in file order; raises InputError with every fault, each with its file and line."""
    source = benchmark.source
    found = read_file_source(source, folder=folder, root=root) if isinstance(source, QuestionFile) else read_hub_source(source, hub_cache=hub_cache)
    faults = Faults(benchmark.disclosure)
    rows = tuple(row for file in found.files for row in read_rows(file.name, file.content, faults))
    columns = find_columns(rows, source.fields, faults) if rows else None
    questions = _questions(rows, columns, faults, keep_duplicates=source.duplicate_choices == "keep") if columns else ()
    faults.raise_if_any()
    if not questions:
        raise InputError(f"{found.named} holds no questions")
    return QuestionSet(benchmark.id, questions, found.named, found.sha256, source.licence)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A row read as far as it can be before the kind of answer is known."""

    id: str | None
    stem: str
    answer: WrittenAnswer
    labels: Labels


def _questions(rows: Sequence[Row], columns: Columns, faults: Faults, *, keep_duplicates: bool) -> tuple[Question, ...]:
    identifiers = [_identifier(row, columns.id, faults) if columns.id else None for row in rows]
    choices = [read_choices(row, columns.choices, faults, keep_duplicates=keep_duplicates) for row in rows]
    read = (_draft(row, identifier, columns, offered, faults) for row, identifier, offered in zip(rows, identifiers, choices, strict=True))
    drafts = tuple(draft for draft in read if draft is not None)
    answers = settle_answers([draft.answer for draft in drafts], faults)
    if columns.id:
        _note_duplicates(zip((row.location for row in rows), identifiers, strict=True), faults)
    return _identified((draft, answer) for draft, answer in zip(drafts, answers, strict=True) if answer is not None)


def _draft(row: Row, identifier: str | None, columns: Columns, choices: Choices | None, faults: Faults) -> _Draft | None:
    stem = _text(row, columns.question, "question", faults)
    cell = row.cells.get(columns.answer)
    answered = cell is not None and cell != ""
    if not answered:
        faults.add(row.location, "the answer is missing")
    labels = read_labels(row, columns, faults)
    if stem is None or choices is None or not answered or (columns.id and identifier is None):
        return None
    return _Draft(identifier, stem, WrittenAnswer(row.location, cell, choices), labels)


def _identified(settled: Iterable[tuple[_Draft, int]]) -> tuple[Question, ...]:
    """Give ids where the file has none: a digest of the content, and a number behind it where the very same question stands again."""
    questions = []
    seen: Counter[str] = Counter()
    for draft, answer in settled:
        texts = draft.answer.choices.texts
        identifier = draft.id
        if identifier is None:
            content = sha256_hex(canonical_json([draft.stem, list(texts), answer, draft.labels.subject]))[:16]
            seen[content] += 1
            identifier = content if seen[content] == 1 else f"{content}-{seen[content]}"
        labels = draft.labels
        questions.append(Question(identifier, draft.stem, texts, answer, labels.subject, labels.cluster, labels.flags))
    return tuple(questions)


def _identifier(row: Row, column: str, faults: Faults) -> str | None:
    cell = row.cells.get(column)
    identifier = str(cell) if isinstance(cell, int) and not isinstance(cell, bool) else cell
    if identifier is None or identifier == "":
        faults.add(row.location, "the id is missing", hint="give every question an id, or none: then ids are made from the questions' content")
    elif not isinstance(identifier, str):
        faults.add(row.location, "the id is neither a text nor a whole number")
    elif len(identifier) > LONGEST_NAME or not identifier.isprintable():
        faults.add(row.location, f"the id is longer than {LONGEST_NAME} characters or holds characters that cannot be printed")
    else:
        return identifier
    return None


def _text(row: Row, column: str, part: str, faults: Faults) -> str | None:
    cell = row.cells.get(column)
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        faults.add(row.location, f"the {part} is missing")
    elif not isinstance(cell, str):
        faults.add(row.location, f"the {part} is not a text", hint="put numbers in quotes")
    else:
        return cell
    return None


def _note_duplicates(places: Iterable[tuple[Location, str | None]], faults: Faults) -> None:
    first: dict[str, Location] = {}
    for location, identifier in places:
        if identifier is None:
            continue
        if identifier in first:
            where = f"{first[identifier].file}:{first[identifier].line}"
            faults.add(location, f"the id{faults.quote_id(identifier)} stands at {where} already", hint="every question needs an id of its own")
        first.setdefault(identifier, location)
