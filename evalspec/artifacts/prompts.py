"""What does a model read?  Prompt templates with a fixed list of fields, filled in a single pass; never a template language."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from evalspec.artifacts.questions import LETTERS, Question
from evalspec.artifacts.study import Scoring

LETTER_PROMPT = "{question}\n{choices}\nAnswer:"
OPTION_PROMPT = "{question}\nAnswer:"

CLINGING = ("\n", "(", "[", "*", '"', "'", "`")
"""Endings of a prompt after which an answer follows without a space."""

_FIELD = re.compile(r"\{([A-Za-z_]\w*)\}")


def prompt_template(scoring: Scoring) -> str:
    """Return the template that the study gives, or the default one of its scoring method."""
    if scoring.prompt is not None:
        return scoring.prompt
    return LETTER_PROMPT if answers_with(scoring) == "letter" else OPTION_PROMPT


def answers_with(scoring: Scoring) -> Literal["letter", "option"]:
    """Return what a model is to answer with: the letter of a choice, or its text."""
    if scoring.method == "sampled":
        return "letter" if scoring.reads_letters else "option"
    return scoring.method


def allowed_fields(scoring: Scoring) -> tuple[str, ...]:
    """Return the fields that a template of this scoring method may use."""
    return ("question", "subject") if scoring.method == "option" else ("question", "choices", "subject")


def required_fields(scoring: Scoring) -> tuple[str, ...]:
    """Return the fields that a template of this scoring method must use."""
    return ("question", "choices") if answers_with(scoring) == "letter" else ("question",)


def template_faults(scoring: Scoring) -> tuple[str, ...]:
    """Return what is wrong with the template, in words; empty when nothing is."""
    used = _FIELD.findall(prompt_template(scoring))
    allowed = allowed_fields(scoring)
    listed = ", ".join(f"{{{field}}}" for field in allowed)
    unknown = [f"the prompt uses {{{field}}}; a prompt of method '{scoring.method}' may use {listed}" for field in used if field not in allowed]
    absent = [f"the prompt does not use {{{field}}}" for field in required_fields(scoring) if field not in used]
    return tuple(dict.fromkeys(unknown + absent))


def render_prompt(template: str, question: Question) -> str:
    """Return the template with its fields replaced; braces inside a question's own text stay as they are.

    Raises ValueError for a field that does not exist, and for `{subject}` when the question has none.
    """
    values = {"question": question.stem, "choices": letter_lines(question.choices), "subject": question.subject}

    def value_of(match: re.Match[str]) -> str:
        value = values.get(match[1])
        if value is None:
            raise ValueError(
                "the prompt uses {subject} and the question has none" if match[1] == "subject" else f"the prompt has no field {match[0]}"
            )
        return value

    return _FIELD.sub(value_of, template)


def split_prompt(prompt: str) -> tuple[str, str]:
    r"""Return the prompt without trailing spaces, and what comes between it and an answer.

    >>> split_prompt("Answer:"), split_prompt("Answer: "), split_prompt("Answer:\n")
    (('Answer:', ' '), ('Answer:', ' '), ('Answer:\n', ''))
    """
    context = prompt.rstrip(" ")
    spaces = prompt[len(context) :]
    return context, spaces or ("" if context.endswith(CLINGING) else " ")


def worked_examples(template: str, method: Literal["letter", "option"], questions: Sequence[Question]) -> str:
    """Return the questions solved, one after the other, each followed by an empty line; raises ValueError as `render_prompt` does."""
    return "".join(f"{context}{lead}{_answer(method, question)}\n\n" for question in questions for context, lead in [_split(template, question)])


def _split(template: str, question: Question) -> tuple[str, str]:
    return split_prompt(render_prompt(template, question))


def _answer(method: Literal["letter", "option"], question: Question) -> str:
    return question.letter if method == "letter" else question.choices[question.answer]


def letter_lines(choices: tuple[str, ...]) -> str:
    """Return the choices one per line, each behind its letter: `A. text`."""
    return "\n".join(f"{letter}. {choice}" for letter, choice in zip(LETTERS, choices, strict=False))
