"""Drawings show what they are given, say it in words, and are the same each time."""

from __future__ import annotations

from typing import get_args
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalspec.protocols import Axes
from evalspec.reporting.figures import Chart, Width, nice_ticks

SVG = "{http://www.w3.org/2000/svg}"
WIDTHS: tuple[Width, ...] = get_args(Width)


def accuracy_chart() -> Chart:
    chart = Chart()
    axes: Axes = chart
    axes.caption("Accuracy of <each> model & its interval.")
    axes.scale("accuracy")
    axes.interval("large", 0.8, 0.75, 0.85, group="everyday")
    axes.interval("a-name-that-is-far-too-long-for-the-room-that-any-label-could-have", 0.4, 0.3, 0.5, group="everyday", muted=True)
    axes.interval("silent", None, None, None, group="triples")
    return chart


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_first_child_is_the_title_that_stands_for_the_drawing(width: Width) -> None:
    root = ET.fromstring(accuracy_chart().draw(width).svg)
    assert root[0].tag == f"{SVG}title"
    assert root[0].text == "Accuracy of <each> model & its interval."


@pytest.mark.parametrize("width", WIDTHS)
def test_text_stays_text_and_undefined_rows_say_so(width: Width) -> None:
    svg = accuracy_chart().draw(width).svg
    assert {"large", "everyday", "triples", "undefined", "accuracy"} <= set(texts(svg))
    assert "<path" not in svg


@pytest.mark.parametrize("width", WIDTHS)
def test_everything_stays_inside_the_view_box(width: Width) -> None:
    root = ET.fromstring(accuracy_chart().draw(width).svg)
    _, _, right, bottom = (float(number) for number in root.attrib["viewBox"].split())
    for element in root.iter():
        for name in ("x", "x1", "x2", "cx"):
            assert 0 <= float(element.get(name, 0)) <= right
        for name in ("y", "y1", "y2", "cy"):
            assert 0 <= float(element.get(name, 0)) <= bottom
    for element in root.iter(f"{SVG}text"):
        if element.get("text-anchor") == "start":
            assert float(element.attrib["x"]) + 5.5 * len(element.text or "") <= right


def test_a_drawing_is_the_same_each_time() -> None:
    assert accuracy_chart().draw("wide") == accuracy_chart().draw("wide")


def test_the_numbers_drawn_are_kept_beside_the_drawing() -> None:
    rows = accuracy_chart().draw("wide").drawn["rows"]
    assert rows[0] == {"group": "everyday", "label": "large", "value": 0.8, "low": 0.75, "high": 0.85}


def test_a_reference_at_zero_makes_an_axis_of_signed_points() -> None:
    chart = Chart()
    chart.scale("difference")
    chart.reference(0.0, "equal")
    chart.interval("a − b", 0.05, 0.01, 0.09)
    shown = texts(chart.draw("wide").svg)
    assert {"equal", "0", "+2", "difference, in points"} <= set(shown)
    assert not any("%" in text for text in shown)


def test_a_hostile_label_is_harmless() -> None:
    chart = Chart()
    chart.interval("</svg><script>\u202e", 0.5, 0.4, 0.6)
    assert "</svg><script>‹U+202E›" in texts(chart.draw("wide").svg)


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_ticks_are_few_round_and_enclose_the_numbers(first: float, second: float) -> None:
    low, high = sorted((first, second))
    ticks = nice_ticks(low, high, most=6)
    assert 1 <= len(ticks) <= 6
    assert ticks[0] <= low + 1e-9
    assert high - 1e-9 <= ticks[-1]
