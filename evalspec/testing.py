"""What must every analysis, ours or a plug-in's, pass?

A plug-in's own test is one line: `check_analysis(ANALYSIS, {"kind": "mine"})`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from evalspec.analyses.analyse import random_stream
from evalspec.artifacts.base import JsonValue
from evalspec.artifacts.findings import Estimate
from evalspec.artifacts.responses import BenchmarkResponses, Origin, Responses
from evalspec.protocols import AnyAnalysis, Context
from evalspec.reporting.templates import section_template


def sample_responses(*, models: int = 4, questions: int = 120, seed: int = 1, repeats: int = 1, clusters: int = 0) -> Responses:
    """Return made-up responses to two benchmarks, for tests of analyses.

    The first has strata and flagged questions, the second has scores missing; with `clusters`, the questions of the second come in as many.
    """
    rng = np.random.default_rng(seed)
    names = tuple(f"model-{index}" for index in range(models))
    benchmarks = tuple(_benchmark(rng, name, names, (questions, repeats)) for name in ("first", "second"))
    if clusters:
        labels = tuple(f"cluster-{index % clusters}" for index in range(questions))
        benchmarks = (benchmarks[0], replace(benchmarks[1], clusters=labels))
    origins = tuple(
        Origin(model=model, benchmark=benchmark.benchmark, route="recorded", precision="as_shipped") for benchmark in benchmarks for model in names
    )
    return Responses(benchmarks=benchmarks, origins=origins, protocol_sha256="0" * 64)


def check_analysis(
    analysis: AnyAnalysis, options: Mapping[str, JsonValue], responses: Responses | None = None, *, tables: Mapping[str, bytes] | None = None
) -> None:
    """Assert that an analysis is pure, indifferent to the order of questions, readable back, and honest in its estimates.

    `tables` are the outside tables that its options name, by their SHA-256.

    Raises AssertionError with what was broken.
    """
    given = responses or sample_responses()
    parsed = analysis.options.model_validate_json(json.dumps(options))
    assert parsed.model_config.get("extra") == "forbid", "the options model must be closed (extra='forbid')"
    assert json.loads(parsed.model_dump_json())["kind"] == analysis.kind, "the options need kind: Literal[...] equal to the analysis's kind"
    result = analysis.compute(given, parsed, _context(analysis, tables))
    again = analysis.compute(given, parsed, _context(analysis, tables))
    assert again == result, "two computations with one random stream differ: an analysis must be pure"
    read = analysis.result.model_validate_json(result.model_dump_json())
    assert read == result, "the result does not read back from JSON to an equal value"
    estimates = analysis.estimates(result)
    assert bool(estimates) == bool(analysis.metrics), "an analysis gives estimates of the metrics that it names, and none when it names none"
    assert set(analysis.pair_metrics) <= set(analysis.metrics), "the pair metrics are among the metrics"
    assert set(analysis.ordered) <= set(analysis.metrics), "the ordered metrics are among the metrics"
    for estimate in estimates:
        _check_estimate(estimate, analysis)
    shuffled = analysis.estimates(analysis.compute(_reordered(given), parsed, _context(analysis, tables)))
    assert [_rounded(one) for one in shuffled] == [_rounded(one) for one in estimates], "the order of questions moves an estimate"
    cited = analysis.sources_used(result) if analysis.sources_used else analysis.sources
    assert set(cited) <= set(analysis.sources), "the sources that a result rests on are among the analysis's sources"
    section_template(analysis.template)


def _context(analysis: AnyAnalysis, tables: Mapping[str, bytes] | None) -> Context:
    return Context(rng=random_stream(20261129, analysis.kind), tables=tables or {})


def _check_estimate(estimate: Estimate, analysis: AnyAnalysis) -> None:
    assert estimate.metric in analysis.metrics, f"metric {estimate.metric!r} is not among the analysis's metrics {analysis.metrics}"
    of_two = estimate.metric in analysis.pair_metrics
    assert estimate.value is None or (len(estimate.models) == 2) == of_two, f"{estimate.metric!r} is of two models exactly when it is a pair metric"
    assert (estimate.value is None) == (estimate.undefined is not None), "an estimate has a value or a reason why not, never both"
    if estimate.value is not None and estimate.low is not None and estimate.high is not None:
        assert estimate.low <= estimate.value <= estimate.high, f"the interval [{estimate.low}, {estimate.high}] does not hold {estimate.value}"
        assert estimate.confidence_level is not None, "an interval needs its confidence level"
    if estimate.p_value is not None:
        assert 0 < estimate.p_value <= 1, f"a p-value lies in (0, 1]; got {estimate.p_value}"


def _rounded(estimate: Estimate) -> str:
    found = {name: value for name, value in estimate.model_dump().items() if isinstance(value, float)}
    # Sums in another order leave rounding where a value is 0; a p-value can be as small as that and mean it.
    numbers = {name: 0.0 if abs(value) < 1e-12 and not name.startswith("p_") else float(f"{value:.9g}") for name, value in found.items()}
    return estimate.model_copy(update=numbers).model_dump_json()


def _reordered(responses: Responses) -> Responses:
    turned = tuple(entry.at(np.random.default_rng(7).permutation(len(entry.questions)).tolist()) for entry in responses.benchmarks)
    return replace(responses, benchmarks=turned)


def _benchmark(rng: np.random.Generator, name: str, models: tuple[str, ...], shape: tuple[int, int]) -> BenchmarkResponses:
    questions, repeats = shape
    ability, difficulty = rng.normal(size=(len(models), 1, 1)), rng.normal(size=(1, questions, 1))
    scores = (rng.random((len(models), questions, repeats)) < 1 / (1 + np.exp(difficulty - ability))).astype(np.float64)
    reasons = np.zeros(scores.shape, dtype=np.int8)
    if name == "second":
        reasons[rng.random(scores.shape) < 0.02] = 2
        scores[reasons > 0] = np.nan
    return BenchmarkResponses(
        benchmark=name,
        models=models,
        questions=tuple(f"q{index:04d}" for index in range(questions)),
        subjects=tuple(f"subject-{index % 3}" for index in range(questions)),
        weights=np.ones(questions),
        scores=scores,
        reasons=reasons,
        choices=np.full(scores.shape, -1, dtype=np.int16),
        logprobs=None,
        missing="wrong",
        strata=name == "first",
        flags=tuple(("wrong key",) if index % 10 == 0 else () for index in range(questions)) if name == "first" else (),
    )
