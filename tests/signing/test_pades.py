from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import pytest

from evalspec.artifacts.base import sha256_hex
from evalspec.errors import SigningError
from evalspec.signing.keys import FileSigner
from evalspec.signing.pades import SignedPdf, _PluggedSigner, sign_pdf
from evalspec.signing.pades_check import read_seal


@pytest.fixture(scope="module")
def signed(unsigned_pdf: bytes, signer: FileSigner) -> SignedPdf:
    return sign_pdf(unsigned_pdf, signer)


def test_the_rendered_report_is_the_byte_exact_start_of_the_signed_one(unsigned_pdf: bytes, signed: SignedPdf) -> None:
    assert signed.content[: signed.unsigned_bytes] == unsigned_pdf
    assert signed.unsigned_sha256 == sha256_hex(unsigned_pdf)


@pytest.mark.parametrize("profile", ["3a", "ua1"])
def test_signing_keeps_the_pdf_conformant(unsigned_pdf: bytes, signed: SignedPdf, profile: str) -> None:
    page = pytest.importorskip("page", reason="page-validation is not installed")
    for content in (unsigned_pdf, signed.content):
        report = page.validate_pdf_bytes(content, profile=profile)
        assert [failure.message for failure in report.failures] == []
        assert report.is_compliant


def test_pdfsig_agrees_that_the_signature_is_valid_and_total(signed: SignedPdf, tmp_path: Path) -> None:
    (tmp_path / "report.pdf").write_bytes(signed.content)
    shown = subprocess.run(["pdfsig", "-nocert", "report.pdf"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "Signature is Valid" in shown
    assert "Total document signed" in shown


def test_the_seal_tells_the_key_and_the_attached_files(signed: SignedPdf, signer: FileSigner) -> None:
    seal = read_seal(signed.content)
    assert seal.faults == ()
    assert seal.certificate == signer.certificate
    assert seal.signed_at is not None
    assert sorted(seal.attachments) == ["findings.json", "study.yaml"]


def test_a_signed_pdf_is_not_signed_again(signed: SignedPdf, signer: FileSigner) -> None:
    with pytest.raises(SigningError, match="signed already"):
        sign_pdf(signed.content, signer)


def test_a_pdf_without_signature_is_not_intact(unsigned_pdf: bytes) -> None:
    assert read_seal(unsigned_pdf).faults == ("the PDF has 0 signatures; exactly one is allowed",)


def test_a_stripped_signature_is_not_intact(signed: SignedPdf) -> None:
    assert read_seal(signed.content[: signed.unsigned_bytes]).faults == ("the PDF has 0 signatures; exactly one is allowed",)


def test_a_changed_byte_of_the_report_breaks_the_digest(signed: SignedPdf) -> None:
    changed = bytearray(signed.content)
    changed[signed.content.index(b"Example")] ^= 1
    assert read_seal(bytes(changed)).faults == ("the signed digest does not match the file",)


@pytest.mark.parametrize("tail", [b"\n% a comment\n", b"\0"])
def test_anything_after_the_signed_part_is_found(signed: SignedPdf, tail: bytes) -> None:
    assert "the signature does not cover the entire file" in "".join(read_seal(signed.content + tail).faults)


def test_an_appended_revision_is_found(signed: SignedPdf) -> None:
    from pyhanko.pdf_utils.generic import pdf_name, pdf_string
    from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter

    writer = IncrementalPdfFileWriter(BytesIO(signed.content))
    writer.root[pdf_name("/Changed")] = pdf_string("yes")
    writer.update_root()
    revised = BytesIO()
    writer.write(revised)
    assert read_seal(revised.getvalue()).faults == ("the signature does not cover the entire file",)


def test_a_signature_that_permits_changes_is_no_seal(unsigned_pdf: bytes, signer: FileSigner) -> None:
    from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
    from pyhanko.sign import fields, signers

    metadata = signers.PdfSignatureMetadata(field_name="Other", md_algorithm="sha256", subfilter=fields.SigSeedSubFilter.PADES)
    approval = signers.sign_pdf(IncrementalPdfFileWriter(BytesIO(unsigned_pdf)), metadata, signer=_PluggedSigner(signer)).getvalue()
    assert read_seal(approval).faults == ("the signature does not forbid changes",)


def signed_at(time: datetime | None, unsigned_pdf: bytes, signer: FileSigner) -> bytes:
    """Sign with the genuine key but a date of one's own, as a faulty tool would."""
    from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
    from pyhanko.sign import fields, signers

    class Dated(signers.PdfSigner):
        def init_signing_session(self, *arguments: object, **options: object) -> object:
            session = super().init_signing_session(*arguments, **options)
            session.system_time = time
            return session

    kind, forbidden = fields.SigSeedSubFilter.PADES, fields.MDPPerm.NO_CHANGES
    metadata = signers.PdfSignatureMetadata(field_name="Seal", md_algorithm="sha256", subfilter=kind, certify=True, docmdp_permissions=forbidden)
    return Dated(metadata, signer=_PluggedSigner(signer)).sign_pdf(IncrementalPdfFileWriter(BytesIO(unsigned_pdf))).getvalue()


@pytest.mark.parametrize("time", [datetime(2026, 11, 29), None], ids=["without a zone", "none at all"])  # noqa: DTZ001 - the fault that is looked for
def test_a_signature_whose_date_has_no_time_zone_is_a_fault(time: datetime | None, unsigned_pdf: bytes, signer: FileSigner) -> None:
    assert read_seal(signed_at(time, unsigned_pdf, signer)).faults == ("the signature has no date with a time zone",)


def test_a_date_of_ones_own_is_the_claimed_time(unsigned_pdf: bytes, signer: FileSigner) -> None:
    time = datetime(2020, 2, 29, 12, tzinfo=UTC)
    assert read_seal(signed_at(time, unsigned_pdf, signer)).signed_at == time


def test_two_attachments_of_one_name_are_refused(twin_pdf: bytes, signer: FileSigner) -> None:
    assert "two attachments are named 'study.yaml'" in read_seal(sign_pdf(twin_pdf, signer).content).faults[0]


def test_a_pdf_without_attachments_has_none(bare_pdf: bytes, signer: FileSigner) -> None:
    seal = read_seal(sign_pdf(bare_pdf, signer).content)
    assert (seal.faults, dict(seal.attachments)) == ((), {})


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_pdf_is_not_intact(signed: SignedPdf, share: float) -> None:
    assert read_seal(signed.content[: int(len(signed.content) * share)]).faults


def test_a_hole_larger_than_the_signature_is_found(signed: SignedPdf) -> None:
    """Bytes between the signed ranges that are not the signature's own hexadecimal string are unsigned."""
    start = signed.content.rindex(b"/Contents <") + len(b"/Contents ")
    end = signed.content.index(b">", start) + 1
    spaced = signed.content[: start + 1] + b" " + signed.content[start + 1 : end - 2] + signed.content[end - 1 :]
    assert len(spaced) == len(signed.content)
    assert read_seal(spaced).faults


@pytest.mark.parametrize("content", [b"", b"%PDF-1.7\n", b"not a PDF", b"%PDF-1.7\n" + b"[" * 50_000])
def test_what_is_no_pdf_is_reported_and_not_raised(content: bytes) -> None:
    assert "cannot be read as a signed one" in read_seal(content).faults[0]


def test_every_byte_counts(signed: SignedPdf) -> None:
    """Only the padding and the unauthenticated framing inside the signature's own string may change unseen by the PDF alone."""
    start = signed.content.rindex(b"/Contents <")
    end = signed.content.index(b">", start)
    for position in [*range(0, start, 397), *range(end, len(signed.content), 29)]:
        changed = bytearray(signed.content)
        changed[position] ^= 0x41
        assert read_seal(bytes(changed)).faults, f"byte {position}"
