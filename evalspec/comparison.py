"""What changed from one run to another?  Study, questions, models and settings, the same models on the same questions, and the checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from evalspec.analyses.pairs import Limits, PairRow, compare_pairs
from evalspec.artifacts.base import Artifact, JsonValue
from evalspec.artifacts.protocol import CheckpointIdentity, DrawnQuestion, Protocol, ProtocolBenchmark, ProtocolModel, system_of
from evalspec.artifacts.responses import BenchmarkResponses, Responses
from evalspec.artifacts.verdict import CheckResult, Verdict
from evalspec.errors import StoreError
from evalspec.protocols import Context
from evalspec.signing.verification import Verification
from evalspec.signing.verify import verify
from evalspec.statistics.multiplicity import holm
from evalspec.store import RunDirectory

LEVEL = 0.95
NOT_SETTINGS = frozenset({"source_sha256"})
"""Parts of a study that change with every letter of the text."""

OWN_PARTS = ("models", "benchmarks")
"""Lists of a study of which an entry that one run alone has is told on its own, and not value by value."""

COUNTED = frozenset({"id", "questions"})
"""What is not said to differ about a benchmark: its name, and its questions, which are counted."""

Where = Literal["both", "only_first", "only_second"]


class Change(Artifact):
    """A value of the study that differs, by its path in study.json; None where a run does not have it."""

    path: str
    first: JsonValue = None
    second: JsonValue = None


class BenchmarkChange(Artifact):
    """A benchmark in both runs or in one: how many questions each asked, how many are the same, and what else is not."""

    benchmark: str
    where: Where
    asked_first: int = 0
    asked_second: int = 0
    common: int = 0
    differs: tuple[str, ...] = ()


class ModelChange(Artifact):
    """A model in both runs or in one, and what differs about it."""

    model: str
    where: Where
    differs: tuple[str, ...] = ()


class ModelComparison(Artifact):
    """The model of one id in both runs on the questions that both asked; `difference` of the row is second run - first run."""

    model: str
    accuracy_first: float | None
    accuracy_second: float | None
    same_answers: bool
    row: PairRow
    p_adjusted: float | None = None


class CheckChange(Artifact):
    """What became of a check."""

    check: str
    first: str | None
    second: str | None


class RunComparison(Artifact):
    """Everything that `evalspec diff` tells; p-values are adjusted by Holm over all comparisons of the two runs."""

    first: str
    second: str
    first_signer: str | None
    second_signer: str | None
    study: tuple[Change, ...]
    benchmarks: tuple[BenchmarkChange, ...]
    models: tuple[ModelChange, ...]
    comparisons: tuple[ModelComparison, ...]
    checks: tuple[CheckChange, ...]
    overall_first: str | None
    overall_second: str | None


@dataclass(frozen=True, slots=True)
class _Run:
    checked: Verification
    study: Mapping[str, JsonValue]
    protocol: Protocol
    responses: Responses
    verdict: Verdict


def compare_runs(first: Path, second: Path) -> RunComparison:
    """Compare two run directories; raises StoreError for one that is altered or unfinished, UsageError where there is none."""
    old, new = _read(first), _read(second)
    return RunComparison(
        first=str(first),
        second=str(second),
        first_signer=_signer(old),
        second_signer=_signer(new),
        study=tuple(study_changes(old.study, new.study)),
        benchmarks=tuple(benchmark_changes(old.protocol, new.protocol)),
        models=tuple(_models(old, new)),
        comparisons=_adjusted(tuple(_comparisons(old, new))),
        checks=tuple(_checks(old.verdict, new.verdict)),
        overall_first=old.verdict.overall,
        overall_second=new.verdict.overall,
    )


def _read(folder: Path) -> _Run:
    """Return a run, as far as it is what was signed; whom to trust is for `verify` to say."""
    checked, directory = verify(folder), RunDirectory(folder)
    if checked.outcome == "altered":
        raise StoreError(f"{folder} is not as it was signed: {checked.problems[0]}", hint=f"see evalspec verify {folder}")
    study = directory.read_study().model_dump(mode="json", by_alias=True)
    return _Run(checked, study, directory.read_protocol(), directory.read_responses(), directory.read_verdict())


def _signer(run: _Run) -> str | None:
    return run.checked.signer.fingerprint if run.checked.signer else None


def study_changes(first: Mapping[str, JsonValue], second: Mapping[str, JsonValue]) -> Iterator[Change]:
    """Yield every value that differs between two studies, by its path; of models and benchmarks, those that both have."""
    shared = {part: _ids(first, part) & _ids(second, part) for part in OWN_PARTS}
    old, new = (dict(_leaves(_told(study, shared))) for study in (first, second))
    for path in sorted(old.keys() | new.keys()):
        if old.get(path) != new.get(path):
            yield Change(path=path, first=old.get(path), second=new.get(path))


def _told(study: Mapping[str, JsonValue], shared: Mapping[str, set[JsonValue]]) -> dict[str, JsonValue]:
    """Return the values of a study that are held against those of another; of models and benchmarks those that both have."""
    told = {name: value for name, value in study.items() if name not in NOT_SETTINGS}
    return told | {part: [entry for entry in _entries(study, part) if entry.get("id") in ids] for part, ids in shared.items()}


def _ids(study: Mapping[str, JsonValue], part: str) -> set[JsonValue]:
    return {entry.get("id") for entry in _entries(study, part)}


def _entries(study: Mapping[str, JsonValue], part: str) -> list[dict[str, JsonValue]]:
    entries = study.get(part)
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _leaves(value: JsonValue, path: str = "") -> Iterator[tuple[str, JsonValue]]:
    """Yield every value with its path; entries of a list that have an id are named by it, so that a new entry moves no other."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}/{name}")
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            named = inner.get("id") if isinstance(inner, dict) else None
            yield from _leaves(inner, f"{path}/{named if isinstance(named, str) else place}")
    else:
        yield path, value


def benchmark_changes(first: Protocol, second: Protocol) -> Iterator[BenchmarkChange]:
    """Yield every benchmark of two protocols, with the fields in which it differs where both have it."""
    old, new = ({benchmark.id: benchmark for benchmark in protocol.benchmarks} for protocol in (first, second))
    for name in dict.fromkeys((*old, *new)):
        if name in old and name in new:
            yield BenchmarkChange(
                benchmark=name,
                where="both",
                asked_first=len(old[name].questions),
                asked_second=len(new[name].questions),
                common=len(_common(old[name], new[name])),
                differs=(*_differing(old[name], new[name], COUNTED), *_labels(old[name], new[name])),
            )
        else:
            asked = [len(side[name].questions) if name in side else 0 for side in (old, new)]
            where: Where = "only_first" if name in old else "only_second"
            yield BenchmarkChange(benchmark=name, where=where, asked_first=asked[0], asked_second=asked[1])


def _models(first: _Run, second: _Run) -> Iterator[ModelChange]:
    old, new = ({model.id: model for model in run.protocol.models} for run in (first, second))
    for name in dict.fromkeys((*old, *new)):
        if name in old and name in new:
            attention = ["attention"] if attended_otherwise(name, first.responses, second.responses) else []
            yield ModelChange(model=name, where="both", differs=(*_model_differences(old[name], new[name]), *attention))
        else:
            yield ModelChange(model=name, where="only_first" if name in old else "only_second")


def _model_differences(first: ProtocolModel, second: ProtocolModel) -> Iterator[str]:
    if first.precision != second.precision:
        yield "precision"
    one, other = system_of(first.identity), system_of(second.identity)
    if isinstance(one, CheckpointIdentity) and isinstance(other, CheckpointIdentity):
        yield from (name for name in ("weights_sha256", "tokenizer_sha256") if getattr(one, name) != getattr(other, name))
    elif one != other:
        yield "server" if one.kind == other.kind == "served" else "responses"


def attended_otherwise(model: str, first: Responses, second: Responses) -> bool:
    """Return whether another attention computed what a model was scored with from its weights, in both runs; that may move last bits."""
    one, other = (
        {origin.versions["attention"] for origin in run.origins if origin.model == model and "attention" in origin.versions}
        for run in (first, second)
    )
    return bool(one and other and one != other)


def _differing(first: Artifact, second: Artifact, but: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield every field in which two artifacts of one kind differ, but those named."""
    yield from (name for name in type(first).model_fields if name not in but and getattr(first, name) != getattr(second, name))


def _labels(first: ProtocolBenchmark, second: ProtocolBenchmark) -> Iterator[str]:
    """Yield, as `questions.weight`, what is said otherwise of questions that both asked."""
    old, new = ({question.id: question for question in side.questions} for side in (first, second))
    differing = {name for question in _common(first, second) for name in _differing(old[question], new[question])}
    yield from (f"questions.{name}" for name in DrawnQuestion.model_fields if name in differing)


def _common(first: ProtocolBenchmark, second: ProtocolBenchmark) -> list[str]:
    """Return the public ids of the questions that both asked: the same text, choices and key."""
    digests = {question.id: question.sha256 for question in first.questions}
    return [question.id for question in second.questions if digests.get(question.id) == question.sha256]


def _comparisons(old: _Run, new: _Run) -> Iterator[ModelComparison]:
    asked = {benchmark.id: benchmark for benchmark in old.protocol.benchmarks}
    for benchmark in new.protocol.benchmarks:
        if benchmark.id not in asked or not (common := _common(asked[benchmark.id], benchmark)):
            continue
        before, after = old.responses.benchmark(benchmark.id), new.responses.benchmark(benchmark.id)
        for model in after.models:
            if model in before.models:
                yield _comparison(model, _both(model, before, after, common))


def _both(model: str, before: BenchmarkResponses, after: BenchmarkResponses, common: list[str]) -> BenchmarkResponses:
    """Return the answers of both runs to the common questions, as those of two models, under the design of the second run."""
    here, there = (run.at([run.questions.index(question) for question in common]) for run in (after, before))
    row, earlier = after.models.index(model), before.models.index(model)
    return replace(
        here,
        models=("second", "first"),
        weights=here.weights / here.weights.mean(),
        scores=np.stack([_mean(here, row), _mean(there, earlier)])[..., None],
        reasons=np.stack([here.reasons[row, :, 0], there.reasons[earlier, :, 0]])[..., None],
        choices=np.stack([here.choices[row, :, 0], there.choices[earlier, :, 0]])[..., None],
        logprobs=None,
        flags=(),
        distributions=None,
    )


def _mean(run: BenchmarkResponses, row: int) -> np.ndarray:
    return np.asarray(run.scores[row].mean(axis=1))


def _comparison(model: str, both: BenchmarkResponses) -> ModelComparison:
    (row,) = compare_pairs(both, [("second", "first")], Context(rng=np.random.default_rng(0)), Limits(LEVEL))
    scores = both.settled()
    accuracies = [None if np.isnan(one).all() else float(np.nanmean(one)) for one in scores]
    same = bool(np.array_equal(both.scores[0], both.scores[1], equal_nan=True) and np.array_equal(both.choices[0], both.choices[1]))
    return ModelComparison(model=model, accuracy_first=accuracies[1], accuracy_second=accuracies[0], same_answers=same, row=row)


def _adjusted(comparisons: tuple[ModelComparison, ...]) -> tuple[ModelComparison, ...]:
    p_values = {place: one.row.p_value for place, one in enumerate(comparisons) if one.row.p_value is not None}
    adjusted = dict(zip(p_values, holm(list(p_values.values())).tolist(), strict=True)) if p_values else {}
    return tuple(one.model_copy(update={"p_adjusted": adjusted.get(place)}) for place, one in enumerate(comparisons))


def _checks(first: Verdict, second: Verdict) -> Iterator[CheckChange]:
    old, new = (_outcomes(verdict.checks) for verdict in (first, second))
    for name in dict.fromkeys((*old, *new)):
        yield CheckChange(check=name, first=old.get(name), second=new.get(name))


def _outcomes(checks: tuple[CheckResult, ...]) -> dict[str, str]:
    return {f"{result.check.id} ({result.benchmark})": result.outcome for result in checks}
