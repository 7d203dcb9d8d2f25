"""Where, when and with what did a run happen?  Attested in the ledger, compared with nothing."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from evalspec import __version__

PACKAGES = ("numpy", "scipy", "pydantic", "pyarrow", "torch", "transformers", "tokenizers", "weasyprint", "pyhanko", "cryptography")
MOST_VERSIONS = 100
NOTHING_FETCHED = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
"""So that git does not go to a remote, by a command that the repository names, for what a partial clone lacks."""

NUMERIC_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE", "CUBLAS_WORKSPACE_CONFIG")


@dataclass(frozen=True, slots=True)
class GitState:
    """The commit a file stands at, and whether the file differs from it; None where there is no repository or no git."""

    commit: str | None
    dirty: bool | None


def timestamp() -> str:
    """Return the present time in UTC, to the second, as ISO 8601."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def versions() -> dict[str, str]:
    """Return the version of evalspec, Python and of each library that can move a number or a page, where installed."""
    found = {"evalspec": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def environment() -> dict[str, str]:
    """Return the system and the variables that steer numerical libraries."""
    named = {name: os.environ[name] for name in NUMERIC_VARIABLES if name in os.environ}
    return {"system": platform.platform(), "processor": _processor(), "cores": str(os.cpu_count()), **named}


def host() -> str:
    """Return the machine's name."""
    return platform.node() or "unnamed"


def git_state(file: Path) -> GitState:
    """Return the commit that `file` stands at and whether its bytes differ from that commit's.

    `git status` is not asked: it may run a monitor or filters that a foreign repository configures.
    """
    commit = _git(file.parent, "rev-parse", "--verify", "HEAD")
    if commit is None:
        return GitState(None, None)
    content = file.read_bytes()
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    return GitState(commit, _git(file.parent, "rev-parse", "--verify", f"HEAD:./{file.name}") != blob)


def committed_versions(file: Path) -> tuple[bytes, ...] | None:
    """Return the contents that a file had in the commits that touched it, newest first, at most `MOST_VERSIONS`; None where there is no repository.

    Only plumbing is asked, which runs nothing that a foreign repository configures.
    """
    listed = _git(file.parent, "rev-list", f"--max-count={MOST_VERSIONS}", "HEAD", "--", file.name)
    if listed is None:
        return None
    found = (_git_bytes(file.parent, "cat-file", "blob", f"{commit}:./{file.name}") for commit in listed.split())
    return tuple(content for content in found if content is not None)


def _git(folder: Path, *arguments: str) -> str | None:
    found = _git_bytes(folder, *arguments)
    return None if found is None else found.decode(errors="replace").strip()


def _git_bytes(folder: Path, *arguments: str) -> bytes | None:
    environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ} | NOTHING_FETCHED
    command = ["git", "-C", str(folder), "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, timeout=20, check=False, env=environment)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
