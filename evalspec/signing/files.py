"""Which files does a folder hold, and what are their bytes?  Links are never followed, names never trusted."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from evalspec.errors import SigningError

LARGEST_FILE = 2**30
"""Bytes of the largest file that is sealed; a larger one is not read, since it can only be another file than the sealed one."""

LONGEST_FOLDER = 1000
"""Characters in the name of a folder that is entered; no seal has such names, and systems open only paths of some thousand bytes."""

_PART = re.compile(r"[A-Za-z0-9._+@=][A-Za-z0-9._+@=-]{0,199}")  # no leading dash: file names also stand on command lines


@dataclass(frozen=True, slots=True)
class Listing:
    """POSIX paths relative to a folder, sorted: regular files, symbolic links, what is neither, and empty folders.

    What is neither are sockets, pipes, devices, and folders too deep to enter. A folder's name ends in a slash; an empty one is told since its
    name alone can say something.
    """

    regular: tuple[str, ...]
    links: tuple[str, ...]
    special: tuple[str, ...]
    empty: tuple[str, ...]


def list_files(folder: Path) -> Listing:
    """List everything below `folder` but directories that hold something, without following a link; raises SigningError when it cannot be read."""
    regular, links, special, empty = list[str](), list[str](), list[str](), list[str]()
    pending = [""]
    try:
        while pending:
            prefix, holds = pending.pop(), False
            with os.scandir(folder / prefix) as entries:
                for entry in entries:
                    name, holds = prefix + entry.name, True
                    if entry.is_symlink():
                        links.append(name)
                    elif entry.is_dir(follow_symlinks=False):
                        (special if len(name) >= LONGEST_FOLDER else pending).append(name + "/")
                    elif entry.is_file(follow_symlinks=False):
                        regular.append(name)
                    else:
                        special.append(name)
            if prefix and not holds:
                empty.append(prefix)
    except OSError as error:
        raise SigningError(f"{printable(str(folder / prefix))} cannot be read: {error.strerror}") from error
    return Listing(*(tuple(sorted(names)) for names in (regular, links, special, empty)))


def sha256_of(folder: Path, name: str) -> str:
    """Return the SHA-256 of a regular file, read in pieces; raises ValueError when it is larger than a sealed file, SigningError when unreadable."""
    with _open_regular(folder, name) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > LARGEST_FILE:
            raise ValueError(f"{name} has {size} bytes; a sealed file has at most {LARGEST_FILE}")
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_regular(folder: Path, name: str, *, limit: int | None = None) -> bytes:
    """Return the bytes of a regular file; with `limit` at most one byte more than that, so that an excess shows."""
    with _open_regular(folder, name) as stream:
        return stream.read(-1 if limit is None else limit + 1)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file, and its folder if need be, so that it is there whole or not at all; raises SigningError when it cannot be written."""
    partial = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with partial.open("xb") as stream:  # neither through a link nor over another writer's
                stream.write(content)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise SigningError(f"{path} cannot be written: {error.strerror}") from error


def name_faults(names: Iterable[str]) -> tuple[str, ...]:
    """Say what is wrong with relative POSIX paths as names of signed files; two names may not differ in letter case alone."""
    faults = []
    seen: dict[str, str] = {}
    for name in names:
        if not all(_PART.fullmatch(part) and part not in {".", ".."} for part in name.split("/")):
            faults.append(
                f"the name {printable(name)!r} is not allowed: a relative path with / between its parts, each of letters, digits "
                "and . _ + @ = - (not first), is"
            )
        folded = name.casefold()
        if folded in seen:
            faults.append(f"the names {printable(seen[folded])!r} and {printable(name)!r} are one file on some systems")
        seen[folded] = name
    return tuple(faults)


def printable(name: str) -> str:
    """Return a name with everything escaped that could disturb or deceive a terminal."""
    return "".join(character if character.isprintable() else character.encode("unicode_escape", "surrogatepass").decode() for character in name)


def _open_regular(folder: Path, name: str) -> BufferedReader:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        stream = os.fdopen(os.open(folder / name, flags), "rb")
    except OSError as error:
        raise SigningError(f"{printable(str(folder / name))} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise SigningError(f"{printable(str(folder / name))} is not a regular file")
    return stream
