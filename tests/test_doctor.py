from __future__ import annotations

import sys
from pathlib import Path

import pytest

from evalspec.doctor import EXTRAS, describe, examine


@pytest.mark.parametrize(("extra", "library"), [(extra, library) for extra, libraries in EXTRAS.items() for library in libraries])
def test_an_absent_library_is_named_with_its_extra_and_the_command_that_works_in_a_clone(
    extra: str, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    found = {entry.name: entry for entry in examine(cache=tmp_path, key=None)}[library.lower()]
    assert (found.present, found.found) == (False, "not installed")
    assert f"python -m pip install -c constraints.txt '.[{extra}]'" in (found.remedy or "")
    assert f"{'absent' if extra == 'server' else 'MISSING':<8}{library.lower()}" in describe([found])
