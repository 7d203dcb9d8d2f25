"""Is a study sound?  Compiled, and held against the questions that it names; what every verb does first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evalspec.analyses.catalogue import catalogue
from evalspec.artifacts.questions import QuestionBank
from evalspec.artifacts.study import HubQuestions
from evalspec.errors import Diagnostic, InputError
from evalspec.importing.questions import read_questions
from evalspec.language.against_questions import check_against_questions
from evalspec.language.compile import CompiledStudy, compile_study
from evalspec.places import hub_snapshot
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
