"""How is work done apart?  In a child process that may use so much time and memory, sees no secrets and imports nothing from the current folder."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "WEASYPRINT_DLL_DIRECTORIES", "SYSTEMROOT", "VIRTUAL_ENV")
"""Environment variables that a child needs to find Python and its libraries; no others reach it, so no secrets do."""


_ROOT = str(Path(__file__).parents[1])


@dataclass(frozen=True, slots=True)
class Limits:
    """What a child may use before it is stopped."""

    wall_seconds: int = 1800
    cpu_seconds: int = 900
    memory_bytes: int = 4 * 2**30


def command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of this package.

    `-P` keeps the current folder off the path of imports: it may be somebody else's report or study, with a json.py in it.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def environment() -> dict[str, str]:
    """Return what a child needs to know to find Python, its libraries and this package."""
    passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {**passed, "PYTHONPATH": _ROOT, "LC_ALL": "C.UTF-8"}


def python_path() -> dict[str, str]:
    """Return the variable by which a child finds this package, before whatever stands in it already."""
    return {"PYTHONPATH": os.pathsep.join([_ROOT, *filter(None, [os.environ.get("PYTHONPATH")])])}


def absent_library(errors: str) -> str | None:
    """Return the library for the lack of which a child ended, by what it wrote to its standard error; None when it ended otherwise."""
    named = re.search(r"^ModuleNotFoundError: No module named '(\w+)", errors, flags=re.MULTILINE)
    return named[1] if named else None


def limit_self(*, cpu_seconds: int, memory_bytes: int) -> None:
    """Let the system end this process when it has used so much: the child's side of `Limits`."""
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 - it does not exist on Windows, where only the wall clock limits a child

        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
        if sys.platform != "darwin":  # macOS refuses this limit
            resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
