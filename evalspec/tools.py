"""Which tools does a run work with?  Settings to executor, journal, digests, checkpoints, commitments; and what a run attests about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType

from evalspec import __version__, surroundings
from evalspec.artifacts.base import canonical_json
from evalspec.artifacts.protocol import CheckpointIdentity, EarlierIdentity, Protocol, RecordIdentity, known_digest
from evalspec.artifacts.questions import Question, QuestionBank
from evalspec.artifacts.report import Ledger, LedgerEntry
from evalspec.artifacts.schedule import Device, MemoryNeed, Schedule
from evalspec.artifacts.sources import CheckpointSource
from evalspec.artifacts.study import Model, Study
from evalspec.artifacts.verdict import Verdict
from evalspec.earlier_runs import EarlierModel, read_earlier
from evalspec.edition import edition_of
from evalspec.errors import Diagnostic, InputError, MissingLibrary, StoreError, StudyError, how_to_install, refuse_all
from evalspec.language.compile import CompiledStudy, at_model, at_name
from evalspec.places import can_be_written, keep_out_of_git, nearest_existing, write_privately
from evalspec.planning.checkpoints import find_checkpoint, identify
from evalspec.planning.digests import RememberedDigests
from evalspec.planning.memory import memory_need
from evalspec.planning.protocol import Commit
from evalspec.planning.schedule import devices_with_room
from evalspec.planning.speeds import Speeds
from evalspec.protocols import Executor
from evalspec.scoring.batching import GENERATED_PER_READ
from evalspec.scoring.executors.devices import local_devices
from evalspec.scoring.executors.local import LocalExecutor
from evalspec.scoring.journal import FileJournal
from evalspec.scoring.queue import Estimates
from evalspec.scoring.records import Record, check_records, left_out, read_records
from evalspec.sealing import Seal
from evalspec.secret_files import obtain_secret
from evalspec.settings import Settings
from evalspec.signing.commitments import commit
from evalspec.signing.statement import Claim, Dataset, Decision, Sha256, SignedModel, Tool
from evalspec.store import RunDirectory

DIGESTS = "digests.json"
JOURNAL_SECRET = "journal.secret"  # noqa: S105 - the name of a file, not a secret
SECRET = "commitments.secret"  # noqa: S105 - the name of a file, not a secret


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model of the study, what it is and where it lies; what it needs to be scored, or the record or the earlier run of its responses."""

    identity: CheckpointIdentity | RecordIdentity | EarlierIdentity
    place: Path
    need: MemoryNeed | None
    record: Record | None = None
    earlier: EarlierModel | None = None


def journal(settings: Settings) -> FileJournal:
    """Return the journal of finished batches."""
    folder = settings.user_folder
    return FileJournal(settings.cache / "journal", None if folder is None else folder / JOURNAL_SECRET)


def devices(settings: Settings) -> tuple[Device, ...]:
    """Return what can score; raises UsageError when it is not what was asked for."""
    if settings.executor == "ray":
        found: tuple[Device, ...] = _ray().cluster_devices(settings.devices, settings.ray_address)
        return found
    return local_devices(settings.devices, settings.threads)


def executor(settings: Settings, schedule: Schedule, *, share: float | None = None) -> Executor:
    """Return where scoring runs, on the devices of a schedule and steered by what it expects; with `share`, so much of every job and no more."""
    estimates = Estimates(
        seconds={job.id: job.seconds for job in schedule.jobs if job.seconds},
        share=share,
        loading={need.model: Speeds().load_seconds(need) for need in schedule.memory},
        room={
            need.model: frozenset(device.id for device in roomy) for need in schedule.memory if (roomy := devices_with_room(need, schedule.devices))
        },
    )
    threads, silence = settings.threads, settings.worker_silence
    if settings.executor == "ray" and schedule.jobs:
        address = settings.ray_address
        there: Executor = _ray().RayExecutor(schedule.devices, address=address, threads=threads, estimates=estimates, silence=silence)
        return there
    return LocalExecutor(schedule.devices, threads=threads, estimates=estimates, silence=silence)


def _ray() -> ModuleType:
    """Return the module that speaks to Ray, which few have installed."""
    try:
        from evalspec.scoring.executors import ray_cluster  # noqa: PLC0415 - it imports Ray
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise MissingLibrary("the library 'ray' is not installed", hint=how_to_install("ray")) from error
    return ray_cluster


def check_places(out: Path, settings: Settings, seal: Seal) -> None:
    """Raise StoreError with every place that a run writes to and may not, before the run has cost anything."""
    trust = [("--trust-out", seal.public.file)] if seal.public else []
    faults = [
        Diagnostic(f"{place} cannot be written", hint=f"{_obstacle(place)} name another place with {option}")
        for option, place in (("--out", out), ("--cache", settings.cache), *trust)
        if not can_be_written(place)
    ]
    if faults:
        raise StoreError(faults)


def _obstacle(place: Path) -> str:
    nearest = nearest_existing(place)
    return f"make {nearest} writable, or" if nearest.is_dir() else f"{nearest} is no folder:"


def resolve_models(compiled: CompiledStudy, settings: Settings) -> dict[str, ResolvedModel]:
    """Return every model that lies on this machine with its digests; raises InputError or StudyError with the faults of all models at once."""
    remembered = settings.cache / DIGESTS
    digests = RememberedDigests.from_json(remembered.read_bytes()) if remembered.is_file() else RememberedDigests()
    before, models = dict(digests.known), dict[str, ResolvedModel]()
    misnamed, faults = list[Diagnostic](), list[Diagnostic]()
    for number, model in enumerate(compiled.study.models):
        try:
            if isinstance(model.source, CheckpointSource):
                models[model.id] = _resolve(model, model.source, compiled, settings, digests)
        except InputError as error:
            faults += at_model(number, error, compiled.source)
    try:
        for record in read_records(compiled.study, folder=compiled.folder, root=compiled.root, at=partial(at_name, compiled=compiled)):
            models[record.model] = ResolvedModel(record.identity, record.path, None, record)
    except StudyError as error:
        misnamed += error.diagnostics
    except InputError as error:
        faults += error.diagnostics
    try:
        for earlier in read_earlier(compiled.study, folder=compiled.folder, root=compiled.root):
            models[earlier.model] = ResolvedModel(earlier.identity, earlier.run.folder, None, earlier=earlier)
    except InputError as error:
        faults += error.diagnostics
    refuse_all(misnamed, faults)
    _remember(digests, before, remembered)
    return {model.id: models[model.id] for model in compiled.study.models if model.id in models}


def _remember(digests: RememberedDigests, before: Mapping[str, object], place: Path) -> None:
    if digests.known != before and can_be_written(place):  # a plan needs no more than to read
        write_privately(place, digests.to_json())


def check_recorded(models: Mapping[str, ResolvedModel], bank: QuestionBank) -> tuple[str, ...]:
    """Hold every recorded answer against its question; returns what is left out of the tables. Raises InputError with every fault."""
    records, sources = [model.record for model in models.values() if model.record], {entry.benchmark: entry.questions for entry in bank.sets}
    check_records(records, sources)
    return tuple(left_out(records, sources))


def committer(settings: Settings) -> Commit:
    """Return the function that commits to hidden questions, salted by a secret that stays in the cache folder; `lost_secret` tells of a new one."""
    keep_out_of_git(settings.cache)
    secret = obtain_secret(settings.cache / SECRET, elsewhere="name another folder with --cache")

    def commit_to(benchmark: str, question: Question) -> str:
        content = canonical_json([question.id, question.stem, list(question.choices), question.answer, question.subject])
        return commit(secret, benchmark, question.id, content)

    return commit_to


def lost_secret(settings: Settings, earlier: RunDirectory | None = None) -> tuple[str, ...]:
    """Return what must be said before hidden questions are committed to under a new secret; nothing where the secret is there."""
    path = settings.cache / SECRET
    if path.exists():
        return ()
    told = (
        f"a new secret for hidden questions is made, since {path} is not there. Keep a copy: without it no hidden question of this report can ever "
        "be opened. If you had one before, put it back first: what was committed to under it cannot be opened with the new one"
    )
    if earlier is None or not earlier.commits():
        return (told,)
    return (told, f"{earlier.path} holds a report whose hidden questions were committed to under a secret that is gone; it is replaced")


def ledger(protocol: Protocol, jobs: tuple[LedgerEntry, ...], executor: Executor, *, started: str, command: str, study: Path, seal: Seal) -> Ledger:
    """Return the clocks, versions and places of a run that ends now."""
    git = surroundings.git_state(study)
    finished = surroundings.timestamp()
    return Ledger(
        run_id=f"{finished.replace(':', '').replace('-', '')}-{protocol.digest()[:12]}",
        started=started,
        finished=finished,
        host=surroundings.host(),
        command=command,
        versions=surroundings.versions(),
        environment=surroundings.environment(),
        devices=tuple(device.name or device.id for device in executor.devices()),
        jobs=jobs,
        git_commit=git.commit,
        git_dirty=git.dirty,
        key_note="throw-away key, made for this run alone" if seal.throw_away else None,
    )


def claim(study: Study, protocol: Protocol, verdict: Verdict, record: Ledger) -> Claim:
    """Return what the signed statement says of a run."""
    return Claim(
        run_id=record.run_id,
        created_at=surroundings.timestamp(),
        tool=Tool(name="evalspec", version=__version__, sources_sha256=edition_of(request.kind for request in protocol.analyses)),
        study=Sha256(sha256=study.source_sha256),
        protocol=Sha256(sha256=protocol.digest()),
        dataset=tuple(Dataset(name=entry.id, sha256=entry.source_sha256, n=len(entry.questions)) for entry in protocol.benchmarks),
        models=tuple(SignedModel(id=model.id, kind=model.identity.kind, sha256=known_digest(model.identity)) for model in protocol.models),
        decision=Decision(result=verdict.overall or "none", rule=verdict.rule),
    )


def _resolve(model: Model, source: CheckpointSource, compiled: CompiledStudy, settings: Settings, digests: RememberedDigests) -> ResolvedModel:
    checkpoint = find_checkpoint(source, folder=compiled.folder, root=compiled.root, hub_cache=settings.hub_cache)
    identity = identify(checkpoint, digest=digests)  # first of all: it refuses files that lie elsewhere before they are read
    writes = any(benchmark.scoring.method == "sampled" for benchmark in compiled.study.benchmarks)
    cached, budget = GENERATED_PER_READ * settings.token_budget if writes else 0, settings.token_budget
    need = memory_need(checkpoint, model=model.id, precision=model.precision, token_budget=budget, cached_tokens=cached)
    return ResolvedModel(identity, checkpoint.path, need)
