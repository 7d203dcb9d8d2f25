"""Which files does a run have?  Their names, atomic writing, and reading with every digest held against its parent's."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from evalspec.artifacts.base import Artifact, sha256_hex
from evalspec.artifacts.findings import Findings
from evalspec.artifacts.lock import LOCK
from evalspec.artifacts.protocol import Protocol, earlier_manifest
from evalspec.artifacts.questions import QuestionBank
from evalspec.artifacts.report import Ledger
from evalspec.artifacts.responses import Responses
from evalspec.artifacts.schedule import Schedule
from evalspec.artifacts.study import Study
from evalspec.artifacts.verdict import Verdict
from evalspec.errors import Diagnostic, EvalspecError, StoreError
from evalspec.tables.disclosure import withheld
from evalspec.tables.questions import questions_from_parquet, questions_to_parquet
from evalspec.tables.responses import responses_from_parquet, responses_to_parquet

STUDY_SOURCE = "study.yaml"
STUDY = "study.json"
QUESTIONS = "questions.parquet"
PROTOCOL = "protocol.json"
SCHEDULE = "schedule.json"
RESPONSES = "responses.parquet"
FINDINGS = "findings.json"
VERDICT = "verdict.json"
LEDGER = "ledger.json"
REPORT_HTML = "report.html"
REPORT_PDF = "report.pdf"
MANIFEST = "manifest.dsse.json"
SIGNER = "signer.crt"
HOW_TO_VERIFY = "VERIFY.md"
NAMES = frozenset({
    STUDY_SOURCE, STUDY, QUESTIONS, PROTOCOL, SCHEDULE, RESPONSES, FINDINGS, VERDICT, LEDGER, REPORT_HTML, REPORT_PDF,
    LOCK, MANIFEST, SIGNER, HOW_TO_VERIFY,
})  # fmt: skip
PARTIAL = ".partial-"
"""Files under this prefix are unfinished writes of a run that was stopped."""

_TABLE = re.compile(r"table-[0-9a-f]{64}\.csv")
_EARLIER = re.compile(r"earlier-[0-9a-f]{64}\.dsse\.json")

ArtifactT = TypeVar("ArtifactT", bound=Artifact)
ReadT = TypeVar("ReadT")


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """The folder of one run. Every `write_` gives the SHA-256 of what it wrote; every `read_` raises StoreError when a file does not fit."""

    path: Path

    def prepare(self) -> None:
        """Make the folder, or accept an earlier run's; raises StoreError for a folder with anything else in it."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            _check_ours(self.path, sorted(entry.name for entry in self.path.iterdir()))
        except FileExistsError as error:
            raise StoreError(f"{self.path} is no folder, and a run needs one", hint="name another place with --out") from error
        except OSError as error:
            raise StoreError(f"{self.path} cannot be used: {error.strerror}", hint="name another folder with --out") from error

    def study_sha256(self) -> str | None:
        """Return the digest of the study.yaml of an earlier run; None where there is none."""
        path = self.path / STUDY_SOURCE
        return sha256_hex(path.read_bytes()) if path.is_file() else None

    def commits(self) -> bool:
        """Return whether there is an earlier run's protocol that commits to hidden questions."""
        try:
            protocol = self._artifact(PROTOCOL, Protocol)
        except StoreError:
            return False
        return any(benchmark.disclosure == "none" for benchmark in protocol.benchmarks)

    def clear(self) -> None:
        """Remove an earlier run's files, so that nothing of it can be taken for this one's; raises StoreError as `prepare` does."""
        self.prepare()
        # study.json goes last: a folder without it would no longer be known as ours.
        for entry in sorted(self.path.iterdir(), key=lambda entry: entry.name == STUDY):
            entry.unlink()

    def file(self, name: str) -> Path:
        """Return the path of an artifact's file, whether it is there or not."""
        return self.path / name

    def write(self, name: str, content: bytes) -> str:
        """Write a file so that it is there whole or not at all, also after a loss of power."""
        try:
            _write_atomically(self.path, name, content)
        except OSError as error:
            problem = f"{self.path / name} cannot be written: {error.strerror}"
            raise StoreError(problem, hint="make room, or name another folder with --out; what was scored is kept") from error
        return sha256_hex(content)

    def remove(self, name: str) -> None:
        """Remove a file of an earlier run, if there is one."""
        (self.path / name).unlink(missing_ok=True)

    def read(self, name: str) -> bytes:
        """Return the bytes of a file; links are not followed."""
        path = self.path / name
        if path.is_symlink():
            raise StoreError(f"{path} is a link; a run directory holds the files themselves")
        try:
            return path.read_bytes()
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}") from error

    def write_study(self, study: Study, source: bytes) -> str:
        """Write study.json and, as given, study.yaml; raises StoreError when one does not belong to the other."""
        if study.source_sha256 != sha256_hex(source):
            raise StoreError(f"{STUDY} was not compiled from these bytes of {STUDY_SOURCE}")
        digest = self.write(STUDY, study.to_json())
        self.write(STUDY_SOURCE, source)
        return digest

    def read_study(self) -> Study:
        """Return the compiled study."""
        study = self._artifact(STUDY, Study)
        self._check_parent(STUDY, study.source_sha256, STUDY_SOURCE)
        return study

    def write_protocol(self, protocol: Protocol) -> str:
        """Write protocol.json."""
        return self.write(PROTOCOL, protocol.to_json())

    def read_protocol(self) -> Protocol:
        """Return the protocol."""
        protocol = self._artifact(PROTOCOL, Protocol)
        self._check_parent(PROTOCOL, protocol.study_sha256, STUDY)
        return protocol

    def write_schedule(self, schedule: Schedule) -> str:
        """Write schedule.json."""
        return self.write(SCHEDULE, schedule.to_json())

    def read_schedule(self) -> Schedule:
        """Return the schedule."""
        schedule = self._artifact(SCHEDULE, Schedule)
        self._check_parent(SCHEDULE, schedule.protocol_sha256, PROTOCOL)
        return schedule

    def write_questions(self, protocol: Protocol, bank: QuestionBank) -> str:
        """Write the drawn questions, each as far as its benchmark discloses it."""
        try:
            content = questions_to_parquet(protocol, bank)
        except ValueError as error:
            raise StoreError(f"{QUESTIONS}: {error}") from error
        return self.write(QUESTIONS, content)

    def read_questions(self) -> QuestionBank:
        """Return the drawn questions of the benchmarks that disclose them."""
        protocol = self.read_protocol()
        table = self._read(QUESTIONS, lambda content: questions_from_parquet(content, protocol))
        self._check_parent(QUESTIONS, table.protocol_sha256, PROTOCOL)
        return table.bank

    def write_responses(self, responses: Responses, protocol: Protocol) -> str:
        """Write the responses, without choices and log-probabilities where nothing is disclosed; what is analysed is what `read_responses` gives."""
        _check_questions(responses, protocol)
        return self.write(RESPONSES, responses_to_parquet(withheld(responses, protocol)))

    def read_responses(self) -> Responses:
        """Return the responses as they were written."""
        responses = self._read(RESPONSES, responses_from_parquet)
        self._check_parent(RESPONSES, responses.protocol_sha256, PROTOCOL)
        return responses

    def write_table(self, content: bytes) -> str:
        """Write an outside table as it was read, under a name that holds its digest, so that others can compute again what rests on it."""
        return self.write(table_name(sha256_hex(content)), content)

    def write_manifest_of_earlier(self, content: bytes) -> str:
        """Write the manifest of an earlier run from which a model is taken, under a name that holds its digest."""
        return self.write(earlier_manifest(sha256_hex(content)), content)

    def write_findings(self, findings: Findings) -> str:
        """Write findings.json."""
        return self.write(FINDINGS, findings.to_json())

    def read_findings(self) -> Findings:
        """Return the findings."""
        findings = self._artifact(FINDINGS, Findings)
        self._check_parent(FINDINGS, findings.protocol_sha256, PROTOCOL)
        self._check_parent(FINDINGS, findings.responses_sha256, RESPONSES)
        return findings

    def write_verdict(self, verdict: Verdict) -> str:
        """Write verdict.json."""
        return self.write(VERDICT, verdict.to_json())

    def read_verdict(self) -> Verdict:
        """Return the verdict."""
        verdict = self._artifact(VERDICT, Verdict)
        self._check_parent(VERDICT, verdict.findings_sha256, FINDINGS)
        return verdict

    def write_ledger(self, ledger: Ledger) -> str:
        """Write ledger.json."""
        return self.write(LEDGER, ledger.to_json())

    def read_ledger(self) -> Ledger:
        """Return the ledger."""
        return self._artifact(LEDGER, Ledger)

    def _artifact(self, name: str, kind: type[ArtifactT]) -> ArtifactT:
        return self._read(name, kind.from_json)

    def _read(self, name: str, parse: Callable[[bytes], ReadT]) -> ReadT:
        try:
            return parse(self.read(name))
        except ValueError as error:
            raise StoreError(f"{self.path / name} is not what it should be: {first_fault(error)}") from error

    def _check_parent(self, child: str, named: str, parent: str) -> None:
        actual = sha256_hex(self.read(parent))
        if named != actual:
            raise StoreError(
                f"{self.path / child} was made from another {parent}: it names SHA-256 {named[:16]}..., the file has {actual[:16]}...",
                hint="the files of this folder are not of one run; run the study again",
            )


def table_name(sha256: str) -> str:
    """Return the name under which a run directory keeps an outside table."""
    return f"table-{sha256}.csv"


def _is_kept(name: str) -> bool:
    """Return whether a file is named after its digest: an outside table, or the manifest of an earlier run."""
    return _TABLE.fullmatch(name) is not None or _EARLIER.fullmatch(name) is not None


def first_fault(error: Exception) -> str:
    """Return in one line what was wrong with the content of a file, at the first place that does not fit."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    if isinstance(error, EvalspecError):
        return error.diagnostics[0].message
    return str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"


def _is_ours(name: str) -> bool:
    return name in NAMES or _is_kept(name)


def _check_ours(path: Path, present: list[str]) -> None:
    finished = [name for name in present if not name.startswith(PARTIAL)]
    foreign = [name for name in finished if not _is_ours(name) or not (path / name).is_file() or (path / name).is_symlink()]
    if foreign:
        listed = ", ".join(foreign[:5]) + (", ..." if len(foreign) > 5 else "")
        raise StoreError(f"{path} holds what is not of a run: {listed}", hint="name an empty or a new folder with --out")
    if finished and STUDY not in finished:
        raise StoreError(f"{path} is not empty and no run directory: it has no {STUDY}", hint="name an empty or a new folder with --out")


def _check_questions(responses: Responses, protocol: Protocol) -> None:
    """Hold the rows against the protocol, so that no id gets into the file that is not to be disclosed."""
    asked = {benchmark.id: tuple(question.id for question in benchmark.questions) for benchmark in protocol.benchmarks}
    faults = [entry.benchmark for entry in responses.benchmarks if asked.get(entry.benchmark) != entry.questions]
    if responses.protocol_sha256 != protocol.digest():
        raise StoreError("the responses belong to another protocol")
    if faults:
        raise StoreError(Diagnostic(f"the responses to benchmark '{benchmark}' are not to the questions of the protocol") for benchmark in faults)


def _write_atomically(folder: Path, name: str, content: bytes) -> None:
    partial = folder / f"{PARTIAL}{secrets.token_hex(8)}"
    try:
        with partial.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(folder / name)
    finally:
        partial.unlink(missing_ok=True)
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)  # makes the new name itself survive a loss of power
    finally:
        os.close(opened)
