"""How is an answer read off a generated text?  Rules as a study declares them, and those that hold where it declares none."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from evalspec.artifacts.base import Artifact

Normalisation = Literal["case", "punctuation", "spaces"]
Pattern = Annotated[str, Field(min_length=1, max_length=500)]
"""A regular expression in the syntax of RE2."""


class ExtractionRule(Artifact):
    """One way to read the chosen answer off a generated text."""

    pattern: Pattern = Field(
        description="A regular expression in the syntax of RE2, searched in the text; what its one group matches, or all of it where it has "
        "none, is what was found.",
    )
    take: Literal["first", "last"] = Field(default="first", description="Which match counts where there are several.")
    reads: Literal["letter", "text"] = Field(default="letter", description="What is found: the letter of a choice, or its text.")
    normalise: tuple[Normalisation, ...] = Field(
        default=("case", "punctuation", "spaces"),
        description="What does not matter when it is compared with letters or texts: `case`; `punctuation`, which is quotes, brackets, asterisks "
        "and marks of a sentence at either end; `spaces` at either end and how many between words. All three by default.",
    )


ANSWER_RULES = (
    ExtractionRule(pattern=r"\\boxed\{\s*(?:\\text\{)?\(?([A-Z])\)?\}", take="last"),
    ExtractionRule(pattern=r"(?i:answer)(?i:\s+is)?\s*:?[\s*_(\[\"'`]*([A-Z])(?:[^A-Za-z0-9'’]|$)", take="last"),
    ExtractionRule(pattern=r"^[\s*_(\[\"'`]*([A-Z])(?:[).:,;\]*_\"'`]|\s*$|\s*\n)"),
    ExtractionRule(pattern=r"(?i:answer)(?i:\s+is)?\s*:?\s*([^\n]*\S)", take="last", reads="text"),
    ExtractionRule(pattern=r"^\s*([^\n]*\S)", reads="text"),
)
"""How answers are read unless a study says otherwise: a letter in LaTeX's box, the letter after the last "answer", a letter at the start, the
rest of the line after the last "answer" as the text of a choice, and the first line as one."""

REFUSALS = (
    r"(?i)\bI(?: am|['’]m) (?:sorry|unable|not able|not allowed)\b",
    r"(?i)\bI (?:can(?:not|['’]t| not)|could(?: not|n['’]t)|won['’]t|will not|must decline|have to decline|decline)\b",
    r"(?i)\bas an? (?:AI|artificial intelligence|language model)\b",
)
"""Wordings, in English, by which a text without an answer is taken for a refusal unless a study says otherwise."""
