"""Which sources compose a page?  One digest over everything that can change what it says, so that pages of one edition can be compared."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from evalspec.analyses.catalogue import catalogue
from evalspec.places import templates_folder

PACKAGE = Path(__file__).parent


def edition_of(kinds: Iterable[str]) -> str:
    """Return the SHA-256 over the sources of evalspec, its templates and fonts, and of analyses of these kinds that come from elsewhere."""
    digest = hashlib.sha256(_own().encode())
    for folder in sorted({folder for kind in kinds for folder in _elsewhere(kind)}):
        for name, content in _files(folder, ("*.py", "*.j2")):
            digest.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return digest.hexdigest()


@cache
def _own() -> str:
    digest = hashlib.sha256()
    for folder, patterns in ((PACKAGE, ("**/*.py", "reporting/fonts/*")), (templates_folder(), ("**/*",))):
        for name, content in _files(folder, patterns):
            digest.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return digest.hexdigest()


def _elsewhere(kind: str) -> Iterator[Path]:
    """Give the folder of an analysis that is not part of evalspec."""
    analysis = catalogue().get(kind)
    module = sys.modules.get(analysis.compute.__module__) if analysis else None
    if module is not None and module.__file__ and not Path(module.__file__).is_relative_to(PACKAGE):
        yield Path(module.__file__).parent


def _files(folder: Path, patterns: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    found = sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()})
    return ((path.relative_to(folder).as_posix(), path.read_bytes()) for path in found)
