from __future__ import annotations

from collections.abc import Callable

import pytest

from evalspec.artifacts.protocol import BatchRule
from evalspec.artifacts.served import Price, Reply, ServedModel, identity_of
from evalspec.artifacts.served_work import ServedOrder
from evalspec.artifacts.study import LetterScoring, Model, OptionScoring
from evalspec.artifacts.work import AskedQuestion, BenchmarkWork
from evalspec.planning.costs import Left, estimate

SOURCE = ServedModel(endpoint="https://llm.example/v1", model="large")
PRICE = Price(input=2.0, output=8.0, per=1000, currency="USD")
PROMPT = "x" * 93 + "Answer:"  # 100 bytes


def work_of(scoring: LetterScoring | OptionScoring, count: int) -> BenchmarkWork:
    questions = tuple(AskedQuestion(name=f"q{number}", sha256="0" * 64, prompt=PROMPT, answers=("abc", "defghij")) for number in range(count))
    return BenchmarkWork(benchmark="b", scoring=scoring, prompt="{question}", questions=questions)


@pytest.fixture
def ask() -> Callable[..., ServedOrder]:
    def make(work: BenchmarkWork) -> ServedOrder:
        return ServedOrder(model="m", identity=identity_of(SOURCE), batch_rule=BatchRule(), works=(work,), quoting=True)

    return make


def model(price: Price | None = PRICE) -> Model:
    return Model(id="m", source=SOURCE, price=price, max_cost=None if price is None else 5.0)


def test_before_anything_was_asked_tokens_are_guessed_and_the_self_check_and_retries_are_counted(ask: Callable[..., ServedOrder]) -> None:
    work = work_of(LetterScoring(method="letter"), 200)
    found = estimate(model(), ask(work), [Left(work, work.questions, 64)])
    assert (found.requests, found.input_tokens, found.output_tokens, found.basis) == (264, 6600, 264, "guessed from the length of the texts")
    assert (found.input_cost, found.output_cost) == (pytest.approx(13.2), pytest.approx(2.112))
    assert found.retries == pytest.approx(0.05 * 15.312)
    assert found.total == pytest.approx(1.05 * 15.312)
    assert found.max_cost == 5.0


def test_where_texts_are_compared_every_choice_is_a_request(ask: Callable[..., ServedOrder]) -> None:
    work = work_of(OptionScoring(method="option"), 10)
    found = estimate(model(), ask(work), [Left(work, work.questions, 10)])
    assert (found.requests, found.input_tokens) == (40, 20 * (104 + 108) / 4)


def test_what_was_asked_is_spent_and_tells_how_many_tokens_the_rest_has(ask: Callable[..., ServedOrder]) -> None:
    work = work_of(LetterScoring(method="letter"), 100)
    reply = Reply(asked="2026-11-29T12:00:00Z", requests=1, tries=1, input_tokens=50, output_tokens=1)
    done = Left(work, work.questions[60:], 64, work.questions[:60], (reply,) * 60, (reply,) * 60)
    found = estimate(model(), ask(work), [done])
    assert (found.requests, found.input_tokens, found.basis) == (104, 5200, "as the server counted so far")
    assert found.spent == pytest.approx(60 * 0.108)
    assert found.total == pytest.approx(60 * 0.108 + 1.05 * 104 * 0.108)


def test_without_a_price_nothing_is_said_about_cost(ask: Callable[..., ServedOrder]) -> None:
    work = work_of(LetterScoring(method="letter"), 5)
    found = estimate(model(None), ask(work), [Left(work, work.questions, 5)])
    assert (found.requests, found.input_cost, found.spent, found.total) == (10, None, None, None)


def test_where_nothing_is_left_nothing_is_expected(ask: Callable[..., ServedOrder]) -> None:
    work = work_of(LetterScoring(method="letter"), 5)
    found = estimate(model(), ask(work), [Left(work, (), 0)])
    assert (found.requests, found.input_tokens, found.total) == (0, 0, 0.0)
