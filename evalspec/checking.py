"""Is a study sound?  Compiled, and held against the questions that it names; what every verb does first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evalspec.analyses.catalogue import catalogue
from evalspec.artifacts.questions import QuestionBank
from evalspec.artifacts.study import HubCheckpoint, HubQuestions, Model, RecordedResponses
from evalspec.errors import Diagnostic, InputError
from evalspec.importing.questions import read_questions
from evalspec.language.against_questions import check_against_questions
from evalspec.language.compile import CompiledStudy, compile_study
from evalspec.places import hub_snapshot, resolve_inside
from evalspec.planning.checkpoints import find_checkpoint, identify
from evalspec.settings import Settings


@dataclass(frozen=True, slots=True)
class SoundStudy:
    """A study without faults, its questions, and the benchmarks whose questions are not on this machine."""

    compiled: CompiledStudy
    bank: QuestionBank
    absent: tuple[InputError, ...]


def check(study: Path, settings: Settings) -> SoundStudy:
    """Return a study that can be run; raises StudyError or InputError with every fault.

    Questions of a hub that are not in its local cache are `absent`, which is for the caller to judge.
    """
    compiled = compile_study(study, catalogue())
    sets, absent = [], []
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
        except InputError as error:
            faults += error.diagnostics
    if faults:
        raise InputError(faults)
    bank = QuestionBank(tuple(sets))
    check_against_questions(compiled, bank)
    return SoundStudy(compiled, bank, tuple(absent))


def check_models(compiled: CompiledStudy, settings: Settings) -> tuple[InputError, ...]:
    """Look at every model's folder or table without reading weights; raises InputError with every fault.

    Returns one error for each hub model that is not in the local cache, which is for the caller to judge.
    """
    absent: list[InputError] = []
    faults: list[Diagnostic] = []
    for model in compiled.study.models:
        try:
            if isinstance(model.source, HubCheckpoint):
                hub_snapshot(settings.hub_cache, kind="model", name=model.source.hub, revision=model.source.revision)
        except InputError as error:
            absent.append(error)
            continue
        try:
            _look_at(model, compiled, settings)
        except InputError as error:
            faults += error.diagnostics
    if faults:
        raise InputError(faults)
    return tuple(absent)


def _look_at(model: Model, compiled: CompiledStudy, settings: Settings) -> None:
    if isinstance(model.source, RecordedResponses):
        from evalspec.scoring.replay import identify_record  # noqa: PLC0415 - only studies with recorded responses wait for it

        path = resolve_inside(model.source.responses, folder=compiled.folder, root=compiled.root)
        identify_record(path, name=model.source.model or model.id, origin=model.source.responses, sha256=model.source.sha256)
        return
    checkpoint = find_checkpoint(model.source, folder=compiled.folder, root=compiled.root, hub_cache=settings.hub_cache)
    identify(checkpoint, digest=_no_digest)


def _no_digest(_path: Path) -> str:
    """Stand for a digest that nobody asks for: headers are checked, weights are not read."""
    return "0" * 64
