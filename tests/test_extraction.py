from __future__ import annotations

import re
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalspec.artifacts.extraction import ExtractionRule
from evalspec.artifacts.responses import Reason
from evalspec.artifacts.study import SampledScoring
from evalspec.extraction import LONGEST_READ, read_answers

CONTINENTS = ("Africa", "America", "Asia", "Europe")
USUAL = SampledScoring(method="sampled")


def read(text: str, scoring: SampledScoring = USUAL, choices: tuple[str, ...] = CONTINENTS) -> str:
    """Return the letter that is read off a text, or why none is."""
    found = read_answers([text], [choices], scoring)
    choice, reason = int(found.choices[0]), Reason(int(found.reasons[0]))
    assert (choice >= 0) == (reason is Reason.NONE)
    return "ABCD"[choice] if choice >= 0 else reason.name


def by(*rules: ExtractionRule) -> SampledScoring:
    return SampledScoring(method="sampled", extract=rules)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" B", "B"),
        ("B.", "B"),
        ("(C) Asia", "C"),
        ("**D**\nbecause it is in the north", "D"),
        ("The answer is **D**.", "D"),
        ("The answer is (b).", "UNPARSEABLE"),
        ("Answer: A\nNo, I was wrong. Answer: (B)", "B"),
        ("So we get $\\boxed{C}$, though the answer is B at first sight.", "C"),
        ("Europe.", "D"),
        ("  asia  \n", "C"),
        ("Thinking...\nFinal answer: America", "B"),
        ("A dog has four legs", "UNPARSEABLE"),
        ("The answer is E.", "UNPARSEABLE"),
        ("The answer isn't B'y", "UNPARSEABLE"),
        ("", "UNPARSEABLE"),
        ("I'm sorry, but I can't help with that.", "REFUSED"),
        ("As an AI, I have no opinion.", "REFUSED"),
        ("I cannot be sure. Answer: C", "C"),
    ],
)
def test_the_usual_rules_read_what_models_write(text: str, expected: str) -> None:
    assert read(text) == expected


def test_the_first_rule_that_finds_a_choice_decides_and_one_that_finds_something_else_finds_nothing() -> None:
    rules = by(ExtractionRule(pattern=r"first ([A-Z])"), ExtractionRule(pattern=r"second ([A-Z])"))
    assert read("second B, first C", rules) == "C"
    assert read("second B, first Z", rules) == "B"


def test_a_first_and_a_last_match_are_those_of_a_search_from_the_left() -> None:
    numbers = ("4", "12", "7")
    assert read("4 and 7 make -12", by(ExtractionRule(pattern=r"\d+", take="first", reads="text")), numbers) == "A"
    assert read("4 and 7 make -12", by(ExtractionRule(pattern=r"\d+", take="last", reads="text")), numbers) == "B"


@settings(deadline=None)  # the first example imports Arrow
@given(st.text(alphabet="AB1 \n", max_size=30))
def test_matches_are_those_that_python_finds(text: str) -> None:
    found = re.findall(r"[AB]+1", text)
    for take, place in (("first", 0), ("last", -1)):
        scoring = by(ExtractionRule(pattern=r"[AB]+1", take=take, reads="text", normalise=()))  # type: ignore[arg-type] # a literal
        expected = found[place] if found else None
        assert read(text, scoring, ("A1", "B1", "AB1")) == ({"A1": "A", "B1": "B", "AB1": "C"}.get(expected or "", "UNPARSEABLE"))


@pytest.mark.parametrize(
    ("normalise", "text", "expected"),
    [
        ((), "Africa", "A"),
        ((), "africa", "UNPARSEABLE"),
        (("case",), "africa", "A"),
        (("case",), "africa.", "UNPARSEABLE"),
        (("punctuation",), '"Africa".', "A"),
        (("spaces",), "  Africa ", "A"),
    ],
)
def test_what_does_not_matter_is_what_the_rule_says(normalise: tuple[str, ...], text: str, expected: str) -> None:
    assert read(text, by(ExtractionRule(pattern=r"(?s).*", reads="text", normalise=normalise))) == expected  # type: ignore[arg-type] # literals


def test_signs_of_numbers_are_no_punctuation_and_a_text_that_fits_two_choices_finds_none() -> None:
    whole = by(ExtractionRule(pattern=r".+", reads="text"))
    assert read("-5", whole, ("5", "-5")) == "B"
    assert read("yes", whole, ("Yes", "yes!", "no")) == "UNPARSEABLE"


def test_marks_of_the_search_in_a_text_are_not_taken_for_matches() -> None:
    assert read("\x00A\x01 B", by(ExtractionRule(pattern=r"[B-D]"))) == "B"
    assert read("\x00A\x01", by(ExtractionRule(pattern=r"[B-D]"))) == "UNPARSEABLE"


def test_no_pattern_makes_reading_hang_and_no_text_is_too_long() -> None:
    started = time.process_time()
    hostile = by(ExtractionRule(pattern=r"(?:a*)*b"), ExtractionRule(pattern=r"answer\s*(?:is)?\s*:?\s*([A-D])", take="last"))
    assert read("a" * 200_000, hostile) == "UNPARSEABLE"
    assert read("answer" + " " * 200_000 + "A", hostile) == "UNPARSEABLE"
    assert read("x" * 5 * LONGEST_READ + " answer is B", hostile) == "B"
    assert time.process_time() - started < 5


def test_texts_are_read_alike_alone_and_together() -> None:
    texts = ["Answer: A", "I won't say.", "Europe", "", "B)", "Answer: C and then Answer: D"]
    together = read_answers(texts, [CONTINENTS] * len(texts), USUAL)
    alone = [read_answers([text], [CONTINENTS], USUAL) for text in texts]
    np.testing.assert_array_equal(together.choices, [int(one.choices[0]) for one in alone])
    np.testing.assert_array_equal(together.reasons, [int(one.reasons[0]) for one in alone])
