"""Do the files of a run follow from each other?  Each names its parent's digest, and all speak of the same models and questions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from evalspec.analyses.recomputation import Divergence
from evalspec.artifacts.base import sha256_hex
from evalspec.artifacts.findings import Findings
from evalspec.artifacts.protocol import EarlierIdentity, Protocol, ProtocolBenchmark, RecordIdentity
from evalspec.artifacts.responses import BenchmarkResponses, Responses
from evalspec.artifacts.served import ServedModel
from evalspec.artifacts.sources import EarlierRun, GgufFile, HubCheckpoint, LocalCheckpoint, RecordedResponses
from evalspec.artifacts.study import Benchmark, Study
from evalspec.artifacts.verdict import Verdict
from evalspec.planning.protocol import clusters_of

KINDS = {
    LocalCheckpoint: "checkpoint",
    HubCheckpoint: "checkpoint",
    GgufFile: "checkpoint",
    RecordedResponses: "recorded",
    ServedModel: "served",
    EarlierRun: "earlier_run",
}
"""What a model is, by where the study has it from."""


@dataclass(frozen=True, slots=True)
class Links:
    """The files of a run as they were read, and the bytes whose digests they name."""

    study_source: bytes
    study: Study
    protocol: Protocol
    responses: Responses
    responses_bytes: bytes
    findings: Findings
    verdict: Verdict


def broken_links(links: Links) -> tuple[Divergence, ...]:
    """Return every place at which a file of a run does not belong to its parent."""
    return (*_digests(links), *_plan(links), *_responses(links))


def _digests(links: Links) -> Iterator[Divergence]:
    protocol, responses = links.protocol.digest(), sha256_hex(links.responses_bytes)
    for file, path, named, actual in (
        ("study.json", "/source_sha256", links.study.source_sha256, sha256_hex(links.study_source)),
        ("protocol.json", "/study_sha256", links.protocol.study_sha256, links.study.digest()),
        ("responses.parquet", "/protocol_sha256", links.responses.protocol_sha256, protocol),
        ("findings.json", "/protocol_sha256", links.findings.protocol_sha256, protocol),
        ("findings.json", "/responses_sha256", links.findings.responses_sha256, responses),
        ("verdict.json", "/findings_sha256", links.verdict.findings_sha256, links.findings.digest()),
    ):
        if named != actual:
            yield Divergence(file, path, named, actual)


def _plan(links: Links) -> Iterator[Divergence]:
    """Hold what the protocol will compute and judge against what the study asked for."""
    study, protocol = links.study, links.protocol
    if protocol.analyses != study.analyses:
        yield Divergence("protocol.json", "/analyses", "as recorded", "other than in study.json")
    if protocol.thresholds != study.thresholds:
        yield Divergence("protocol.json", "/thresholds", "as recorded", "other than in study.json")
    for name, recorded, asked in (
        ("/seed", protocol.seed, study.seed),
        ("/models", [model.id for model in protocol.models], [model.id for model in study.models]),
        ("/benchmarks", [entry.id for entry in protocol.benchmarks], [entry.id for entry in study.benchmarks]),
    ):
        if recorded != asked:
            yield Divergence("protocol.json", name, str(recorded), str(asked))
    if [model.id for model in protocol.models] == [model.id for model in study.models]:
        yield from _sources(links)
        yield from _earlier(links)
    if [entry.id for entry in protocol.benchmarks] == [entry.id for entry in study.benchmarks]:
        for settled, benchmark in zip(protocol.benchmarks, study.benchmarks, strict=True):
            yield from _benchmark(settled, benchmark)


def _sources(links: Links) -> Iterator[Divergence]:
    """Hold what each model is said to be against what the study asked for: weights cannot pass for a record, which nobody can score again."""
    for model, wanted in zip(links.protocol.models, links.study.models, strict=True):
        source, identity, place = wanted.source, model.identity, f"/models/{model.id}"
        kinds = next(kind for sort, kind in KINDS.items() if isinstance(source, sort))
        if identity.kind != kinds and not isinstance(source, EarlierRun):
            yield Divergence("protocol.json", f"{place}/identity/kind", identity.kind, f"{kinds}, by study.json")
        elif isinstance(source, RecordedResponses) and isinstance(identity, RecordIdentity):
            if source.sha256 not in {None, identity.sha256}:
                yield Divergence("protocol.json", f"{place}/identity/sha256", identity.sha256, f"{source.sha256}, by study.json")
            if identity.model != (source.model or model.id):
                yield Divergence("protocol.json", f"{place}/identity/model", identity.model, f"{source.model or model.id}, by study.json")
        if not isinstance(source, EarlierRun) and model.precision != wanted.precision:
            yield Divergence("protocol.json", f"{place}/precision", model.precision, f"{wanted.precision}, by study.json")


def _benchmark(settled: ProtocolBenchmark, benchmark: Benchmark) -> Iterator[Divergence]:
    """Hold how a benchmark was asked and scored against what the study asked for; a hidden sample names commitments instead of ids."""
    hidden = benchmark.disclosure == "none"
    sides: tuple[tuple[str, object, object], ...] = (
        ("missing", settled.missing, benchmark.missing),
        ("score", settled.score, benchmark.score),
        ("scoring", settled.scoring, benchmark.scoring),
        ("disclosure", settled.disclosure, benchmark.disclosure),
        ("target", settled.target, benchmark.target),
        ("strata", settled.strata, "subject" if benchmark.groups.subject == "strata" else None),
        ("clusters", settled.clusters, clusters_of(benchmark)),
        ("sample", None if hidden else settled.sample, None if hidden else benchmark.sample),
    )
    for name, recorded, asked in sides:
        if recorded != asked:
            yield Divergence("protocol.json", f"/benchmarks/{settled.id}/{name}", "as recorded", "other than in study.json")


def _earlier(links: Links) -> Iterator[Divergence]:
    """Hold the models that are taken from earlier runs against what the study asked for: which model, and whose signature."""
    for number, model in enumerate(links.protocol.models):
        source, identity = links.study.models[number].source, model.identity
        if isinstance(source, EarlierRun) != isinstance(identity, EarlierIdentity):
            yield Divergence("protocol.json", f"/models/{model.id}/identity/kind", identity.kind, "other than in study.json")
        elif isinstance(source, EarlierRun) and isinstance(identity, EarlierIdentity):
            for name, recorded, asked in (("signer", identity.signer, source.signer), ("model", identity.model, source.model or model.id)):
                if recorded != asked:
                    yield Divergence("protocol.json", f"/models/{model.id}/identity/{name}", recorded, asked)


def _responses(links: Links) -> Iterator[Divergence]:
    models = tuple(model.id for model in links.protocol.models)
    found = {entry.benchmark: entry for entry in links.responses.benchmarks}
    for benchmark in links.protocol.benchmarks:
        place, entry = f"/{benchmark.id}", found.pop(benchmark.id, None)
        if entry is None:
            yield Divergence("responses.parquet", place, "absent", "in protocol.json")
            continue
        if entry.models != models:
            yield Divergence("responses.parquet", f"{place}/models", ", ".join(entry.models), ", ".join(models))
        if entry.questions != tuple(question.id for question in benchmark.questions):
            yield Divergence("responses.parquet", f"{place}/questions", "as recorded", "other than in protocol.json")
        elif not _same_weights(entry, [question.weight for question in benchmark.questions]):
            yield Divergence("responses.parquet", f"{place}/weights", "as recorded", "other than in protocol.json")
        if entry.missing != benchmark.missing:
            yield Divergence("responses.parquet", f"{place}/missing", entry.missing, benchmark.missing)
        if entry.score != benchmark.score:
            yield Divergence("responses.parquet", f"{place}/score", "as recorded", "other than in protocol.json")
    for name in found:
        yield Divergence("responses.parquet", f"/{name}", "recorded", "not in protocol.json")


def _same_weights(entry: BenchmarkResponses, weights: list[float]) -> bool:
    return bool(np.array_equal(entry.weights, np.array(weights)))
