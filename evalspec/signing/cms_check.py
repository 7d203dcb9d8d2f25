"""Does the signature container of a PDF hold?  CMS SignedData (RFC 5652) in the one form of a seal: PAdES B-B, one key, nothing else.

pyHanko checks such containers too, after a second's worth of imports for what no seal has: chains, time stamps, revocation.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from asn1crypto import cms, tsp
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from evalspec.signing.certificates import p256_key_of, read_der_certificate

ATTRIBUTES = ("content_type", "message_digest", "signing_certificate_v2")
"""What is signed beside the digest; ETSI EN 319 142-1, 6.3, forbids a second signing time here."""


@dataclass(frozen=True, slots=True)
class CmsSignature:
    """The certificate in a signature container, and what is wrong with the signature; no faults when it holds."""

    certificate: x509.Certificate
    faults: tuple[str, ...]


def check_cms(container: bytes, digest: bytes) -> CmsSignature:
    """Check the one signature in a container over a SHA-256 digest; raises ValueError when the container is of any other form."""
    signed = _signed_data(container)
    signer = _only(signed["signer_infos"], "signatures")
    enclosed = _only(signed["certificates"], "certificates")
    attributes = _attributes(signer)
    certificate = read_der_certificate(enclosed.chosen.dump())
    requirements = {
        "the signed digest does not match the file": attributes["message_digest"].native == digest,
        "the signature does not hold under its certificate": _holds(signer, p256_key_of(certificate)),
        "the signature names another certificate": _names(signer, attributes["signing_certificate_v2"], enclosed.chosen),
        "the certificate is not fit for signing documents": _is_fit(certificate),
    }
    return CmsSignature(certificate, tuple(fault for fault, met in requirements.items() if not met))


def _signed_data(container: bytes) -> cms.SignedData:
    """Read the container, whose rest is padding, and refuse what a seal does not have."""
    outer = cms.ContentInfo.load(container)
    signed, content = outer["content"], outer["content"]["encap_content_info"]
    if container.removeprefix(outer.dump()).strip(b"\0"):
        raise ValueError("the signature is followed by something else than zeros")
    if outer["content_type"].native != "signed_data" or content["content_type"].native != "data" or content["content"].native is not None:
        raise ValueError("the signature is not one over content outside of it")
    algorithms = [entry["algorithm"].native for entry in signed["digest_algorithms"]]
    if (signed["version"].native, algorithms, signed["crls"].native) != ("v1", ["sha256"], None):
        raise ValueError("the signature container must be of version 1, with SHA-256 alone and no revocation lists")
    return signed


def _only(entries: cms.SetOf, what: str) -> cms.Asn1Value:
    if entries.native is None or len(entries) != 1:
        raise ValueError(f"the signature container must hold one of its {what}; it holds {len(entries.native or ())}")
    return entries[0]


def _attributes(signer: cms.SignerInfo) -> dict[str, cms.Asn1Value]:
    """Return the signed attributes by name; each stands there once and has one value (RFC 5652, 5.3 and 11)."""
    algorithms = signer["digest_algorithm"]["algorithm"].native, signer["signature_algorithm"]["algorithm"].native
    if algorithms != ("sha256", "sha256_ecdsa"):
        raise ValueError(f"the signature must be made by ECDSA with SHA-256; it names {' and '.join(algorithms)}")
    if signer["version"].native != "v1" or signer["unsigned_attrs"].native is not None:
        raise ValueError("the signature must be of version 1, without unsigned attributes")
    found = [(attribute["type"].native, attribute["values"]) for attribute in signer["signed_attrs"]]
    if sorted(name for name, _ in found) != list(ATTRIBUTES) or any(len(values) != 1 for _, values in found):
        raise ValueError(f"the signed attributes must be {', '.join(ATTRIBUTES)}, with one value each; got {', '.join(name for name, _ in found)}")
    values = {name: values[0] for name, values in found}
    if values["content_type"].native != "data":
        raise ValueError("the signed content type is not `data`")
    return values


def _holds(signer: cms.SignerInfo, key: ec.EllipticCurvePublicKey) -> bool:
    # RFC 5652, 5.4: signed are the attributes under the tag of a SET OF, not under the one that they have in the container.
    message = signer["signed_attrs"].untag().dump()
    try:
        key.verify(signer["signature"].native, message, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def _names(signer: cms.SignerInfo, attribute: tsp.SigningCertificateV2, certificate: cms.Certificate) -> bool:
    """Say whether the signature is bound to this very certificate (RFC 5035) and the container names it as the signer's."""
    bound, named = attribute["certs"][0], signer["sid"]
    return bool(
        bound["hash_algorithm"]["algorithm"].native == "sha256"
        and bound["cert_hash"].native == hashlib.sha256(certificate.dump()).digest()
        and named.name == "issuer_and_serial_number"
        and named.chosen["serial_number"].native == certificate.serial_number
        and named.chosen["issuer"] == certificate.issuer
    )


def _is_fit(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.KeyUsage).value.content_commitment
    except x509.ExtensionNotFound:
        return False
