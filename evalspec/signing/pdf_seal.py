"""What does the signature inside a PDF say?  Read by a child process, since a hostile file could keep a PDF parser busy for hours."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from importlib.util import find_spec

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from evalspec import children
from evalspec.children import Limits
from evalspec.errors import how_to_install

LARGEST_PDF = 128 * 2**20
READING_LIMITS = Limits(wall_seconds=300, cpu_seconds=20, memory_bytes=2 * 2**30)
"""A report of a hundred pages takes a fifth of a second."""


@dataclass(frozen=True, slots=True)
class PdfSeal:
    """What a PDF's one signature says: faults (none when intact), the signer's certificate, its claimed time, the attachments it covers."""

    faults: tuple[str, ...]
    certificate: x509.Certificate | None = None
    signed_at: datetime | None = None
    attachments: Mapping[str, bytes] = field(default_factory=dict)

    def to_json(self) -> bytes:
        """Return the seal as the child hands it over."""
        der = self.certificate.public_bytes(serialization.Encoding.DER) if self.certificate else None
        return json.dumps(
            {
                "faults": self.faults,
                "certificate": None if der is None else _encode(der),
                "signed_at": None if self.signed_at is None else self.signed_at.isoformat(),
                "attachments": {name: _encode(content) for name, content in self.attachments.items()},
            }
        ).encode()

    @classmethod
    def from_json(cls, content: bytes) -> PdfSeal:
        """Read `to_json` back; raises ValueError for anything else."""
        parts = json.loads(content)
        return cls(
            tuple(parts["faults"]),
            None if parts["certificate"] is None else x509.load_der_x509_certificate(base64.b64decode(parts["certificate"])),
            None if parts["signed_at"] is None else datetime.fromisoformat(parts["signed_at"]),
            {name: base64.b64decode(text) for name, text in parts["attachments"].items()},
        )


@dataclass(frozen=True, slots=True)
class Unread:
    """Why the signature of a PDF could not be looked at: this says nothing for or against it."""

    why: str


def read_apart(content: bytes, limits: Limits = READING_LIMITS) -> PdfSeal | Unread:
    """Return what the PDF's signature says, or why that cannot be told here; whatever the bytes are, within the limits."""
    if len(content) > LARGEST_PDF:
        return Unread(f"the PDF is larger than {LARGEST_PDF} bytes")
    if find_spec("pyhanko") is None:
        return Unread(_not_installed("pyhanko"))
    command = children.command("evalspec.signing.pades_check", str(limits.cpu_seconds), str(limits.memory_bytes))
    try:
        done = subprocess.run(command, input=content, env=children.environment(), capture_output=True, timeout=limits.wall_seconds, check=False)  # noqa: S603 - our own module
    except subprocess.TimeoutExpired:
        return Unread(f"reading the PDF took more than {limits.wall_seconds} seconds")
    if done.returncode == 0:
        return PdfSeal.from_json(done.stdout)
    return Unread(_why_ended(done.returncode, done.stderr.decode(errors="replace"), limits))


def _why_ended(code: int, errors: str, limits: Limits) -> str:
    if library := children.absent_library(errors):
        return _not_installed(library)
    how = (errors.strip().splitlines() or ["no message"])[-1] if code > 0 else f"signal {-code}"
    return f"reading the PDF was ended ({how}); it may use {limits.cpu_seconds} seconds of processor time and {limits.memory_bytes // 2**20} MiB"


def _not_installed(library: str) -> str:
    return f"the library {library} is not installed: {how_to_install('report')}"


def _encode(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
