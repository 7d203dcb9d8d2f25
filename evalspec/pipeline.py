"""In which order does everything happen?  The composition root: it calls the stages in order and has no logic of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from evalspec import __version__, servers, surroundings, tools
from evalspec.alone import alone_in
from evalspec.analyses.analyse import analyse
from evalspec.analyses.catalogue import catalogue
from evalspec.artifacts.lock import LOCK, LockedPlan
from evalspec.artifacts.protocol import BatchRule, CheckpointIdentity, Protocol, RecordIdentity
from evalspec.artifacts.questions import QuestionBank
from evalspec.artifacts.responses import Responses
from evalspec.artifacts.schedule import Schedule
from evalspec.artifacts.verdict import Verdict
from evalspec.checking import SoundStudy, check
from evalspec.earlier_runs import check_earlier, earlier_rows
from evalspec.errors import EvalspecError, InputError, MissingLibrary, ReportError
from evalspec.gating import gate
from evalspec.language.compile import CompiledStudy
from evalspec.looks import count_looks
from evalspec.outlook import look_ahead
from evalspec.planning.examples import draw_examples
from evalspec.planning.protocol import build_protocol, list_questions, preamble_texts
from evalspec.planning.sampling import draw
from evalspec.planning.schedule import build_schedule, disclosed
from evalspec.planning.selection import choose_all
from evalspec.preregistration import (
    FoundLock,
    LockChoice,
    Locked,
    StudyPlace,
    earlier_lock,
    find_lock,
    hold_against,
    lock_study,
    plan_in,
    remember,
)
from evalspec.protocols import Background, Progress, ProgressSink, ignore_progress
from evalspec.scoring.calibration import SHARE, measure
from evalspec.scoring.execute import ScoringTask, score
from evalspec.scoring.special_tokens import special_token_warnings
from evalspec.sealing import Seal
from evalspec.settings import Settings
from evalspec.signing.seal import seal
from evalspec.store import (
    FINDINGS,
    PROTOCOL,
    REPORT_HTML,
    REPORT_PDF,
    STUDY_SOURCE,
    VERDICT,
    RunDirectory,
)

ATTACHED = (STUDY_SOURCE, PROTOCOL, FINDINGS, VERDICT)


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything that is known before scoring.

    `warnings` say what of recorded tables is left out, whether a secret was lost and what servers bring with them; `tables` are outside ones by
    SHA-256; `manifests` are those of earlier runs from which models are taken.
    """

    compiled: CompiledStudy
    bank: QuestionBank
    protocol: Protocol
    schedule: Schedule
    task: ScoringTask
    warnings: tuple[str, ...]
    tables: Mapping[str, bytes]
    manifests: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to; `fault` is what kept the PDF from being made, after everything else was written and signed."""

    folder: Path
    verdict: Verdict
    fault: EvalspecError | None
    plan: LockedPlan | None = None


def prepare(study: Path, settings: Settings, *, earlier: RunDirectory | None = None) -> Prepared:
    """Resolve a study to its protocol and its schedule; nothing is scored. `earlier` is where a run will replace another."""
    sound = check(study, settings)
    compiled, bank = sound.compiled, sound.bank
    models = _resolved(sound, settings)
    warnings = tools.check_recorded(models, bank)
    chosen = choose_all(compiled.study, bank, sound.answers)
    draws = {
        entry.id: draw(
            compiled.sample(entry.id),
            bank.benchmark(entry.id),
            seed=compiled.study.seed,
            planned=compiled.sizes.get(entry.id),
            chosen=chosen.get(entry.id),
        )
        for entry in compiled.study.benchmarks
    }
    shown = {
        entry.id: draw_examples(entry, draws[entry.id], sound.pools.get(entry.id, bank.benchmark(entry.id)), seed=compiled.study.seed)
        for entry in compiled.study.benchmarks
    }
    hidden = {entry.id for entry in compiled.study.benchmarks if entry.disclosure == "none"}
    warnings += tools.lost_secret(settings, earlier) if hidden else ()
    commit = tools.committer(settings) if hidden else None
    protocol = build_protocol(
        compiled.study,
        bank=bank,
        draws=draws,
        identities={**{name: model.identity for name, model in models.items()}, **servers.identities(compiled.study)},
        batch_rule=BatchRule(token_budget=settings.token_budget),
        commit=commit,
        shown=shown,
    )
    listed = {name: list_questions(drawn, commit if name in hidden else None) for name, drawn in draws.items()}
    recorded = {name for name, model in models.items() if isinstance(model.identity, RecordIdentity)}
    earlier_models = tuple(model.earlier for model in models.values() if model.earlier is not None)
    check_earlier(earlier_models, protocol)
    task = ScoringTask(
        protocol=protocol,
        questions={name: tuple(entry.question for entry in entries) for name, entries in listed.items()},
        folders={name: model.place for name, model in models.items() if isinstance(model.identity, CheckpointIdentity)},
        records={name: model.place for name, model in models.items() if name in recorded},
        preambles={entry.id: preamble_texts(entry, shown[entry.id]) for entry in compiled.study.benchmarks},
        accesses=servers.accesses(compiled.study, settings),
        earlier=earlier_rows(earlier_models, protocol),
    )
    orders, served, journal = task.orders(), task.served_orders(), tools.journal(settings)
    outlook = replace(
        look_ahead(protocol, orders, models, settings),
        served=servers.served_jobs(served, journal),
        costs=servers.costs(compiled.study, served, journal),
    )
    schedule = build_schedule(protocol, orders=orders, draws=draws.values(), outlook=outlook)
    warnings += servers.warnings(compiled.study, outlook.costs, settings)
    warnings += special_token_warnings(orders, protocol, task.questions)
    manifests = tuple(dict.fromkeys(model.manifest for model in earlier_models))
    return Prepared(compiled, bank, protocol, schedule, task, warnings, sound.tables, manifests)


def calibrate(study: Path, settings: Settings, *, progress: ProgressSink = ignore_progress) -> Prepared:
    """Prepare a study, score a small part of every job into the journal, and prepare it again with what that told; servers are not asked."""
    prepared = prepare(study, settings)
    measure(prepared.task.orders(), tools.executor(settings, prepared.schedule, share=SHARE), tools.journal(settings), progress)
    return prepare(study, settings)


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


def lock(study: Path, settings: Settings, *, seal_with: Seal, replace: bool = False, progress: ProgressSink = ignore_progress) -> Locked:
    """Sign the plan of a study before anything is scored, beside the study; raises UsageError where it is locked already."""
    earlier = earlier_lock(study, may_replace=replace)
    prepared = prepare(study, settings)
    for told in prepared.warnings:
        progress(Progress("plan", 0, 0, "answers", warning=told))
    place = StudyPlace(study, prepared.compiled.root, settings.cache)
    locked = lock_study(place, (prepared.compiled.study, prepared.protocol, prepared.schedule), replaced=earlier, signer=seal_with.signer)
    seal_with.publish()
    return locked


def run(
    study: Path,
    out: Path,
    settings: Settings,
    *,
    seal_with: Seal,
    command: str,
    held: LockChoice | None = None,
    progress: ProgressSink = ignore_progress,
) -> Outcome:
    """Take a study all the way to a signed report in `out`; where it was locked, as it was locked or with every deviation told."""
    started, directory = surroundings.timestamp(), RunDirectory(out)
    prepared = prepare(study, settings, earlier=directory)
    found = find_lock(study, held or LockChoice())
    plan = None if found is None else hold_against(found, prepared.compiled.study, prepared.protocol, started=started)
    tools.check_places(out, settings, seal_with)
    servers.refuse_too_costly(prepared.schedule.costs, prepared.compiled)
    directory.prepare()
    with alone_in(out):
        for told in prepared.warnings:
            progress(Progress("scoring", 0, 0, "answers", warning=told))
        remember("run", StudyPlace(study, prepared.compiled.root, settings.cache), prepared.protocol)
        executor = tools.executor(settings, prepared.schedule)
        scored = score(prepared.task, executor, tools.journal(settings), progress)
        earlier = directory.study_sha256()
        if earlier not in {None, prepared.compiled.study.source_sha256}:
            progress(Progress("scoring", 0, 0, "answers", warning=f"{out} held the run of another text of a study ({earlier}); it is replaced"))
        digest = _write(prepared, scored.responses, directory, found)
        known = Background(models=prepared.compiled.study.models, read_questions=directory.read_questions, tables=prepared.tables)
        findings = analyse(
            directory.read_responses(),
            prepared.protocol,
            catalogue(),
            responses_sha256=digest,
            gate=gate,
            background=known,
            unplanned=plan.unplanned if plan else (),
            progress=progress,
        )
        named = directory.write_findings(findings)
        directory.write_verdict(gate(findings, prepared.protocol.thresholds, prepared.schedule.gates, findings_sha256=named))
        attested = tools.ledger(prepared.protocol, scored.jobs, executor, started=started, command=command, study=study, seal=seal_with)
        looks = count_looks(settings.cache, prepared.protocol, scored.responses)
        directory.write_ledger(attested.model_copy(update={"looks": looks}))
        return _report(out, settings, seal_with)


def _write(prepared: Prepared, responses: Responses, directory: RunDirectory, found: FoundLock | None) -> str:
    """Write what was asked and answered in place of an earlier run; returns the digest of the responses."""
    directory.clear()
    directory.write_study(prepared.compiled.study, prepared.compiled.text)
    directory.write_protocol(prepared.protocol)
    directory.write_schedule(disclosed(prepared.schedule, prepared.protocol))
    directory.write_questions(prepared.protocol, prepared.bank)
    digest = directory.write_responses(responses, prepared.protocol)
    for table in prepared.tables.values():
        directory.write_table(table)
    for manifest in prepared.manifests:
        directory.write_manifest_of_earlier(manifest)
    if found is not None:
        directory.write(LOCK, found.content)
    return digest


def report(folder: Path, settings: Settings, *, seal_with: Seal) -> Outcome:
    """Compose, render and seal the report of a finished run from its files; without Pango everything but the PDF is made."""
    with alone_in(folder):
        return _report(folder, settings, seal_with)


def _report(folder: Path, settings: Settings, seal_with: Seal) -> Outcome:
    from evalspec.reporting.compose import compose
    from evalspec.reporting.dossier import Dossier, SignerNote
    from evalspec.reporting.pdf import render

    directory = RunDirectory(folder)
    study, protocol, verdict, ledger = directory.read_study(), directory.read_protocol(), directory.read_verdict(), directory.read_ledger()
    plan = plan_in(folder, study, protocol)
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
        plan=plan,
        signer=SignerNote(seal_with.signer.fingerprint, seal_with.name, throw_away=seal_with.throw_away),
    )
    directory.write(REPORT_HTML, compose(dossier).html.encode())
    directory.remove(REPORT_PDF)
    seal_with.publish()
    claim = tools.claim(study, protocol, verdict, ledger)
    if not settings.pdf:
        seal(folder, seal_with.signer, claim, pdf_skipped="not asked for")
        return Outcome(folder, verdict, None, plan)
    try:
        attachments = {name: directory.read(name) for name in (*ATTACHED, *((LOCK,) if plan else ()))}
        directory.write(REPORT_PDF, render(directory.read(REPORT_HTML).decode(), attachments=attachments, finished=ledger.finished))
        seal(folder, seal_with.signer, claim)
    except (MissingLibrary, ReportError) as fault:
        directory.remove(REPORT_PDF)
        seal(folder, seal_with.signer, claim, pdf_skipped=fault.diagnostics[0].message)
        return Outcome(folder, verdict, fault, plan)
    return Outcome(folder, verdict, None, plan)
