from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from evalspec.artifacts.base import Artifact
from evalspec.artifacts.protocol import CheckpointIdentity, Protocol, RecordIdentity
from evalspec.artifacts.samples import SampleSimple
from evalspec.artifacts.study import OptionScoring
from evalspec.chain import Links, broken_links
from evalspec.cli import main
from evalspec.store import RESPONSES, STUDY_SOURCE, RunDirectory


@pytest.fixture(scope="module")
def links(tmp_path_factory: pytest.TempPathFactory) -> Links:
    folder = tmp_path_factory.mktemp("chain")
    assert main(["init", str(folder / "first")]) == 0
    assert main(["run", str(folder / "first" / "study.yaml"), "--out", str(folder / "run"), "--no-pdf", "--quiet"]) == 0
    run = RunDirectory(folder / "run")
    return Links(
        run.read(STUDY_SOURCE),
        run.read_study(),
        run.read_protocol(),
        run.read_responses(),
        run.read(RESPONSES),
        run.read_findings(),
        run.read_verdict(),
    )


def edited(artifact: Artifact, **changes: object) -> Artifact:
    return artifact.model_copy(update=changes)


def test_the_files_of_a_run_follow_from_each_other(links: Links) -> None:
    assert broken_links(links) == ()


def test_another_study_text_is_found(links: Links) -> None:
    found = broken_links(replace(links, study_source=b"title: another\n"))
    assert [(divergence.file, divergence.path) for divergence in found] == [("study.json", "/source_sha256")]


def test_a_protocol_with_other_limits_than_the_study_is_found_even_when_all_digests_fit(links: Links) -> None:
    thresholds = links.protocol.thresholds
    assert thresholds is not None
    easier = edited(links.protocol, thresholds=edited(thresholds, checks=tuple(edited(check, at_least=0.0) for check in thresholds.checks)))
    responses = replace(links.responses, protocol_sha256=easier.digest())
    findings = edited(links.findings, protocol_sha256=easier.digest())
    verdict = edited(links.verdict, findings_sha256=findings.digest())
    found = broken_links(replace(links, protocol=easier, responses=responses, findings=findings, verdict=verdict))
    assert [divergence.path for divergence in found] == ["/thresholds"]


def test_a_model_or_questions_that_the_protocol_does_not_have_are_found(links: Links) -> None:
    models = links.protocol.models[:1]
    found = {divergence.path for divergence in broken_links(replace(links, protocol=edited(links.protocol, models=models)))}
    assert {"/models", "/everyday/models"} <= found
    benchmark = links.protocol.benchmarks[0]
    fewer = edited(links.protocol, benchmarks=(edited(benchmark, questions=benchmark.questions[1:]),))
    assert "/everyday/questions" in {divergence.path for divergence in broken_links(replace(links, protocol=fewer))}


def test_rigged_weights_are_found(links: Links) -> None:
    benchmark = links.protocol.benchmarks[0]
    heavier = (edited(benchmark.questions[0], weight=2.0), *benchmark.questions[1:])
    found = broken_links(replace(links, protocol=edited(links.protocol, benchmarks=(edited(benchmark, questions=heavier),))))
    assert "/everyday/weights" in {divergence.path for divergence in found}


def benchmark_with(**changes: object) -> Callable[[Protocol], Protocol]:
    return lambda protocol: edited(protocol, benchmarks=(edited(protocol.benchmarks[0], **changes),))


def model_with(**changes: object) -> Callable[[Protocol], Protocol]:
    return lambda protocol: edited(protocol, models=(edited(protocol.models[0], **changes), *protocol.models[1:]))


CHECKPOINT = CheckpointIdentity(
    files=(), weights_sha256="0" * 64, tokenizer_sha256="0" * 64, architecture="Llama", parameters=8, stored_dtype="bfloat16", origin="x"
)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (benchmark_with(missing="complete_case"), "/benchmarks/everyday/missing"),
        (benchmark_with(disclosure="ids"), "/benchmarks/everyday/disclosure"),
        (benchmark_with(target="this_pool"), "/benchmarks/everyday/target"),
        (benchmark_with(strata=None), "/benchmarks/everyday/strata"),
        (benchmark_with(clusters="cluster"), "/benchmarks/everyday/clusters"),
        (benchmark_with(scoring=OptionScoring(method="option")), "/benchmarks/everyday/scoring"),
        (benchmark_with(sample=SampleSimple(method="simple", size=5)), "/benchmarks/everyday/sample"),
        (model_with(precision="float16"), "/models/{}/precision"),
        (model_with(identity=CHECKPOINT), "/models/{}/identity/kind"),
        (model_with(identity=RecordIdentity(sha256="0" * 64, model="another", origin="x")), "/models/{}/identity/model"),
    ],
)
def test_a_protocol_that_settles_otherwise_than_the_study_asks_is_found(links: Links, change: Callable[[Protocol], Protocol], path: str) -> None:
    found = {divergence.path for divergence in broken_links(replace(links, protocol=change(links.protocol)))}
    assert path.format(links.protocol.models[0].id) in found


def test_a_record_of_another_digest_than_the_declared_one_is_found(links: Links) -> None:
    first = links.study.models[0]
    declared = edited(first, source=edited(first.source, sha256="0" * 64))
    study = edited(links.study, models=(declared, *links.study.models[1:]))
    assert f"/models/{first.id}/identity/sha256" in {divergence.path for divergence in broken_links(replace(links, study=study))}
