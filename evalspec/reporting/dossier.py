"""What does a report speak of?  Every artifact of a run, and what the report may say about its signature."""

from __future__ import annotations

from dataclasses import dataclass

from evalspec.artifacts.findings import Findings
from evalspec.artifacts.lock import LOCK, LockedPlan
from evalspec.artifacts.protocol import Protocol
from evalspec.artifacts.questions import QuestionBank
from evalspec.artifacts.report import Ledger
from evalspec.artifacts.responses import Responses
from evalspec.artifacts.schedule import Schedule
from evalspec.artifacts.study import Study
from evalspec.artifacts.verdict import Verdict
from evalspec.protocols import Catalogue
from evalspec.reporting.documents import Documents

__all__ = ["Dossier", "SignerNote", "documents_of"]


@dataclass(frozen=True, slots=True)
class SignerNote:
    """Who will sign the report; `throw_away` marks a key made for a demonstration."""

    fingerprint: str
    name: str
    throw_away: bool = False


@dataclass(frozen=True, slots=True)
class Dossier:
    """All that a report is composed from.

    `bank` is None where question texts are not at hand, `plan` where nothing was locked, `signer` where nobody will sign.
    """

    study: Study
    protocol: Protocol
    schedule: Schedule
    findings: Findings
    verdict: Verdict
    ledger: Ledger
    responses: Responses
    catalogue: Catalogue
    tool_version: str
    bank: QuestionBank | None = None
    plan: LockedPlan | None = None
    signer: SignerNote | None = None


def documents_of(dossier: Dossier) -> Documents:
    """Return the content of the JSON files that the report's numbers are read from; of the lock, the statement that its envelope holds."""
    artifacts = {
        "findings.json": dossier.findings,
        "verdict.json": dossier.verdict,
        "protocol.json": dossier.protocol,
        "schedule.json": dossier.schedule,
        "study.json": dossier.study,
        "ledger.json": dossier.ledger,
    }
    contents = {name: artifact.model_dump(mode="json", by_alias=True) for name, artifact in artifacts.items()}
    if dossier.plan is not None:
        contents[LOCK] = {"predicate": dossier.plan.lock.model_dump(mode="json", by_alias=True)}
    return Documents(contents)
