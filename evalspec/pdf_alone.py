"""What can be derived again from a report.pdf that came alone?  The decisions from the attached findings, and which analyses they answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from evalspec.analyses.catalogue import catalogue
from evalspec.analyses.recomputation import MOST_SHOWN, Divergence
from evalspec.artifacts.base import sha256_hex
from evalspec.artifacts.findings import Findings
from evalspec.artifacts.protocol import Protocol
from evalspec.artifacts.study import AnalysisRequest
from evalspec.artifacts.verdict import Verdict
from evalspec.gating import gate
from evalspec.language.compile import study_in
from evalspec.signing.files import read_regular
from evalspec.signing.pdf_seal import LARGEST_PDF, PdfSeal, read_apart
from evalspec.signing.verification import Verification
from evalspec.store import FINDINGS, PROTOCOL, STUDY_SOURCE, VERDICT, first_fault

OTHER_STUDY = (
    "the attached study.yaml does not ask for what the attached protocol.json answers: it is that of another study, "
    "or another version of evalspec read it otherwise"
)


@dataclass(frozen=True, slots=True)
class Derivation:
    """What came of deriving the verdict again from what is attached."""

    state: Literal["derived", "differs", "not_derivable"]
    divergences: tuple[Divergence, ...] = ()
    why: str = ""

    @property
    def exit_code(self) -> int:
        """The exit code that this asks for: 1 where something differs, 3 where nothing could be derived."""
        return {"derived": 0, "differs": 1, "not_derivable": 3}[self.state]

    def describe(self) -> str:
        """Return what came of it, for people."""
        if self.state == "derived":
            told = "the attached decisions follow from the attached findings, and these answer what the attached protocol asks"
            return f"{told}; {self.why}" if self.why else f"{told}, which is what the attached study.yaml asks for"
        if self.state == "not_derivable":
            return f"the verdict was not derived again from the attached findings: {self.why}"
        more = len(self.divergences) - MOST_SHOWN
        return "\n".join([*map(str, self.divergences[:MOST_SHOWN]), *([f"and {more} more places"] if more > 0 else [])])


def derive(pdf: Path, verification: Verification) -> Derivation:
    """Judge the attached findings again by the attached protocol and compare with the attached verdict."""
    if verification.outcome != "intact":
        return Derivation("not_derivable", why="the PDF is not as it was signed, or could not be checked")
    known = {attachment.name: attachment.sha256 for attachment in verification.attachments}
    absent = [name for name in (STUDY_SOURCE, PROTOCOL, FINDINGS, VERDICT) if name not in known]
    if absent:
        return Derivation("not_derivable", why=f"{', '.join(absent)} {'is' if len(absent) == 1 else 'are'} not attached")
    try:
        seal = read_apart(read_regular(pdf.parent, pdf.name, limit=LARGEST_PDF))
        if not isinstance(seal, PdfSeal) or {name: sha256_hex(content) for name, content in seal.attachments.items()} != known:
            return Derivation("not_derivable", why="the PDF changed while it was looked at")
        protocol = Protocol.from_json(seal.attachments[PROTOCOL])
        absent = sorted({request.kind for request in protocol.analyses} - catalogue().keys())
        if not absent and study_in(seal.attachments[STUDY_SOURCE], catalogue()).digest() != protocol.study_sha256:
            return Derivation("not_derivable", why=OTHER_STUDY)
        found = _derived(protocol, *(seal.attachments[name] for name in (FINDINGS, VERDICT)))
        return (
            replace(found, why=f"the attached study.yaml was not compiled: no analysis of the kind {absent[0]!r} is installed here")
            if absent
            else found
        )
    except Exception as error:  # noqa: BLE001 - a signed report can hold anything
        return Derivation("not_derivable", why=first_fault(error))


def _derived(protocol: Protocol, findings_json: bytes, verdict_json: bytes) -> Derivation:
    findings, recorded = Findings.from_json(findings_json), Verdict.from_json(verdict_json)
    asked, answered = (
        [request.model_dump(mode="json", exclude={"planned"}) for request in side] for side in (protocol.analyses, _requests(findings))
    )
    if asked != answered:
        return Derivation("differs", (Divergence(FINDINGS, "/findings", "as recorded", "other analyses than the attached protocol asks for"),))
    found = tuple(_differing(recorded, gate(findings, protocol.thresholds, findings_sha256=recorded.findings_sha256)))
    return Derivation("differs" if found else "derived", found)


def _differing(recorded: Verdict, derived: Verdict) -> Iterator[Divergence]:
    """Yield every decision that is another one; words and forecasts are not compared, which other versions may put otherwise."""
    if recorded.overall != derived.overall:
        yield Divergence(VERDICT, "/overall", recorded.overall, derived.overall)
    if len(recorded.checks) != len(derived.checks):
        yield Divergence(VERDICT, "/checks", len(recorded.checks), len(derived.checks))
        return
    for place, (one, other) in enumerate(zip(recorded.checks, derived.checks, strict=True)):
        for name in ("check", "benchmark", "outcome", "observed", "divisor"):
            sides = [side.model_dump(mode="json")[name] for side in (one, other)]
            if sides[0] != sides[1]:
                yield Divergence(VERDICT, f"/checks/{place}/{name}", *sides)


def _requests(findings: Findings) -> tuple[AnalysisRequest, ...]:
    return tuple(finding.request for finding in findings.findings)
