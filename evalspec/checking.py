"""Is a study sound?  Compiled, and held against the questions that it names; what every verb does first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from evalspec.analyses.catalogue import catalogue
from evalspec.analyses.outside import examine_tables, named_tables
from evalspec.artifacts.base import sha256_hex
from evalspec.artifacts.questions import QuestionBank, QuestionSet
from evalspec.artifacts.samples import SampleChosen
from evalspec.artifacts.served import ServedModel, is_local
from evalspec.artifacts.sources import CheckpointSource, EarlierRun, HubCheckpoint, HubQuestions, RecordedResponses
from evalspec.errors import Diagnostic, InputError, StudyError, UsageError, refuse_all
from evalspec.foreign import read_file
from evalspec.importing.questions import read_questions
from evalspec.language.against_questions import check_against_questions
from evalspec.language.compile import CompiledStudy, at_model, at_name, compile_study, located
from evalspec.language.faults import Fault
from evalspec.places import hub_snapshot, resolve_inside
from evalspec.planning.checkpoints import find_checkpoint, identify
from evalspec.settings import Settings

if TYPE_CHECKING:
    from evalspec.planning.selection import OtherAnswers


@dataclass(frozen=True, slots=True)
class SoundStudy:
    """A study without faults, its questions, the benchmarks whose questions are not on this machine, and outside tables by their SHA-256.

    `pools` are the files of worked examples, by benchmark; `answers` are those of other models, by the benchmark whose questions they choose.
    """

    compiled: CompiledStudy
    bank: QuestionBank
    absent: tuple[InputError, ...]
    tables: Mapping[str, bytes] = field(default_factory=dict)
    pools: Mapping[str, QuestionSet] = field(default_factory=dict)
    answers: Mapping[str, OtherAnswers] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SeenModels:
    """The models that are not on this machine, and what is left out of the recorded tables of the others."""

    absent: tuple[InputError, ...]
    left_out: tuple[str, ...]


def check(study: Path, settings: Settings) -> SoundStudy:
    """Return a study that can be run; raises StudyError or InputError with every fault.

    Questions of a hub that are not in its local cache are `absent`, which is for the caller to judge.
    """
    compiled = compile_study(study, catalogue())
    _refuse_plain_http(compiled, settings)
    sets, absent, pools = [], [], {}
    faults: list[Diagnostic] = []
    for benchmark in compiled.study.benchmarks:
        try:
            if isinstance(benchmark.source, HubQuestions):
                hub_snapshot(settings.hub_cache, kind="dataset", name=benchmark.source.hub, revision=benchmark.source.revision)
        except InputError as error:
            absent.append(error)
            continue
        try:
            sets.append(read_questions(benchmark, folder=compiled.folder, root=compiled.root, hub_cache=settings.hub_cache))
            if benchmark.scoring.shots and benchmark.scoring.examples.source is not None:
                of_examples = benchmark.model_copy(update={"source": benchmark.scoring.examples.source})
                pools[benchmark.id] = read_questions(of_examples, folder=compiled.folder, root=compiled.root, hub_cache=settings.hub_cache)
        except InputError as error:
            faults += error.diagnostics
    tables: Mapping[str, bytes] = {}
    try:
        tables = _read_tables(compiled)
    except InputError as error:
        faults += error.diagnostics
    if faults:
        raise InputError(faults)
    bank = QuestionBank(tuple(sets))
    check_against_questions(compiled, bank)
    return SoundStudy(compiled, bank, tuple(absent), tables, pools, _read_answers(compiled, bank))


def _refuse_plain_http(compiled: CompiledStudy, settings: Settings) -> None:
    """Raise UsageError for every server to which questions and keys would go through a network unencrypted."""
    plain = [
        place
        for place, model in enumerate(compiled.study.models)
        if isinstance(model.source, ServedModel) and model.source.endpoint.startswith("http:") and not is_local(model.source.endpoint)
    ]
    if plain and not settings.server_http:
        hint = "write https; only on a network of your own, allow it with server_http = true in evalspec.toml"
        faults = (Fault(("models", place, "source", "endpoint"), "questions and key would go to this server unencrypted", hint) for place in plain)
        raise UsageError(located(faults, compiled.source))


def _read_tables(compiled: CompiledStudy) -> dict[str, bytes]:
    """Return the outside tables that analyses read, by their SHA-256; raises InputError with everything that is wrong with them."""
    known, tables = catalogue(), {}
    for table in named_tables(compiled.study.analyses, known):
        content = read_file(resolve_inside(table.path, folder=compiled.folder, root=compiled.root), name=table.path)
        if sha256_hex(content) != table.sha256:
            raise InputError(f"{table.path} has changed since the study was compiled", hint="run the command again")
        tables[table.sha256] = content
    faults = tuple(examine_tables(compiled.study.analyses, known, tables))
    if faults:
        raise InputError(faults)
    return tables


def _read_answers(compiled: CompiledStudy, bank: QuestionBank) -> dict[str, OtherAnswers]:
    """Return what other models made of the questions of every sample that they choose; raises InputError with the faults of all tables."""
    found, faults = {}, list[Diagnostic]()
    judged = {name for model in compiled.study.models for name in (model.id, getattr(model.source, "model", None)) if name is not None}
    present = {entry.benchmark for entry in bank.sets}
    for benchmark in compiled.study.benchmarks:
        sample = benchmark.sample
        if not isinstance(sample, SampleChosen) or benchmark.id not in present:
            continue
        from evalspec.planning.selection import read_answers  # noqa: PLC0415 - numpy, for the few studies that choose

        try:
            content = read_file(resolve_inside(sample.answers.path, folder=compiled.folder, root=compiled.root), name=sample.answers.path)
            questions = bank.benchmark(benchmark.id)
            found[benchmark.id] = read_answers(sample, questions, content, disclosure=benchmark.disclosure, judged=judged)
        except InputError as error:
            faults += error.diagnostics
    if faults:
        raise InputError(faults)
    return found


def check_models(sound: SoundStudy, settings: Settings) -> SeenModels:
    """Look at every model's folder without reading weights, and at every recorded answer; raises InputError or StudyError with every fault.

    Hub models that are not in the local cache are `absent`, which is for the caller to judge.
    """
    compiled = sound.compiled
    absent: list[InputError] = []
    misnamed, faults = list[Diagnostic](), list[Diagnostic]()
    for number, model in enumerate(compiled.study.models):
        try:
            if isinstance(model.source, HubCheckpoint):
                hub_snapshot(settings.hub_cache, kind="model", name=model.source.hub, revision=model.source.revision)
        except InputError as error:
            absent.append(error)
            continue
        try:
            if isinstance(model.source, CheckpointSource):
                checkpoint = find_checkpoint(model.source, folder=compiled.folder, root=compiled.root, hub_cache=settings.hub_cache)
                identify(checkpoint, digest=_no_digest)
        except InputError as error:
            faults += at_model(number, error, compiled.source)
    try:
        _look_at_earlier(sound)
    except InputError as error:
        faults += error.diagnostics
    left_out: tuple[str, ...] = ()
    try:
        left_out = _look_at_records(sound)
    except StudyError as error:
        misnamed += error.diagnostics
    except InputError as error:
        faults += error.diagnostics
    refuse_all(misnamed, faults)
    return SeenModels(tuple(absent), left_out)


def _look_at_records(sound: SoundStudy) -> tuple[str, ...]:
    """Hold every recorded answer against its question; returns what is left out, as far as all questions are known."""
    if not any(isinstance(model.source, RecordedResponses) for model in sound.compiled.study.models):
        return ()
    from evalspec.scoring.records import check_records, left_out, read_records  # noqa: PLC0415 - only studies with recorded responses wait for it

    compiled, sources = sound.compiled, {entry.benchmark: entry.questions for entry in sound.bank.sets}
    records = read_records(compiled.study, folder=compiled.folder, root=compiled.root, at=partial(at_name, compiled=compiled))
    check_records(records, sources)
    return () if sound.absent else tuple(left_out(records, sources))


def _look_at_earlier(sound: SoundStudy) -> None:
    """Look at every earlier run that a model is taken from: its signature, its signer, and whether it has the model."""
    if any(isinstance(model.source, EarlierRun) for model in sound.compiled.study.models):
        from evalspec.earlier_runs import read_earlier  # noqa: PLC0415 - it loads cryptography, for the few studies that name a signed run

        read_earlier(sound.compiled.study, folder=sound.compiled.folder, root=sound.compiled.root)


def _no_digest(_path: Path) -> str:
    """Stand for a digest that nobody asks for: headers are checked, weights are not read."""
    return "0" * 64
