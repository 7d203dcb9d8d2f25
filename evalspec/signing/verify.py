"""Is this report as it was signed, and did somebody sign it whom the reader trusts?  Numbered steps, offline."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from evalspec.artifacts.base import sha256_hex
from evalspec.errors import SigningError, UsageError
from evalspec.signing import dsse, files
from evalspec.signing.attached import check_attached
from evalspec.signing.certificates import fingerprint_of, p256_key_of, read_certificate
from evalspec.signing.earlier_check import check_earlier
from evalspec.signing.guide import write_guide
from evalspec.signing.lock_check import check_lock
from evalspec.signing.pdf_seal import LARGEST_PDF, PdfSeal, Unread, read_apart
from evalspec.signing.statement import ATTACHED, CERTIFICATE, GUIDE, MANIFEST, PDF, STUDY, Statement, parse_statement
from evalspec.signing.trust import Judgement, Trust, TrustedSigner, write_trust
from evalspec.signing.verification import Attachment, Expected, Problem, SignerIdentity, Verification, differing_paths

PDF_UNCHECKED = "the signature inside report.pdf could not be checked: "
WHAT_TO_NAME = "name the run directory, such as reports/demo, or a report.pdf"
PDF_HEADER, PDF_HEAD = b"%PDF-", 1024
"""What a PDF begins with, and among how many bytes at its beginning readers look for it (ISO 32000-1, annex H)."""
LARGEST_COMPARED = 16 * 2**20
"""Bytes of the largest altered JSON file in which the changed places are looked for."""


class _RefusedError(Exception):
    """Ends the verification: nothing further can be relied on."""

    def __init__(self, kind: str, name: str, detail: str = "") -> None:
        super().__init__(detail)
        self.problem = Problem.model_validate({"kind": kind, "name": name, "detail": files.printable(detail)})


def verify(folder: Path, trust: Trust | None = None, *, expected: Expected | None = None, now: datetime | None = None) -> Verification:
    """Check a run directory against its manifest, its PDF, what the reader trusts and which report the reader expects.

    Raises UsageError when there is no such folder and SigningError when a file cannot be read.
    """
    trust, now = trust or Trust(), now or datetime.now(UTC)
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}", hint=WHAT_TO_NAME)
    try:
        # 1. There is a manifest, and it is one well-formed DSSE envelope.
        envelope = _read_manifest(folder)
        # 2. A key signed it: one that the reader trusts if there is such, else the one that the folder itself presents.
        certificate, signed = _check_signature(folder, envelope, trust)
        # 3. Its payload, parsed only now and only from the verified bytes, is a statement of the one accepted type.
        statement = _read_statement(signed.payload)
    except _RefusedError as refused:
        return Verification(outcome="altered", problems=(refused.problem,))
    # 4. The folder holds the signed files, all of them, nothing else, and no links.
    problems = _compare_files(folder, statement)
    # 5. The certificate that travels along is that of the key which signed.
    problems += _compare_certificate(folder, signed.fingerprint, problems)
    # 6. The PDF bears one signature of the same key over all of its bytes and carries the same files. Another PDF than the signed is not opened.
    pdf = _signed_pdf(folder, statement, problems)
    seal = read_apart(pdf) if pdf is not None else None
    if isinstance(seal, PdfSeal):
        problems = _compare_pdf(folder, statement, signed.fingerprint, (pdf or b"", seal), problems)
    # 7. A plan that was locked bears a signature of its own and is no younger than the run.
    plan = check_lock(folder, statement, problems)
    problems += plan.problems
    # 8. Runs that models are taken from were signed by the keys that the protocol names.
    earlier = check_earlier(folder, statement, problems, trust, now)
    problems += earlier.problems
    # 9. It is the report that the reader means, and no other genuine one.
    problems += (expected or Expected()).problems(statement.predicate.study.sha256, statement.predicate.run_id)
    # 10. The signer is somebody whom the reader trusts, now and at the time of signing.
    judgement = trust.judge(certificate, signed_at=statement.created_at, now=now)
    judgement = judgement.doubted((*plan.revoked(signed.fingerprint, trust), *earlier.revoked))
    # 11. Only all of this together is a good report.
    unchecked = (PDF_UNCHECKED + files.printable(seal.why),) if isinstance(seal, Unread) else ()
    notes = tuple(f"a further signature, by {files.printable(keyid)}, was not considered" for keyid in signed.ignored)
    if statement.predicate.pdf_skipped:
        notes += (f"this report has no PDF: {files.printable(statement.predicate.pdf_skipped)}",)
    notes += (
        *plan.notes,
        *plan.about_signer(signed.fingerprint, trust, now),
        *earlier.notes,
        *_about_guide(folder, statement, signed.fingerprint, problems),
    )
    outcome = _conclude(certificate, judgement, problems, unchecked, notes)
    return _remember(trust, certificate, judgement, outcome.model_copy(update={"statement": statement, "attachments": _attachments(seal)}))


def verify_pdf(path: Path, trust: Trust | None = None, *, expected: Expected | None = None, now: datetime | None = None) -> Verification:
    """Check a report.pdf that has left its folder: its own signature, its signer, and whether the files attached to it belong together.

    Raises UsageError when it is no PDF and SigningError when it cannot be read.
    """
    trust, now = trust or Trust(), now or datetime.now(UTC)
    content = files.read_regular(path.parent, path.name, limit=LARGEST_PDF)
    if PDF_HEADER not in content[:PDF_HEAD]:
        raise UsageError(f"{files.printable(str(path))} is not a PDF", hint=WHAT_TO_NAME)
    seal = read_apart(content)
    if isinstance(seal, Unread):
        return Verification(outcome="unchecked", reasons=(PDF_UNCHECKED + files.printable(seal.why),))
    name = files.printable(path.name)
    problems = tuple(Problem(kind="PDF", name=name, detail=files.printable(fault)) for fault in seal.faults)
    if problems or seal.certificate is None or seal.signed_at is None:
        return Verification(outcome="altered", problems=problems)
    attached = check_attached(seal.attachments, fingerprint_of(seal.certificate), trust, (seal.signed_at, now))
    problems = tuple(Problem(kind="PDF", name=name, detail=files.printable(fault)) for fault in attached.faults)
    study = sha256_hex(seal.attachments[STUDY]) if STUDY in seal.attachments else None
    problems += (expected or Expected()).problems(study, None)
    judgement = trust.judge(seal.certificate, signed_at=seal.signed_at, now=now).doubted(attached.revoked)
    outcome = _conclude(seal.certificate, judgement, problems, (), attached.notes)
    return _remember(trust, seal.certificate, judgement, outcome.model_copy(update={"attachments": _attachments(seal)}))


def _read_manifest(folder: Path) -> dsse.Envelope:
    try:
        mode = (folder / MANIFEST).lstat()
    except OSError as error:
        raise _RefusedError("MISSING", MANIFEST, "without it nothing is signed") from error
    if stat.S_ISLNK(mode.st_mode):
        raise _RefusedError("SYMLINK", MANIFEST, "(not followed)")
    if not stat.S_ISREG(mode.st_mode):
        raise _RefusedError("SPECIAL", MANIFEST, "(no regular file)")
    if mode.st_size > dsse.SIZE_LIMIT:
        raise _RefusedError("ALTERED", MANIFEST, f"{mode.st_size} bytes; at most {dsse.SIZE_LIMIT} are read")
    try:
        return dsse.parse_envelope(files.read_regular(folder, MANIFEST, limit=dsse.SIZE_LIMIT))
    except ValueError as error:
        raise _RefusedError("ALTERED", MANIFEST, str(error)) from error


def _check_signature(folder: Path, envelope: dsse.Envelope, trust: Trust) -> tuple[x509.Certificate, dsse.Verified]:
    certificates = {entry.fingerprint: read_certificate(entry.certificate.encode()) for entry in trust.entries}
    own_fault = f"{CERTIFICATE} is missing or no regular file"
    if (folder / CERTIFICATE).is_file() and not (folder / CERTIFICATE).is_symlink():
        try:
            own = read_certificate(files.read_regular(folder, CERTIFICATE, limit=dsse.SIZE_LIMIT))
            certificates.setdefault(fingerprint_of(own), own)
            own_fault = f"the key in {CERTIFICATE} did not make the signature"
        except ValueError as error:
            own_fault = f"{CERTIFICATE}: {error}"
    try:
        signed = dsse.verify(envelope, {fingerprint: p256_key_of(certificate) for fingerprint, certificate in certificates.items()})
    except ValueError as error:
        raise _RefusedError("SIGNATURE", MANIFEST, f"{error} ({own_fault}): the manifest or the certificate was changed") from error
    return certificates[signed.fingerprint], signed


def _read_statement(payload: bytes) -> Statement:
    try:
        return parse_statement(payload)
    except ValueError as error:
        raise _RefusedError("STATEMENT", MANIFEST, str(error)) from error


def _compare_files(folder: Path, statement: Statement) -> tuple[Problem, ...]:
    listing = files.list_files(folder)
    problems = [Problem(kind="SYMLINK", name=files.printable(name), detail="(not followed)") for name in listing.links]
    problems += [Problem(kind="SPECIAL", name=files.printable(name), detail="(no regular file)") for name in listing.special]
    present, signed = set(listing.regular), statement.digests
    others = {*listing.links, *listing.special}
    for name, digest in signed.items():
        if name in present:
            problems += _compare_file(folder, name, digest)
        elif name not in present and name not in others:
            problems.append(Problem(kind="MISSING", name=name))
    for name in sorted(present - signed.keys() - {MANIFEST}):
        problems.append(Problem(kind="UNLISTED", name=files.printable(name), detail="(not covered by the signature)"))
    for name in listing.empty:
        problems.append(Problem(kind="UNLISTED", name=files.printable(name), detail="(an empty folder, not covered by the signature)"))
    return tuple(problems)


def _compare_file(folder: Path, name: str, digest: str) -> list[Problem]:
    unseen = "; its own signature was not looked at" if name == PDF else ""
    try:
        found = files.sha256_of(folder, name)
    except ValueError as error:
        return [Problem(kind="ALTERED", name=name, detail=f"{error}{unseen}")]
    return [] if found == digest else [Problem(kind="ALTERED", name=name, detail=f"signed {digest[:12]}… found {found[:12]}…{unseen}")]


def _compare_certificate(folder: Path, fingerprint: str, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    if CERTIFICATE in {problem.name for problem in problems}:
        return ()
    try:
        found = fingerprint_of(read_certificate(files.read_regular(folder, CERTIFICATE, limit=dsse.SIZE_LIMIT)))
    except ValueError as error:
        return (Problem(kind="STATEMENT", name=CERTIFICATE, detail=str(error)),)
    if found == fingerprint:
        return ()
    return (Problem(kind="STATEMENT", name=CERTIFICATE, detail=f"is of the key {found}, but {fingerprint} signed"),)


def _about_guide(folder: Path, statement: Statement, fingerprint: str, problems: tuple[Problem, ...]) -> Iterator[str]:
    """Say so where the guide, whose commands people run, has another text than this version writes; which version wrote it is not asked here."""
    if GUIDE not in statement.digests or GUIDE in {problem.name for problem in problems}:
        return
    expected = write_guide(fingerprint, with_pdf=statement.predicate.pdf is not None).encode()
    if files.read_regular(folder, GUIDE, limit=len(expected)) != expected:
        yield f"{GUIDE} has another text than this version of evalspec writes: read it before you run its commands"


def _signed_pdf(folder: Path, statement: Statement, problems: tuple[Problem, ...]) -> bytes | None:
    """Return the PDF if it is there as it was signed; raises SigningError when it changes meanwhile."""
    if statement.predicate.pdf is None or PDF in {problem.name for problem in problems}:
        return None
    content = files.read_regular(folder, PDF, limit=LARGEST_PDF)
    if len(content) <= LARGEST_PDF and sha256_hex(content) != statement.digests[PDF]:
        raise SigningError(f"{PDF} changed while it was looked at")
    return content


def _compare_pdf(
    folder: Path, statement: Statement, fingerprint: str, found: tuple[bytes, PdfSeal], problems: tuple[Problem, ...]
) -> tuple[Problem, ...]:
    claim, (content, seal) = statement.predicate.pdf, found
    if claim is None:
        return problems
    faults = list(seal.faults)
    if seal.certificate is not None and {fingerprint_of(seal.certificate), claim.cert_spki_sha256} != {fingerprint}:
        faults.append(f"another key than that of the manifest signed it: {fingerprint_of(seal.certificate)}")
    if not faults:
        if sha256_hex(content[: claim.unsigned_prefix_bytes]) != claim.unsigned_sha256:
            faults.append("its first part is not the report as it was rendered")
        faults += _attachment_faults(statement, seal)
        problems = tuple(_with_paths(folder, problem, seal) for problem in problems)
    return (*problems, *(Problem(kind="PDF", name=PDF, detail=files.printable(fault)) for fault in faults))


def _attachment_faults(statement: Statement, seal: PdfSeal) -> list[str]:
    faults = [f"{name} is not attached to it" for name in ATTACHED if name not in seal.attachments]
    for name, content in seal.attachments.items():
        if statement.digests.get(name) != sha256_hex(content):
            faults.append(f"the attached {name} is not the signed file of that name")
    return faults


def _with_paths(folder: Path, problem: Problem, seal: PdfSeal) -> Problem:
    """Name the places at which an altered JSON file differs from its copy in the intact PDF."""
    if problem.kind != "ALTERED" or problem.name not in seal.attachments or not problem.name.endswith(".json"):
        return problem
    found = files.read_regular(folder, problem.name, limit=LARGEST_COMPARED)
    if len(found) > LARGEST_COMPARED:
        return problem
    return problem.model_copy(update={"paths": differing_paths(seal.attachments[problem.name], found)})


def _attachments(seal: PdfSeal | Unread | None) -> tuple[Attachment, ...]:
    attached = seal.attachments if isinstance(seal, PdfSeal) else {}
    return tuple(Attachment(name=files.printable(name), sha256=sha256_hex(content), size=len(content)) for name, content in sorted(attached.items()))


def _conclude(
    certificate: x509.Certificate, judgement: Judgement, problems: tuple[Problem, ...], unchecked: tuple[str, ...], notes: tuple[str, ...]
) -> Verification:
    return Verification(
        outcome="altered" if problems else "unchecked" if unchecked else "intact",
        trusted=judgement.trusted,
        signer=SignerIdentity(name=judgement.name, fingerprint=fingerprint_of(certificate)),
        problems=problems,
        reasons=(*unchecked, *judgement.reasons),
        notes=notes,
    )


def _remember(trust: Trust, certificate: x509.Certificate, judgement: Judgement, verification: Verification) -> Verification:
    """Keep a key that is trusted on first use, once everything else was found in order, and say so."""
    if not judgement.first_use or trust.memory is None:
        return verification
    fingerprint = fingerprint_of(certificate)
    if verification.outcome != "intact":
        return verification.model_copy(update={"trusted": False, "reasons": (*verification.reasons, f"the new key {fingerprint} was not remembered")})
    write_trust(trust.memory, (TrustedSigner.of(certificate, name=judgement.name),))
    note = (
        f"TRUSTED ON FIRST USE: nobody has confirmed that {fingerprint} belongs to {judgement.name!r}. It is now remembered in {trust.memory}. "
        "Ask the signer for the fingerprint over another channel and compare."
    )
    return verification.model_copy(update={"notes": (note, *verification.notes)})
