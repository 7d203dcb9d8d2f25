"""How is a signer known to others?  One P-256 certificate, and the fingerprint of the key in it."""

from __future__ import annotations

import base64
import hashlib
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DOCUMENT_SIGNING = x509.ObjectIdentifier("1.3.6.1.5.5.7.3.36")  # RFC 9336, id-kp-documentSigning


def fingerprint(spki: bytes) -> str:
    """Return `SHA256:` and the base64 of the SHA-256 of a public key (SubjectPublicKeyInfo, DER)."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(spki).digest()).decode("ascii")


def fingerprint_of(certificate: x509.Certificate) -> str:
    """Return the fingerprint of the key in a certificate."""
    return fingerprint(certificate.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo))


def holder_of(certificate: x509.Certificate) -> str:
    """Return the name that a certificate claims for its holder: a claim only, since anybody can write any name."""
    for kind in (NameOID.ORGANIZATION_NAME, NameOID.COMMON_NAME):
        for attribute in certificate.subject.get_attributes_for_oid(kind):
            if isinstance(attribute.value, str):
                return attribute.value
    return "no name"


def p256_key_of(certificate: x509.Certificate) -> ec.EllipticCurvePublicKey:
    """Return the certificate's key; raises ValueError when it is not on the curve P-256."""
    try:
        key = certificate.public_key()
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ValueError("the key in the certificate is not on the curve P-256, the only one that evalspec accepts")  # noqa: TRY004 - content, not a caller's type
    return key


def read_certificate(pem: bytes) -> x509.Certificate:
    """Return the certificate in PEM bytes; raises ValueError when there is none, a part cannot be read, or its key is not on P-256."""
    return _read(x509.load_pem_x509_certificate, pem, "this is not a certificate in PEM form")


def read_der_certificate(der: bytes) -> x509.Certificate:
    """Return the certificate in DER bytes; raises ValueError as `read_certificate` does."""
    return _read(x509.load_der_x509_certificate, der, "this is not a certificate")


def self_signed(key: ec.EllipticCurvePrivateKey, organisation: str, *, years: int) -> x509.Certificate:
    """Make the certificate by which a new key is known: for document signing, valid from today on."""
    name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation), x509.NameAttribute(NameOID.COMMON_NAME, organisation)])
    start = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    public = key.public_key()
    builder = (
        x509.CertificateBuilder(issuer_name=name, subject_name=name, public_key=public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=365 * years + years // 4))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_document_signing_usage(), critical=True)
        .add_extension(x509.ExtendedKeyUsage([DOCUMENT_SIGNING]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(public), critical=False)
    )
    return builder.sign(key, hashes.SHA256())


def _read(load: Callable[[bytes], x509.Certificate], content: bytes, refusal: str) -> x509.Certificate:
    """Load a certificate and read every part that is looked at later, since parts are parsed only then."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # remarks on odd numbers and names
            certificate = load(content)
            holder_of(certificate)
            _ = certificate.not_valid_before_utc, certificate.not_valid_after_utc, certificate.extensions
    except Exception as error:  # a hostile certificate makes the library raise ValueError, TypeError, InvalidVersion and others
        raise ValueError(refusal) from error
    p256_key_of(certificate)
    return certificate


def _document_signing_usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=True,  # PDF validators ask for it ("non-repudiation")
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
