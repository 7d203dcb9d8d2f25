from __future__ import annotations

import pytest

from evalspec.artifacts.prompts import prompt_template, render_prompt, template_faults
from evalspec.artifacts.questions import Question
from evalspec.artifacts.study import LetterScoring, OptionScoring

QUESTION = Question("q", "What is {choices}?", ("{subject}", "{{7*7}}"), 0)


def test_the_default_prompt_for_letters_shows_the_choices_behind_letters() -> None:
    prompt = render_prompt(prompt_template(LetterScoring(method="letter")), Question("q", "Which?", ("red", "blue"), 0))
    assert prompt == "Which?\nA. red\nB. blue\nAnswer:"


def test_the_default_prompt_for_options_shows_the_question_alone() -> None:
    assert render_prompt(prompt_template(OptionScoring(method="option")), Question("q", "Which?", ("red", "blue"), 0)) == "Which?\nAnswer:"


def test_braces_in_a_question_are_never_filled_in() -> None:
    assert render_prompt("{question}|{choices}", QUESTION) == "What is {choices}?|A. {subject}\nB. {{7*7}}"


def test_a_subject_that_the_question_lacks_is_an_error() -> None:
    with pytest.raises(ValueError, match="subject"):
        render_prompt("{subject}: {question}", QUESTION)


def test_a_template_may_use_only_the_listed_fields_and_must_use_the_question() -> None:
    faults = template_faults(LetterScoring(method="letter", prompt="{queston}\n{choices}"))
    assert faults == (
        "the prompt uses {queston}; a prompt of method 'letter' may use {question}, {choices}, {subject}",
        "the prompt does not use {question}",
    )
    assert template_faults(OptionScoring(method="option", prompt="{question} {choices}")) != ()
    assert template_faults(OptionScoring(method="option")) == ()
