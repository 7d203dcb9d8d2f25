"""Small dossiers for the tests of reports: analyses and gate are the real ones, responses are drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from evalspec.analyses.analyse import analyse
from evalspec.analyses.catalogue import built_in
from evalspec.artifacts.base import sha256_hex
from evalspec.artifacts.protocol import (
    BatchRule,
    CheckpointIdentity,
    DrawnQuestion,
    FileDigest,
    Protocol,
    ProtocolBenchmark,
    ProtocolModel,
    RecordIdentity,
)
from evalspec.artifacts.questions import Question, QuestionBank, QuestionSet
from evalspec.artifacts.report import Ledger, LedgerEntry
from evalspec.artifacts.responses import BenchmarkResponses, Origin, Reason, Responses, SelfCheck
from evalspec.artifacts.samples import SampleAll, SampleStratified
from evalspec.artifacts.schedule import Detectable, Schedule, StratumSize
from evalspec.artifacts.sources import LocalCheckpoint, QuestionFile, RecordedResponses
from evalspec.artifacts.study import (
    AnalysisRequest,
    Benchmark,
    Groups,
    LetterScoring,
    Model,
    OptionScoring,
    Owner,
    Person,
    Purpose,
    Study,
)
from evalspec.artifacts.thresholds import Check, Thresholds
from evalspec.gating import gate
from evalspec.reporting.compose import compose
from evalspec.reporting.dossier import Dossier, SignerNote

CATALOGUE = built_in()
MODELS = ("demo-large", "demo-mid", "demo-small", "recorded")
SHARES = {"demo-large": 0.81, "demo-mid": 0.78, "demo-small": 0.52, "recorded": 0.26}
SUBJECTS = ("colours", "continents", "opposites", "plurals", "seasons", "tools")


@dataclass(frozen=True)
class Wanted:
    """What a dossier is to be like."""

    disclosure: str = "full"
    title: str = "Is the large demonstration model fit for release?"
    stems: dict[str, str] = field(default_factory=dict)
    bare: bool = False
    thresholds: bool = True
    questions: int = 240


def build(wanted: Wanted | None = None) -> Dossier:
    """Return a dossier of two benchmarks with different numbers of choices, four models, two analyses and three checks."""
    wanted = wanted or Wanted()
    bank = _bank(wanted)
    study = _study(wanted)
    protocol = _protocol(study, bank, wanted)
    responses = _responses(protocol, bank)
    findings = analyse(responses, protocol, CATALOGUE, responses_sha256=sha256_hex(b"responses"))
    return Dossier(
        study=study,
        protocol=protocol,
        schedule=_schedule(protocol, wanted),
        findings=findings,
        verdict=gate(findings, study.thresholds),
        ledger=_ledger(wanted),
        responses=responses,
        catalogue=CATALOGUE,
        tool_version="0.1.0",
        bank=None if wanted.disclosure == "none" else bank,
        signer=None
        if wanted.bare
        else SignerNote("SHA256:q3l0bXm3r8mYkP0n0o1mBq7W8o3m6zX0yD1k2j3h4g5", "Example Lab demonstration", throw_away=True),
    )


def _bank(wanted: Wanted) -> QuestionBank:
    everyday = tuple(_question("everyday", index, 4, SUBJECTS[index % 6], wanted) for index in range(wanted.questions))
    triples = tuple(_question("triples", index, 3, None, wanted) for index in range(90))
    return QuestionBank(
        (
            QuestionSet("everyday", everyday, "demo/everyday.jsonl", sha256_hex(b"everyday"), licence="CC0-1.0"),
            QuestionSet("triples", triples, "demo/triples.jsonl", sha256_hex(b"triples")),
        )
    )


def _question(benchmark: str, index: int, choices: int, subject: str | None, wanted: Wanted) -> Question:
    identifier = f"{benchmark}-{index:03d}"
    stem = wanted.stems.get("*", f"Which of these is item number {index} of {benchmark}?")
    return Question(identifier, stem, tuple(f"choice {letter} of {index}" for letter in "ABCD"[:choices]), index % choices, subject)


def _study(wanted: Wanted) -> Study:
    models = tuple(
        Model(id=name, source=LocalCheckpoint(path=f"checkpoints/{name}"), family=None if wanted.bare else "Demo", licence="Apache-2.0")
        for name in MODELS[:3]
    )
    recorded = Model(id="recorded", source=RecordedResponses(responses="results/recorded.parquet"))
    checks = (
        Check(id="floor", analysis="accuracy", metric="accuracy", model="demo-large", benchmark="everyday", at_least=0.70),
        Check(id="beats-small", analysis="pairs", metric="difference", model="demo-large", baseline="demo-mid", benchmark="everyday", above=0.0),
        Check(id="small-floor", analysis="accuracy", metric="accuracy", model="demo-small", benchmark="everyday", at_least=0.70),
    )
    return Study(
        api_version="evalspec/v1",
        title=wanted.title,
        owner=None
        if wanted.bare
        else Owner(organisation="Example Lab", responsible=(Person(name="A. Reviewer", role="evaluation lead"), Person(name="B. Keeper"))),
        purpose=Purpose()
        if wanted.bare
        else Purpose(
            measured="knowing everyday words and things, asked as multiple-choice questions",
            intended_use="choosing a small model for a word game",
            decision="Should the large demonstration model replace the middle one in the next release?",
        ),
        seed=20261129,
        models=(*models, recorded),
        benchmarks=(
            Benchmark(
                id="everyday",
                source=QuestionFile(file="everyday.jsonl"),
                sample=SampleStratified(method="stratified", by="subject", size=wanted.questions),
                groups=Groups(subject="strata"),
                scoring=LetterScoring(method="letter"),
                disclosure=wanted.disclosure,
            ),
            Benchmark(
                id="triples",
                source=QuestionFile(file="triples.jsonl"),
                scoring=OptionScoring(method="option", normalise="per_byte"),
                disclosure=wanted.disclosure,
            ),
        ),
        analyses=(
            AnalysisRequest(
                id="accuracy", kind="intervals", benchmarks=("everyday", "triples"), options={"kind": "intervals", "method": "wilson", "level": 0.95}
            ),
            AnalysisRequest(
                id="pairs",
                kind="mcnemar",
                benchmarks=("everyday", "triples"),
                planned=not wanted.bare,
                options={"kind": "mcnemar", "family": "all_pairs", "test": "exact", "correction": "holm", "alpha": 0.05, "level": 0.95},
            ),
        ),
        thresholds=Thresholds(checks=checks) if wanted.thresholds else None,
        limitations=() if wanted.bare else ("The questions are made from templates, so they are easier than what users write.",),
        source_sha256=sha256_hex(b"study"),
    )


def _protocol(study: Study, bank: QuestionBank, wanted: Wanted) -> Protocol:
    prompts = {"everyday": "{question}\n{choices}\nAnswer:", "triples": "{question}\nAnswer:"}
    return Protocol(
        study_sha256=study.source_sha256,
        seed=study.seed,
        models=tuple(ProtocolModel(id=model.id, precision=model.precision, identity=_identity(model)) for model in study.models),
        benchmarks=tuple(
            ProtocolBenchmark(
                id=benchmark.id,
                source=bank.benchmark(benchmark.id).source,
                source_sha256=bank.benchmark(benchmark.id).source_sha256,
                source_size=len(bank.benchmark(benchmark.id).questions) + 80,
                licence=bank.benchmark(benchmark.id).licence,
                sample=benchmark.sample if benchmark.id == "everyday" else SampleAll(),
                questions=tuple(
                    DrawnQuestion(id=question.id, sha256=question.digest(), subject=question.subject)
                    for question in bank.benchmark(benchmark.id).questions
                ),
                strata="subject" if benchmark.id == "everyday" else None,
                missing="wrong",
                scoring=benchmark.scoring,
                prompt=prompts[benchmark.id],
                disclosure=wanted.disclosure,
            )
            for benchmark in study.benchmarks
        ),
        analyses=study.analyses,
        thresholds=study.thresholds,
        batch_rule=BatchRule(),
    )


def _identity(model: Model) -> CheckpointIdentity | RecordIdentity:
    if isinstance(model.source, RecordedResponses):
        return RecordIdentity(sha256=sha256_hex(b"record"), model=model.id, origin=model.source.responses)
    return CheckpointIdentity(
        files=(
            FileDigest(name="config.json", sha256=sha256_hex(b"config"), size=731),
            FileDigest(name="model.safetensors", sha256=sha256_hex(model.id.encode()), size=1_873_216),
        ),
        weights_sha256=sha256_hex(model.id.encode()),
        tokenizer_sha256=sha256_hex(b"tokenizer"),
        architecture="LlamaForCausalLM",
        parameters=934_912,
        stored_dtype="bfloat16",
        origin=f"checkpoints/{model.id}",
    )


def _responses(protocol: Protocol, bank: QuestionBank) -> Responses:
    entries = tuple(_benchmark_responses(benchmark, bank.benchmark(benchmark.id)) for benchmark in protocol.benchmarks)
    origins = tuple(_origin(entry, row) for entry in entries for row in range(len(entry.models)))
    return Responses(benchmarks=entries, origins=origins, protocol_sha256=protocol.digest())


def _benchmark_responses(benchmark: ProtocolBenchmark, questions: QuestionSet) -> BenchmarkResponses:
    rng = np.random.default_rng(7 if benchmark.id == "everyday" else 11)
    count, options = len(questions.questions), len(questions.questions[0].choices)
    keys = np.array([question.answer for question in questions.questions])
    hardness = rng.random(count)
    right = np.stack([hardness * 0.6 + rng.random(count) * 0.4 < SHARES[name] for name in MODELS])
    choices = np.where(right, keys, (keys + rng.integers(1, options, (len(MODELS), count))) % options)
    if benchmark.id == "everyday":
        choices[3] = 1
        right[3] = keys == 1
    scores, reasons = right.astype(np.float64), np.zeros(right.shape, dtype=np.int8)
    scores[2, :3], reasons[2, :3], choices[2, :3] = np.nan, Reason.UNDETERMINED, -1
    return BenchmarkResponses(
        benchmark=benchmark.id,
        models=MODELS,
        questions=tuple(question.id for question in benchmark.questions),
        subjects=tuple(question.subject for question in benchmark.questions),
        weights=np.ones(count),
        scores=scores[:, :, None],
        reasons=reasons[:, :, None],
        choices=choices.astype(np.int16)[:, :, None],
        logprobs=None,
        missing="wrong",
        strata=benchmark.strata is not None,
    )


def _origin(entry: BenchmarkResponses, row: int) -> Origin:
    chosen = {"ABCD"[letter]: int(np.sum(entry.choices[row] == letter)) for letter in range(4) if np.any(entry.choices[row] == letter)}
    if entry.models[row] == "recorded":
        return Origin(
            model="recorded", benchmark=entry.benchmark, route="recorded", precision="unknown", chosen=chosen, recorded_sha256=sha256_hex(b"record")
        )
    letters = tuple((letter, 36 + index) for index, letter in enumerate("ABCD")) if entry.benchmark == "everyday" else ()
    return Origin(
        model=entry.models[row],
        benchmark=entry.benchmark,
        route="scored_here",
        precision="bfloat16",
        chosen=chosen,
        letters=letters,
        first_ids=(1,),
        journal_sha256=sha256_hex(b"journal"),
        letter_mass=0.934 if letters else None,
        fragile=5 - row,
        fragile_gap=0.02,
        self_check=SelfCheck(questions=64, flips=row % 2, max_difference=0.011, p999_difference=0.008),
    )


def _schedule(protocol: Protocol, wanted: Wanted) -> Schedule:
    shares = [] if wanted.bare else [0.1, 0.2, 0.3]
    return Schedule(
        protocol_sha256=protocol.digest(),
        devices=(),
        jobs=(),
        memory=(),
        strata=tuple(StratumSize(benchmark="everyday", subject=subject, available=53, drawn=40) for subject in SUBJECTS),
        detectable=tuple(
            Detectable(
                analysis="pairs",
                benchmark="everyday",
                comparison="any pair",
                n=240,
                discordance=share,
                discordance_declared=False,
                alpha=0.05 / 12,
                power=0.8,
                difference=None if share < 0.15 else share * 0.41,
                test="exact",
            )
            for share in shares
        ),
    )


def _ledger(wanted: Wanted) -> Ledger:
    return Ledger(
        run_id="20261129T164200Z-5f3c",
        started="2026-11-29T16:42:00Z",
        finished="2026-11-29T16:42:31Z",
        host="workstation",
        command="evalspec run specs/demo.yaml",
        versions={} if wanted.bare else {"evalspec": "0.1.0", "python": "3.11.2", "numpy": "2.4.6", "torch": "2.13.0"},
        environment={} if wanted.bare else {"system": "Linux", "OMP_NUM_THREADS": "1"},
        devices=() if wanted.bare else ("cpu",),
        jobs=()
        if wanted.bare
        else tuple(
            LedgerEntry(model=model, benchmark=benchmark, shard=0, device="cpu", questions=240, tokens=9120, seconds=2.31, reused=0)
            for model in MODELS[:3]
            for benchmark in ("everyday", "triples")
        ),
        git_commit=None if wanted.bare else "5f3c1e7a9b2d4c6e8f0a1b3c5d7e9f1a2b3c4d5e",
        git_dirty=None if wanted.bare else False,
    )


@pytest.fixture(scope="session")
def build_dossier() -> Callable[..., Dossier]:
    """Builds a dossier that is like a `Wanted` with the given fields."""

    def build_wanted(**wanted: Any) -> Dossier:
        return build(Wanted(**wanted))

    return build_wanted


@pytest.fixture(scope="session")
def dossier() -> Dossier:
    """Two benchmarks, four models, two analyses, three checks of which one fails; everything disclosed and stated."""
    return build()


@pytest.fixture(scope="session")
def bare_dossier() -> Dossier:
    """The same study with everything left out that may be."""
    return build(Wanted(bare=True, thresholds=False))


@pytest.fixture(scope="session")
def html(dossier: Dossier) -> str:
    """The report of `dossier`."""
    return compose(dossier).html


@pytest.fixture(scope="session")
def attachments(dossier: Dossier) -> dict[str, bytes]:
    """What the PDF of `dossier` carries."""
    return {
        "study.yaml": b"apiVersion: evalspec/v1\ntitle: demonstration\n",
        "protocol.json": dossier.protocol.to_json(),
        "findings.json": dossier.findings.to_json(),
        "verdict.json": dossier.verdict.to_json(),
    }
