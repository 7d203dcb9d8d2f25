"""Which gap will each declared comparison detect on this sample?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import get_args

from evalspec.artifacts.protocol import Protocol
from evalspec.artifacts.schedule import Detectable
from evalspec.protocols import Comparison
from evalspec.statistics.mcnemar import Variant
from evalspec.statistics.paired_power import detectable_difference

POWER = 0.8
USUAL_DISCORDANCES = (0.1, 0.2, 0.3)
"""Shown where the study declares none: the share of questions that exactly one of two models answers correctly."""


def detectable_gaps(protocol: Protocol, comparisons: Mapping[str, Sequence[Comparison]]) -> tuple[Detectable, ...]:
    """Return, for each comparison (by analysis id) on each benchmark of its analysis, the smallest gap found with 80% power.

    A comparison by a test whose power is not known here has no line.
    """
    gaps = []
    for request in protocol.analyses:
        for benchmark in request.benchmarks:
            questions = len(protocol.benchmark(benchmark).questions)
            for comparison in comparisons.get(request.id, ()):
                if comparison.test in get_args(Variant):
                    gaps += [_detectable(request.id, benchmark, comparison, questions, discordance) for discordance in _discordances(comparison)]
    return tuple(gaps)


def _discordances(comparison: Comparison) -> tuple[float, ...]:
    return USUAL_DISCORDANCES if comparison.discordance is None else (comparison.discordance,)


def _detectable(analysis: str, benchmark: str, comparison: Comparison, questions: int, discordance: float) -> Detectable:
    return Detectable(
        analysis=analysis,
        benchmark=benchmark,
        comparison=comparison.label,
        n=questions,
        discordance=discordance,
        discordance_declared=comparison.discordance is not None,
        alpha=comparison.alpha,
        power=POWER,
        difference=_gap(questions, discordance, comparison.alpha, "mid_p" if comparison.test == "mid_p" else "exact"),
        test=comparison.test,
    )


@cache
def _gap(questions: int, discordance: float, alpha: float, test: Variant) -> float | None:
    return detectable_difference(questions, discordance, power=POWER, alpha=alpha, test=test).difference
