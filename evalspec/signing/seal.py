"""How does a finished run directory become a signed one?  The PDF first, then every file's digest, then the envelope over them."""

from __future__ import annotations

from pathlib import Path

from evalspec.artifacts.base import sha256_hex
from evalspec.errors import Diagnostic, MissingLibrary, SigningError, how_to_install
from evalspec.protocols import Signer
from evalspec.signing import dsse, files
from evalspec.signing.certificates import fingerprint_of, read_certificate
from evalspec.signing.guide import write_guide
from evalspec.signing.pdf_seal import LARGEST_PDF
from evalspec.signing.statement import ATTACHED, CERTIFICATE, GUIDE, MANIFEST, PDF, Claim, Predicate, SignedPdfClaim, state


def seal(folder: Path, signer: Signer, claim: Claim, *, pdf_skipped: str | None = None) -> None:
    """Sign every file of `folder`: report.pdf in itself, all of them in manifest.dsse.json, which is written last.

    `pdf_skipped` says why there is no report.pdf. Raises SigningError when the folder cannot be sealed as it is, MissingLibrary when
    there is a PDF but nothing to sign it with.
    """
    _refuse_misfit(signer)
    # A manifest of an earlier seal would be wrong from here on.
    (folder / MANIFEST).unlink(missing_ok=True)
    _refuse_odd_files(folder)
    if (folder / PDF).exists() == (pdf_skipped is not None):
        raise SigningError(f"{PDF} is to be sealed exactly when no reason is given why there is none; found: {pdf_skipped!r}")
    pdf = _seal_pdf(folder, signer) if pdf_skipped is None else None
    files.write_atomically(folder / CERTIFICATE, signer.certificate_pem)
    files.write_atomically(folder / GUIDE, write_guide(signer.fingerprint, with_pdf=pdf is not None).encode())
    try:
        digests = {name: files.sha256_of(folder, name) for name in files.list_files(folder).regular}
        statement = state(digests, Predicate.model_validate({**claim.model_dump(), "pdf": pdf, "pdf_skipped": pdf_skipped}))
    except ValueError as error:
        raise SigningError(f"{folder} cannot be sealed: {error}") from error
    files.write_atomically(folder / MANIFEST, dsse.sign(statement.to_json(), signer).to_json())


def _refuse_misfit(signer: Signer) -> None:
    try:
        certified = fingerprint_of(read_certificate(signer.certificate_pem))
    except ValueError as error:
        raise SigningError(f"the signer's certificate cannot be used: {error}") from error
    if certified != signer.fingerprint:
        raise SigningError(f"the signer says its key is {signer.fingerprint}, but its certificate is of {certified}")


def _refuse_odd_files(folder: Path) -> None:
    listing = files.list_files(folder)
    faults = [f"{files.printable(name)} is a symbolic link" for name in listing.links]
    faults += [f"{files.printable(name)} is no regular file" for name in listing.special]
    faults += [f"{files.printable(name)} is an empty folder" for name in listing.empty]
    faults += files.name_faults(listing.regular)
    if faults:
        hint = f"remove or rename it in {folder}"
        raise SigningError(Diagnostic(f"cannot be sealed: {fault}", hint=hint) for fault in faults)


def _seal_pdf(folder: Path, signer: Signer) -> SignedPdfClaim:
    try:
        from evalspec.signing.pades import sign_pdf  # noqa: PLC0415 - pyHanko is an extra
        from evalspec.signing.pades_check import read_seal  # noqa: PLC0415
    except ImportError as error:
        raise MissingLibrary(f"{PDF} cannot be signed without pyHanko ({error})", hint=how_to_install("report")) from error
    signed = sign_pdf(files.read_regular(folder, PDF), signer)
    seal_of_pdf = read_seal(signed.content)
    faults = list(seal_of_pdf.faults)
    for name in ATTACHED:
        attached = seal_of_pdf.attachments.get(name)
        if not faults and (attached is None or sha256_hex(attached) != files.sha256_of(folder, name)):
            faults.append(f"{name} is not attached to it as it is in the folder")
    if len(signed.content) > LARGEST_PDF:
        faults.append(f"it has {len(signed.content)} bytes; at most {LARGEST_PDF} are checked")
    if faults:
        raise SigningError(f"{PDF} cannot be sealed: {'; '.join(faults)}")
    files.write_atomically(folder / PDF, signed.content)
    return SignedPdfClaim(unsigned_prefix_bytes=signed.unsigned_bytes, unsigned_sha256=signed.unsigned_sha256, cert_spki_sha256=signer.fingerprint)
