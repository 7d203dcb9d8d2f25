"""Drawings show what they are given, say it in words, and are the same each time."""

from __future__ import annotations

import re
from typing import get_args
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalspec.protocols import Axes, Point
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
    assert root[0].text == (
        "Accuracy of <each> model & its interval. everyday, large: 80.0 %, from 75.0 % to 85.0 %; "
        "everyday, a-name-that-is-far-too-long-for-the-room-that-any-label-could-have: 40.0 %, from 30.0 % to 50.0 %; triples, silent: undefined."
    )


def test_differences_are_said_in_points_and_of_many_rows_the_first() -> None:
    chart = Chart()
    chart.caption("Differences.")
    chart.reference(0, "no difference")
    for number in range(11):
        chart.interval(f"pair {number}", -0.019, -0.05, 0.012)
    title = ET.fromstring(chart.draw("wide").svg)[0].text or ""
    assert title.startswith("Differences. pair 0: −1.9 points, from −5.0 points to +1.2 points; pair 1: ")
    assert title.endswith("; pair 7: −1.9 points, from −5.0 points to +1.2 points; 3 more.")


def test_of_a_curve_its_ends_are_said_and_of_a_cloud_how_many_points_it_has() -> None:
    chart = Chart()
    chart.caption("Stability.")
    chart.curve("top stays top", [Point(30, 0.45), Point(200, 0.7), Point(2000, 0.96)])
    chart.scatter("models", [Point(1, 0.1), Point(2, 0.2), Point(3, 0.3)])
    title = ET.fromstring(chart.draw("wide").svg)[0].text
    assert title == "Stability. top stays top: 45.0 % at 30, then 96.0 % at 2,000; models: 3 points."


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


def stability_chart(points: int = 4) -> Chart:
    chart = Chart()
    axes: Axes = chart
    axes.caption("How often the first model stays first & the order holds.")
    axes.scale("frequency")
    axes.across("questions in a draw", logarithmic=True)
    axes.reference(0.5, "as often as not")
    for group in ("everyday", "triples"):
        steps = [Point(30.0 * 2**step, 0.4 + 0.1 * step / points, 0.38 + 0.1 * step / points, 0.42 + 0.1 * step / points) for step in range(points)]
        axes.curve("the first stays first", steps, group=group)
        axes.curve("the first 3 keep their order", [Point(point.x, point.y / 2) for point in steps], group=group, muted=True)
    return chart


def inside(svg: str) -> bool:
    root = ET.fromstring(svg)
    _, _, right, bottom = (float(number) for number in root.attrib["viewBox"].split())
    places = [tuple(map(float, pair.split(","))) for element in root.iter() for pair in element.get("points", "").split()]
    places += [(float(element.get("x", 0)), float(element.get("y", 0))) for element in root.iter()]
    return all(0 <= x <= right and 0 <= y <= bottom for x, y in places)


@pytest.mark.parametrize("width", WIDTHS)
def test_curves_have_a_panel_per_group_and_say_which_line_is_which(width: Width) -> None:
    svg = stability_chart().draw(width).svg
    assert (ET.fromstring(svg)[0].text or "").startswith(
        "How often the first model stays first & the order holds. everyday, the first stays first: 40.0 % at 30, then "
    )
    shown = texts(svg)
    assert shown.count("the first stays first") == 2
    assert {"everyday", "triples", "frequency", "questions in a draw", "as often as not", "30", "240"} <= set(shown)
    assert svg.count("<polyline") == 4
    assert svg.count("<polygon") == 2
    assert svg.count('stroke-dasharray="7 4"') == 4  # the muted lines and their keys
    assert inside(svg)


@pytest.mark.parametrize("points", [1, 40])
def test_a_curve_of_one_point_or_of_many_is_drawn_with_ticks_that_do_not_touch(points: int) -> None:
    svg = stability_chart(points).draw("narrow").svg
    assert inside(svg)
    assert svg.count("<polyline") == (0 if points == 1 else 4)


def test_the_points_drawn_are_kept_beside_the_drawing() -> None:
    drawn = stability_chart().draw("wide").drawn
    assert drawn["curves"][0]["points"][0] == {"x": 30.0, "y": 0.4, "low": 0.38, "high": 0.42}
    assert (drawn["axis"], drawn["across"]) == ("frequency", "questions in a draw")


def test_rows_and_curves_do_not_mix_and_a_curve_without_points_is_none() -> None:
    chart = stability_chart()
    chart.interval("a", 0.5, 0.4, 0.6)
    with pytest.raises(ValueError, match="not both"):
        chart.draw("wide")
    empty = Chart()
    empty.curve("nothing", [])
    assert empty.empty


def test_an_axis_of_whole_numbers_has_no_ticks_between_them() -> None:
    chart = Chart()
    chart.scale("rank", percent=False, whole=True)
    chart.interval("a", 1, 1, 2)
    assert {"1", "2"} <= set(texts(chart.draw("wide").svg))
    assert not any("." in text for text in texts(chart.draw("wide").svg))


@given(st.integers(1, 500), st.integers(0, 500))
def test_whole_ticks_are_whole_few_and_enclose_the_numbers(low: int, span: int) -> None:
    ticks = nice_ticks(low, low + span, most=9, whole=True)
    assert all(tick == int(tick) for tick in ticks)
    assert len(ticks) <= 9
    assert ticks[0] <= low <= low + span <= ticks[-1]


@pytest.mark.parametrize("width", WIDTHS)
def test_an_axis_reaches_over_the_span_that_it_is_given(width: Width) -> None:
    chart = Chart()
    chart.scale("frequency", span=(0.0, 1.0))
    chart.curve("stays", [Point(10, 0.5), Point(20, 0.51)])
    assert {"0 %", "100 %"} <= set(texts(chart.draw(width).svg))


@pytest.mark.parametrize("width", WIDTHS)
def test_single_points_are_places_in_a_plane_with_their_names_beside_them(width: Width) -> None:
    chart = Chart()
    chart.scale("mean", percent=False)
    chart.across("variance")
    chart.curve("left-one", [Point(x=0.0012345678, y=0.9)])
    chart.curve("right-one", [Point(x=0.0387654321, y=0.5)])
    svg = chart.draw(width).svg
    labels = texts(svg)
    assert {"left-one", "right-one", "0.01"} <= set(labels)
    assert not any("12345" in label or "87654" in label for label in labels)
    assert svg.count("<circle") == 2
    named = {element.text: element for element in ET.fromstring(svg).iter(f"{SVG}text")}
    assert named["right-one"].get("text-anchor") == "end"


def test_a_chart_that_no_page_has_room_for_is_parted_on_one_scale() -> None:
    chart = Chart()
    chart.caption("Many models.")
    chart.scale("accuracy")
    for place in range(90):
        chart.interval(f"model-{place}", 0.1 + place / 100, 0.05 + place / 100, 0.15 + place / 100, group="first" if place < 60 else "second")
    parts = [part.draw("wide") for part in chart.parts()]
    assert [row["label"] for part in parts for row in part.drawn["rows"]] == [f"model-{place}" for place in range(90)]
    heights = [float(re.search(r'viewBox="0 0 760 ([\d.]+)"', part.svg)[1]) for part in parts]
    assert all(height < 1080 for height in heights)
    assert len({tuple(re.findall(r">(\d+ %)<", part.svg)) for part in parts}) == 1
    assert [part.drawn["caption"] for part in parts] == [f"Many models. Part {number} of 3." for number in (1, 2, 3)]
    assert all(part.svg.count(">first<") + part.svg.count(">second<") >= 1 for part in parts)


def test_a_chart_that_fits_a_page_is_one_part() -> None:
    chart = accuracy_chart()
    assert [part.draw("wide").svg for part in chart.parts()] == [chart.draw("wide").svg]


def test_panels_of_many_groups_are_parted_with_their_scale() -> None:
    chart = Chart()
    for group in "abcde":
        chart.curve("first stays first", [Point(30, 0.4), Point(100, 0.9 if group == "e" else 0.5)], group=group)
    parts = chart.parts()
    assert [len(part.draw("wide").drawn["curves"]) for part in parts] == [3, 2]
    assert len({tuple(re.findall(r">(\d+ %)<", part.draw("wide").svg)[:4]) for part in parts}) == 1
    chart.curve("further", [Point(30, 0.5), Point(400, 0.5)], group="e")
    assert all(">400</text>" in part.draw("wide").svg for part in chart.parts())


def test_tall_panels_are_parted_by_their_height_so_that_a_page_holds_each_part() -> None:
    chart = Chart()
    chart.scale("agreement", span=(0.0, 1.0))
    chart.across("gap of the pair, in points")
    for group in "abcde":
        for size in (10, 25, 100, 200):
            chart.curve(f"{size} questions", [Point(0, 0.4), Point(15, 0.7), Point(30, 0.9)], group=group)
        chart.scatter("bins", [Point(10, 0.5), Point(20, 0.7)], group=group, muted=True)
    drawn = [part.draw("wide") for part in chart.parts()]
    assert ["".join(dict.fromkeys(curve["group"] for curve in part.drawn["curves"])) for part in drawn] == ["ab", "cd", "e"]
    assert all(float(re.search(r'viewBox="0 0 760 ([\d.]+)"', part.svg)[1]) <= 1080 for part in drawn)


def test_labels_above_their_marks_stand_on_paper_so_that_lines_do_not_cross_them() -> None:
    chart = Chart()
    chart.reference(0, "equal accuracy")
    chart.interval("a-model-with-a-rather-long-name − another-one-whose-name-is-longer", 0.1, 0.05, 0.15, group="everyday")
    root = ET.fromstring(chart.draw("wide").svg)
    drawn = [element.tag.removeprefix(SVG) for element in root]
    labels = [place for place, element in enumerate(root) if element.tag == f"{SVG}text" and (element.text or "").startswith(("a-model", "everyday"))]
    assert [drawn[place - 1] for place in labels] == ["rect", "rect"]
    assert max(place for place, element in enumerate(root) if element.get("stroke-dasharray")) < labels[0]
    assert "<rect" not in accuracy_chart().draw("narrow").svg


def test_parts_of_a_chart_are_about_alike_in_height() -> None:
    chart = Chart()
    for place in range(40):
        chart.interval(f"model-{place}", 0.5, 0.4, 0.6, group="first")
    assert [len(part.draw("wide").drawn["rows"]) for part in chart.parts()] == [21, 19]
