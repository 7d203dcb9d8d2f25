"""What is installed, what is missing, and how is it got?"""

from __future__ import annotations

import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from evalspec.artifacts.base import JsonValue
from evalspec.errors import how_to_install
from evalspec.places import can_be_written, nearest_existing
from evalspec.reporting.pdf import is_loadable, missing_libraries

EXTRAS = {"score": ("torch", "transformers", "safetensors"), "report": ("weasyprint", "pyhanko", "fontTools"), "server": ("httpx2",)}
PURPOSES = {"score": "score models on this machine", "report": "render and seal the PDF", "server": "ask models behind a server"}
FOR_SOME = frozenset({"server"})
"""Extras that most studies can do without."""

PANGO_REMEDY = "Debian and Ubuntu: apt-get install libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0; macOS: brew install pango"
TOOLS = {"openssl": "check a seal without evalspec", "pdfsig": "check the PDF's signature without evalspec (package poppler-utils)"}


@dataclass(frozen=True, slots=True)
class Examination:
    """One thing that was looked at; `needed_for` says what does not work without it, `optional` that nothing of evalspec's own does."""

    name: str
    present: bool
    found: str
    needed_for: str
    remedy: str | None = None
    optional: bool = False

    def to_json(self) -> dict[str, JsonValue]:
        """Return the examination as a JSON object."""
        return asdict(self)


def examine(*, cache: Path, key: Path | None) -> tuple[Examination, ...]:
    """Look at Python, the extras, Pango, the free tools for verification, the cache folder and the key file."""
    return (
        _python(),
        *(_library(module, extra) for extra, modules in EXTRAS.items() for module in modules),
        _pango(),
        *_tools(),
        _cache(cache),
        *([] if key is None else [_key(key)]),
    )


def describe(found: Iterable[Examination]) -> str:
    """Return what was found, one line each, and what to do about whatever is missing."""
    rows = []
    for entry in found:
        rows.append(f"{'ok' if entry.present else 'absent' if entry.optional else 'MISSING':<8}{entry.name:<14}{entry.found}")
        if not entry.present:
            rows.append(f"{'':<22}needed to {entry.needed_for}" + (f": {entry.remedy}" if entry.remedy else ""))
    return "\n".join(rows)


def _python() -> Examination:
    present = sys.version_info >= (3, 11)
    return Examination("python", present, sys.version.split()[0], "run at all", None if present else "install Python 3.11 or newer")


def _library(module: str, extra: str) -> Examination:
    present = find_spec(module) is not None
    remedy = None if present else how_to_install(extra)
    found = _version(module) if present else "not installed"
    return Examination(module.lower(), present, found, PURPOSES[extra], remedy, optional=extra in FOR_SOME)


def _version(module: str) -> str:
    try:
        return version(module)
    except PackageNotFoundError:
        return "installed"


def _pango() -> Examination:
    missing = missing_libraries(is_loadable)
    found = "found" if not missing else "not found: " + ", ".join(missing)
    return Examination("pango", not missing, found, PURPOSES["report"], PANGO_REMEDY if missing else None)


def _tools() -> Iterator[Examination]:
    for tool, purpose in TOOLS.items():
        path = shutil.which(tool)
        remedy = None if path else f"install {tool} from your system's packages"
        yield Examination(tool, path is not None, path or "not found", purpose, remedy, optional=True)


def _cache(folder: Path) -> Examination:
    present = can_be_written(folder)
    remedy = None if present else f"make {nearest_existing(folder)} writable or give --cache"
    return Examination("cache folder", present, str(folder), "keep scored batches", remedy)


def _key(path: Path) -> Examination:
    if not path.is_file():
        return Examination(
            "signing key", present=False, found=f"{path}: no such file", needed_for="sign", remedy=f"evalspec keygen --organisation NAME --out {path}"
        )
    private = not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    remedy = None if private else f"chmod 600 {path}"
    return Examination("signing key", private, str(path) if private else f"{path} can be read by others", "sign", remedy)
