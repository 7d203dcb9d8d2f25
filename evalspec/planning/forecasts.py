"""How likely is each check to pass on this sample, and how many questions would make that likely?

Every number rests on a truth that the study declares or that is assumed and marked so. Observed differences have no part in it: power at an
observed difference says nothing that its p-value does not say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import get_args

import numpy as np

from evalspec.artifacts.protocol import Protocol, ProtocolBenchmark
from evalspec.artifacts.samples import SampleSimple, SampleStratified, SizeToDetect
from evalspec.artifacts.schedule import GateForecast, LastLook
from evalspec.artifacts.study import AnalysisRequest
from evalspec.artifacts.thresholds import Check
from evalspec.planning.bounds import too_few_clusters
from evalspec.planning.describe import percent
from evalspec.protocols import CheckTest
from evalspec.statistics.accuracies import accuracy
from evalspec.statistics.designs import WHOLE, Design
from evalspec.statistics.floors import Floor, floor_questions, floor_truth_needed
from evalspec.statistics.planned_tests import PlannedTest, TestName
from evalspec.statistics.proportions import ProportionMethod

POWER = 0.8
USUAL_DISCORDANCE = 0.2
"""Assumed, and marked as assumed, where the study declares no share of questions that exactly one of two models answers correctly."""

POINT_VALUE = "a value alone has no error control, so no power is stated"
NO_FORECAST = "the power of this analysis is not known before scoring"
CLUSTERED = "questions come in clusters, and power depends on how alike those of one cluster are"
CHOSEN = "the questions are chosen and not drawn, so nothing is known of how far an estimate from them can be off"
WEIGHTED = "questions weigh differently, and power depends on how much their subjects differ"
POOLED = "a part of a pool is asked, and power depends on how large a part of it that is"
SMALL_PART = 0.05
"""The share of a pool up to which a part of it is taken as draws from an endless one."""
OTHER_SCORES = "the scores are other than right and wrong answers, and power depends on how much they spread"


def forecast_gates(protocol: Protocol, tests: Mapping[str, CheckTest | None]) -> tuple[GateForecast, ...]:
    """Return a forecast for every check on every benchmark that it speaks of; `tests` are by check id, at the level after correction."""
    checks = protocol.thresholds.checks if protocol.thresholds else ()
    requests = {request.id: request for request in protocol.analyses}
    return tuple(
        _forecast(check, protocol.benchmark(name), _shared(tests.get(check.id), protocol, requests[check.analysis]))
        for check in checks
        for name in ((check.benchmark,) if check.benchmark else requests[check.analysis].benchmarks)
    )


def _shared(tested: CheckTest | None, protocol: Protocol, request: AnalysisRequest) -> CheckTest | None:
    """Return how a check is decided, at the part of alpha that Holm's first step leaves one of all subjects of its analysis."""
    if tested is None or not tested.shared_by_subjects:
        return tested
    subjects = [{question.subject for question in protocol.benchmark(name).questions} - {None} for name in request.benchmarks]
    return replace(tested, alpha=tested.alpha / max(1, sum(map(len, subjects))))


def gate_warnings(forecasts: tuple[GateForecast, ...]) -> Iterator[str]:
    """Yield a warning for every check that this sample is unlikely to decide."""
    for entry in forecasts:
        place = f"check '{entry.check}' on '{entry.benchmark}'"
        chance = entry.power if entry.last is None else entry.last.power
        if entry.undefined is None and entry.smallest is None and entry.why_not:
            power = "" if chance is None else f", the chance is {percent(chance)}"
            passing = "cannot pass at its planned alpha" if entry.discordance is None else "may well not pass"
            yield f"{place} {passing} on {_size(entry)}{power}: {entry.why_not}"
        elif chance is not None and chance < entry.wanted:
            at = (
                ""
                if entry.last is None
                else f" at the last of its {entry.last.look} looks, of {entry.last.n:,} questions at alpha {entry.last.alpha:.4g},"
            )
            yield f"{place} will pass{at} with a chance of {percent(chance)} only, {_assumed(entry)}; {_needs(entry)}"
        if entry.last is not None and entry.last.n > entry.source_size:
            yield f"{place} plans its last look at {entry.last.n:,} questions, more than the {entry.source_size:,} of this source"


def _size(entry: GateForecast) -> str:
    return f"{entry.n if entry.last is None else entry.last.n:,} questions"


def _assumed(entry: GateForecast) -> str:
    if entry.discordance is None:
        return f"if the true value is {entry.truth:g}"
    declared = "declared" if entry.discordance_declared else "assumed"
    return f"if the true difference is {entry.truth:g} and {entry.discordance * 100:g} % of the questions are discordant ({declared})"


def _needs(entry: GateForecast) -> str:
    if entry.needed is None:
        return f"no number of questions makes that {percent(entry.wanted)}"
    beyond = f", more than the {entry.source_size:,} of this source" if entry.needed > entry.source_size else ""
    of = "" if entry.subject is None else " of this subject"
    alpha = entry.alpha if entry.last is None else entry.last.alpha
    return f"{percent(entry.wanted)} would need {entry.needed:,} questions{of} at alpha {alpha:.4g}{beyond}"


def _forecast(check: Check, benchmark: ProtocolBenchmark, tested: CheckTest | None) -> GateForecast:
    asked = [question for question in benchmark.questions if check.subject in (None, question.subject)]
    empty = GateForecast(
        check=check.id, benchmark=benchmark.id, n=len(asked), source_size=benchmark.source_size, limit=check.limit, subject=check.subject
    )
    reason = _why_undefined(check, benchmark, tested)
    if reason or tested is None or not asked:
        short = too_few_clusters(check, tested, benchmark) if reason == CLUSTERED and tested else None
        return empty.model_copy(update={"undefined": reason or NO_FORECAST, "why_not": f"it {short}" if short else None})
    empty = empty.model_copy(update={"test": tested.test, "alpha": tested.alpha})
    if tested.test in get_args(ProportionMethod):
        found = _of_share(empty, check, tested)
    else:
        found = _of_difference(empty, check, tested, _discordance(check, benchmark, tested))
    pool = _pool_counted(check, tested, benchmark)
    return found if found.undefined or pool is None else _of_pool(found, empty, pool, lower=check.lower)


def _pool_counted(check: Check, tested: CheckTest, benchmark: ProtocolBenchmark) -> int | None:
    """Return the size of the pool that a bound counts; None where there is none, or where the bound passes over it."""
    if benchmark.pool is None or tested.test == "fay_lumbard":
        return None
    if check.subject is not None:
        return benchmark.pool.subjects[check.subject]
    fixed = benchmark.strata is not None and benchmark.sample.method != "simple"
    return None if fixed and (tested.test == "clopper_pearson" or tested.exact_means) else benchmark.pool.size


def _of_pool(found: GateForecast, empty: GateForecast, pool: int, *, lower: bool) -> GateForecast:
    """Return what is found for draws from an endless pool, as far as it holds for a part of this one."""
    asked = found.n if found.last is None else found.last.n
    if found.smallest is None and found.discordance is None:
        matters = not _never_clears(found, pool, lower=lower)
    else:
        matters = asked > SMALL_PART * pool or (found.needed or 0) > pool
    return empty.model_copy(update={"undefined": POOLED}) if matters else found


def _never_clears(found: GateForecast, pool: int, *, lower: bool) -> bool:
    """Whether even right answers alone leave the bound of a share of this pool below the limit; of a ceiling, wrong answers alone above it."""
    level, floor = 1.0 - 2.0 * (found.alpha or 0.0), found.limit if lower else 1.0 - found.limit
    best = accuracy(np.ones(found.n), Design(pool={WHOLE: pool}), method=found.test, level=level).interval  # type: ignore[arg-type]  # a ProportionMethod
    return best is not None and best.low < floor


def _why_undefined(check: Check, benchmark: ProtocolBenchmark, tested: CheckTest | None) -> str | None:
    if check.bound == "value":
        return POINT_VALUE
    if tested is None or tested.test not in (*get_args(ProportionMethod), *get_args(TestName)):
        return NO_FORECAST
    if benchmark.sample.method == "chosen":
        return CHOSEN
    if benchmark.clusters is not None:
        return CLUSTERED
    if benchmark.score is not None:
        return OTHER_SCORES
    return WEIGHTED if tested.macro or benchmark.weighted else None


def _discordance(check: Check, benchmark: ProtocolBenchmark, tested: CheckTest) -> tuple[float, bool]:
    """Return the discordance to plan with, and whether the study declares it: the check itself, the analysis, or the sample's target."""
    sample = benchmark.sample
    target = sample.size if isinstance(sample, SampleSimple | SampleStratified) and isinstance(sample.size, SizeToDetect) else None
    declared = (check.assume.discordance if check.assume else None, tested.discordance, target.discordance if target else None)
    found = next((value for value in declared if value is not None), None)
    return (USUAL_DISCORDANCE, False) if found is None else (found, True)


def _of_share(empty: GateForecast, check: Check, tested: CheckTest) -> GateForecast:
    """A ceiling for the share of right answers is a floor for that of wrong ones."""
    if empty.limit in ((1.0,) if check.lower else (0.0,)):
        return empty.model_copy(update={"power": 0.0, "why_not": f"no bound comes to {empty.limit:g}, whatever the answers"})
    if not 0.0 < empty.limit < 1.0:
        return empty.model_copy(update={"undefined": f"a single {'right' if check.lower else 'wrong'} answer clears a limit of {empty.limit:g}"})
    truth, lower = check.assume.accuracy if check.assume else None, check.lower
    floor = Floor(empty.limit if lower else 1.0 - empty.limit, tested.alpha, tested.test)  # type: ignore[arg-type]  # a ProportionMethod
    smallest = floor_truth_needed(empty.n, floor, power=POWER)
    found = empty.model_copy(update={"truth": truth, "truth_declared": truth is not None})
    if smallest is None:
        answers = f"{empty.n:,} {'right' if lower else 'wrong'} answers of {empty.n:,}"
        why = f"at an alpha of {tested.alpha:.4g} even {answers} leave the bound on the other side of {empty.limit:g}"
        return found.model_copy(update={"power": None if truth is None else 0.0, "why_not": why})
    found = found.model_copy(update={"smallest": smallest if lower else 1.0 - smallest})
    if truth is None:
        return found
    seen = truth if lower else 1.0 - truth
    power = float(floor.power(np.array([empty.n]), seen)[0])
    try:
        return found.model_copy(update={"power": power, "needed": floor_questions(seen, floor, power=POWER).questions})
    except ValueError as error:
        return found.model_copy(update={"power": power, "why_not": str(error)})


def _of_difference(empty: GateForecast, check: Check, tested: CheckTest, discordance: tuple[float, bool]) -> GateForecast:
    sign = 1.0 if check.lower else -1.0
    declared = check.assume.difference if check.assume else None
    truth = declared if declared is not None else 0.0 if tested.no_difference else None
    share, known = discordance
    found = empty.model_copy(
        update={"truth": truth, "truth_declared": declared is not None, "discordance": share, "discordance_declared": known},
    )
    last = None if tested.looks is None else LastLook(look=tested.looks.count, n=tested.looks.last_questions, alpha=tested.looks.last_alpha)
    try:
        now = PlannedTest(tested.test, tested.alpha, sign * empty.limit)  # type: ignore[arg-type]  # one of TestName
        # What may still come decides: a sample is planned for the last look, at the alpha that it will have.
        test, questions = (now, empty.n) if last is None else (replace(now, alpha=last.alpha), last.n)
        nearest = _nearest(test, questions, share)
        power, at_last = (None, None) if truth is None else (_power(now, empty.n, share, sign * truth), _power(test, questions, share, sign * truth))
    except ValueError as error:
        return found.model_copy(update={"undefined": str(error)})
    found = found.model_copy(update={"power": power, "last": last and last.model_copy(update={"power": at_last})})
    if nearest is None:
        why = f"at a discordance of {share * 100:g} % no true difference passes with a chance of {percent(POWER)}"
        return found.model_copy(update={"why_not": why})
    found = found.model_copy(update={"smallest": sign * nearest})
    if truth is None:
        return found
    try:
        return found.model_copy(update={"needed": _questions(test, share, sign * truth)})
    except ValueError as error:
        return found.model_copy(update={"why_not": str(error)})


@cache
def _nearest(test: PlannedTest, questions: int, discordance: float) -> float | None:
    return test.detectable(questions, discordance, power=POWER).difference


@cache
def _power(test: PlannedTest, questions: int, discordance: float, difference: float) -> float:
    return test.power(questions, discordance, difference)


@cache
def _questions(test: PlannedTest, discordance: float, difference: float) -> int:
    return test.questions(discordance, difference, power=POWER).questions
