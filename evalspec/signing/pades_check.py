"""Does the signature inside a PDF cover every byte of it, and what is attached?  Whose key it is, is judged elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from io import BytesIO

from cryptography import x509
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign import fields
from pyhanko.sign.validation import EmbeddedPdfSignature, SignatureCoverageLevel, validate_pdf_signature
from pyhanko.sign.validation.pdf_embedded import read_certification_data
from pyhanko_certvalidator import ValidationContext


@dataclass(frozen=True, slots=True)
class PdfSeal:
    """What a PDF's one signature says: faults (none when intact), the signer's certificate, its claimed time, the attachments it covers."""

    faults: tuple[str, ...]
    certificate: x509.Certificate | None = None
    signed_at: datetime | None = None
    attachments: Mapping[str, bytes] = field(default_factory=dict)


def read_seal(content: bytes) -> PdfSeal:
    """Check the one signature of a PDF and read what it covers; faults are reported, never raised."""
    try:
        reader = PdfFileReader(BytesIO(content))
        # pyHanko's own count leaves out signatures of kinds unknown to it.
        count = sum(1 for _ in fields.enumerate_sig_fields(reader))
        if count != 1 or len(reader.embedded_signatures) != 1:
            return PdfSeal((f"the PDF has {count} signatures; exactly one is allowed",))
        return _check(reader, reader.embedded_signatures[0], content)
    except Exception as error:  # noqa: BLE001 - a hostile file can make a PDF parser raise anything; whatever it is, the file is not intact
        return PdfSeal((f"the PDF cannot be read as a signed one ({type(error).__name__}: {error})",))


def _check(reader: PdfFileReader, signature: EmbeddedPdfSignature, content: bytes) -> PdfSeal:
    certificate = signature.signer_cert
    # The certificate is its own root here, at a time when it was valid: this checks its use and form, not whom the reader trusts.
    context = ValidationContext(trust_roots=[certificate], moment=certificate.not_valid_before, allow_fetching=False)
    # Comparing revisions costs many seconds and decides nothing: a file with anything after the signature is refused below.
    status = validate_pdf_signature(signature, context, skip_diff=True)
    certification = read_certification_data(reader)
    requirements = {
        "the signed digest does not match the file": status.intact,
        "the signature does not hold under its certificate": status.valid,
        "the certificate is not fit for signing documents": status.trusted or not (status.intact and status.valid),
        "the signature does not cover the entire file": status.coverage == SignatureCoverageLevel.ENTIRE_FILE and _covers_all(signature, content),
        "the digest is not SHA-256": status.md_algorithm == "sha256",
        "the signature does not forbid changes": certification is not None and certification.permission == fields.MDPPerm.NO_CHANGES,
    }
    faults = tuple(fault for fault, met in requirements.items() if not met)
    return PdfSeal(
        faults,
        x509.load_der_x509_certificate(certificate.dump()),
        signature.self_reported_timestamp,
        {} if faults else _attachments(reader),
    )


def _covers_all(signature: EmbeddedPdfSignature, content: bytes) -> bool:
    """Say whether all bytes are signed but the hexadecimal string that holds the signature itself."""
    start, before, after, length = (int(number) for number in signature.byte_range)
    hole = content[before:after]
    return (
        start == 0
        and after + length == len(content)
        and hole[:1] == b"<"
        and hole[-1:] == b">"
        and bytes.fromhex(hole[1:-1].decode("ascii")) == signature.pkcs7_content
    )


def _attachments(reader: PdfFileReader) -> dict[str, bytes]:
    """Read the files attached in a flat name tree (ISO 32000-1, 7.9.6), as WeasyPrint writes it; only indexing resolves references."""
    attached: dict[str, bytes] = {}
    if "/Names" not in reader.root or "/EmbeddedFiles" not in reader.root["/Names"]:
        return attached
    entries = reader.root["/Names"]["/EmbeddedFiles"]["/Names"]
    for position in range(1, len(entries), 2):
        specification = entries[position]
        name = str(specification["/UF"] if "/UF" in specification else specification["/F"])
        if name in attached:
            raise ValueError(f"two attachments are named {name!r}")
        attached[name] = bytes(specification["/EF"]["/F"].data)
    return attached
