"""An analysis from another package: installed by `make test`, found by its entry point, held to the same rules."""

from __future__ import annotations

from importlib.metadata import entry_points

from evalspec.analyses.catalogue import ENTRY_POINT_GROUP, catalogue
from evalspec.testing import check_analysis


def test_the_plug_in_is_found_by_its_entry_point() -> None:
    assert "agreement" in entry_points(group=ENTRY_POINT_GROUP).names, "install it: pip install ./tests/plugin"
    assert "agreement" in catalogue()


def test_the_plug_in_passes_what_every_analysis_must_pass() -> None:
    check_analysis(catalogue()["agreement"], {"kind": "agreement"})
