"""Responses made from plain tables of scores, and the section of the report that an analysis renders."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from evalspec.artifacts.base import JsonValue
from evalspec.artifacts.findings import Finding
from evalspec.artifacts.responses import BenchmarkResponses, Origin, Responses
from evalspec.artifacts.study import AnalysisRequest
from evalspec.protocols import AnyAnalysis, Context
from evalspec.reporting.documents import Documents
from evalspec.reporting.templates import make_environment
from evalspec.statistics.differences import PairedCounts

REFERENCE = Path(__file__).parents[1] / "statistics" / "reference" / "statistics.json"


def responses_of(scores: ArrayLike, **fields: object) -> Responses:
    """One benchmark of models m0, m1, ... with these scores, (M, Q); `fields` replace those of BenchmarkResponses."""
    array = np.array(scores, dtype=np.float64)[:, :, None]
    questions = array.shape[1]
    given = {
        "benchmark": "b",
        "models": tuple(f"m{index}" for index in range(len(array))),
        "questions": tuple(f"q{index}" for index in range(questions)),
        "subjects": (None,) * questions,
        "weights": np.ones(questions),
        "scores": array,
        "reasons": np.isnan(array).astype(np.int8) * 2,
        "choices": np.full(array.shape, -1, dtype=np.int16),
        "logprobs": None,
        "missing": "wrong",
    }
    benchmark = BenchmarkResponses(**{**given, **fields})
    origins = tuple(Origin(model=model, benchmark=benchmark.benchmark, route="recorded", precision="as_shipped") for model in benchmark.models)
    return Responses(benchmarks=(benchmark,), origins=origins, protocol_sha256="0" * 64)


def two_models(counts: PairedCounts) -> Responses:
    """Two models with these paired counts."""
    cells = ((1, 1, counts.both), (1, 0, counts.only_first), (0, 1, counts.only_second), (0, 0, counts.neither))
    return responses_of(np.array([(first, second) for first, second, times in cells for _ in range(times)]).T)


def article_like() -> Responses:
    """The synthetic 8 models on 2,000 questions, best model first."""
    counts = json.loads(REFERENCE.read_text(encoding="utf-8"))["fixtures"]["article_like_8x2000"]["pattern_counts"]
    return responses_of(np.array([[int(mark) for mark in pattern] for pattern, times in sorted(counts.items()) for _ in range(times)]).T)


def rendered(analysis: AnyAnalysis, responses: Responses, options: Mapping[str, JsonValue]) -> str:
    """The words of the section that an analysis gives, without its figure."""
    parsed = analysis.options.model_validate_json(json.dumps(options))
    result = analysis.compute(responses, parsed, Context(rng=np.random.default_rng(1)))
    names = tuple(benchmark.benchmark for benchmark in responses.benchmarks)
    request = AnalysisRequest(id="asked", kind=analysis.kind, benchmarks=names, options=json.loads(parsed.model_dump_json()))
    finding = Finding(request=request, estimates=analysis.estimates(result), result=json.loads(result.model_dump_json()))
    environment = make_environment(Documents({"findings.json": {"findings": [json.loads(finding.model_dump_json())]}}))
    read = analysis.result.model_validate_json(result.model_dump_json())
    body = environment.get_template(analysis.template).render(request=request, result=read, at="/findings/0", estimates=(), figure="")
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())
