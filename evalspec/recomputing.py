"""Do findings and verdict of a signed run follow from its responses?  Everything is read from verified bytes and computed again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from evalspec.analyses.analyse import analyse
from evalspec.analyses.catalogue import catalogue
from evalspec.analyses.outside import named_tables
from evalspec.analyses.recomputation import Divergence, Recomputation, compare
from evalspec.artifacts.base import canonical_json, sha256_hex
from evalspec.artifacts.columns import lined_json
from evalspec.artifacts.protocol import CheckpointIdentity, Protocol, known_digest, system_of
from evalspec.artifacts.questions import Question
from evalspec.chain import Links, broken_links
from evalspec.foreign import parse_bytes
from evalspec.gating import gate
from evalspec.outlook import check_tests
from evalspec.page_check import other_edition
from evalspec.planning.forecasts import forecast_gates
from evalspec.protocols import Background
from evalspec.row_check import row_faults
from evalspec.signing.statement import MANIFEST
from evalspec.signing.verification import Verification
from evalspec.store import FINDINGS, LEDGER, PROTOCOL, RESPONSES, SCHEDULE, STUDY, STUDY_SOURCE, VERDICT, first_fault, table_name
from evalspec.verified_run import VerifiedRun


def recompute(folder: Path, verification: Verification) -> Recomputation:
    """Rebuild findings and verdict from the recorded responses, all read from verified bytes, and compare them with the recorded ones."""
    if verification.outcome == "altered":
        return Recomputation("not_recomputable", why="the content is not as it was signed")
    try:
        return _recomputed(VerifiedRun(folder, verification))
    except Exception as error:  # noqa: BLE001 - a signed report can hold anything, and an analysis can meet it with any error
        return Recomputation("not_recomputable", why=first_fault(error))


def _recomputed(run: VerifiedRun) -> Recomputation:
    protocol, recorded = run.protocol, (run.findings(), run.verdict())
    broken = broken_links(Links(run.content(STUDY_SOURCE), run.study, protocol, run.responses, run.content(RESPONSES), *recorded))
    if broken:
        return Recomputation("differs", broken)
    faults = row_faults(run.responses, protocol, _keyed(run))
    if faults:
        return Recomputation("differs", faults)
    missing = sorted({request.kind for request in protocol.analyses} - set(catalogue()))
    if missing:
        return Recomputation("not_recomputable", why=f"no analysis of the kind {missing[0]!r} is installed here")
    tables = {table.sha256: run.content(table_name(table.sha256)) for table in named_tables(protocol.analyses, catalogue())}
    other = tuple(Divergence(table_name(named), "", named, found) for named, content in tables.items() if (found := sha256_hex(content)) != named)
    if other:
        return Recomputation("differs", other)
    findings = analyse(
        run.responses,
        protocol,
        catalogue(),
        responses_sha256=sha256_hex(run.content(RESPONSES)),
        gate=gate,
        background=Background(models=run.study.models, read_questions=lambda: run.questions, tables=tables),
        unplanned=run.plan.unplanned if run.plan else (),
    )
    forecasts = forecast_gates(protocol, check_tests(protocol))
    verdict = gate(findings, protocol.thresholds, forecasts, findings_sha256=recorded[1].findings_sha256)  # the findings themselves are compared
    misstated = (*_laid_out_otherwise(run), *_misstated(run))
    compared = compare(recorded, (findings, verdict), catalogue(), edition=other_edition(run))
    return Recomputation("differs", misstated) if misstated and compared.state == "recomputed" else compared


def _laid_out_otherwise(run: VerifiedRun) -> Iterator[Divergence]:
    """Yield every JSON file that is not in its one form, in which no key can stand twice and say different things to different readers."""
    for name in filter(run.has, (STUDY, PROTOCOL, SCHEDULE, FINDINGS, VERDICT, LEDGER)):
        content, form = run.content(name), lined_json if name == FINDINGS else canonical_json
        try:
            told = "" if form(parse_bytes(content, limit=len(content))) == content else "laid out otherwise than evalspec writes it"
        except ValueError as error:
            told = str(error)
        if told:
            yield Divergence(name, "", told, "in the one form that evalspec writes")


def _misstated(run: VerifiedRun) -> Iterator[Divergence]:
    """Yield what the signed statement says of the run and its files do not: others may read the statement alone."""
    if run.verification.statement is None:
        return
    stated, verdict, protocol, ledger = run.verification.statement.predicate, run.verdict(), run.protocol, run.ledger()
    for place, said, found in (
        ("decision/result", stated.decision.result, verdict.overall or "none"),
        ("decision/rule", stated.decision.rule, verdict.rule),
        ("dataset", [(entry.name, entry.sha256, entry.n) for entry in stated.dataset], _datasets(protocol)),
        ("models", [(entry.id, entry.kind, entry.sha256) for entry in stated.models], _models(protocol)),
        ("runId", stated.run_id, ledger.run_id),
    ):
        if said != found:
            yield Divergence(MANIFEST, f"/predicate/{place}", str(said), str(found))
    if datetime.fromisoformat(stated.created_at) < _in_utc(ledger.finished):
        yield Divergence(MANIFEST, "/predicate/createdAt", stated.created_at, f"not before the run ended, at {ledger.finished}")


def _in_utc(time: str) -> datetime:
    """Return a time of the ledger, which is in UTC; raises ValueError for what is no time."""
    read = datetime.fromisoformat(time)
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def _models(protocol: Protocol) -> list[tuple[str, str, str | None]]:
    return [(model.id, model.identity.kind, known_digest(model.identity)) for model in protocol.models]


def _datasets(protocol: Protocol) -> list[tuple[str, str, int]]:
    return [(entry.id, entry.source_sha256, len(entry.questions)) for entry in protocol.benchmarks]


def _keyed(run: VerifiedRun) -> dict[str, Sequence[Question]]:
    """Return the questions whose keys are known from the run itself, by benchmark; none where no model was scored from weights."""
    scored = any(isinstance(system_of(model.identity), CheckpointIdentity) for model in run.protocol.models)
    return {entry.benchmark: entry.questions for entry in run.questions.sets} if scored else {}
