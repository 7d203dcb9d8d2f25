"""A run directory takes only its own files, writes each whole, and refuses files that do not belong together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from evalspec.artifacts.base import sha256_hex
from evalspec.artifacts.findings import Findings
from evalspec.artifacts.protocol import BatchRule, DrawnQuestion, Protocol, ProtocolBenchmark, ProtocolModel, RecordIdentity
from evalspec.artifacts.questions import Question, QuestionBank, QuestionSet
from evalspec.artifacts.report import Ledger
from evalspec.artifacts.responses import BenchmarkResponses, Responses
from evalspec.artifacts.samples import SampleAll
from evalspec.artifacts.schedule import Schedule
from evalspec.artifacts.sources import QuestionFile, RecordedResponses
from evalspec.artifacts.study import AnalysisRequest, Benchmark, Disclosure, LetterScoring, Model, Study
from evalspec.artifacts.verdict import Verdict
from evalspec.errors import StoreError
from evalspec.store import NAMES, RunDirectory

SOURCE = b"title: A study\n"
QUESTIONS = tuple(Question(f"q{n}", f"stem {n}", ("x", "y"), n % 2) for n in range(4))
BANK = QuestionBank((QuestionSet("b", QUESTIONS, "q.jsonl", "a" * 64),))


def make_study() -> Study:
    return Study(
        apiVersion="evalspec/v1",
        title="A study",
        seed=1,
        models=(Model(id="m", source=RecordedResponses(responses="r.csv")),),
        benchmarks=(Benchmark(id="b", source=QuestionFile(file="q.jsonl"), scoring=LetterScoring(method="letter")),),
        analyses=(AnalysisRequest(id="a", kind="intervals", benchmarks=("b",), options={}),),
        source_sha256=sha256_hex(SOURCE),
    )


def make_protocol(disclosure: Disclosure = "full") -> Protocol:
    questions = tuple(
        DrawnQuestion(id=f"{n:064x}", sha256=f"{n:064x}") if disclosure == "none" else DrawnQuestion(id=question.id, sha256=question.digest())
        for n, question in enumerate(QUESTIONS)
    )
    return Protocol(
        study_sha256=make_study().digest(),
        seed=1,
        models=(ProtocolModel(id="m", precision="float32", identity=RecordIdentity(sha256="c" * 64, model="m", origin="r.csv")),),
        benchmarks=(
            ProtocolBenchmark(
                id="b",
                source="q.jsonl",
                source_sha256="a" * 64,
                source_size=4,
                sample=SampleAll(),
                questions=questions,
                missing="wrong",
                scoring=LetterScoring(method="letter"),
                prompt="{question}",
                disclosure=disclosure,
            ),
        ),
        analyses=(),
        thresholds=None,
        batch_rule=BatchRule(),
    )


def make_responses(protocol: Protocol) -> Responses:
    entry = BenchmarkResponses(
        benchmark="b",
        models=("m",),
        questions=tuple(question.id for question in protocol.benchmarks[0].questions),
        subjects=(None,) * 4,
        weights=np.ones(4),
        scores=np.array([0.0, 1.0, 1.0, 0.0]).reshape(1, 4, 1),
        reasons=np.zeros((1, 4, 1), np.int8),
        choices=np.array([1, 1, 0, 0], np.int16).reshape(1, 4, 1),
        logprobs=None,
        missing="wrong",
    )
    return Responses((entry,), (), protocol.digest())


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A prepared run directory."""
    directory = RunDirectory(tmp_path / "reports" / "study")
    directory.prepare()
    return directory


@pytest.fixture
def full(run: RunDirectory) -> RunDirectory:
    """A run directory with every artifact that names a parent."""
    protocol = make_protocol()
    run.write_study(make_study(), SOURCE)
    run.write_protocol(protocol)
    run.write_schedule(Schedule(protocol_sha256=protocol.digest(), devices=(), jobs=(), memory=(), strata=(), detectable=()))
    run.write_questions(protocol, BANK)
    responses = run.write_responses(make_responses(protocol), protocol)
    findings = run.write_findings(Findings(protocol_sha256=protocol.digest(), responses_sha256=responses, summaries=(), findings=()))
    run.write_verdict(Verdict(findings_sha256=findings, checks=(), overall=None, rule="none"))
    return run


READERS: dict[str, Callable[[RunDirectory], object]] = {
    "study.json": RunDirectory.read_study,
    "protocol.json": RunDirectory.read_protocol,
    "schedule.json": RunDirectory.read_schedule,
    "questions.parquet": RunDirectory.read_questions,
    "responses.parquet": RunDirectory.read_responses,
    "findings.json": RunDirectory.read_findings,
    "verdict.json": RunDirectory.read_verdict,
}


def test_every_artifact_reads_back_equal(full: RunDirectory) -> None:
    protocol = make_protocol()
    assert full.read_study() == make_study()
    assert full.read("study.yaml") == SOURCE
    assert full.read_protocol() == protocol
    assert full.read_schedule().protocol_sha256 == protocol.digest()
    assert full.read_questions() == BANK
    np.testing.assert_array_equal(full.read_responses().benchmark("b").choices, make_responses(protocol).benchmark("b").choices)
    assert full.read_findings().responses_sha256 == sha256_hex(full.read("responses.parquet"))
    assert full.read_verdict().findings_sha256 == sha256_hex(full.read("findings.json"))


def test_the_ledger_reads_back_equal(run: RunDirectory) -> None:
    said = dict.fromkeys(("run_id", "started", "finished", "host", "command"), "said")
    ledger = Ledger(**said, versions={}, environment={}, devices=(), jobs=(), git_commit=None, git_dirty=None)
    run.write_ledger(ledger)
    assert run.read_ledger() == ledger


@pytest.mark.parametrize(
    ("parent", "child"),
    [
        ("study.yaml", "study.json"),
        ("study.json", "protocol.json"),
        ("protocol.json", "schedule.json"),
        ("protocol.json", "responses.parquet"),
        ("protocol.json", "findings.json"),
        ("responses.parquet", "findings.json"),
        ("findings.json", "verdict.json"),
    ],
)
def test_a_child_of_another_parent_is_refused(full: RunDirectory, parent: str, child: str) -> None:
    full.write(parent, full.read(parent) + b"\n")
    with pytest.raises(StoreError, match=f"{child} was made from another {parent}"):
        READERS[child](full)


@pytest.mark.parametrize("name", sorted(READERS))
def test_a_file_that_is_absent_broken_or_a_link_is_refused(full: RunDirectory, name: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    full.file(name).rename(kept)
    with pytest.raises(StoreError, match=f"{name} cannot be read"):
        READERS[name](full)
    full.file(name).symlink_to(kept)
    with pytest.raises(StoreError, match=f"{name} is a link"):
        READERS[name](full)
    full.file(name).unlink()
    for content in (b"", b"{}", b"\xff"):
        full.write(name, content)
        with pytest.raises(StoreError, match=f"{name} is not what it should be"):
            READERS[name](full)


def test_study_and_source_must_belong_together(run: RunDirectory) -> None:
    with pytest.raises(StoreError, match="was not compiled from these bytes"):
        run.write_study(make_study(), b"title: Another\n")


def test_responses_to_questions_that_the_protocol_does_not_name_are_not_written(run: RunDirectory) -> None:
    protocol = make_protocol("none")
    leaking = Responses(make_responses(make_protocol()).benchmarks, (), protocol.digest())
    with pytest.raises(StoreError, match="not to the questions of the protocol"):
        run.write_responses(leaking, protocol)
    with pytest.raises(StoreError, match="belong to another protocol"):
        run.write_responses(make_responses(make_protocol()), protocol)
    assert not run.file("responses.parquet").exists()


def test_undisclosed_choices_are_not_written(run: RunDirectory) -> None:
    protocol = make_protocol("none")
    run.write_study(make_study(), SOURCE)
    run.write_protocol(protocol)
    run.write_responses(make_responses(protocol), protocol)
    assert np.all(run.read_responses().benchmark("b").choices == -1)


def test_questions_of_another_bank_are_not_written(run: RunDirectory) -> None:
    other = QuestionBank((QuestionSet("b", QUESTIONS[:3], "q.jsonl", "a" * 64),))
    with pytest.raises(StoreError, match="is not the one that the protocol drew"):
        run.write_questions(make_protocol(), other)


def test_an_earlier_run_is_accepted_and_cleared_with_its_unfinished_writes(full: RunDirectory) -> None:
    full.file(".partial-0123").write_bytes(b"half")
    full.prepare()
    assert full.file("study.json").exists()
    full.clear()
    assert list(full.path.iterdir()) == []


def test_a_file_is_removed_whether_it_is_there_or_not(full: RunDirectory) -> None:
    for _ in range(2):
        full.remove("verdict.json")
        assert not full.file("verdict.json").exists()


@pytest.mark.parametrize("name", ["notes.txt", "figures/", "study.yaml"])
def test_a_folder_with_anything_else_in_it_is_refused_and_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir() if name.endswith("/") else (tmp_path / name).write_text("mine")
    with pytest.raises(StoreError, match="--out"):
        RunDirectory(tmp_path).clear()
    assert (tmp_path / name).exists()


def test_a_run_directory_with_a_foreign_file_or_a_link_is_refused(full: RunDirectory, tmp_path: Path) -> None:
    full.file("report.html").symlink_to(tmp_path)
    with pytest.raises(StoreError, match=r"holds what is not of a run: report\.html"):
        full.prepare()


def test_a_file_where_the_folder_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file is no folder, and a run needs one"):
        RunDirectory(tmp_path / "file").prepare()


def test_a_write_that_fails_leaves_the_old_file_and_no_rest(run: RunDirectory) -> None:
    run.file("report.html").mkdir()
    with pytest.raises(StoreError, match="cannot be written"):
        run.write("report.html", b"new")
    assert [entry.name for entry in run.path.iterdir()] == ["report.html"]


def test_names_are_those_that_others_script_against() -> None:
    assert {"study.yaml", "study.json", "questions.parquet", "protocol.json", "schedule.json", "responses.parquet", "findings.json"} <= NAMES
    assert {"verdict.json", "ledger.json", "report.html", "report.pdf", "manifest.dsse.json", "signer.crt", "VERIFY.md"} <= NAMES
