"""Where are the weights and the questions that a signed run names?  Looked for on this machine, and known by their digests alone."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from evalspec.artifacts.base import sha256_hex
from evalspec.artifacts.prompts import answers_with, worked_examples
from evalspec.artifacts.protocol import CheckpointIdentity, Preamble, ProtocolBenchmark, system_of
from evalspec.artifacts.questions import Question, QuestionSet
from evalspec.artifacts.sources import CheckpointSource
from evalspec.artifacts.study import Benchmark
from evalspec.artifacts.work import Preambles
from evalspec.errors import EvalspecError, InputError, ScoringError
from evalspec.foreign import read_file
from evalspec.importing.questions import read_questions
from evalspec.places import find_root
from evalspec.planning.checkpoints import CheckpointFolder, find_checkpoint, identify
from evalspec.scoring.checkpoint import verify_files
from evalspec.verified_run import VerifiedRun

LARGEST_STUDY = 1 << 24
MOST_FOLDERS = 10_000
NO_DIGEST = "0" * 64


@dataclass(frozen=True, slots=True)
class Where:
    """Where to look: the study's own file and a folder of checkpoints, where they are named, and the local hub cache."""

    hub_cache: Path
    study: Path | None = None
    models: Path | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """The questions of a benchmark with their texts, in the protocol's order, and the worked examples before its prompts."""

    questions: tuple[Question, ...]
    preambles: Preambles


class Materials:
    """Finds what a signed run was made from."""

    def __init__(self, run: VerifiedRun, where: Where) -> None:
        self._run = run
        self._where = where
        self._base = _study_folder(run, where)

    def weights(self, model: str) -> Path:
        """Return a folder whose files are those that the protocol names; raises InputError when there is none.

        Raises ScoringError where the protocol states of these files what is not so.
        """
        identity = system_of(self._run.protocol.model(model).identity)
        if not isinstance(identity, CheckpointIdentity):
            why = "its responses were recorded elsewhere" if identity.kind == "recorded" else "it answered behind a server"
            raise InputError(f"model '{model}': {why}, so there are no weights to score")
        tried = 0
        for folder in self._folders(model, identity):
            if _sizes_fit(folder, identity):
                tried += 1
                try:
                    verify_files(folder, identity)
                except (ScoringError, OSError):
                    continue
                _check_stated(model, folder, identity)
                return folder
        known = f"{tried} of the same size, but other content" if tried else "none of that size"
        raise InputError(
            f"model '{model}': the weights with the digest {identity.weights_sha256[:16]}… were not found ({known})",
            hint="name the folder that holds them: --models DIR",
        )

    def asked(self, benchmark: str) -> Asked:
        """Return the questions of a benchmark; raises InputError when they are hidden or not on this machine."""
        drawn = self._run.protocol.benchmark(benchmark)
        if drawn.disclosure == "none":
            raise InputError(f"benchmark '{benchmark}': its questions are hidden")
        if drawn.disclosure == "full":
            known = {question.id: question for question in self._run.questions.benchmark(benchmark).questions}
        else:
            known = self._source(benchmark).by_id()
        questions = [known.get(question.id) for question in drawn.questions]
        found = tuple(question for question in questions if question is not None)
        if [question.digest() for question in found] != [question.sha256 for question in drawn.questions]:
            raise InputError(f"benchmark '{benchmark}': the source does not hold the questions that were drawn")
        return Asked(found, {preamble.subject: self._preamble(drawn, preamble) for preamble in drawn.preambles})

    def _folders(self, model: str, identity: CheckpointIdentity) -> Iterator[Path]:
        """Give the folders in which the weights may lie: under the folder that is named, else where the study has them."""
        source = self._run.study.model(model).source
        if self._where.models is not None:
            yield from (self._where.models, self._where.models / model, self._where.models / Path(identity.origin).name)
            for number, config in enumerate(self._where.models.rglob(identity.gguf or "config.json")):
                if number == MOST_FOLDERS:
                    return
                yield config.parent
        elif isinstance(source, CheckpointSource):
            base = self._base or Path.cwd()
            try:
                yield find_checkpoint(source, folder=base, root=find_root(base), hub_cache=self._where.hub_cache).path
            except InputError:
                return

    def _source(self, benchmark: str) -> QuestionSet:
        """Return all questions of a benchmark's own source, which must be the one of the run."""
        found = self._read(self._run.study.benchmark(benchmark))
        if found.source_sha256 != self._run.protocol.benchmark(benchmark).source_sha256:
            raise InputError(f"benchmark '{benchmark}': the file of its questions is not the one that the run used")
        return found

    def _read(self, benchmark: Benchmark) -> QuestionSet:
        if self._base is None:
            told = f"benchmark '{benchmark.id}': its questions are not part of the report, and the study's own file was not found"
            raise InputError(told, hint="name it: --study FILE")
        return read_questions(benchmark, folder=self._base, root=find_root(self._base), hub_cache=self._where.hub_cache)

    def _preamble(self, benchmark: ProtocolBenchmark, preamble: Preamble) -> str:
        """Return the worked examples as they stand before a prompt, from the protocol or put together from their own source."""
        if preamble.text is not None:
            return preamble.text
        declared = self._run.study.benchmark(benchmark.id)
        source = declared.scoring.examples.source
        pool = self._source(benchmark.id) if source is None else self._read(declared.model_copy(update={"source": source}))
        known = {question.digest(): question for question in pool.questions}
        try:
            shown = [known[example.sha256] for example in preamble.examples]
            return worked_examples(benchmark.prompt, answers_with(benchmark.scoring), shown)
        except (KeyError, ValueError) as error:
            raise InputError(f"benchmark '{benchmark.id}': the source does not hold the worked examples that were shown") from error


def _study_folder(run: VerifiedRun, where: Where) -> Path | None:
    """Return the folder of the study's own file, which is known by its digest; None where it is not found."""
    if where.study is not None:
        return where.study.absolute().parent
    try:
        written = shlex.split(run.ledger().command)[2]
    except (IndexError, ValueError, EvalspecError):
        written = "study.yaml"
    around = (Path.cwd(), *run.folder.absolute().parents)
    for file in dict.fromkeys(parent / name for parent in around for name in (written, Path(written).name)):
        try:
            if sha256_hex(read_file(file, name=str(file), limit=LARGEST_STUDY)) == run.study.source_sha256:
                return file.parent
        except (InputError, ValueError):
            continue
    return None


def _sizes_fit(folder: Path, identity: CheckpointIdentity) -> bool:
    """Return whether a folder has every file in the size that the protocol names, before any is read."""
    try:
        return bool(identity.files) and all((folder / file.name).stat().st_size == file.size for file in identity.files)
    except (OSError, ValueError):
        return False


def _check_stated(model: str, folder: Path, identity: CheckpointIdentity) -> None:
    """Hold what the protocol states of a checkpoint against its files, whose digests are known to be those that it names.

    Raises InputError where there are further files, which may change what the model answers; ScoringError where a statement does not follow.
    """
    digests: Mapping[str, str] = {file.name: file.sha256 for file in identity.files}
    whole_disk = Path(folder.absolute().anchor)  # whoever verifies names the folder, and files of a hub cache are links
    found = identify(CheckpointFolder(folder, identity.origin, whole_disk, identity.gguf), digest=lambda path: digests.get(path.name, NO_DIGEST))
    further = sorted(file.name for file in found.files if file.name not in digests)
    if further:
        raise InputError(
            f"model '{model}': {folder} also has {further[0]}, which the protocol does not name", hint="take it out, or name another folder"
        )
    if found != identity:
        different = sorted(name for name in CheckpointIdentity.model_fields if getattr(found, name) != getattr(identity, name))
        raise ScoringError(f"model '{model}': the protocol states another {' and '.join(different)} than its files have")
