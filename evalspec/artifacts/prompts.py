"""What does a model read?  Prompt templates with a fixed list of fields, filled in a single pass; never a template language."""

from __future__ import annotations

import re

from evalspec.artifacts.questions import LETTERS, Question
from evalspec.artifacts.study import LetterScoring, OptionScoring

LETTER_PROMPT = "{question}\n{choices}\nAnswer:"
OPTION_PROMPT = "{question}\nAnswer:"

_FIELD = re.compile(r"\{([A-Za-z_]\w*)\}")


def prompt_template(scoring: LetterScoring | OptionScoring) -> str:
    """Return the template that the study gives, or the default one of its scoring method."""
    if scoring.prompt is not None:
        return scoring.prompt
    return LETTER_PROMPT if scoring.method == "letter" else OPTION_PROMPT


def allowed_fields(scoring: LetterScoring | OptionScoring) -> tuple[str, ...]:
    """Return the fields that a template of this scoring method may use; all but `subject` are also required."""
    return ("question", "choices", "subject") if scoring.method == "letter" else ("question", "subject")


def template_faults(scoring: LetterScoring | OptionScoring) -> tuple[str, ...]:
    """Return what is wrong with the template, in words; empty when nothing is."""
    used = _FIELD.findall(prompt_template(scoring))
    allowed = allowed_fields(scoring)
    listed = ", ".join(f"{{{field}}}" for field in allowed)
    unknown = [f"the prompt uses {{{field}}}; a prompt of method '{scoring.method}' may use {listed}" for field in used if field not in allowed]
    absent = [f"the prompt does not use {{{field}}}" for field in allowed if field != "subject" and field not in used]
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


def letter_lines(choices: tuple[str, ...]) -> str:
    """Return the choices one per line, each behind its letter: `A. text`."""
    return "\n".join(f"{letter}. {choice}" for letter, choice in zip(LETTERS, choices, strict=False))
