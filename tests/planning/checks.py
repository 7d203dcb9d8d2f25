"""A protocol with one check of one benchmark, and how such checks are decided."""

from __future__ import annotations

from evalspec.artifacts.protocol import BatchRule, DrawnQuestion, Pool, Protocol, ProtocolBenchmark
from evalspec.artifacts.samples import Sample, SampleAll
from evalspec.artifacts.study import AnalysisRequest, LetterScoring
from evalspec.artifacts.thresholds import Check, Thresholds
from evalspec.protocols import CheckTest

ANALYSES = ("pairs", "accuracy", "subgroups", "article_compat", "ranks")
DIFFERENCE = {"analysis": "pairs", "metric": "difference", "model": "a", "baseline": "b"}
ACCURACY = {"analysis": "accuracy", "metric": "accuracy", "model": "a"}
RANK = {"analysis": "ranks", "metric": "rank", "model": "a", "at_most": 1}
MCNEMAR = CheckTest("exact", 0.025)
NO_LOSS = CheckTest("fay_lumbard", 0.025, no_difference=True)
EXACT_FLOOR = CheckTest("clopper_pearson", 0.025)


def planned(*, questions: int = 500, sample: Sample | None = None, design: dict[str, object] | None = None, **check: object) -> Protocol:
    """A protocol of so many questions, as `design` says: weighted, stratified, clustered, of a pool, with a score or with a scoring."""
    design = design or {}
    weights = [2.0, 0.0] * (questions // 2) if "weighted" in design else [1.0] * questions
    drawn = tuple(DrawnQuestion(id=f"q{place}", sha256="0" * 64, subject=f"s{place % 2}", weight=weight) for place, weight in enumerate(weights))
    benchmark = ProtocolBenchmark(
        id="x",
        source="x.jsonl",
        source_sha256="0" * 64,
        source_size=1000,
        sample=sample or SampleAll(),
        questions=drawn,
        strata="subject" if "stratified" in design else None,
        clusters="subject" if "clustered" in design else None,
        pool=Pool(size=1000) if "pool" in design else None,
        score=design.get("score"),
        missing="wrong",
        scoring=design.get("scoring", LetterScoring(method="letter")),
        prompt="{question}",
        disclosure="full",
    )
    return Protocol(
        study_sha256="0" * 64,
        seed=1,
        models=(),
        benchmarks=(benchmark,),
        analyses=tuple(AnalysisRequest(id=name, kind=name, benchmarks=("x",), options={}) for name in ANALYSES),
        thresholds=Thresholds(checks=(Check(**{"id": "c", **check}),)),
        batch_rule=BatchRule(),
    )
