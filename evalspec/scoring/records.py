"""Do recorded tables fit the questions that their models are said to have answered?  Looked at before anything is drawn or scored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from evalspec.artifacts.protocol import RecordIdentity
from evalspec.artifacts.questions import Question
from evalspec.artifacts.responses import Origin
from evalspec.artifacts.sources import RecordedResponses
from evalspec.artifacts.study import Study
from evalspec.errors import Diagnostic, EvalspecError, InputError, counted, in_file_order, refuse_all
from evalspec.places import resolve_inside
from evalspec.scoring.model_names import UnknownModel, declared_columns
from evalspec.scoring.replay import BENCHMARK, ID, MODEL, ReadTable, answers_of, as_name, identify_record, read_rows
from evalspec.scoring.tables import RecordedTable
from evalspec.tables.faults import strictest

Place = Callable[[int, EvalspecError], Iterable[Diagnostic]]
"""Gives the faults of a model, by its number in the study, the place that names it."""

Sources = Mapping[str, Sequence[Question]]
"""All questions of each benchmark's source, whether they are drawn or not."""


@dataclass(frozen=True, slots=True)
class Record:
    """A model's recorded responses: the study's id for the model, the table and where it lies, and the table's name for the model."""

    model: str
    path: Path
    table: RecordedTable
    identity: RecordIdentity


def read_records(study: Study, *, folder: Path, root: Path, at: Place) -> tuple[Record, ...]:
    """Return the record of every model whose responses are recorded; `at` gives the faults of the study's own names their place in it.

    Raises StudyError or, where no name is wrong, InputError with every fault, each once.
    """
    written: dict[Path, str] = {}
    read, records = _reader(study, written), []
    scored = [benchmark.id for benchmark in study.benchmarks if benchmark.score is not None]
    misnamed, faults = list[Diagnostic](), list[Diagnostic]()
    for number, model in enumerate(study.models):
        source = model.source
        if not isinstance(source, RecordedResponses):
            continue
        try:
            path = resolve_inside(source.responses, folder=folder, root=root)
            written.setdefault(path, source.responses)
            identity = identify_record(path, name=source.model or model.id, origin=source.responses, sha256=source.sha256, read=read)
            records.append(Record(model.id, path, read(path), identity))
            for benchmark in scored:
                _refuse_choices(records[-1], benchmark)
        except UnknownModel as error:
            # Where the study names no model of the table, the table is as likely the wrong one as the study.
            (faults if source.model is None else misnamed).extend(at(number, error))
        except InputError as error:
            faults += error.diagnostics
    refuse_all(misnamed, faults)
    return tuple(records)


def check_records(records: Sequence[Record], sources: Sources) -> None:
    """Read every recorded answer to a question of the sources; raises InputError with the faults of all tables, each once, in file order."""
    tables: dict[str, list[Diagnostic]] = {}
    for record in records:
        for benchmark, questions in sources.items():
            origin = Origin(model=record.model, benchmark=benchmark, route="recorded", precision="as recorded")
            try:
                read_rows(record.table, record.identity.model, questions, origin)
            except InputError as error:
                tables.setdefault(record.table.name, []).extend(error.diagnostics)
    if tables:
        raise InputError(fault for faults in tables.values() for fault in in_file_order(faults))


def _refuse_choices(record: Record, benchmark: str) -> None:
    """Raise InputError where a table has choices or log-probabilities of a model and no scores."""
    if answers_of(record.table, record.identity.model, benchmark, record.table.faults()).score is None:
        raise InputError(
            f"'{record.table.name}' has choices of model '{record.model}' and no scores, and benchmark '{benchmark}' declares what its scores are",
            hint="add a column score, or delete the benchmark's key score: choices are right or wrong",
        )


def left_out(records: Sequence[Record], sources: Sources) -> Iterator[str]:
    """Say of each table how many of its rows are about questions that no source has, or models that the study does not name."""
    for table in dict.fromkeys(record.table.sha256 for record in records):
        sharing = [record for record in records if record.table.sha256 == table]
        yield from _left_out(sharing[0].table, {record.identity.model for record in sharing}, sources)


def _reader(study: Study, written: Mapping[Path, str]) -> ReadTable:
    """Return what reads each table once, also one that cannot be read, and tells it by its path as the study has written it."""
    shown, declared = strictest(benchmark.disclosure for benchmark in study.benchmarks), declared_columns(study)

    @cache
    def read_once(path: Path) -> RecordedTable | InputError:
        try:
            return replace(RecordedTable.read(path, shown, written=written[path]), declared=declared)
        except InputError as error:
            return error

    def read(path: Path) -> RecordedTable:
        found = read_once(path)
        if isinstance(found, InputError):
            raise found
        return found

    return read


def _left_out(table: RecordedTable, names: set[str], sources: Sources) -> Iterator[str]:
    model, identifier = table.first_of(MODEL), table.first_of(ID)
    known = {benchmark: {question.id for question in questions} for benchmark, questions in sources.items()}
    anywhere = set().union(*known.values())
    models, strangers, questions = set[str | None](), 0, list[int]()
    for row in range(table.length):
        benchmark = as_name(table.columns[BENCHMARK][row]) if BENCHMARK in table.columns else None
        if BENCHMARK in table.columns and benchmark not in known:
            continue
        named = as_name(table.columns[model][row]) if model else None
        if model and named not in names:
            models.add(named)
            strangers += 1
        elif identifier and as_name(table.columns[identifier][row]) not in (known[benchmark] if benchmark else anywhere):
            questions.append(row)
    if questions:
        first = table.place(questions[0])
        yield f"'{table.name}': {counted(len(questions), 'row')} of questions that the source does not have left out, the first in line {first.line}"
    if strangers:
        yield f"'{table.name}': {counted(strangers, 'row')} of {counted(len(models), 'model')} that the study does not name left out"
