"""What study does a file ask for?  The text to a Study, or every fault of it at once, in file order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from evalspec.artifacts.samples import Sample, sized
from evalspec.artifacts.study import Study
from evalspec.errors import Diagnostic, EvalspecError, Location, StudyError
from evalspec.language import consistency, designs, limits, references, servers
from evalspec.language.decoding import MAX_BYTES
from evalspec.language.draft import Draft, without
from evalspec.language.faults import Fault, suggestion
from evalspec.language.gates import gates
from evalspec.language.grammar import Grammar, build_grammar
from evalspec.language.paths import Surroundings, paths
from evalspec.language.positions import Pointer, Source
from evalspec.language.refusals import undecidable
from evalspec.language.scalars import quoted
from evalspec.language.scores import scores
from evalspec.language.sizes import planned_sizes, sizes
from evalspec.language.source import read_source
from evalspec.language.texts import generated_texts
from evalspec.language.validation import grammar_faults, study_of, version_faults
from evalspec.places import find_root
from evalspec.protocols import Catalogue

if TYPE_CHECKING:  # most studies plan no size, and validation starts fast
    from evalspec.artifacts.protocol import PlannedSize

MAX_FAULTS = 100


@dataclass(frozen=True, slots=True)
class CompiledStudy:
    """A study with the folder that its paths are read from, the folder they may not leave, and where everything stands in its text."""

    study: Study
    text: bytes
    surroundings: Surroundings
    source: Source
    sizes: Mapping[str, PlannedSize] = field(default_factory=dict)

    def sample(self, benchmark: str) -> Sample:
        """Return the sample of a benchmark with its number of questions, which for one that must detect a difference follows from `sizes`."""
        planned = self.sizes.get(benchmark)
        return sized(self.study.benchmark(benchmark).sample, planned.questions if planned else None)

    @property
    def folder(self) -> Path:
        """The folder that the study's paths are read from."""
        return self.surroundings.folder

    @property
    def root(self) -> Path:
        """The folder that the study's paths may not leave."""
        return self.surroundings.root

    def place(self, pointer: Pointer) -> Location:
        """Return where a value stands, as in `place(("models", 0, "source"))`; for one that is not written, the nearest enclosing one."""
        return self.source.location(pointer)


def compile_study(path: Path, catalogue: Catalogue, *, root: Path | None = None) -> CompiledStudy:
    """Return the study that a file asks for; raises StudyError with every fault, in file order."""
    surroundings = Surroundings(path.parent, root or find_root(path.parent))
    return compile_text(_read(path), str(path), catalogue, surroundings)


def compile_text(text: bytes, file: str, catalogue: Catalogue, surroundings: Surroundings) -> CompiledStudy:
    """Return the study that a text asks for; the disk is read only for the files and folders that it names.

    Raises StudyError with every fault, in file order.
    """
    source = read_source(text, file)
    grammar = build_grammar(_asked_for(source, catalogue))
    found = version_faults(source) or tuple(_faults(source, grammar, catalogue, surroundings))
    refuse((*source.faults, *located(found, source)))
    study = study_of(text, source.content, grammar, catalogue)
    return CompiledStudy(study, text, surroundings, source, planned_sizes(study, catalogue))


def study_in(text: bytes, catalogue: Catalogue) -> Study:
    """Return the study that a text asks for, by the text alone: nothing that it names is looked for, as it need not be where a report is read.

    Raises StudyError with every fault of the grammar, in file order.
    """
    source = read_source(text, "study.yaml")
    grammar = build_grammar(_asked_for(source, catalogue))
    refuse((*source.faults, *located(version_faults(source) or grammar_faults(grammar, source), source)))
    return study_of(text, source.content, grammar, catalogue)


def located(faults: Iterable[Fault], source: Source) -> Iterator[Diagnostic]:
    """Yield the faults with their place and the line that they stand on."""
    for fault in faults:
        yield source.page.diagnostic(source.span(fault.pointer, on=fault.on), fault.message, fault.hint)


def at_model(number: int, error: EvalspecError, source: Source) -> Iterator[Diagnostic]:
    """Yield what is wrong with the source of a model, by its place in the study, with the line that names it."""
    return located((Fault(("models", number, "source"), fault.message, fault.hint) for fault in error.diagnostics), source)


def at_name(number: int, error: EvalspecError, compiled: CompiledStudy) -> Iterator[Diagnostic]:
    """Yield what is wrong with the name that a table should know a model by, by its place: the source's own name for it, or else its id."""
    named = getattr(compiled.study.models[number].source, "model", None) is not None
    place = ("models", number, "source", "model") if named else ("models", number, "id")
    return located((Fault(place, fault.message, fault.hint) for fault in error.diagnostics), compiled.source)


def refuse(diagnostics: Iterable[Diagnostic]) -> None:
    """Raise StudyError with the faults in file order; does nothing when there are none."""
    ordered = sorted(diagnostics, key=lambda fault: (fault.location is not None, fault.location and (fault.location.line, fault.location.column)))
    if len(ordered) > MAX_FAULTS:
        more = Diagnostic(f"and {len(ordered) - MAX_FAULTS} more faults", "mend these first")
        ordered = [*ordered[:MAX_FAULTS], more]
    if ordered:
        raise StudyError(ordered)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        if path.is_symlink():
            raise StudyError(f"{quoted(str(path))} is a link that leads nowhere", hint="mend the link, or name the study itself") from error
        names = sorted(entry.name for entry in path.parent.glob("*.y*ml")) if path.parent.is_dir() else []
        hint = suggestion(path.name, names, what="in this folder there are")
        raise StudyError(f"there is no study file {quoted(str(path))}", hint=hint or "evalspec init DIR writes a first study") from error
    except IsADirectoryError as error:
        raise StudyError(f"{quoted(str(path))} is a folder; a study is a file", hint=f"did you mean {quoted(str(path / 'study.yaml'))}?") from error
    except (OSError, ValueError) as error:
        raise StudyError(f"the study file {quoted(str(path))} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _asked_for(source: Source, catalogue: Catalogue) -> Catalogue:
    """Return the analyses that a study names; all of them where it names one that does not exist, so that the hint knows every kind."""
    entries = source.content.get("analyses") if isinstance(source.content, dict) else None
    kinds = [entry.get("kind") if isinstance(entry, dict) else None for entry in entries] if isinstance(entries, list) else []
    named = {kind: catalogue[kind] for kind in catalogue if kind in kinds}
    return named if named and all(isinstance(kind, str) and kind in named for kind in kinds) else catalogue


def _faults(source: Source, grammar: Grammar, catalogue: Catalogue, surroundings: Surroundings) -> Iterator[Fault]:
    """Yield the faults of the grammar, then those between the parts that are sound."""
    if not isinstance(source.content, dict):
        return  # refused as a whole, which is a fault of the source
    found = grammar_faults(grammar, source)
    yield from found
    faulty = {*source.faulty, *(fault.pointer for fault in found if not fault.sound)}
    draft = Draft(without(source.content, faulty), source.content, grammar.document, catalogue)
    yield from chain(
        references.duplicate_ids(draft, source),
        references.unknown_references(draft),
        references.repeated_benchmarks(draft),
        consistency.precision_of_records(draft),
        consistency.precision_of_weights(draft),
        consistency.enough_models(draft),
        consistency.named_samples(draft),
        consistency.prompts(draft),
        consistency.worked_examples(draft),
        generated_texts(draft),
        servers.served_models(draft),
        servers.scoring_by_servers(draft),
        consistency.answer_distributions(draft),
        consistency.published_vectors(draft),
        designs.designs(draft),
        designs.analyses_need_subjects(draft),
        scores(draft),
        limits.checks(draft),
        gates(draft),
        undecidable(draft),
        sizes(draft),
        paths(draft, surroundings),
    )
