"""Which bytes hold the questions of a benchmark?  A file beside the study, or a data set in the local hub cache."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evalspec.artifacts.base import sha256_hex
from evalspec.artifacts.sources import HubQuestions, QuestionFile
from evalspec.errors import InputError
from evalspec.foreign import LARGEST_FILE, read_file
from evalspec.importing.rows import ENDINGS
from evalspec.places import hub_repository, hub_snapshot, resolve_inside


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file: how messages call it, and its content."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class FoundSource:
    """The files of a source in name order, how the report names it, and its digest.

    The digest of one file is its SHA-256; that of several is the SHA-256 over their raw SHA-256 digests in name order.
    """

    named: str
    files: tuple[SourceFile, ...]
    sha256: str


def read_file_source(source: QuestionFile, *, folder: Path, root: Path) -> FoundSource:
    """Return the question file, its digest checked when the study declares one; raises InputError when it cannot be used."""
    file = SourceFile(source.file, read_file(resolve_inside(source.file, folder=folder, root=root), name=source.file))
    digest = sha256_hex(file.content)
    if source.sha256 is not None and source.sha256 != digest:
        raise InputError(
            f"{source.file} is not the file that the study declares: its SHA-256 is {digest}, declared is {source.sha256}",
            hint="get the declared file back, or declare the digest of the file that you mean",
        )
    return FoundSource(source.file, (file,), digest)


def read_hub_source(source: HubQuestions, *, hub_cache: Path) -> FoundSource:
    """Return the files of one split of a cached data set; raises InputError when they are not there."""
    snapshot = hub_snapshot(hub_cache, kind="dataset", name=source.hub, revision=source.revision)
    repository = hub_repository(hub_cache, kind="dataset", name=source.hub).resolve()
    files: list[SourceFile] = []
    for path in _split_files(source, snapshot):
        name = f"{source.hub}/{path.relative_to(snapshot).as_posix()}"
        if not path.resolve().is_relative_to(repository):
            raise InputError(f"{name} is a link that leads out of the hub cache's folder of this data set")
        room = LARGEST_FILE - sum(len(file.content) for file in files)
        files.append(SourceFile(name, read_file(path.resolve(), name=name, limit=room)))
    digests = [hashlib.sha256(file.content) for file in files]
    whole = digests[0] if len(digests) == 1 else hashlib.sha256(b"".join(digest.digest() for digest in digests))
    config = f"{source.config}, " if source.config else ""
    return FoundSource(f"{source.hub}@{source.revision} ({config}{source.split})", tuple(files), whole.hexdigest())


def _split_files(source: HubQuestions, snapshot: Path) -> tuple[Path, ...]:
    for pattern in _patterns(source.config, source.split):
        found = tuple(sorted(path for path in snapshot.glob(pattern) if path.suffix in ENDINGS and path.is_file()))
        if found:
            return found
    present = sorted(path.relative_to(snapshot).as_posix() for path in snapshot.rglob("*") if path.suffix in ENDINGS)
    cached = f"in the cache are {', '.join(present[:10])}{', ...' if len(present) > 10 else ''}" if present else "no question file is in the cache"
    raise InputError(
        f"data set '{source.hub}': no file of split '{source.split}'{f' of config {source.config!r}' if source.config else ''} is cached; {cached}",
        hint=f"name its config and split as the data set does, or fetch it: "
        f"hf download {source.hub} --repo-type dataset --revision {source.revision}",
    )


def _patterns(config: str | None, split: str) -> Iterator[str]:
    """Give the places where data sets keep a split, the most specific ones first."""
    folders = (f"{config}/", f"data/{config}/") if config else ("data/", "", "default/")
    for folder in folders:
        yield f"{folder}{split}-*-of-*.*"
        yield f"{folder}{split}/*.*"
        yield f"{folder}{split}.*"
    if config:
        yield f"{config}_{split}.*"
        if config == "default":
            yield from _patterns(None, split)
