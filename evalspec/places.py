"""Where is a file or folder that a study names, and may it be read from there?"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from evalspec.errors import InputError

HubKind = Literal["model", "dataset"]


def resolve_inside(written: str, *, folder: Path, root: Path) -> Path:
    """Return the real path of `written`, read from `folder`; raises InputError when it leaves `root`, also through a link."""
    path = (folder / written).resolve()
    if not path.is_relative_to(root.resolve()):
        raise InputError(
            f"'{written}' leads outside the folder that this study may read from",
            hint="move the file inside, or put an evalspec.toml into the folder that holds both the study and the file",
        )
    return path


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
