"""Whom does the reader trust?  Keys that came to the reader by another way than the report: never the folder's own certificate."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Self

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from evalspec.artifacts.base import FINGERPRINT_PATTERN, Fingerprint
from evalspec.errors import SigningError, UsageError
from evalspec.signing.certificates import fingerprint_of, holder_of, read_certificate
from evalspec.signing.files import printable, write_atomically
from evalspec.signing.trust_shape import SHAPE_HINT, TrustText

SIZE_LIMIT = 1024 * 1024
LONGEST_NAME = 200
WRONG_CLOCK = timedelta(days=1)
"""How far ahead a signer's clock may be: as far as one that was set to another time zone."""
HEADER = "# Keys whose signatures are trusted. Check each fingerprint with its owner over a second channel.\nsigners:\n"


def _written(time: Any) -> Any:  # Any: text of the file, or a time
    if isinstance(time, str) and not re.match(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d", time):
        raise ValueError("it is no date with a time of day")  # a bare number would be taken for seconds since 1970
    return time


def _in_utc(time: datetime) -> datetime:
    try:
        return time.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("the time lies outside the years 1 to 9999") from error


Instant = Annotated[AwareDatetime, BeforeValidator(_written), AfterValidator(_in_utc)]


def _readable(pem: str) -> str:
    read_certificate(pem.encode())
    return pem


class TrustedSigner(BaseModel):
    """A key that the reader has decided to trust, and from when to when."""

    # Not strict: every scalar of the file arrives as text.
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, max_length=LONGEST_NAME)
    fingerprint: Fingerprint
    certificate: Annotated[str, AfterValidator(_readable)]
    valid_from: Instant
    valid_until: Instant
    revoked_at: Instant | None = None

    @model_validator(mode="after")
    def _certificate_fits(self) -> Self:
        found = fingerprint_of(read_certificate(self.certificate.encode()))
        if found != self.fingerprint:
            raise ValueError(f"the certificate's key has the fingerprint {found}, not {self.fingerprint}")
        return self

    @classmethod
    def of(cls, certificate: x509.Certificate, *, name: str | None = None) -> Self:
        """Return the entry for a certificate, under the name that it claims unless another is given."""
        return cls(
            name=(name or printable(holder_of(certificate)))[:LONGEST_NAME],
            fingerprint=fingerprint_of(certificate),
            certificate=certificate.public_bytes(serialization.Encoding.PEM).decode("ascii"),
            valid_from=certificate.not_valid_before_utc,
            valid_until=certificate.not_valid_after_utc,
        )

    def faults(self, times: tuple[datetime, datetime]) -> Iterator[str]:
        """Yield why the entry does not hold, if so, at the time that the signature claims or now."""
        if self.revoked_at is not None:
            # Only an independent timestamp could show that a signature is older than the revocation.
            yield f"the key was revoked on {_day(self.revoked_at)}, and nothing but its own word dates this signature"
        yield from _outside(self.valid_from, self.valid_until, times, what="the trust in this key")
        certificate = read_certificate(self.certificate.encode())
        yield from _certificate_faults(certificate, times)


class _TrustFile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    signers: tuple[TrustedSigner, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _each_key_once(self) -> Self:
        for fingerprint, count in Counter(signer.fingerprint for signer in self.signers).items():
            if count > 1:
                raise ValueError(f"the fingerprint {fingerprint} stands there {count} times")
        return self


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a signer is trusted, under which name, and why not; `first_use` when trust begins with this very signature."""

    trusted: bool
    name: str
    reasons: tuple[str, ...] = ()
    first_use: bool = False

    def doubted(self, reasons: tuple[str, ...]) -> Judgement:
        """Return this judgement, without its trust where there are reasons against it."""
        return replace(self, trusted=False, first_use=False, reasons=(*self.reasons, *reasons)) if reasons else self


@dataclass(frozen=True, slots=True)
class Trust:
    """What the reader trusts: entries of a trust file, bare fingerprints, and whether an unknown name is remembered on first use."""

    entries: tuple[TrustedSigner, ...] = ()
    fingerprints: frozenset[str] = frozenset()
    memory: Path | None = None

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Trust the signers of a trust file (`--trust FILE`); raises SigningError when it cannot be read."""
        return cls(entries=read_trust(path))

    @classmethod
    def in_fingerprint(cls, fingerprint: str) -> Self:
        """Trust one key by its fingerprint (`--fingerprint FP`); raises UsageError when it is none."""
        padded = fingerprint.strip().rstrip("=") + "="
        if not re.fullmatch(FINGERPRINT_PATTERN, padded):
            raise UsageError(
                f"{printable(fingerprint)!r} is not a fingerprint", hint="copy it as `evalspec keygen` prints it: SHA256: and 44 characters"
            )
        return cls(fingerprints=frozenset({padded}))

    @classmethod
    def on_first_use(cls, memory: Path) -> Self:
        """Trust each name's first key and remember it in a file of the form of a trust file (`--tofu`)."""
        return cls(entries=read_trust(memory) if memory.exists() else (), memory=memory)

    def judge(self, certificate: x509.Certificate, *, signed_at: datetime, now: datetime) -> Judgement:
        """Say whether the holder of this certificate is trusted to have signed at the time claimed and still is."""
        fingerprint, claimed_name = fingerprint_of(certificate), printable(holder_of(certificate))[:LONGEST_NAME]
        times = (signed_at, now)
        known = {entry.fingerprint: entry for entry in self.entries}.get(fingerprint)
        if known is not None:
            faults = tuple(known.faults(times))
            return Judgement(not faults, known.name, faults)
        faults = tuple(_certificate_faults(certificate, times))
        if fingerprint in self.fingerprints:
            return Judgement(not faults, claimed_name, faults)
        if self.memory is not None and not self._knows_name(claimed_name):
            return Judgement(not faults, claimed_name, faults, first_use=not faults)
        return Judgement(trusted=False, name=claimed_name, reasons=(self._why_not(fingerprint, claimed_name),))

    def standing(self, certificate: x509.Certificate, *, signed_at: datetime, now: datetime) -> str:
        """Name the holder of another key, on which a part of a report rests, and say whether it is trusted; if not, why, where the file has it."""
        judgement = self.judge(certificate, signed_at=signed_at, now=now)
        if judgement.trusted and not judgement.first_use:
            return f"{judgement.name} (trusted)"
        known = fingerprint_of(certificate) in {entry.fingerprint for entry in self.entries}
        return f"{judgement.name} (NOT TRUSTED{': ' + '; '.join(judgement.reasons) if known else ''})"

    def revokes(self, certificate: x509.Certificate) -> bool:
        """Say whether the reader has taken back the trust in this key."""
        return any(entry.fingerprint == fingerprint_of(certificate) and entry.revoked_at is not None for entry in self.entries)

    def _knows_name(self, name: str) -> bool:
        return any(_alike(entry.name) == _alike(name) for entry in self.entries)

    def _why_not(self, fingerprint: str, name: str) -> str:
        if not self.entries and not self.fingerprints:
            return "no trust anchor was given, so the name in the certificate is only a claim: give --trust FILE, --fingerprint or --tofu"
        if self._knows_name(name):
            return f"{name!r} is known with another key: whoever signed with {fingerprint} may only have copied the name"
        return f"the key {fingerprint} is not among the trusted ones"


def _alike(name: str) -> str:
    """Return a name without what readers do not see: case, spaces around and within, compatibility forms."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def read_trust(path: Path) -> tuple[TrustedSigner, ...]:
    """Return the entries of a trust file; raises SigningError with every fault of its form."""
    return _parse(path, _text(path))


def write_trust(path: Path, entries: Iterable[TrustedSigner]) -> None:
    """Append entries whose key is not in the trust file yet; what stands there stays as it is.

    Raises SigningError when the file cannot be read or written.
    """
    present = read_trust(path) if path.exists() else ()
    known = {entry.fingerprint for entry in present}
    added = tuple({entry.fingerprint: entry for entry in entries if entry.fingerprint not in known}.values())
    if not added:
        return
    text = (_text(path).rstrip("\n") + "\n") if present else HEADER
    text += yaml.dump([entry.model_dump(mode="json", exclude_none=True) for entry in added], Dumper=_BlockDumper, sort_keys=False, allow_unicode=True)
    try:
        fits = _parse(path, text) == (*present, *added)
    except SigningError:
        fits = False
    if not fits:
        raise SigningError(f"nothing can be appended to {path} as it is laid out", hint="put its list of signers last, as unindented block entries")
    write_atomically(path, text.encode())


class _BlockDumper(yaml.SafeDumper):
    """Writes certificates as block text."""

    def represent_str(self, text: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_BlockDumper.add_representer(str, _BlockDumper.represent_str)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:  # a size that is asked for first says nothing about a device or a pipe
            content = stream.read(SIZE_LIMIT + 1)
    except OSError as error:
        raise SigningError(f"the trust file {path} cannot be read: {error.strerror}", hint=SHAPE_HINT) from error
    if len(content) > SIZE_LIMIT:
        raise SigningError(f"the trust file {path} is larger than {SIZE_LIMIT} bytes", hint=SHAPE_HINT)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SigningError(f"the trust file {path} is not right: it is not UTF-8, at byte {error.start + 1}", hint="save it as UTF-8") from error


def _parse(path: Path, text: str) -> tuple[TrustedSigner, ...]:
    written = TrustText(path, text)
    try:
        signers = _TrustFile.model_validate(written.content).signers
    except ValidationError as error:
        raise written.refused(error) from error
    faults = [
        written.fault(
            ("signers", place, "valid_until"), f"entry {place + 1} ends before it begins, so that nothing counts under it", "exchange the times"
        )
        for place, signer in enumerate(signers)
        if signer.valid_until < signer.valid_from
    ]
    if faults:
        raise SigningError(faults)
    return signers


def _certificate_faults(certificate: x509.Certificate, times: tuple[datetime, datetime]) -> Iterator[str]:
    signed_at, now = times
    if signed_at > now + WRONG_CLOCK:
        yield f"the signature claims a time that is still to come ({_day(signed_at)}), by the clock of this machine"
    yield from _outside(certificate.not_valid_before_utc, certificate.not_valid_after_utc, times, what="the certificate")


def _outside(start: datetime, end: datetime, times: tuple[datetime, ...], *, what: str) -> Iterator[str]:
    if any(time < start for time in times):
        yield f"{what} begins only on {_day(start)}"
    if any(time > end for time in times):
        yield f"{what} ended on {_day(end)}"


def _day(time: datetime) -> str:
    return time.astimezone(UTC).date().isoformat()
