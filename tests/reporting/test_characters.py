"""What cannot be seen is shown as its code point."""

from __future__ import annotations

import pytest
from markupsafe import Markup

from evalspec.reporting.characters import finalize, neutralise, replace_absent


@pytest.mark.parametrize(
    "hidden",
    ["\u202e", "\u2066", "\u200b", "\ufeff", "\u00ad", "\x00", "\x1b", "\x7f", "\x85", "\r", "\ue000", "\U000e0041", "\u2028", "\u3164", "\ud800"],
)
def test_an_unseen_character_is_shown(hidden: str) -> None:
    assert neutralise(f"a{hidden}b") == f"a‹U+{ord(hidden):04X}›b"


def test_text_that_is_seen_stays() -> None:
    text = "line one\n\tΔ é 中文 − “quoted” 😀 ‹angle›"
    assert neutralise(text) == text


def test_markup_stays_markup() -> None:
    assert finalize(Markup("<b>\u202e</b>")) == Markup("<b>‹U+202E›</b>")
    assert isinstance(finalize(Markup("<b>")), Markup)
    assert not isinstance(finalize("<b>"), Markup)


def test_characters_without_a_glyph_are_shown_by_their_code_point() -> None:
    assert replace_absent("a中b\n", {ord("b")}) == "a‹U+4E2D›b\n"
