from __future__ import annotations

import sys
from pathlib import Path

import pytest

from evalspec import tools
from evalspec.errors import MissingLibrary
from evalspec.scoring import executors
from evalspec.settings import Settings


def test_scoring_on_a_cluster_without_ray_says_how_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "evalspec.scoring.executors.ray_cluster", raising=False)
    monkeypatch.delattr(executors, "ray_cluster", raising=False)
    with pytest.raises(MissingLibrary, match="the library 'ray' is not installed") as caught:
        tools.devices(Settings(cache=Path("cache"), hub_cache=Path("hub"), executor="ray"))
    assert "'.[ray]'" in str(caught.value)
