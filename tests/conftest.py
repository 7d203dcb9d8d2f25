"""Fixtures that several parts of the test suite share."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as under nohup and some runners: commands that the tests start would never hear Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
def serving() -> ModuleType:
    """`model_server.py`: a small server over a real checkpoint that speaks the OpenAI API, for tests that cannot import that file."""
    pytest.importorskip("transformers")
    pytest.importorskip("httpx2")
    spec = importlib.util.spec_from_file_location("model_server", Path(__file__).parent / "model_server.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root."""
    return ROOT
