"""Fixtures that several parts of the test suite share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session", autouse=True)
def _own_user_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what belongs to a user, such as the journal's secret, out of the home folder of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real response matrices beside the repository."""
    folder = Path(os.environ.get("EVALSPEC_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"real response matrices are not at {folder}; set EVALSPEC_SHARED to their folder")
    return folder


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root."""
    return ROOT
