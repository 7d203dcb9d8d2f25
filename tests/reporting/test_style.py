"""Every colour of text can be read on the ground it stands on, in light and in dark."""

from __future__ import annotations

import re

import pytest

from evalspec.reporting.templates import asset

GROUNDS = {
    "ink": ("paper", "surface", "passed-surface", "failed-surface", "inconclusive-surface"),
    "ink-soft": ("paper", "surface"),
    "accent": ("paper", "surface"),
    "passed": ("paper", "passed-surface"),
    "failed": ("paper", "failed-surface"),
    "inconclusive": ("paper", "inconclusive-surface"),
}
PAIRS = [(text, ground) for text, grounds in GROUNDS.items() for ground in grounds]
LEAST_CONTRAST = 4.5  # WCAG 2.2, success criterion 1.4.3


def palettes() -> list[dict[str, str]]:
    blocks = re.findall(r":root \{(.*?)\}", asset("style.css"), re.DOTALL)
    return [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for block in blocks]


def luminance(colour: str) -> float:
    shares = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), PAIRS)
def test_text_can_be_read_on_its_ground(theme: int, text: str, ground: str) -> None:
    colours = palettes()[theme]
    brighter, darker = sorted((luminance(colours[text]), luminance(colours[ground])), reverse=True)
    assert (brighter + 0.05) / (darker + 0.05) >= LEAST_CONTRAST
