"""Where is a file or folder that a study names, and may it be read from there?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from evalspec.errors import InputError, naming

SETTINGS_FILE = "evalspec.toml"
"""What is said about a machine; its folder is the one that studies below it may read."""

HubKind = Literal["model", "dataset"]


def templates_folder() -> Path:
    """Return the folder of the report's templates: inside the package when installed, beside it in a checkout."""
    package = Path(__file__).parent
    installed = package / "templates"
    return installed if installed.is_dir() else package.parent / "templates"


def find_root(folder: Path) -> Path:
    """Return the folder that a study's paths may not leave: that of the nearest `evalspec.toml`, else the git repository's, else the study's."""
    folder = folder.resolve()
    around = (folder, *folder.parents)
    marked = (parent for parent in around if (parent / SETTINGS_FILE).is_file())
    repositories = (parent for parent in around if (parent / ".git").exists())
    return next(marked, None) or next(repositories, None) or folder


def resolve_inside(written: str, *, folder: Path, root: Path) -> Path:
    """Return the real path of `written`, read from `folder`; raises InputError when it leaves `root`, also through a link."""
    try:
        path = (folder / written).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a name too long for the system
        raise InputError(f"'{written}' cannot be looked up: {getattr(error, 'strerror', None) or error}") from error
    if not path.is_relative_to(root.resolve()):
        raise InputError(
            f"'{written}' leads outside the folder that this study may read from",
            hint="move the file inside, or put an evalspec.toml into the folder that holds both the study and the file",
        )
    return path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file for its owner alone, so that it is there whole or not at all; an OSError names it."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with naming(path):
        try:
            with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as stream:
                stream.write(content)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


def write_privately(path: Path, content: bytes) -> None:
    """Write a file of a cache folder as `write_whole` does; the folder is made where it is not there, and kept out of git."""
    keep_out_of_git(path.parent)
    write_whole(path, content)


def keep_out_of_git(cache: Path) -> None:
    """Make a cache folder, of which git takes no notice."""
    cache.mkdir(parents=True, exist_ok=True)
    ignored = cache / ".gitignore"
    if not ignored.exists():
        write_whole(ignored, b"*\n")


def can_be_written(path: Path) -> bool:
    """Return whether a file or folder can be made or changed: it, or the nearest folder above it that is there, may be written to."""
    nearest = nearest_existing(path)
    return os.access(nearest, os.W_OK) and (nearest == path or nearest.is_dir())


def nearest_existing(path: Path) -> Path:
    """Return the path itself where there is something, else the nearest folder above it."""
    return next(place for place in (path, *path.absolute().parents) if place.exists())


def hub_repository(cache: Path, *, kind: HubKind, name: str) -> Path:
    """Return the folder in which the local hub cache keeps a repository, whether it is there or not."""
    return cache / f"{kind}s--{name.replace('/', '--')}"


def hub_snapshot(cache: Path, *, kind: HubKind, name: str, revision: str) -> Path:
    """Return the folder of one fixed commit in the local hub cache; raises InputError, with the command that fetches it, when it is not there."""
    snapshot = hub_repository(cache, kind=kind, name=name) / "snapshots" / revision
    if not snapshot.is_dir():
        option = "" if kind == "model" else " --repo-type dataset"
        raise InputError(
            f"{kind} '{name}' at revision {revision} is not in the local hub cache ({cache})",
            hint=f"nothing is downloaded while a study runs; fetch it first: hf download {name}{option} --revision {revision}",
        )
    return snapshot
