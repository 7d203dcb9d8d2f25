"""Does report.html say what the other files of its run say?  Every number by the place that it names, and the whole text composed again."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evalspec import __version__
from evalspec.analyses.catalogue import catalogue
from evalspec.artifacts.base import JsonValue
from evalspec.artifacts.lock import LOCK
from evalspec.edition import edition_of
from evalspec.reporting.compose import compose
from evalspec.reporting.documents import Documents
from evalspec.reporting.dossier import Dossier, SignerNote
from evalspec.reporting.pages import PageFault, number_faults, shown_numbers, text_faults
from evalspec.sealing import THROW_AWAY
from evalspec.signing.certificates import read_certificate
from evalspec.signing.trust import TrustedSigner
from evalspec.signing.verification import Verification
from evalspec.store import FINDINGS, LEDGER, PROTOCOL, REPORT_HTML, SCHEDULE, SIGNER, STUDY, VERDICT, first_fault
from evalspec.verified_run import VerifiedRun

MOST_SHOWN = 50


@dataclass(frozen=True, slots=True)
class PageCheck:
    """What came of holding the page against the files of its run; `numbers` is how many it shows."""

    state: Literal["same", "differs", "not_compared", "not_checked"]
    numbers: int = 0
    faults: tuple[PageFault, ...] = ()
    why: str = ""

    @property
    def exit_code(self) -> int:
        """The exit code that this asks for: 1 where something differs, 3 where nothing could be checked; numbers that fit are 0."""
        return {"same": 0, "not_compared": 0, "differs": 1, "not_checked": 3}[self.state]

    def describe(self) -> str:
        """Return what came of it, for people."""
        if self.state == "differs":
            more = len(self.faults) - MOST_SHOWN
            return "\n".join([*map(str, self.faults[:MOST_SHOWN]), *([f"and {more} more places of report.html"] if more > 0 else [])])
        if self.state == "not_checked":
            return f"report.html not checked: {self.why}"
        numbers = f"report.html: each of its {self.numbers:,} numbers is the one that the files have"
        return f"{numbers}; its text was not compared: {self.why}" if self.why else f"{numbers}, and its text is what they compose to"


def check_page(folder: Path, verification: Verification) -> PageCheck:
    """Hold report.html against the files of its run, all read from verified bytes."""
    if verification.outcome == "altered":
        return PageCheck("not_checked", why="the content is not as it was signed")
    run = VerifiedRun(folder, verification)
    try:
        page = run.content(REPORT_HTML).decode()
        shown = shown_numbers(page)
        faults = tuple(number_faults(shown, _documents(run)))
    except Exception as error:  # noqa: BLE001 - a signed report can hold anything
        return PageCheck("not_checked", why=first_fault(error))
    why = other_edition(run)
    if not why:
        try:
            faults += tuple(fault for fault in text_faults(page, compose(_dossier(run)).html) if fault.place not in {one.place for one in faults})
        except Exception as error:  # noqa: BLE001 - the same
            why = f"the files of its run, which this version wrote, do not compose to a page: {first_fault(error)}"
            return PageCheck("differs" if faults else "not_checked", len(shown), faults, why)
    return PageCheck("differs" if faults else "not_compared" if why else "same", len(shown), faults, why)


def other_edition(run: VerifiedRun) -> str:
    """Say by what the page was written where that is not this very evalspec; nothing where it is."""
    statement = run.verification.statement
    if statement is None:
        return "it is not signed"
    tool = statement.predicate.tool
    if (tool.name, tool.version) != ("evalspec", __version__):
        return f"written by {tool.name} {tool.version}, and this is evalspec {__version__}"
    try:
        here = edition_of(request.kind for request in run.protocol.analyses)
    except Exception as error:  # noqa: BLE001 - the same
        return first_fault(error)
    return "" if tool.sources_sha256 == here else f"written by version {tool.version} of evalspec with other sources or templates than these"


def _documents(run: VerifiedRun) -> Documents:
    """Return the JSON files that numbers name, as they were signed; of a lock, the statement that its envelope holds."""
    contents: dict[str, JsonValue] = {name: run.json(name) for name in (FINDINGS, VERDICT, PROTOCOL, SCHEDULE, STUDY, LEDGER)}
    if run.plan is not None:
        contents[LOCK] = json.loads(base64.b64decode(json.loads(run.content(LOCK))["payload"]))
    return Documents(contents)


def _dossier(run: VerifiedRun) -> Dossier:
    signer = TrustedSigner.of(read_certificate(run.content(SIGNER)))
    return Dossier(
        study=run.study,
        protocol=run.protocol,
        schedule=run.schedule(),
        findings=run.findings(),
        verdict=run.verdict(),
        ledger=run.ledger(),
        responses=run.responses,
        catalogue=catalogue(),
        tool_version=__version__,
        bank=run.questions,
        plan=run.plan,
        signer=SignerNote(signer.fingerprint, signer.name, throw_away=signer.name == THROW_AWAY),
    )
