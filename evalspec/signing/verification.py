"""What did checking a sealed report find?  The outcome, every fault by name, and the bytes that may be relied on."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from evalspec.artifacts.base import Artifact, Digest, sha256_hex
from evalspec.errors import SigningError
from evalspec.foreign import parse_bytes
from evalspec.signing.files import printable, read_regular
from evalspec.signing.statement import Statement

MOST_PATHS = 20


class Problem(Artifact):
    """One reason why content is not as it was signed."""

    kind: Literal["ALTERED", "MISSING", "UNLISTED", "SYMLINK", "SPECIAL", "SIGNATURE", "STATEMENT", "PDF", "LOCK", "EARLIER", "UNEXPECTED"]
    name: str
    detail: str = ""
    paths: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Render as one line, such as `ALTERED findings.json: signed 15aa8b… found 4eecd9…`, and one more per differing JSON path."""
        separator = " " if self.detail.startswith("(") else ": "
        return "\n  differs at ".join((self.kind + " " + self.name + (separator + self.detail if self.detail else ""), *self.paths))


class Expected(Artifact):
    """Which report the reader means, so that another genuine one cannot stand in: by the digest of its study.yaml, by its run, or by both."""

    study_sha256: Digest | None = None
    run_id: str | None = None

    def problems(self, study_sha256: str | None, run_id: str | None) -> tuple[Problem, ...]:
        """Return in what a report is another one than is meant; None stands for what it does not say."""
        told = (("study.yaml", self.study_sha256, study_sha256), ("run", self.run_id, run_id))
        return tuple(
            Problem(kind="UNEXPECTED", name=name, detail=f"this report is about {printable(found or 'no known one')}; expected {printable(wanted)}")
            for name, wanted, found in told
            if wanted is not None and wanted != found
        )


class SignerIdentity(Artifact):
    """Who signed: the name is the reader's own for a trusted key, and only the certificate's claim for any other."""

    name: str
    fingerprint: str


class Attachment(Artifact):
    """A file inside the PDF."""

    name: str
    sha256: Digest
    size: int


class Verification(Artifact):
    """The result of `verify`.

    `trusted` speaks of the signer alone and means nothing for content that is altered.
    `reasons` say why the signer is not trusted or what could not be checked; `notes` are worth knowing and change no outcome.
    """

    outcome: Literal["intact", "altered", "unchecked"]
    trusted: bool = False
    signer: SignerIdentity | None = None
    problems: tuple[Problem, ...] = ()
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    statement: Statement | None = None
    attachments: tuple[Attachment, ...] = ()

    @property
    def exit_code(self) -> Literal[0, 1, 3, 4]:
        """0 intact and trusted, 1 altered, 3 could not be checked, 4 intact but the signer is not trusted."""
        if self.outcome == "altered":
            return 1
        if self.outcome == "unchecked":
            return 3
        return 0 if self.trusted else 4

    @property
    def another(self) -> bool:
        """Whether the only fault is that the reader means another report."""
        return bool(self.problems) and all(problem.kind == "UNEXPECTED" for problem in self.problems)

    def describe(self) -> str:
        """Return the outcome in plain lines: what was found, every problem by name, who signed, and why that is or is not trusted."""
        headline = {
            "intact": "intact: every file is as it was signed" if self.statement else "intact: the PDF is as it was signed",
            "altered": "ALTERED: the content is not as it was signed" if not self.another else "ANOTHER REPORT than the expected one",
            "unchecked": "could not be checked",
        }[self.outcome]
        lines = [headline, *map(str, self.problems)]
        if self.signer is not None:
            standing = "trusted" if self.trusted else "NOT TRUSTED"
            lines.append(f"signer: {self.signer.name} ({standing}), key {self.signer.fingerprint}")
        lines += [*self.reasons, *(f"note: {note}" for note in self.notes)]
        if self.statement is not None:  # by which a reader tells it from another genuine report
            claimed = self.statement.predicate
            told = f"signed {claimed.created_at} by the signer's own word, of the study.yaml {claimed.study.sha256}"
            lines.append(f"report: run {printable(claimed.run_id)}, {told}")
        return "\n".join(lines)

    def read_verified(self, folder: Path, name: str) -> bytes:
        """Return a file's bytes if they are the signed ones at this moment; raises SigningError otherwise."""
        signed = self.statement.digests.get(name) if self.statement else None
        if signed is None:
            raise SigningError(f"{name} is not among the files that a verified signature covers")
        content = read_regular(folder, name)
        if sha256_hex(content) != signed:
            raise SigningError(f"{name} is not as it was signed: signed {signed}, found {sha256_hex(content)}")
        return content


def differing_paths(signed: bytes, found: bytes) -> tuple[str, ...]:
    """Return JSON pointers (RFC 6901) at which two JSON texts differ, the first twenty; none when one of them cannot be read."""
    try:
        paths = _differences(parse_bytes(signed, limit=len(signed)), parse_bytes(found, limit=len(found)))
    except ValueError:
        return ()
    if len(paths) > MOST_PATHS:
        return (*paths[:MOST_PATHS], f"{len(paths) - MOST_PATHS} more places")
    return tuple(paths)


def _differences(signed: JsonValue, found: JsonValue) -> list[str]:
    paths: list[str] = []
    pending: list[tuple[str, JsonValue, JsonValue]] = [("", signed, found)]
    while pending:
        pointer, first, second = pending.pop()
        if isinstance(first, dict) and isinstance(second, dict):
            paths.extend(f"{pointer}/{_token(key)}" for key in first.keys() ^ second.keys())
            pending.extend((f"{pointer}/{_token(key)}", first[key], second[key]) for key in first.keys() & second.keys())
        elif isinstance(first, list) and isinstance(second, list):
            shorter, longer = sorted((len(first), len(second)))
            paths.extend(f"{pointer}/{position}" for position in range(shorter, longer))
            pending.extend((f"{pointer}/{position}", *pair) for position, pair in enumerate(zip(first, second, strict=False)))
        elif type(first) is not type(second) or first != second:
            paths.append(pointer or "/")
    return sorted(paths)


def _token(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
