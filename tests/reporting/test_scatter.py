"""Clouds of points in a panel of curves, and the second figure of an analysis."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

from evalspec.protocols import Point
from evalspec.reporting.figures import Chart


def chart() -> Chart:
    drawn = Chart()
    drawn.caption("Predicted against actual.")
    drawn.scale("predicted", percent=False, span=(0.0, 100.0))
    drawn.across("actual")
    drawn.curve("equal", [Point(0.0, 0.0), Point(100.0, 100.0)], muted=True)
    drawn.scatter("hidden", [Point(10.0, 20.0), Point(50.0, 50.0), Point(90.0, 80.0)])
    return drawn


def test_a_cloud_is_one_path_with_a_dot_at_each_point_and_no_line_between_them() -> None:
    for width in ("wide", "narrow"):
        svg = chart().draw(width).svg
        ET.fromstring(svg)
        path = re.findall(r'<path d="([^"]+)"', svg)
        cloud = max(path, key=len)
        assert cloud.count("M") == 3
        assert cloud.count("h.01") == 3
        assert svg.count("<polyline") == 1
        assert "hidden" in svg


def test_dots_stand_where_the_line_of_equal_values_passes() -> None:
    svg = chart().draw("wide").svg
    line = re.findall(r'<polyline points="([\d.]+),([\d.]+) ([\d.]+),([\d.]+)"', svg)[0]
    x1, y1, x2, y2 = map(float, line)
    dots = [tuple(map(float, at)) for at in re.findall(r"M([\d.]+) ([\d.]+)h", max(re.findall(r'<path d="([^"]+)"', svg), key=len))]
    for (x, y), (actual, predicted) in zip(dots, ((10, 20), (50, 50), (90, 80)), strict=True):
        assert abs(x - (x1 + (x2 - x1) * actual / 100)) < 0.11
        assert abs(y - (y1 + (y2 - y1) * predicted / 100)) < 0.11


def test_what_is_drawn_is_recorded_and_an_empty_cloud_is_nothing() -> None:
    drawn: Any = chart().draw("wide").drawn
    assert [curve["joined"] for curve in drawn["curves"]] == [True, False]
    empty = Chart()
    empty.scatter("nothing", [])
    assert empty.empty
