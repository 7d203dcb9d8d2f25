"""Do the files of a run follow from each other?  Each names its parent's digest, and all speak of the same models and questions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from evalspec.analyses.recomputation import Divergence
from evalspec.artifacts.base import sha256_hex
from evalspec.artifacts.findings import Findings
from evalspec.artifacts.protocol import EarlierIdentity, Protocol, ProtocolBenchmark, ProtocolModel, RecordIdentity
from evalspec.artifacts.responses import BenchmarkResponses, Responses
from evalspec.artifacts.served import ServedModel
from evalspec.artifacts.sources import EarlierRun, GgufFile, HubCheckpoint, LocalCheckpoint, RecordedResponses
from evalspec.artifacts.study import Benchmark, Model, Study
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
        for resolved, declared in zip(protocol.models, study.models, strict=True):
            yield from _model(resolved, declared)
    if [entry.id for entry in protocol.benchmarks] == [entry.id for entry in study.benchmarks]:
        for settled, benchmark in zip(protocol.benchmarks, study.benchmarks, strict=True):
            yield from _benchmark(settled, benchmark)


def _model(resolved: ProtocolModel, declared: Model) -> Iterator[Divergence]:
    """Hold what a model is said to be against what the study asked for: weights cannot pass for a record, which nobody can score again."""
    source, identity = declared.source, resolved.identity
    sides: list[tuple[str, str, str]] = [("identity/kind", identity.kind, next(kind for sort, kind in KINDS.items() if isinstance(source, sort)))]
    if isinstance(source, RecordedResponses) and isinstance(identity, RecordIdentity):
        sides.append(("identity/sha256", identity.sha256, source.sha256 or identity.sha256))
        sides.append(("identity/model", identity.model, source.model or resolved.id))
    if isinstance(source, EarlierRun) and isinstance(identity, EarlierIdentity):
        sides.append(("identity/signer", identity.signer, source.signer))
        sides.append(("identity/model", identity.model, source.model or resolved.id))
    if not isinstance(source, EarlierRun):
        sides.append(("precision", resolved.precision, declared.precision))
    for name, recorded, asked in sides:
        if recorded != asked:
            yield Divergence("protocol.json", f"/models/{resolved.id}/{name}", recorded, f"{asked}, by study.json")


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
