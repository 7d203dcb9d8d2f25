"""How does report.pdf carry its own signature?  PAdES B-B with the seal's key, as an incremental update that touches nothing before it."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO

from asn1crypto import algos, pem
from asn1crypto import x509 as asn1_x509
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.sign import fields, signers
from pyhanko_certvalidator.registry import SimpleCertificateStore

from evalspec.artifacts.base import sha256_hex
from evalspec.errors import SigningError
from evalspec.protocols import Signer

FIELD = "EvalspecSeal"
LONGEST_SIGNATURE = 72  # DER of two 256-bit integers


@dataclass(frozen=True, slots=True)
class SignedPdf:
    """A signed PDF; its first `unsigned_bytes` bytes are the PDF as it was rendered."""

    content: bytes
    unsigned_bytes: int
    unsigned_sha256: str


def sign_pdf(unsigned: bytes, signer: Signer) -> SignedPdf:
    """Sign a PDF so that no later change is permitted; raises SigningError when it is signed already or the result is not an extension."""
    writer = _UntouchedMetadata(BytesIO(unsigned))
    if writer.prev.embedded_signatures:
        raise SigningError("the PDF is signed already", hint="render the report anew before sealing it")
    metadata = signers.PdfSignatureMetadata(
        field_name=FIELD,
        md_algorithm="sha256",
        subfilter=fields.SigSeedSubFilter.PADES,
        certify=True,
        docmdp_permissions=fields.MDPPerm.NO_CHANGES,
    )
    # The widget is invisible and out of bounds: a visible one breaks PDF/A-3a and PDF/UA-1.
    field = fields.SigFieldSpec(
        FIELD,
        on_page=0,
        readable_field_name="Digital seal of this report",
        invis_sig_settings=fields.InvisSigSettings(set_print_flag=True, box_out_of_bounds=True),
    )
    signed = signers.sign_pdf(writer, metadata, signer=_PluggedSigner(signer), new_field_spec=field).getvalue()
    if not signed.startswith(unsigned):
        raise SigningError("signing the PDF changed bytes of the rendered report")
    return SignedPdf(signed, len(unsigned), sha256_hex(unsigned))


class _UntouchedMetadata(IncrementalPdfFileWriter):  # type: ignore[misc]  # pyHanko ships no types
    """Leaves producer and dates alone: rewriting the XMP metadata costs the conformance to PDF/A."""

    def _update_meta(self) -> None:
        return


class _PluggedSigner(signers.Signer):  # type: ignore[misc]  # pyHanko ships no types
    """pyHanko's interface to any `protocols.Signer`."""

    def __init__(self, signer: Signer) -> None:
        _, _, der = pem.unarmor(signer.certificate_pem)
        super().__init__(
            signing_cert=asn1_x509.Certificate.load(der),
            cert_registry=SimpleCertificateStore(),
            signature_mechanism=algos.SignedDigestAlgorithm({"algorithm": "sha256_ecdsa"}),
        )
        self._signer = signer

    async def async_sign_raw(self, data: bytes, digest_algorithm: str, dry_run: bool = False) -> bytes:  # noqa: FBT001, FBT002 - pyHanko's signature
        if digest_algorithm != "sha256":
            raise SigningError(f"the seal's key signs SHA-256 digests only; {digest_algorithm} was asked for")
        return bytes(LONGEST_SIGNATURE) if dry_run else self._signer.sign(data)
