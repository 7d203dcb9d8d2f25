"""What exactly is signed?  An in-toto Statement v1: the digest of every file, and a predicate that says what the files are.

Reference: in-toto Attestation Framework, Statement v1 (github.com/in-toto/attestation, spec/v1/statement.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from evalspec.artifacts.base import Artifact, Digest, Fingerprint, FormatOne
from evalspec.foreign import parse_bytes
from evalspec.signing.dsse import SIZE_LIMIT
from evalspec.signing.files import name_faults

StatementType = Literal["https://in-toto.io/Statement/v1"]
PredicateType = Literal["https://evalspec.dev/attestation/study-report/v1"]
MANIFEST = "manifest.dsse.json"
CERTIFICATE = "signer.crt"
GUIDE = "VERIFY.md"
PDF = "report.pdf"
STUDY = "study.yaml"
ATTACHED = ("findings.json", STUDY)
"""The files that also travel inside report.pdf."""


def _real_time(text: str) -> str:
    datetime.fromisoformat(text)
    return text


Instant = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$"), AfterValidator(_real_time)]
"""A point in time in UTC, as ISO 8601 with a final Z."""


class _InToto(Artifact):
    model_config = ConfigDict(alias_generator=to_camel)


class Sha256(_InToto):
    """A digest set with one digest."""

    sha256: Digest


class Subject(_InToto):
    """A signed file: POSIX path relative to the run directory, and its digest."""

    name: str
    signed: Sha256 = Field(alias="digest")


class Tool(_InToto):
    """The program that made the report; `sources_sha256` tells apart what bears the same version."""

    name: str
    version: str
    sources_sha256: Digest | None = None


class Dataset(_InToto):
    """A benchmark as it was used: its source's digest and how many questions were drawn."""

    name: str
    sha256: Digest
    n: int = Field(ge=0)


class SignedModel(_InToto):
    """A model under test and the digest of its weights or of its recorded responses; none for a served one, of whose weights nothing is claimed."""

    id: str
    kind: Literal["checkpoint", "recorded", "served", "earlier_run"]
    sha256: Digest | None


class Decision(_InToto):
    """The overall outcome and the rule that gave it; `none` when the study sets no thresholds."""

    result: Literal["passed", "failed", "inconclusive", "none"]
    rule: str


class SignedPdfClaim(_InToto):
    """How report.pdf came about: the unsigned report is its prefix; the key of its signature is the key of this statement."""

    unsigned_prefix_bytes: int = Field(gt=0)
    unsigned_sha256: Digest
    cert_spki_sha256: Fingerprint
    profile: Literal["PAdES-B-B"] = "PAdES-B-B"


class Claim(_InToto):
    """What a run says about itself; the seal adds what it knows about the PDF."""

    format_version: FormatOne = 1
    run_id: str
    created_at: Instant
    tool: Tool
    study: Sha256
    protocol: Sha256
    dataset: tuple[Dataset, ...]
    models: tuple[SignedModel, ...]
    decision: Decision


class Predicate(Claim):
    """A claim, and the PDF or the reason why there is none."""

    pdf: SignedPdfClaim | None
    pdf_skipped: str | None = None

    @model_validator(mode="after")
    def _pdf_or_reason(self) -> Self:
        if (self.pdf is None) == (self.pdf_skipped is None):
            raise ValueError("either `pdf` or `pdfSkipped` is given")
        return self


class Statement(_InToto):
    """The in-toto Statement over a run directory."""

    type_: StatementType = Field(default="https://in-toto.io/Statement/v1", alias="_type")
    subject: tuple[Subject, ...]
    predicate_type: PredicateType = "https://evalspec.dev/attestation/study-report/v1"
    predicate: Predicate

    @property
    def digests(self) -> dict[str, str]:
        """The signed SHA-256 of each file."""
        return {subject.name: subject.signed.sha256 for subject in self.subject}

    @property
    def created_at(self) -> datetime:
        """When the signer claims to have signed."""
        return datetime.fromisoformat(self.predicate.created_at)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        faults = list(name_faults(subject.name for subject in self.subject))
        digests = self.digests
        if MANIFEST in digests:
            faults.append(f"{MANIFEST} cannot be signed by itself")
        if CERTIFICATE not in digests:
            faults.append(f"{CERTIFICATE} is not among the signed files")
        if (PDF in digests) != (self.predicate.pdf is not None):
            faults.append(f"{PDF} and the predicate's `pdf` do not go together")
        for name, stated in (("study.yaml", self.predicate.study.sha256), ("protocol.json", self.predicate.protocol.sha256)):
            if name not in digests:
                faults.append(f"{name} is not among the signed files")
            elif digests[name] != stated:
                faults.append(f"the predicate states another digest of {name} than the list of files")
        if faults:
            raise ValueError("; ".join(faults))
        return self


def state(digests: Mapping[str, str], predicate: Predicate) -> Statement:
    """Make the statement over files by name; raises ValueError when names or digests do not fit together."""
    subject = tuple(Subject(name=name, signed=Sha256(sha256=digests[name])) for name in sorted(digests))
    return Statement(subject=subject, predicate=predicate)


def parse_statement(payload: bytes) -> Statement:
    """Read a statement from verified bytes; raises ValueError with the first fault."""
    parse_bytes(payload, limit=SIZE_LIMIT)
    try:
        return Statement.from_json(payload)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(str(part) for part in first['loc']) or 'statement'}: {first['msg']}") from error
