"""Which signature containers hold?  Those in the form of a seal; pyHanko's own validation is the oracle for everything that it accepts."""

from __future__ import annotations

import hashlib
import logging
import random
from collections.abc import Callable
from io import BytesIO

import pytest
from asn1crypto import cms, core

from evalspec.signing.cms_check import check_cms
from evalspec.signing.keys import FileSigner
from evalspec.signing.pades import sign_pdf
from evalspec.signing.pades_check import read_seal


@pytest.fixture(scope="module")
def signed_bytes(unsigned_pdf: bytes, signer: FileSigner) -> bytes:
    return sign_pdf(unsigned_pdf, signer).content


def hole(content: bytes) -> tuple[int, int]:
    """Return where the signature container's hexadecimal string starts and ends."""
    start = content.rindex(b"/Contents <") + len(b"/Contents <")
    return start, content.index(b">", start)


def container_of(content: bytes) -> bytes:
    start, end = hole(content)
    return bytes.fromhex(content[start:end].decode())


def covered(content: bytes) -> bytes:
    start, end = hole(content)
    return hashlib.sha256(content[: start - 1] + content[end + 1 :]).digest()


def rewritten(container: bytes, change: Callable[[cms.SignedData], None]) -> bytes:
    outer = cms.ContentInfo.load(container).copy()
    change(outer["content"])
    return bytes(outer.dump(force=True)).ljust(len(container), b"\0")


def signed_anew(signer: FileSigner, change: Callable[[cms.SignerInfo], None]) -> Callable[[cms.SignedData], None]:
    """Change what is signed and sign it with the genuine key, as a faulty tool in the signer's hands would."""

    def rewrite(signed: cms.SignedData) -> None:
        (entry,) = signed["signer_infos"]
        change(entry)
        entry["signature"] = signer.sign(entry["signed_attrs"].untag().dump(force=True))

    return rewrite


def add_signing_time(entry: cms.SignerInfo) -> None:
    time = cms.Time({"utc_time": core.UTCTime("261129120000Z")})
    entry["signed_attrs"].append(cms.CMSAttribute({"type": "signing_time", "values": [time]}))


def drop_certificate_attribute(entry: cms.SignerInfo) -> None:
    entry["signed_attrs"] = [attribute for attribute in entry["signed_attrs"] if attribute["type"].native != "signing_certificate_v2"]


def twice(signed: cms.SignedData) -> None:
    signed["signer_infos"].append(signed["signer_infos"][0].copy())


def without_certificates(signed: cms.SignedData) -> None:
    signed["certificates"] = []


def add_unsigned_attribute(signed: cms.SignedData) -> None:
    signed["signer_infos"][0]["unsigned_attrs"] = [cms.CMSAttribute({"type": "content_type", "values": ["data"]})]


def with_content(signed: cms.SignedData) -> None:
    signed["encap_content_info"] = {"content_type": "data", "content": b"within"}


def other_serial(signed: cms.SignedData) -> None:
    signed["signer_infos"][0]["sid"].chosen["serial_number"] = 7


def test_a_seal_holds(signed_bytes: bytes, signer: FileSigner) -> None:
    found = check_cms(container_of(signed_bytes), covered(signed_bytes))
    assert (found.certificate, found.faults) == (signer.certificate, ())


def test_another_file_than_the_signed_one_is_told(signed_bytes: bytes) -> None:
    assert check_cms(container_of(signed_bytes), bytes(32)).faults == ("the signed digest does not match the file",)


def test_a_signature_of_another_key_does_not_hold(signed_bytes: bytes, impostor: FileSigner) -> None:
    forged = rewritten(container_of(signed_bytes), signed_anew(impostor, lambda _: None))
    assert check_cms(forged, covered(signed_bytes)).faults == ("the signature does not hold under its certificate",)


def test_a_container_that_names_another_certificate_is_told(signed_bytes: bytes) -> None:
    assert check_cms(rewritten(container_of(signed_bytes), other_serial), covered(signed_bytes)).faults == (
        "the signature names another certificate",
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (twice, "one of its signatures; it holds 2"),
        (without_certificates, "one of its certificates; it holds 0"),
        (add_unsigned_attribute, "without unsigned attributes"),
        (with_content, "not one over content outside of it"),
    ],
)
def test_a_container_of_another_form_is_refused(signed_bytes: bytes, change: Callable[[cms.SignedData], None], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_cms(rewritten(container_of(signed_bytes), change), covered(signed_bytes))


@pytest.mark.parametrize("change", [add_signing_time, drop_certificate_attribute])
def test_other_signed_attributes_than_those_of_a_seal_are_refused(
    signed_bytes: bytes, signer: FileSigner, change: Callable[[cms.SignerInfo], None]
) -> None:
    with pytest.raises(ValueError, match="the signed attributes must be"):
        check_cms(rewritten(container_of(signed_bytes), signed_anew(signer, change)), covered(signed_bytes))


def test_nothing_but_zeros_may_follow_the_signature(signed_bytes: bytes) -> None:
    with pytest.raises(ValueError, match="followed by something else"):
        check_cms(container_of(signed_bytes)[:-1] + b"\1", covered(signed_bytes))


def accepted_by_pyhanko(content: bytes) -> bool:
    from pyhanko.pdf_utils.reader import PdfFileReader
    from pyhanko.sign import fields
    from pyhanko.sign.validation import SignatureCoverageLevel, validate_pdf_signature
    from pyhanko.sign.validation.pdf_embedded import read_certification_data
    from pyhanko_certvalidator import ValidationContext

    try:
        reader = PdfFileReader(BytesIO(content))
        (signature,) = reader.embedded_signatures
        certificate = signature.signer_cert
        context = ValidationContext(trust_roots=[certificate], moment=certificate.not_valid_before, allow_fetching=False)
        status = validate_pdf_signature(signature, context, skip_diff=True)
        certification = read_certification_data(reader)
    except Exception:  # noqa: BLE001 - a changed byte can make it raise anything
        return False
    total = status.coverage == SignatureCoverageLevel.ENTIRE_FILE
    return bool(
        status.intact and status.valid and status.trusted and total and certification and certification.permission == fields.MDPPerm.NO_CHANGES
    )


def test_whatever_is_accepted_here_pyhanko_accepts_too(signed_bytes: bytes) -> None:
    assert accepted_by_pyhanko(signed_bytes)
    start, end = hole(signed_bytes)
    draw = random.Random(20261129)
    logging.disable()
    try:
        for _ in range(250):
            changed = bytearray(signed_bytes)
            changed[draw.randrange(start - 200, end + 200)] ^= draw.choice([1, 2, 4, 8, 0x41])
            if not read_seal(bytes(changed)).faults:
                assert accepted_by_pyhanko(bytes(changed))
    finally:
        logging.disable(logging.NOTSET)
