from __future__ import annotations

from typing import Any

import pytest

from evalspec.artifacts.questions import Question, QuestionSet
from evalspec.artifacts.samples import SampleSimple
from evalspec.artifacts.sources import QuestionFile
from evalspec.artifacts.study import Benchmark, Examples, LetterScoring
from evalspec.errors import InputError
from evalspec.planning.examples import Shown, draw_examples
from evalspec.planning.protocol import preamble_texts
from evalspec.planning.sampling import Draw, draw

FILE = QuestionFile(file="questions.jsonl")


def questions(count: int, *, prefix: str = "q", subjects: int = 2) -> QuestionSet:
    made = tuple(Question(f"{prefix}{n}", f"stem {prefix}{n}", ("red", "blue"), n % 2, f"subject {n % subjects}") for n in range(count))
    return QuestionSet("b", made, "questions.jsonl", "0" * 64)


def benchmark(shots: int, examples: Examples | None = None) -> Benchmark:
    scoring = LetterScoring(method="letter", shots=shots, examples=examples or Examples())
    return Benchmark(id="b", source=FILE, sample=SampleSimple(method="simple", size=10), scoring=scoring)


def drawn(source: QuestionSet, size: int = 10) -> Draw:
    return draw(SampleSimple(method="simple", size=size), source, seed=7)


def ids(shown: tuple[Shown, ...]) -> dict[str | None, list[str]]:
    return {one.subject: [question.id for question in one.examples] for one in shown}


def test_examples_are_never_questions_that_are_asked() -> None:
    source = questions(14)
    asked = drawn(source)
    shown = draw_examples(benchmark(4), asked, source, seed=7)
    assert set(ids(shown)[None]) == {question.id for question in source.questions} - {question.id for question in asked.questions}


def test_a_question_of_the_file_of_examples_that_is_asked_under_another_id_is_not_shown() -> None:
    source, file = questions(12), questions(3, prefix="dev")
    asked = drawn(source)
    twin = Question("dev9", asked.questions[0].stem, asked.questions[0].choices, 0, "subject 0")
    pool = QuestionSet("b", (*file.questions, twin), "dev.jsonl", "1" * 64)
    wanted = benchmark(3, Examples(source=FILE))
    assert sorted(ids(draw_examples(wanted, asked, pool, seed=7))[None]) == ["dev0", "dev1", "dev2"]


def test_the_order_of_the_file_changes_no_example_and_more_shots_keep_those_before() -> None:
    source = questions(30)
    asked = drawn(source)
    backwards = QuestionSet("b", source.questions[::-1], source.source, source.source_sha256)
    three, five = (ids(draw_examples(benchmark(shots), asked, source, seed=7))[None] for shots in (3, 5))
    assert ids(draw_examples(benchmark(5), asked, backwards, seed=7))[None] == five
    assert three == five[:3]
    assert ids(draw_examples(benchmark(5), asked, source, seed=8))[None] != five


def test_examples_by_subject_are_of_the_subject_of_the_question() -> None:
    source = questions(40)
    shown = draw_examples(benchmark(2, Examples(by="subject")), drawn(source), source, seed=7)
    assert [one.subject for one in shown] == ["subject 0", "subject 1"]
    assert all(question.subject == one.subject for one in shown for question in one.examples)


def test_every_subject_without_enough_examples_is_named() -> None:
    source = questions(12)
    with pytest.raises(InputError) as caught:
        draw_examples(benchmark(3, Examples(by="subject")), drawn(source), source, seed=7)
    told = [diagnostic.message for diagnostic in caught.value.diagnostics]
    assert all("shows 3 worked examples, and its sample leaves" in message for message in told)
    assert len(told) == 2


@pytest.mark.parametrize(("method", "answer"), [("letter", "B"), ("option", "blue")])
def test_an_example_stands_as_its_prompt_and_its_answer_and_an_empty_line(method: Any, answer: str) -> None:
    from evalspec.artifacts.prompts import prompt_template, worked_examples
    from evalspec.artifacts.study import OptionScoring

    scoring = LetterScoring(method="letter") if method == "letter" else OptionScoring(method="option")
    text = worked_examples(prompt_template(scoring), method, [Question("q", "Which?", ("red", "blue"), 1)])
    assert text == {"letter": f"Which?\nA. red\nB. blue\nAnswer: {answer}\n\n", "option": f"Which?\nAnswer: {answer}\n\n"}[method]


def test_the_text_before_a_prompt_is_that_of_its_subject() -> None:
    shown = (Shown("x", (Question("q", "Which?", ("red", "blue"), 1),)),)
    assert preamble_texts(benchmark(1), shown) == {"x": "Which?\nA. red\nB. blue\nAnswer: B\n\n"}
