"""The study that tests of the language start from, and one way to compile a text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evalspec.analyses.catalogue import built_in
from evalspec.errors import Diagnostic, StudyError
from evalspec.language.compile import CompiledStudy, compile_text
from evalspec.language.paths import Surroundings
from evalspec.protocols import Catalogue

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    """Our own analyses, whatever else is installed."""
    return built_in()


@pytest.fixture(scope="session")
def material() -> Path:
    """A folder with the files that the sound study names."""
    return HERE / "broken"


@pytest.fixture(scope="session")
def sound() -> str:
    """A study without a fault."""
    return (HERE / "sound.yaml").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def changed(sound: str) -> Callable[..., str]:
    """Make the sound study with some of its text replaced."""

    def make(*changes: tuple[str, str]) -> str:
        text = sound
        for old, new in changes:
            assert old in text
            text = text.replace(old, new, 1)
        return text

    return make


@pytest.fixture(scope="session")
def compiled(catalogue: Catalogue, material: Path) -> Callable[..., CompiledStudy]:
    """Compile a text as `study.yaml` in a folder."""

    def make(text: str | bytes, folder: Path = material) -> CompiledStudy:
        content = text.encode() if isinstance(text, str) else text
        return compile_text(content, "study.yaml", catalogue, Surroundings(folder, folder))

    return make


@pytest.fixture(scope="session")
def faults(compiled: Callable[..., CompiledStudy]) -> Callable[..., tuple[Diagnostic, ...]]:
    """Return the faults of a text; none when it compiles."""

    def find(text: str | bytes, *arguments: Path) -> tuple[Diagnostic, ...]:
        try:
            compiled(text, *arguments)
        except StudyError as error:
            return error.diagnostics
        return ()

    return find
