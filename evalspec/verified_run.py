"""What does a signed run hold, read from nothing but the bytes that its signature covers?"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from evalspec.artifacts.base import Artifact, JsonValue
from evalspec.artifacts.findings import Findings
from evalspec.artifacts.lock import LOCK, LockedPlan
from evalspec.artifacts.protocol import Protocol
from evalspec.artifacts.questions import QuestionBank
from evalspec.artifacts.report import Ledger
from evalspec.artifacts.responses import Responses
from evalspec.artifacts.schedule import Schedule
from evalspec.artifacts.study import Study
from evalspec.artifacts.verdict import Verdict
from evalspec.errors import StoreError
from evalspec.signing.lock import read_lock
from evalspec.signing.verification import Verification
from evalspec.store import FINDINGS, LEDGER, PROTOCOL, QUESTIONS, RESPONSES, SCHEDULE, STUDY, VERDICT, first_fault
from evalspec.tables.questions import questions_from_parquet
from evalspec.tables.responses import responses_from_parquet

ArtifactT = TypeVar("ArtifactT", bound=Artifact)
ReadT = TypeVar("ReadT")


@dataclass(frozen=True)
class VerifiedRun:
    """The files of a run whose signature was checked; each is read when it is asked for.

    Raises StoreError for a file that this version of evalspec does not read, SigningError for one that is not as it was signed.
    """

    folder: Path
    verification: Verification

    def content(self, name: str) -> bytes:
        """Return the signed bytes of a file."""
        return self.verification.read_verified(self.folder, name)

    def has(self, name: str) -> bool:
        """Return whether a file is among the signed ones."""
        return self.verification.statement is not None and name in self.verification.statement.digests

    def json(self, name: str) -> JsonValue:
        """Return what a JSON file holds."""
        value: JsonValue = self._read(name, json.loads)
        return value

    @cached_property
    def study(self) -> Study:
        """The compiled study."""
        return self._artifact(STUDY, Study)

    @cached_property
    def protocol(self) -> Protocol:
        """The protocol."""
        return self._artifact(PROTOCOL, Protocol)

    @cached_property
    def responses(self) -> Responses:
        """The recorded responses."""
        return self._read(RESPONSES, responses_from_parquet)

    @cached_property
    def questions(self) -> QuestionBank:
        """The drawn questions that are disclosed in full."""
        return self._read(QUESTIONS, lambda content: questions_from_parquet(content, self.protocol)).bank

    @cached_property
    def plan(self) -> LockedPlan | None:
        """The locked plan beside this run; None where there is none."""
        return self._read(LOCK, read_lock).beside(self.study, self.protocol) if self.has(LOCK) else None

    def schedule(self) -> Schedule:
        """Return the schedule."""
        return self._artifact(SCHEDULE, Schedule)

    def findings(self) -> Findings:
        """Return the recorded findings."""
        return self._artifact(FINDINGS, Findings)

    def verdict(self) -> Verdict:
        """Return the recorded verdict."""
        return self._artifact(VERDICT, Verdict)

    def ledger(self) -> Ledger:
        """Return the ledger."""
        return self._artifact(LEDGER, Ledger)

    def _artifact(self, name: str, kind: type[ArtifactT]) -> ArtifactT:
        return self._read(name, kind.from_json)

    def _read(self, name: str, parse: Callable[[bytes], ReadT]) -> ReadT:
        content = self.content(name)
        try:
            return parse(content)
        except ValueError as error:
            raise StoreError(f"{name} is not what this version of evalspec reads: {first_fault(error)}") from error
