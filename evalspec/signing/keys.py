"""Where does the private key live?  In one PKCS#12 file, encrypted under a passphrase and readable by its owner alone."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12

from evalspec.errors import SigningError, UsageError
from evalspec.secret_files import write_once
from evalspec.signing.certificates import fingerprint_of, p256_key_of, self_signed

KDF_ROUNDS = 600_000  # OWASP's figure for PBKDF2-HMAC-SHA-256
LONGEST_NAME = 64  # ub-organization-name and ub-common-name of RFC 5280
MOST_YEARS = 10
LARGEST_KEY_FILE = 2**20
KEY_FILE_HINT = "give the passphrase of the key file in the environment variable EVALSPEC_KEY_PASSPHRASE, or at the prompt"


@dataclass(frozen=True, slots=True)
class NewKey:
    """A private key that was just made, and its certificate."""

    private: ec.EllipticCurvePrivateKey = field(repr=False)
    certificate: x509.Certificate

    @property
    def fingerprint(self) -> str:
        """The fingerprint to tell others over a second channel."""
        return fingerprint_of(self.certificate)


@dataclass(frozen=True, slots=True)
class FileSigner:
    """A signer whose key was read from a file; `note` warns when others can read that file."""

    private: ec.EllipticCurvePrivateKey = field(repr=False)
    certificate: x509.Certificate
    note: str | None = None

    @property
    def fingerprint(self) -> str:
        """`SHA256:` and the base64 of the SHA-256 of the public key (SPKI, DER)."""
        return fingerprint_of(self.certificate)

    @property
    def certificate_pem(self) -> bytes:
        """The signer's certificate."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def sign(self, message: bytes) -> bytes:
        """Return the ECDSA P-256 / SHA-256 signature of `message` in DER."""
        return self.private.sign(message, ec.ECDSA(hashes.SHA256()))


def make_key(organisation: str, *, years: int = 5) -> NewKey:
    """Make a P-256 key and a self-signed certificate for `organisation`; raises UsageError on a name or a time that no certificate can hold."""
    if not organisation.strip() or len(organisation) > LONGEST_NAME or not organisation.isprintable():
        raise UsageError(
            f"the organisation {organisation!r} cannot stand in a certificate",
            hint=f"give a name of 1 to {LONGEST_NAME} printable characters",
        )
    if not 1 <= years <= MOST_YEARS:
        raise UsageError(f"a certificate cannot be made for {years} years", hint=f"give 1 to {MOST_YEARS}")
    private = ec.generate_private_key(ec.SECP256R1())
    return NewKey(private, self_signed(private, organisation, years=years))


def write_key(path: Path, key: NewKey, passphrase: str | None) -> None:
    """Write key and certificate to a new file with mode 0600; None leaves it unencrypted.

    Raises SigningError when the file exists or cannot be written: a key is never overwritten.
    """
    if passphrase is not None and not passphrase:
        raise SigningError("the passphrase is empty", hint="give one, or ask for a key without passphrase explicitly")
    content = pkcs12.serialize_key_and_certificates(b"evalspec", key.private, key.certificate, None, _encryption(passphrase))
    if passphrase is not None:
        content = _without_mac(content)
    try:
        write_once(path, content)
    except FileExistsError as error:
        raise SigningError(f"{path} exists; a key file is never overwritten", hint="name another file, or move this one away") from error
    except OSError as error:
        raise SigningError(f"{path} cannot be written: {error.strerror}") from error


def load_signer(path: Path, passphrase: str | None) -> FileSigner:
    """Read a signer from a PKCS#12 file.

    Raises SigningError when the file is missing, the passphrase is wrong or the key is not on P-256.
    """
    try:
        with path.open("rb") as stream:
            content, mode = stream.read(LARGEST_KEY_FILE), os.fstat(stream.fileno()).st_mode
    except OSError as error:
        raise SigningError(f"the key file {path} cannot be read: {error.strerror}", hint="make one with `evalspec keygen`") from error
    secret = None if passphrase is None else _encoded(passphrase)
    try:
        private, certificate, _ = pkcs12.load_key_and_certificates(content, secret)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SigningError(f"the key file {path} does not open: wrong passphrase, or no PKCS#12 file", hint=KEY_FILE_HINT) from error
    if not isinstance(private, ec.EllipticCurvePrivateKey) or certificate is None:
        raise SigningError(f"the key file {path} must hold a P-256 key and its certificate", hint="make one with `evalspec keygen`")
    try:
        certified = p256_key_of(certificate)
    except ValueError as error:
        raise SigningError(f"the key file {path} cannot be used: {error}", hint="make one with `evalspec keygen`") from error
    if certified != private.public_key():
        raise SigningError(f"the certificate in {path} belongs to another key", hint="make the pair anew with `evalspec keygen`")
    return FileSigner(private, certificate, _note_on_mode(path, mode))


def _encryption(passphrase: str | None) -> serialization.KeySerializationEncryption:
    if passphrase is None:
        return serialization.NoEncryption()
    return (
        serialization.PrivateFormat.PKCS12.encryption_builder()
        .kdf_rounds(KDF_ROUNDS)
        .key_cert_algorithm(pkcs12.PBES.PBESv2SHA256AndAES256CBC)
        .hmac_hash(hashes.SHA256())
        .build(_encoded(passphrase))
    )


def _encoded(passphrase: str) -> bytes:
    try:
        return passphrase.encode()
    except UnicodeEncodeError as error:
        raise SigningError("the passphrase is not text in UTF-8", hint="set it again, in a terminal or a file that is in UTF-8") from error


def _without_mac(pfx: bytes) -> bytes:
    """Drop the optional MacData of a PKCS#12 file (RFC 7292, section 4: PFX = version, authSafe, macData OPTIONAL).

    `cryptography` makes it with 2,048 rounds of the same passphrase, so whoever steals the file could try passphrases against it
    three hundred times faster than against the encryption. The key is checked against its certificate on reading instead.
    """
    start, _ = _der_content(pfx, 0)
    _, after_version = _der_content(pfx, start)
    _, after_safe = _der_content(pfx, after_version)
    body = pfx[start:after_safe]
    return b"\x30\x82" + len(body).to_bytes(2, "big") + body


def _der_content(der: bytes, position: int) -> tuple[int, int]:
    """Return where the content of the DER element at `position` starts and ends."""
    length, start = der[position + 1], position + 2
    if length & 0x80:
        digits = length & 0x7F
        length, start = int.from_bytes(der[start : start + digits], "big"), start + digits
    return start, start + length


def _note_on_mode(path: Path, mode: int) -> str | None:
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        return f"the key file {path} has mode {stat.S_IMODE(mode):04o}, so other users of this machine may read it: chmod 600 {path}"
    return None
