"""What are the digests of large files?  Read in pieces, and remembered for files that have not been touched since."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from evalspec.artifacts.base import canonical_json
from evalspec.foreign import parse_json

SHA256 = re.compile(r"[0-9a-f]{64}")

FileDigester = Callable[[Path], str]
"""Gives the SHA-256 of a file in lower-case hexadecimal."""


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class RememberedDigests:
    """A `FileDigester` that reads a file again only when its path, size, inode or a time of its last change differs from what is remembered.

    The second of these times (`st_ctime`) cannot be set; who turns the clock back deceives it. Scoring reads every weight file against its digest.
    """

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self.known = dict(known or {})

    def __call__(self, path: Path) -> str:
        """Return the SHA-256 of a file."""
        real = path.resolve()
        state = real.stat()
        key = f"{real}|{state.st_size}|{state.st_mtime_ns}|{state.st_ctime_ns}|{state.st_ino}"
        if key not in self.known:
            self.known[key] = file_sha256(real)
        return self.known[key]

    @classmethod
    def from_json(cls, content: bytes) -> RememberedDigests:
        """Read what was remembered; content that does not fit is forgotten, since every digest can be made again."""
        try:
            known = parse_json(content.decode())
        except ValueError:
            return cls()
        digests = {file: digest for file, digest in known.items() if isinstance(digest, str)} if isinstance(known, dict) else {}
        fits = isinstance(known, dict) and len(digests) == len(known) and all(map(SHA256.fullmatch, digests.values()))
        return cls(digests if fits else None)

    def to_json(self) -> bytes:
        """Return what is remembered."""
        return canonical_json(self.known)
