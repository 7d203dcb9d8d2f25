"""Which questions stand for all of a source, by what other models made of them?  A recorded table of their scores, and a sampler that reads it.

The models of the study themselves are passed over: what they answered may not choose what they are asked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evalspec.artifacts.base import JsonValue, canonical_json
from evalspec.artifacts.questions import Question, QuestionBank, QuestionSet
from evalspec.artifacts.samples import SampleChosen
from evalspec.artifacts.study import Disclosure, Study
from evalspec.errors import InputError, Location
from evalspec.foreign import unpack
from evalspec.tables.faults import Faults
from evalspec.tables.rows import Row, csv_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

ID = ("question_id", "item_id", "id", "question")
WORDS: Mapping[str, float] = {"": 0.0, "-": 0.0, "true": 1.0, "false": 0.0}
"""Cells that are no numbers; a missing answer counts as wrong."""

FEWEST_MODELS = 2


@dataclass(frozen=True, slots=True, eq=False)
class OtherAnswers:
    """Scores of other models, (S, N), on the questions of a source in the order of their ids."""

    models: tuple[str, ...]
    scores: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Chosen questions, sorted by id, with weights that average 1, and how many models were looked at."""

    questions: tuple[Question, ...]
    weights: tuple[float, ...]
    models: int


def read_answers(sample: SampleChosen, question_set: QuestionSet, content: bytes, *, disclosure: Disclosure, judged: Collection[str]) -> OtherAnswers:
    """Return what other models made of every question of the source; raises InputError with every fault of the table.

    Without `models` in the sample, every column but the id whose cells are all scores is a model.
    """
    name, faults = sample.answers.path, Faults(disclosure)
    unpacked = unpack(content, name=name) if name.lower().endswith(".gz") else content
    rows = list(csv_rows(name, unpacked, faults))
    faults.raise_if_any()
    identifier = next((column for column in ID if rows and column in rows[0].cells), None)
    if identifier is None:
        raise InputError(f"{name} has no column with question ids", hint=f"name it one of {', '.join(ID)}")
    models = tuple(model for model in _models(sample, rows, identifier, faults) if model not in judged)
    by_id = _by_id(rows, identifier, faults)
    absent = [question for question in question_set.questions if question.id not in by_id]
    if absent:
        example = faults.quote_id(absent[0].id)
        faults.add(Location(name, 1), f"the table has no row for {len(absent):,} of the source's questions{', such as' + example if example else ''}")
    if len(models) < FEWEST_MODELS:
        faults.add(Location(name, 1), f"questions are chosen by at least {FEWEST_MODELS} models that the study does not judge; got {len(models)}")
    faults.raise_if_any()
    ordered = [by_id[question.id] for question in _in_order(question_set)]
    return OtherAnswers(models, np.array([[_score(row.cells[model]) or 0.0 for row in ordered] for model in models]))


def choose_all(study: Study, bank: QuestionBank, answers: Mapping[str, OtherAnswers]) -> dict[str, Chosen]:
    """Return the chosen questions of every benchmark whose sample asks for them; raises InputError when a sampler cannot choose as many."""
    samples = {benchmark.id: benchmark.sample for benchmark in study.benchmarks if isinstance(benchmark.sample, SampleChosen)}
    return {name: choose(sample, answers[name], bank.benchmark(name), seed=study.seed) for name, sample in samples.items()}


def choose(sample: SampleChosen, answers: OtherAnswers, question_set: QuestionSet, *, seed: int) -> Chosen:
    """Choose the sample; it depends on the seed, the ids and the table. Raises InputError when the sampler cannot choose as many."""
    from evalspec.statistics.samplers import SAMPLERS  # noqa: PLC0415 - scipy, for the few studies that choose
    from evalspec.statistics.selections import Candidates  # noqa: PLC0415 - as above

    questions = _in_order(question_set)
    key = hashlib.sha256(canonical_json(["evalspec choice 1", seed, question_set.benchmark])).digest()
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(int.from_bytes(key, "big"))))
    if np.array_equal(answers.scores.min(axis=1), answers.scores.max(axis=1)):
        raise InputError(
            f"benchmark '{question_set.benchmark}': the other models answered all questions alike, which tells none of them from another",
            hint="name other models, or draw a simple sample",
        )
    candidates = Candidates(np.zeros(len(questions), dtype=np.int64), answers.scores)
    try:
        own = SAMPLERS[sample.by].prepare(candidates, rng)(sample.size).own
    except ValueError as error:
        raise InputError(
            f"benchmark '{question_set.benchmark}': {error}", hint="ask for fewer questions, or choose them by another sampler"
        ) from error
    order = np.argsort(own.questions)
    weights = own.weights[order] * (own.questions.size / own.weights.sum())
    return Chosen(tuple(questions[place] for place in own.questions[order].tolist()), tuple(weights.tolist()), len(answers.models))


def _in_order(question_set: QuestionSet) -> list[Question]:
    return sorted(question_set.questions, key=lambda question: question.id)


def _models(sample: SampleChosen, rows: Sequence[Row], identifier: str, faults: Faults) -> Iterator[str]:
    """Yield the columns of models: those that are named, or all that hold nothing but scores."""
    columns = [column for column in rows[0].cells if column != identifier]
    for column in sample.models or columns:
        if column not in columns:
            faults.add(rows[0].location, f"the table has no column '{column}'; {faults.list_columns(columns)}")
            continue
        wrong = next((row for row in rows if _score(row.cells[column]) is None), None)
        if wrong is None:
            yield column
        elif sample.models:
            faults.add(wrong.location, f"the column '{column}' holds a cell that is no score", hint="scores are numbers from 0 to 1")


def _by_id(rows: Sequence[Row], identifier: str, faults: Faults) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for row in rows:
        name = str(row.cells[identifier])
        if name in found:
            faults.add(row.location, f"the question{faults.quote_id(name)} stands here again, after line {found[name].location.line}")
        found.setdefault(name, row)
    return found


def _score(cell: JsonValue) -> float | None:
    """Return the score that a cell holds, None where it holds none."""
    written = str(cell).strip().lower()
    if written in WORDS:
        return WORDS[written]
    try:
        score = float(written)
    except ValueError:
        return None
    return score if 0.0 <= score <= 1.0 else None
