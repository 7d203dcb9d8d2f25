"""Which gap will each declared comparison detect on this sample?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import get_args

from evalspec.artifacts.protocol import Protocol, ProtocolBenchmark
from evalspec.artifacts.schedule import Detectable
from evalspec.protocols import Comparison
from evalspec.statistics.planned_tests import VARIANTS, PlannedTest, TestName

POWER = 0.8
USUAL_DISCORDANCES = (0.1, 0.2, 0.3)
"""Shown where the study declares none: the share of questions that exactly one of two models answers correctly."""

ONE_PAIR = Comparison("one pair of models", 0.05, "exact")


def detectable_gaps(protocol: Protocol, comparisons: Mapping[str, Sequence[Comparison]]) -> tuple[Detectable, ...]:
    """Return, for each comparison (by analysis id) on each benchmark of its analysis, the smallest gap found with 80 % power.

    A comparison by a test whose power is not known here, between two limits, of questions in clusters, or of other scores than right answers has
    no line. Where several models are
    compared by no analysis, one pair by the exact test has one, so that what a sample ranks never stands alone.
    """
    gaps: list[Detectable] = []
    for request in protocol.analyses:
        for benchmark in request.benchmarks:
            questions = len(protocol.benchmark(benchmark).questions)
            for comparison in comparisons.get(request.id, ()):
                if comparison.test in get_args(TestName) and not comparison.both_limits and _counts_answers(protocol.benchmark(benchmark)):
                    gaps += [_detectable(request.id, benchmark, comparison, questions, discordance) for discordance in _discordances(comparison)]
    compared = {benchmark for request in protocol.analyses if comparisons.get(request.id) for benchmark in request.benchmarks}
    for drawn in protocol.benchmarks:
        if drawn.id not in compared and len(protocol.models) > 1 and _plain(drawn):
            gaps += [_detectable(None, drawn.id, ONE_PAIR, len(drawn.questions), discordance) for discordance in USUAL_DISCORDANCES]
    return tuple(gaps)


def _counts_answers(benchmark: ProtocolBenchmark) -> bool:
    """Whether answers are right or wrong, as far as the study says, and questions no clusters."""
    return benchmark.clusters is None and benchmark.score is None


def _plain(benchmark: ProtocolBenchmark) -> bool:
    """Whether the questions are independent draws that count the same."""
    drawn = _counts_answers(benchmark) and benchmark.sample.method not in ("ids", "chosen")
    return drawn and bool(benchmark.questions) and not benchmark.weighted


def _discordances(comparison: Comparison) -> tuple[float, ...]:
    return USUAL_DISCORDANCES if comparison.discordance is None else (comparison.discordance,)


def _detectable(analysis: str | None, benchmark: str, comparison: Comparison, questions: int, discordance: float) -> Detectable:
    return Detectable(
        analysis=analysis,
        benchmark=benchmark,
        comparison=comparison.label,
        n=questions,
        discordance=discordance,
        discordance_declared=comparison.discordance is not None,
        alpha=comparison.alpha,
        power=POWER,
        difference=_gap(questions, discordance, _test_of(comparison)),
        test=comparison.test,
        limit=comparison.limit,
    )


def _test_of(comparison: Comparison) -> PlannedTest:
    one_sided = comparison.alpha / 2.0 if comparison.test in VARIANTS else comparison.alpha
    return PlannedTest(comparison.test, one_sided, comparison.limit)  # type: ignore[arg-type]  # one of TestName


@cache
def _gap(questions: int, discordance: float, test: PlannedTest) -> float | None:
    return test.detectable(questions, discordance, power=POWER).difference
