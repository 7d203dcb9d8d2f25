"""Fixtures that several parts of the test suite share."""

from __future__ import annotations

import gc
import importlib.metadata
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent

OTHER_LIBRARIES = {"numpy": "2.3.5", "scipy": "1.16.3"}
"""Releases that are not those of constraints.txt, built with another BLAS."""

# Under nohup and some runners signals are ignored, also by the commands that the tests start: they would never hear Ctrl-C or a hangup.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="module")
def quick_garbage() -> Iterator[None]:
    """Keep what lives now out of garbage collections: statsmodels' multipletests asks for a whole one with every call."""
    gc.freeze()
    yield
    gc.unfreeze()


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


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What a command did under other numerical libraries: its exit code, what it printed, and which libraries computed on how many threads."""

    code: int
    out: str
    err: str
    versions: dict[str, str]
    folders: dict[str, Path]
    blas_threads: set[int]


TELLING = """import atexit, json, pathlib, sys
def tell():
    import threadpoolctl
    used = {name: sys.modules[name] for name in ("numpy", "scipy")}
    pools = [pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
    found = {name: [module.__version__, str(pathlib.Path(module.__file__).parents[1])] for name, module in used.items()}
    pathlib.Path(told).write_text(json.dumps({"used": found, "threads": pools}))
told = sys.argv.pop(1)
atexit.register(tell)
from evalspec.__main__ import start
start()
"""


@pytest.fixture(scope="session")
def other_libraries() -> Path:
    """A folder with other releases of the numerical libraries, installed once and kept in `.cache`."""
    if any(importlib.metadata.version(name) == version for name, version in OTHER_LIBRARIES.items()):
        pytest.skip(f"the libraries that are installed here are themselves of {OTHER_LIBRARIES}")
    wanted = [f"{name}=={version}" for name, version in OTHER_LIBRARIES.items()]
    place = ROOT / ".cache" / "other-libraries" / "-".join([*wanted, sys.implementation.cache_tag])
    if not place.is_dir():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as folder:
            _install(wanted, Path(folder) / "made")
            if not place.is_dir():  # another process of the same test run may have been faster
                shutil.move(Path(folder) / "made", place)
    return place


def _install(wanted: list[str], folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--only-binary", ":all:", "--no-compile", "--no-input", "--retries", "0"]
    command = [*pip, "--timeout", "10", "--disable-pip-version-check", "--quiet", "--target", str(folder), *wanted]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=400)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{' and '.join(wanted)} could not be installed in 400 seconds")
    if done.returncode:
        pytest.skip(f"{' and '.join(wanted)} cannot be installed here: {done.stderr.strip().splitlines()[-1]}")


@pytest.fixture
def elsewhere(other_libraries: Path, tmp_path: Path) -> Callable[..., Elsewhere]:
    """Runs the command line as a process of its own under `other_libraries`, on a number of threads."""

    def run(*arguments: str | Path, threads: int) -> Elsewhere:
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        own = {name: value for name, value in os.environ.items() if not name.startswith("EVALSPEC_")}
        told = tmp_path / "told.json"
        done = subprocess.run(
            [sys.executable, "-c", TELLING, str(told), *map(str, arguments)],
            cwd=ROOT,
            env=own | dict.fromkeys(names, str(threads)) | {"PYTHONPATH": os.pathsep.join([str(other_libraries), str(ROOT)])},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        content: Any = json.loads(told.read_bytes())  # Any: versions with their folders, and numbers of threads
        used = content["used"].items()
        return Elsewhere(
            done.returncode,
            done.stdout,
            done.stderr,
            {name: version for name, (version, _) in used},
            {name: Path(folder) for name, (_, folder) in used},
            set(content["threads"]),
        )

    return run
