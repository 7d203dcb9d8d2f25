"""Chosen questions depend on the table, the ids and the seed; the table's faults are named, and the study's own models are passed over."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from evalspec.artifacts.outside import OutsideTable
from evalspec.artifacts.questions import Question, QuestionBank, QuestionSet
from evalspec.artifacts.samples import SampleChosen
from evalspec.artifacts.study import Benchmark, Study
from evalspec.errors import InputError
from evalspec.planning.sampling import draw
from evalspec.planning.selection import OtherAnswers, choose, choose_all, read_answers

SAMPLERS = ("confidence_strata", "anchor_points", "item_response", "diversity")


def sample(by: str = "confidence_strata", size: int = 20, **fields: object) -> SampleChosen:
    return SampleChosen(method="chosen", by=by, size=size, answers=OutsideTable(path="answers.csv", sha256="a" * 64), **fields)


def source(count: int = 120) -> QuestionSet:
    rows = tuple(Question(f"q{number:03}", "?", ("x", "y"), 0, "art" if number % 3 else "law") for number in range(count))
    return QuestionSet("b", rows, "b.jsonl", "a" * 64)


def scores(models: int = 12, count: int = 120, seed: int = 1) -> NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    chance = np.clip(rng.normal(0.55, 0.12, (models, 1)) + rng.normal(0.0, 0.25, count), 0.03, 0.97)
    return (rng.random(chance.shape) < chance).astype(np.int64)


def table(values: NDArray[np.int64], *, order: list[int] | None = None, extra: str = "") -> bytes:
    models, count = values.shape
    lines = [",".join(["id", "subject", *(f"m{model}" for model in range(models))]) + extra]
    lines += [",".join([f"q{row:03}", "art", *map(str, values[:, row])]) + (extra and ",0.5") for row in order or range(count)]
    return ("\n".join(lines) + "\n").encode()


def read(content: bytes, chosen: SampleChosen | None = None, *, judged: set[str] | None = None, disclosure: str = "full") -> OtherAnswers:
    return read_answers(chosen or sample(), source(), content, disclosure=disclosure, judged=judged or set())


def faults(*arguments: object, **named: object) -> list[str]:
    with pytest.raises(InputError) as caught:
        read(*arguments, **named)
    return [fault.message for fault in caught.value.diagnostics]


@pytest.mark.parametrize("by", SAMPLERS)
def test_chosen_questions_are_distinct_sorted_and_their_weights_average_one(by: str) -> None:
    chosen = choose(sample(by), read(table(scores())), source(), seed=7)
    names = [question.id for question in chosen.questions]
    assert names == sorted(set(names))
    assert len(names) == 20
    assert sum(chosen.weights) == pytest.approx(20)
    assert min(chosen.weights) > 0
    assert chosen.models == 12


@pytest.mark.parametrize("by", SAMPLERS)
def test_the_order_of_table_and_source_moves_nothing_and_the_seed_does(by: str) -> None:
    turned = np.random.default_rng(3).permutation(120).tolist()
    questions = replace(source(), questions=tuple(source().questions[place] for place in turned))
    straight = choose(sample(by), read(table(scores())), source(), seed=7)
    assert choose(sample(by), read(table(scores(), order=turned)), questions, seed=7) == straight
    assert choose(sample(by), read(table(scores())), source(), seed=8) != straight


def test_weights_estimate_the_score_of_a_model_that_was_not_looked_at() -> None:
    errors = []
    for seed in range(30):
        values = scores(13, seed=seed)
        chosen = choose(sample(size=40), read(table(values[:-1])), source(), seed=seed)
        right = {f"q{row:03}": int(values[-1, row]) for row in range(120)}
        estimate = sum(weight * right[question.id] for question, weight in zip(chosen.questions, chosen.weights, strict=True)) / 40
        errors.append(estimate - values[-1].mean())
    assert np.mean(errors) == pytest.approx(0.0, abs=0.035)
    assert np.std(errors) < 0.09


def test_models_of_the_study_choose_nothing() -> None:
    values = scores()
    without = read(table(values), judged={"m0", "m5"})
    assert without.models == tuple(f"m{model}" for model in range(12) if model not in (0, 5))
    values[5] = 1 - values[5]
    assert np.array_equal(read(table(values), judged={"m0", "m5"}).scores, without.scores)


def test_columns_without_scores_are_passed_over_unless_they_are_named() -> None:
    assert "subject" not in read(table(scores())).models
    assert read(table(scores(), extra=",weight")).models[-1] == "weight"
    assert read(table(scores(), extra=",weight"), sample(models=("m1", "m2", "m3"))).models == ("m1", "m2", "m3")
    assert faults(table(scores()), sample(models=("m1", "m2", "subject"))) == ["the column 'subject' holds a cell that is no score"]


def test_an_empty_cell_counts_as_wrong_and_words_are_read() -> None:
    lines = table(scores(2)).decode().splitlines()
    for row, cells in ((1, ",-"), (2, "true,False")):
        lines[row] = f"{lines[row].split(',')[0]},art,{cells}"
    found = read("\n".join(lines).encode())
    assert found.scores[:, :2].tolist() == [[0.0, 1.0], [0.0, 0.0]]


def test_a_packed_table_is_read() -> None:
    packed = sample().model_copy(update={"answers": OutsideTable(path="answers.csv.gz", sha256="a" * 64)})
    assert read(gzip.compress(table(scores())), packed).models == read(table(scores())).models


def test_every_fault_of_a_table_is_named() -> None:
    assert faults(b"name,m0\nq000,1\n") == ["answers.csv has no column with question ids"]
    assert faults(table(scores(count=119))) == ["the table has no row for 1 of the source's questions, such as 'q119'"]
    twice = table(scores()) + table(scores()).splitlines(keepends=True)[5]
    assert faults(twice) == ["the question 'q004' stands here again, after line 6"]
    few = faults(table(scores(3)), judged={"m0", "m1"})
    assert few == ["questions are chosen by at least 2 models that the study does not judge; got 1"]
    assert "the table has no column 'm99'" in faults(table(scores()), sample(models=("m1", "m2", "m99")))[0]


@pytest.mark.parametrize("disclosure", ["full", "ids", "none"])
def test_a_column_that_the_study_names_is_named_in_its_fault_under_any_disclosure(disclosure: str) -> None:
    content = table(scores(), extra=",note").replace(b",0.5", b",late")
    found = faults(content, sample(models=("m0", "m1", "absent", "note")), disclosure=disclosure)
    assert found[0].startswith("the table has no column 'absent'")
    assert found[1] == "the column 'note' holds a cell that is no score"


@pytest.mark.parametrize("by", SAMPLERS)
def test_answers_that_tell_no_questions_apart_choose_nothing(by: str) -> None:
    alike = np.repeat([[1], [0], [1]], 120, axis=1)
    with pytest.raises(InputError, match="the other models answered all questions alike"):
        choose(sample(by, size=1), read(table(alike)), source(), seed=7)


def test_faults_show_no_id_of_hidden_questions() -> None:
    content = table(scores(count=119)) + table(scores()).splitlines(keepends=True)[5]
    shown = faults(content, disclosure="none")
    assert len(shown) == 2
    assert not any("q119" in message or "q004" in message for message in shown)


def test_what_a_sampler_cannot_choose_is_refused_with_its_reason() -> None:
    alike = np.tile(np.arange(120) % 2, (4, 1))
    with pytest.raises(InputError, match="tells only"):
        choose(sample("diversity"), read(table(alike)), source(), seed=1)


def test_a_draw_of_chosen_questions_has_their_weights_and_says_what_each_subject_gives(
    study: Callable[..., Study], benchmark: Callable[..., Benchmark]
) -> None:
    made = study(benchmark("b", sample=sample()))
    answers = {"b": read(table(scores()))}
    chosen = choose_all(made, QuestionBank((source(),)), answers)["b"]
    drawn = draw(sample(), source(), seed=made.seed, chosen=chosen)
    assert (drawn.questions, drawn.weights, drawn.looked_at) == (chosen.questions, chosen.weights, 12)
    assert {stratum.subject: stratum.available for stratum in drawn.strata} == {"art": 80, "law": 40}
    assert sum(stratum.drawn for stratum in drawn.strata) == 20
    with pytest.raises(ValueError, match="needs the choice"):
        draw(sample(), source(), seed=1)
