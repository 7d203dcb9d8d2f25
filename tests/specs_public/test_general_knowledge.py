from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).parents[2] / "specs" / "public" / "general_knowledge.jsonl"
LETTERS = "ABCD"
Question = dict[str, Any]


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def test_there_are_forty_questions_in_each_of_eight_subjects(questions: list[Question]) -> None:
    counts = Counter(question["subject"] for question in questions)
    assert len(counts) == 8
    assert set(counts.values()) == {40}


def test_ids_name_the_subject_and_count_from_one(questions: list[Question]) -> None:
    seen: Counter[str] = Counter()
    for question in questions:
        seen[question["subject"]] += 1
        assert question["id"] == f"{question['subject'].replace(' ', '-')}/{seen[question['subject']]:04d}"


def test_every_question_has_four_distinct_choices_and_a_letter_for_its_answer(questions: list[Question]) -> None:
    for question in questions:
        assert list(question) == ["id", "subject", "question", "choices", "answer"]
        assert len({choice.casefold() for choice in question["choices"]}) == 4, question["id"]
        assert question["answer"] in LETTERS, question["id"]


def test_no_text_has_stray_space_or_an_empty_choice(questions: list[Question]) -> None:
    for question in questions:
        for text in (question["question"], *question["choices"]):
            assert text, question["id"]
            assert text == re.sub(r"\s+", " ", text.strip()), question["id"]


def test_no_question_is_asked_twice(questions: list[Question]) -> None:
    stems = Counter(re.sub(r"\W+", " ", question["question"].casefold()).strip() for question in questions)
    assert [stem for stem, count in stems.items() if count > 1] == []


def test_each_letter_is_the_answer_equally_often_in_each_subject(questions: list[Question]) -> None:
    counts = Counter((question["subject"], question["answer"]) for question in questions)
    assert len(counts) == 32
    assert set(counts.values()) == {10}


def test_the_length_of_a_choice_does_not_give_the_answer_away(questions: list[Question]) -> None:
    longest = sum(max(question["choices"], key=len) == right_choice(question) for question in questions)
    shortest = sum(min(question["choices"], key=len) == right_choice(question) for question in questions)
    # Chance is a quarter; a reader who always takes the longest or the shortest choice must stay near it.
    assert longest / len(questions) < 0.35
    assert shortest / len(questions) < 0.35


def right_choice(question: Question) -> str:
    return str(question["choices"][LETTERS.index(question["answer"])])
