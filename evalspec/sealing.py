"""With which key is a run signed?  One from a file, opened by its passphrase, or one made for this run alone."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from evalspec.errors import SigningError, UsageError
from evalspec.protocols import Signer
from evalspec.settings import PASSPHRASE_VARIABLE, Settings
from evalspec.signing.keys import FileSigner, load_signer, make_key
from evalspec.signing.trust import TrustedSigner, read_trust, write_trust

THROW_AWAY = "evalspec throw-away key"


@dataclass(frozen=True, slots=True)
class PublicPart:
    """The public part of a throw-away key, and the trust file that it is for."""

    file: Path
    entry: TrustedSigner


@dataclass(frozen=True, slots=True)
class Seal:
    """A key to sign with; only a key that was made for this run alone has a `public` part, which nobody could have otherwise."""

    signer: Signer
    name: str
    public: PublicPart | None = None

    @property
    def throw_away(self) -> bool:
        """Whether the key was made for this run alone."""
        return self.public is not None

    def publish(self) -> None:
        """Write the public part of a throw-away key in the place of an earlier one's."""
        if self.public is not None:
            self.public.file.parent.mkdir(parents=True, exist_ok=True)
            self.public.file.unlink(missing_ok=True)
            write_trust(self.public.file, (self.public.entry,))


def seal_from(settings: Settings, out: Path, *, warn: Callable[[str], None]) -> Seal:
    """Return the configured key; without one a throw-away key, whose public part belongs beside the run directory `out`.

    Raises SigningError when the key does not open, UsageError when the public part would replace somebody else's trust file.
    """
    if settings.key is not None:
        signer = _open(settings.key, settings.passphrase)
        if signer.note:
            warn(signer.note)
        return Seal(signer, TrustedSigner.of(signer.certificate).name)
    key = make_key(THROW_AWAY, years=1)
    beside = out if out.name not in {"", ".."} else out.resolve()
    file = settings.trust_out or beside.with_name(f"{beside.name}.trust.yaml")
    if file.exists() and {entry.name for entry in read_trust(file)} != {THROW_AWAY}:
        raise UsageError(f"{file} holds keys that you trust; a throw-away key does not replace it", hint="name another file with --trust-out")
    return Seal(FileSigner(key.private, key.certificate), THROW_AWAY, PublicPart(file, TrustedSigner.of(key.certificate)))


def new_passphrase() -> str:
    """Return the passphrase for a new key, from the environment or asked for twice; raises UsageError when there is none."""
    if given := os.environ.get(PASSPHRASE_VARIABLE):
        return given
    if not sys.stdin.isatty():
        raise UsageError("a key needs a passphrase", hint=f"set {PASSPHRASE_VARIABLE}, or give --no-passphrase for a key that is protected otherwise")
    first = _asked("passphrase for the new key: ")
    if not first or first != _asked("once more: "):
        raise UsageError("the two passphrases differ or are empty", hint="nothing was written; try again")
    return first


def _open(path: Path, passphrase: str | None) -> FileSigner:
    """Read the key; ask for the passphrase where one is needed, none was given and there is somebody to ask."""
    try:
        return load_signer(path, passphrase)
    except SigningError:
        if passphrase is not None or not path.is_file() or not sys.stdin.isatty():
            raise
    return load_signer(path, _asked(f"passphrase of {path}: "))


def _asked(prompt: str) -> str:
    try:
        return getpass.getpass(prompt)
    except EOFError as error:  # Ctrl-D
        raise UsageError("no passphrase was given", hint=f"type one, or set {PASSPHRASE_VARIABLE}") from error
