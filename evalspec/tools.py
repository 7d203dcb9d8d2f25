"""Which tools does a run work with?  Settings to executor, journal, digests, checkpoints, commitments; and what a run attests about itself."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from evalspec import __version__, surroundings
from evalspec.analyses.catalogue import catalogue
from evalspec.artifacts.base import canonical_json
from evalspec.artifacts.protocol import CheckpointIdentity, Protocol, RecordIdentity
from evalspec.artifacts.questions import Question
from evalspec.artifacts.report import Ledger, LedgerEntry
from evalspec.artifacts.schedule import MemoryNeed
from evalspec.artifacts.study import Model, RecordedResponses, Study
from evalspec.artifacts.verdict import Verdict
from evalspec.artifacts.work import WorkOrder, jobs_of
from evalspec.errors import Diagnostic, InputError, MissingLibrary
from evalspec.language.compile import CompiledStudy
from evalspec.places import resolve_inside
from evalspec.planning.checkpoints import find_checkpoint, identify
from evalspec.planning.digests import RememberedDigests
from evalspec.planning.memory import memory_need
from evalspec.planning.protocol import Commit
from evalspec.planning.schedule import Outlook
from evalspec.planning.speeds import Speeds
from evalspec.protocols import CheckTest, Comparison, Executor
from evalspec.scoring.checkpoint import plan_tokens
from evalspec.scoring.executors.local import LocalExecutor
from evalspec.scoring.journal import FileJournal
from evalspec.scoring.replay import ReadTable, identify_record
from evalspec.scoring.speeds import expected_pace, read_speeds
from evalspec.scoring.tables import RecordedTable
from evalspec.sealing import Seal
from evalspec.settings import Settings
from evalspec.signing.commitments import commit
from evalspec.signing.statement import Claim, Dataset, Decision, Sha256, SignedModel, Tool

DIGESTS = "digests.json"
SECRET = "commitments.secret"  # noqa: S105 - the name of a file, not a secret
SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model of the study, what it is, where it lies, and what it needs to be scored; `need` is None for recorded responses."""

    identity: CheckpointIdentity | RecordIdentity
    place: Path
    need: MemoryNeed | None


def journal(settings: Settings) -> FileJournal:
    """Return the journal of finished batches."""
    return FileJournal(settings.cache / "journal")


def executor(settings: Settings) -> LocalExecutor:
    """Return where scoring runs."""
    return LocalExecutor(threads=settings.threads)


def resolve_models(compiled: CompiledStudy, settings: Settings) -> dict[str, ResolvedModel]:
    """Return every model of a study with its digests; raises InputError with the faults of all models at once."""
    remembered = settings.cache / DIGESTS
    digests = RememberedDigests.from_json(remembered.read_bytes()) if remembered.is_file() else RememberedDigests()
    before, models, read = dict(digests.known), {}, cache(RecordedTable.read)
    faults: list[Diagnostic] = []
    for model in compiled.study.models:
        try:
            models[model.id] = _resolve(model, compiled, settings, digests, read)
        except InputError as error:
            faults += error.diagnostics
    if faults:
        raise InputError(faults)
    if digests.known != before:
        _write_privately(remembered, digests.to_json())
    return models


def committer(settings: Settings) -> Commit:
    """Return the function that commits to hidden questions, salted by a secret that stays in the cache folder."""
    path = settings.cache / SECRET
    if not path.is_file():
        _write_privately(path, secrets.token_bytes(SECRET_BYTES))
    secret = path.read_bytes()

    def commit_to(benchmark: str, question: Question) -> str:
        content = canonical_json([question.id, question.stem, list(question.choices), question.answer, question.subject])
        return commit(secret, benchmark, question.id, content)

    return commit_to


def outlook(protocol: Protocol, orders: Sequence[WorkOrder], models: Mapping[str, ResolvedModel], settings: Settings) -> Outlook:
    """Return what is known before the run: devices, memory, tokens, what the journal has, earlier speeds, declared comparisons."""
    devices = executor(settings).devices()
    recorded = journal(settings)
    seen = read_speeds(recorded.folder)
    paces = {
        (order.model, device.id): pace.tokens_per_second
        for order in orders
        for device in devices
        if (pace := expected_pace(seen, order, device.name or device.kind)) is not None and pace.measured
    }
    return Outlook(
        devices=devices,
        memory=tuple(model.need for model in models.values() if model.need is not None),
        tokens=_tokens(orders),
        journalled={job.id: recorded.read(job.id).answered for job in jobs_of(orders)},
        speeds=Speeds(paces),
        comparisons=_comparisons(protocol),
        check_tests=check_tests(protocol),
    )


def check_tests(protocol: Protocol) -> dict[str, CheckTest | None]:
    """Return how each check is decided, by its id: at its own error rate, or under `require: any` at the smallest that Holm may ask for."""
    if protocol.thresholds is None:
        return {}
    known, models = catalogue(), tuple(model.id for model in protocol.models)
    requests = {request.id: request for request in protocol.analyses}
    divisor = len(protocol.thresholds.checks) if protocol.thresholds.require == "any" else 1
    found: dict[str, CheckTest | None] = {}
    for check in protocol.thresholds.checks:
        request = requests[check.analysis]
        analysis = known[request.kind]
        options = analysis.options.model_validate_json(canonical_json(request.options))
        if divisor > 1 and analysis.stricter is not None:
            options = analysis.stricter(options, divisor)
        decide = analysis.check_test
        found[check.id] = None if decide is None else decide(options, check, models, len(request.benchmarks))
    return found


def ledger(protocol: Protocol, jobs: tuple[LedgerEntry, ...], devices: Executor, *, started: str, command: str, study: Path, seal: Seal) -> Ledger:
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
        devices=tuple(device.name or device.id for device in devices.devices()),
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
        tool=Tool(name="evalspec", version=__version__),
        study=Sha256(sha256=study.source_sha256),
        protocol=Sha256(sha256=protocol.digest()),
        dataset=tuple(Dataset(name=entry.id, sha256=entry.source_sha256, n=len(entry.questions)) for entry in protocol.benchmarks),
        models=tuple(SignedModel(id=model.id, kind=model.identity.kind, sha256=_digest_of(model.identity)) for model in protocol.models),
        decision=Decision(result=verdict.overall or "none", rule=verdict.rule),
    )


def _resolve(model: Model, compiled: CompiledStudy, settings: Settings, digests: RememberedDigests, read: ReadTable) -> ResolvedModel:
    if isinstance(model.source, RecordedResponses):
        path = resolve_inside(model.source.responses, folder=compiled.folder, root=compiled.root)
        name = model.source.model or model.id
        source = model.source
        return ResolvedModel(identify_record(path, name=name, origin=source.responses, sha256=source.sha256, read=read), path, None)
    checkpoint = find_checkpoint(model.source, folder=compiled.folder, root=compiled.root, hub_cache=settings.hub_cache)
    need = memory_need(checkpoint, model=model.id, precision=model.precision, token_budget=settings.token_budget)
    return ResolvedModel(identify(checkpoint, digest=digests), checkpoint.path, need)


def _tokens(orders: Sequence[WorkOrder]) -> dict[str, int]:
    """Count the tokens of each job; none where no tokenizer library is installed."""
    counts: dict[str, int] = {}
    for order in orders:
        for work in order.works:
            try:
                encoded = plan_tokens(Path(order.folder), work, model=order.model)
            except (MissingLibrary, InputError):
                continue
            lengths = iter([sum(map(len, question.rows)) for question in encoded.questions])
            for shard in order.shards(work):
                counts[order.key(work, shard).digest()] = sum(next(lengths) for _ in shard)
    return counts


def _comparisons(protocol: Protocol) -> dict[str, tuple[Comparison, ...]]:
    known, models = catalogue(), tuple(model.id for model in protocol.models)
    found = {}
    for request in protocol.analyses:
        analysis = known[request.kind]
        if analysis.comparisons is not None:
            options = analysis.options.model_validate_json(canonical_json(request.options))
            found[request.id] = analysis.comparisons(options, models, len(request.benchmarks))
    return found


def _digest_of(identity: CheckpointIdentity | RecordIdentity) -> str:
    return identity.weights_sha256 if isinstance(identity, CheckpointIdentity) else identity.sha256


def _write_privately(path: Path, content: bytes) -> None:
    """Write a file of the cache folder whole and for its owner alone; the folder is kept out of git."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ignored = path.parent / ".gitignore"
    if not ignored.exists():
        ignored.write_text("*\n", encoding="utf-8")
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(content)
    partial.replace(path)
