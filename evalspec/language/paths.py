"""Are the files and folders that the study names there, and may they be read?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path, PureWindowsPath
from typing import Literal

from evalspec.artifacts.outside import OutsideTable
from evalspec.language.draft import Draft
from evalspec.language.faults import Fault, closest, lookup
from evalspec.language.positions import Pointer
from evalspec.language.scalars import quoted
from evalspec.language.shapes import places_of
from evalspec.places import SETTINGS_FILE

QUESTION_ENDINGS = (".jsonl", ".csv", ".parquet")
GGUF_ENDINGS = (".gguf",)
RECORD_ENDINGS = (".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".parquet")

Wanted = Literal["file", "folder"]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The folder that paths are read from, and the one that they may not leave."""

    folder: Path
    root: Path


def paths(draft: Draft, surroundings: Surroundings) -> Iterator[Fault]:
    """Yield a fault for every local file or folder that is not there, may not be read, or is not the one declared."""
    for pointer, model in draft.entries("model"):
        yield from _source(model.get("source"), (*pointer, "source"), "path", "folder", surroundings)
        yield from _source(model.get("source"), (*pointer, "source"), "responses", "file", surroundings)
        yield from _source(model.get("source"), (*pointer, "source"), "gguf", "file", surroundings)
        yield from _source(model.get("source"), (*pointer, "source"), "run", "folder", surroundings)
    for pointer, benchmark in draft.entries("benchmark"):
        yield from _source(benchmark.get("source"), (*pointer, "source"), "file", "file", surroundings)
        examples = lookup(benchmark, ("scoring", "examples", "source"))
        yield from _source(examples, (*pointer, "scoring", "examples", "source"), "file", "file", surroundings)
    for pointer, table in places_of(draft.document, draft.content, OutsideTable):
        yield from _source(table, pointer, "path", "file", surroundings)


def _source(source: object, pointer: Pointer, key: str, wanted: Wanted, surroundings: Surroundings) -> Iterator[Fault]:
    written = source.get(key) if isinstance(source, dict) else None
    if not isinstance(source, dict) or not isinstance(written, str):
        return
    place = (*pointer, key)
    fault = _spelling(written, place) or _whereabouts(written, place, wanted, surroundings) or _ending(written, place, key)
    if fault:
        yield fault
        return
    declared = source.get("sha256")
    if isinstance(declared, str):
        yield from _digest(surroundings.folder / written, written, declared, (*pointer, "sha256"))


def _spelling(written: str, place: Pointer) -> Fault | None:
    """Return why a path cannot be what is meant, whatever is on the disk."""
    relative = "write it as seen from the study's folder"
    if "\0" in written:
        return Fault(place, "a path cannot hold the character U+0000")
    if written.startswith("~"):
        return Fault(place, f"{quoted(written)} begins with ~, which is not expanded", relative)
    if "://" in written:
        return Fault(place, f"{quoted(written)} is an address; a study reads local files only", "fetch the file and name it")
    if Path(written).is_absolute() or PureWindowsPath(written).anchor:
        return Fault(place, f"{quoted(written)} is an absolute path, which another machine does not have", relative)
    return None


def _whereabouts(written: str, place: Pointer, wanted: Wanted, surroundings: Surroundings) -> Fault | None:
    """Return why there is no such file or folder inside the root."""
    root = surroundings.root.resolve()
    path = surroundings.folder.resolve() / written
    try:
        real = path.resolve()
        is_wanted = real.is_file() if wanted == "file" else real.is_dir()
        exists = real.exists()
    except (OSError, RuntimeError) as error:  # a name too long for the system, or a loop of links
        return Fault(place, f"{quoted(written)} cannot be looked up: {getattr(error, 'strerror', None) or error}")
    if not real.is_relative_to(root):
        how = "leads" if not _lexically(path).is_relative_to(root) else "leads, through a symbolic link,"
        above = "/".join(takewhile(lambda part: part == "..", Path(written).parts))
        which = f", {quoted(above)} as seen from the study; an empty one will do" if above and how == "leads" else ""
        hint = f"move it inside, or put an {SETTINGS_FILE} into the folder that holds both the study and the {wanted}{which}"
        return Fault(place, f"{quoted(written)} {how} out of the folder that this study may read ({quoted(root.name)})", hint)
    if is_wanted:
        return None
    if exists:
        sort = "a folder" if real.is_dir() else "a file" if real.is_file() else "neither a file nor a folder"
        return Fault(place, f"{quoted(written)} is {sort}; a {wanted} is needed here")
    return Fault(place, f"there is no {wanted} {quoted(written)}", _sibling(written, path, wanted))


def _lexically(path: Path) -> Path:
    """Return the path with .. taken out by the letter, links not followed."""
    parts: list[str] = []
    for part in path.absolute().parts:
        if part == "..":
            parts = parts[:-1] if len(parts) > 1 else parts
        else:
            parts.append(part)
    return Path(*parts)


def _sibling(written: str, path: Path, wanted: Wanted) -> str | None:
    """Return the name beside it that looks most like what was written."""
    folder = path.parent
    if not folder.is_dir():
        return f"there is no folder {quoted(str(Path(written).parent))} either"
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_file() == (wanted == "file"))
    close = closest(path.name, names)
    return f'did you mean "{close}"?' if close else "paths are read from the folder of the study file"


def _ending(written: str, place: Pointer, key: str) -> Fault | None:
    endings = {"file": QUESTION_ENDINGS, "responses": RECORD_ENDINGS, "gguf": GGUF_ENDINGS}.get(key)
    if endings and not written.lower().endswith(endings):
        return Fault(place, f"{quoted(written)} must end in one of {', '.join(endings)}", "the ending tells how the file is read")
    return None


def _digest(path: Path, written: str, declared: str, place: Pointer) -> Iterator[Fault]:
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        yield Fault(place, f"{quoted(written)} cannot be read: {error.strerror}")
        return
    if found != declared:
        message = f"{quoted(written)} is not the file that the study declares: its SHA-256 is {found}, declared is {declared}"
        yield Fault(place, message, "get the declared file back, or declare the digest of the file that you mean")
