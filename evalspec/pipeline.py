"""In which order does everything happen?  The composition root: it calls the stages in order and has no logic of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evalspec import __version__, surroundings, tools
from evalspec.analyses.analyse import analyse
from evalspec.analyses.catalogue import catalogue
from evalspec.analyses.recomputation import Recomputation, compare
from evalspec.artifacts.base import sha256_hex
from evalspec.artifacts.findings import Findings
from evalspec.artifacts.protocol import BatchRule, Protocol, RecordIdentity
from evalspec.artifacts.questions import QuestionBank
from evalspec.artifacts.schedule import Schedule
from evalspec.artifacts.study import Study
from evalspec.artifacts.verdict import Verdict
from evalspec.chain import Links, broken_links
from evalspec.checking import SoundStudy, check
from evalspec.errors import EvalspecError, InputError, MissingLibrary, ReportError
from evalspec.gating import gate
from evalspec.language.compile import CompiledStudy
from evalspec.looks import count_looks
from evalspec.planning.forecasts import forecast_gates
from evalspec.planning.protocol import build_protocol, list_questions
from evalspec.planning.sampling import draw
from evalspec.planning.schedule import build_schedule, disclosed
from evalspec.protocols import Progress, ProgressSink, ignore_progress
from evalspec.scoring.execute import ScoringTask, score
from evalspec.sealing import Seal
from evalspec.settings import Settings
from evalspec.signing.seal import seal
from evalspec.signing.verification import Verification
from evalspec.store import FINDINGS, PROTOCOL, REPORT_HTML, REPORT_PDF, RESPONSES, STUDY, STUDY_SOURCE, VERDICT, RunDirectory, first_fault
from evalspec.tables.responses import responses_from_parquet

ATTACHED = (STUDY_SOURCE, PROTOCOL, FINDINGS, VERDICT)


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything that is known before scoring."""

    compiled: CompiledStudy
    bank: QuestionBank
    protocol: Protocol
    schedule: Schedule
    task: ScoringTask


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to; `fault` is what kept the PDF from being made, after everything else was written and signed."""

    folder: Path
    verdict: Verdict
    fault: EvalspecError | None


def prepare(study: Path, settings: Settings) -> Prepared:
    """Resolve a study to its protocol and its schedule; nothing is scored."""
    sound = check(study, settings)
    compiled, bank = sound.compiled, sound.bank
    models = _resolved(sound, settings)
    draws = {
        entry.id: draw(compiled.sample(entry.id), bank.benchmark(entry.id), seed=compiled.study.seed, planned=compiled.sizes.get(entry.id))
        for entry in compiled.study.benchmarks
    }
    hidden = {entry.id for entry in compiled.study.benchmarks if entry.disclosure == "none"}
    commit = tools.committer(settings) if hidden else None
    protocol = build_protocol(
        compiled.study,
        bank=bank,
        draws=draws,
        identities={name: model.identity for name, model in models.items()},
        batch_rule=BatchRule(token_budget=settings.token_budget),
        commit=commit,
    )
    listed = {name: list_questions(drawn, commit if name in hidden else None) for name, drawn in draws.items()}
    recorded = {name for name, model in models.items() if isinstance(model.identity, RecordIdentity)}
    task = ScoringTask(
        protocol=protocol,
        questions={name: tuple(entry.question for entry in entries) for name, entries in listed.items()},
        folders={name: model.place for name, model in models.items() if name not in recorded},
        records={name: model.place for name, model in models.items() if name in recorded},
    )
    orders = task.orders()
    schedule = build_schedule(protocol, orders=orders, draws=draws.values(), outlook=tools.outlook(protocol, orders, models, settings))
    return Prepared(compiled, bank, protocol, schedule, task)


def _resolved(sound: SoundStudy, settings: Settings) -> dict[str, tools.ResolvedModel]:
    """Resolve the models; raises InputError with everything that is not on this machine, questions and models, at once."""
    faults = [fault for error in sound.absent for fault in error.diagnostics]
    try:
        models = tools.resolve_models(sound.compiled, settings)
    except InputError as error:
        raise InputError((*faults, *error.diagnostics)) from error
    if faults:
        raise InputError(faults)
    return models


def run(study: Path, out: Path, settings: Settings, *, seal_with: Seal, command: str, progress: ProgressSink = ignore_progress) -> Outcome:
    """Take a study all the way to a signed report in `out`."""
    started, directory, executor = surroundings.timestamp(), RunDirectory(out), tools.executor(settings)
    prepared = prepare(study, settings)
    directory.prepare()
    scored = score(prepared.task, executor, tools.journal(settings), progress)
    earlier = directory.study_sha256()
    if earlier not in {None, prepared.compiled.study.source_sha256}:
        progress(Progress("scoring", 0, 0, "questions", warning=f"{out} held the run of another text of a study ({earlier}); it is replaced"))
    directory.clear()
    directory.write_study(prepared.compiled.study, prepared.compiled.text)
    directory.write_protocol(prepared.protocol)
    directory.write_schedule(disclosed(prepared.schedule, prepared.protocol))
    directory.write_questions(prepared.protocol, prepared.bank)
    digest = directory.write_responses(scored.responses, prepared.protocol)
    findings = analyse(directory.read_responses(), prepared.protocol, catalogue(), responses_sha256=digest, gate=gate, progress=progress)
    directory.write_findings(findings)
    directory.write_verdict(gate(findings, prepared.protocol.thresholds, prepared.schedule.gates))
    attested = tools.ledger(prepared.protocol, scored.jobs, executor, started=started, command=command, study=study, seal=seal_with)
    looks = count_looks(settings.cache, prepared.protocol, scored.responses)
    directory.write_ledger(attested.model_copy(update={"looks": looks}))
    return report(out, settings, seal_with=seal_with)


def report(folder: Path, settings: Settings, *, seal_with: Seal) -> Outcome:
    """Compose, render and seal the report of a finished run from its files; without Pango everything but the PDF is made."""
    from evalspec.reporting.compose import compose
    from evalspec.reporting.dossier import Dossier, SignerNote
    from evalspec.reporting.pdf import render

    directory = RunDirectory(folder)
    study, protocol, verdict, ledger = directory.read_study(), directory.read_protocol(), directory.read_verdict(), directory.read_ledger()
    dossier = Dossier(
        study=study,
        protocol=protocol,
        schedule=directory.read_schedule(),
        findings=directory.read_findings(),
        verdict=verdict,
        ledger=ledger,
        responses=directory.read_responses(),
        catalogue=catalogue(),
        tool_version=__version__,
        bank=directory.read_questions(),
        signer=SignerNote(seal_with.signer.fingerprint, seal_with.name, throw_away=seal_with.throw_away),
    )
    directory.write(REPORT_HTML, compose(dossier).html.encode())
    directory.remove(REPORT_PDF)
    seal_with.publish()
    claim = tools.claim(study, protocol, verdict, ledger)
    if not settings.pdf:
        seal(folder, seal_with.signer, claim, pdf_skipped="not asked for")
        return Outcome(folder, verdict, None)
    try:
        attachments = {name: directory.read(name) for name in ATTACHED}
        directory.write(REPORT_PDF, render(directory.read(REPORT_HTML).decode(), attachments=attachments, finished=ledger.finished))
        seal(folder, seal_with.signer, claim)
    except (MissingLibrary, ReportError) as fault:
        directory.remove(REPORT_PDF)
        seal(folder, seal_with.signer, claim, pdf_skipped=fault.diagnostics[0].message)
        return Outcome(folder, verdict, fault)
    return Outcome(folder, verdict, None)


def recompute(folder: Path, verification: Verification) -> Recomputation:
    """Rebuild findings and verdict from the recorded responses, all read from verified bytes, and compare them with the recorded ones."""
    content = {name: verification.read_verified(folder, name) for name in (STUDY_SOURCE, STUDY, PROTOCOL, RESPONSES, FINDINGS, VERDICT)}
    try:
        protocol, responses = Protocol.from_json(content[PROTOCOL]), responses_from_parquet(content[RESPONSES])
        recorded = Findings.from_json(content[FINDINGS]), Verdict.from_json(content[VERDICT])
        links = Links(content[STUDY_SOURCE], Study.from_json(content[STUDY]), protocol, responses, content[RESPONSES], *recorded)
    except ValueError as error:
        return Recomputation("not_recomputable", why=f"a file is not what this version of evalspec reads: {first_fault(error)}")
    broken = broken_links(links)
    if broken:
        return Recomputation("differs", broken)
    missing = sorted({request.kind for request in protocol.analyses} - set(catalogue()))
    if missing:
        return Recomputation("not_recomputable", why=f"no analysis of the kind {missing[0]!r} is installed here")
    findings = analyse(responses, protocol, catalogue(), responses_sha256=sha256_hex(content[RESPONSES]), gate=gate)
    forecasts = forecast_gates(protocol, tools.check_tests(protocol))
    return compare(recorded, (findings, gate(findings, protocol.thresholds, forecasts)), catalogue())
