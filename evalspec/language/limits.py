"""Can every check be decided?  Its metric, its limit, its bound, its models and its benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from evalspec.language.consistency import DIFFERENCE
from evalspec.language.draft import Draft, Entry
from evalspec.language.faults import Fault, lookup, name_of, suggestion
from evalspec.language.positions import Pointer
from evalspec.language.scalars import quoted

LIMITS = {"at_least": "low", "above": "low", "at_most": "high", "below": "high"}
"""The four limits, each with the bound of the interval that must clear it."""

SHARES = ("accuracy", "always_right", "worst_question", "harmony", "size_harmony", "worst_group", "group_gap")
SCALES = {**dict.fromkeys(SHARES, (0.0, 1.0)), DIFFERENCE: (-1.0, 1.0)}
RANK = "rank"
"""The metric that runs from 1 to the number of models."""

INSIDE = "write a limit inside that range"
WITHOUT_INTERVAL = ("worst_question", "size_harmony", "group_gap")
"""Metrics that are values alone."""

DESCRIPTIVE, BY_SUBJECT = "sensitivity", "subgroups"
"""The kind that decides nothing, and the kind whose every estimate is of one subject."""


def checks(draft: Draft) -> Iterator[Fault]:
    """Yield the faults of every check of the thresholds."""
    for pointer, check in draft.entries("check"):
        for rule in RULES:
            yield from rule(draft, pointer, check)


def _metric(draft: Draft, pointer: Pointer, check: Entry) -> Iterator[Fault]:
    entry = draft.find("analysis", check.get("analysis"))
    analysis = draft.analysis(entry) if entry else None
    metric = check.get("metric")
    if analysis and isinstance(metric, str) and metric not in analysis.metrics:
        message = f"analysis {quoted(str(check['analysis']))} ({analysis.kind}) gives no estimate {quoted(metric)}"
        none = "it gives none that a check can use: name another analysis"
        hint = suggestion(metric, analysis.metrics, what="it gives") if analysis.metrics else none
        yield Fault((*pointer, "metric"), message, hint)


def _measured(draft: Draft, pointer: Pointer, check: Entry) -> Iterator[Fault]:
    """Yield a fault where a check rests on what is predicted: a prediction is no evidence that a model does what it predicts."""
    entry = draft.find("analysis", check.get("analysis"))
    analysis = draft.analysis(entry) if entry else None
    if analysis and check.get("metric") in analysis.predictions:
        message = (
            f"{name_of(pointer, draft.written)} is about {check['metric']}, which is predicted and not measured: a prediction satisfies no check"
        )
        yield Fault((*pointer, "metric"), message, "score the model on that benchmark, and check what is measured")


def _one_limit(draft: Draft, pointer: Pointer, check: Entry) -> Iterator[Fault]:
    """Yield a fault unless exactly one limit is written; a limit that is wrong in itself counts as written."""
    written = lookup(draft.written, pointer)
    given = [key for key in written if key in LIMITS] if isinstance(written, dict) else []
    name = name_of(pointer, draft.written)
    if not given:
        yield Fault(pointer, f"{name} sets no limit", f"add one of {', '.join(LIMITS)}", "key")
    elif check.get(given[0], ...) is None:
        yield Fault((*pointer, given[0]), f"{name} sets no limit: {quoted(given[0])} is empty", "write a number")
    elif len(given) > 1:
        message = f"{name} sets {len(given)} limits: {' and '.join(given)}"
        yield Fault((*pointer, given[1]), message, "a check has one limit: make a second check of the other", "key")


def _bound_fits(draft: Draft, pointer: Pointer, check: Entry) -> Iterator[Fault]:
    given = [key for key in LIMITS if check.get(key) is not None]
    bound = check.get("bound")
    if len(given) == 1 and bound in ("low", "high") and bound != LIMITS[given[0]]:
        message = f"{name_of(pointer, draft.written)}: for {given[0]} the {LIMITS[given[0]]} bound must clear the limit, not the {bound} one"
        yield Fault((*pointer, "bound"), message, f"write bound: {LIMITS[given[0]]}, or bound: value for the point value without error control")


def _scale(draft: Draft, pointer: Pointer, check: Entry) -> Iterator[Fault]:
    """Yield a fault for a limit that no value of the metric decides against, or that none can be on the right side of."""
    metric, models = check.get("metric"), draft.ids("model")
    ranks = (1.0, float(len(models))) if models is not None and metric == RANK else (None, None)
    low, high = SCALES.get(metric, ranks) if isinstance(metric, str) else (None, None)
    for key in LIMITS:
        limit = check.get(key)
        if low is None or high is None or isinstance(limit, bool) or not isinstance(limit, int | float):
            continue
        told = f"{metric} lies between {low:g} and {high:g}"
        if not low <= limit <= high:
            percent = metric != RANK and high < abs(limit) <= 100
            hint = f"proportions are written between 0 and 1: {limit / 100:g} for {limit:g} %" if percent else None
            yield Fault((*pointer, key), f"{told}, so no value decides against {limit:g}", hint)
        elif (key, limit) in {("at_least", low), ("at_most", high)}:
            yield Fault((*pointer, key), f"{told}, so every value is {key.replace('_', ' ')} {limit:g} and the check decides nothing", INSIDE)
        elif (key, limit) in {("above", high), ("below", low)}:
            yield Fault((*pointer, key), f"{told}, so no value is {key} {limit:g} and the check cannot pass", INSIDE)


def _baseline(draft: Draft, pointer: Pointer, check: Entry) -> Iterator[Fault]:
    written = lookup(draft.written, pointer)
    named = isinstance(written, dict) and written.get("baseline") is not None
    model, baseline = check.get("model"), check.get("baseline")
    entry = draft.find("analysis", check.get("analysis"))
    analysis = draft.analysis(entry) if entry else None
    metric = check.get("metric")
    name = name_of(pointer, draft.written)
    if analysis and metric in analysis.pair_metrics and not named:
        hint = "add baseline: the model that is subtracted" if metric == DIFFERENCE else "add baseline: the other model"
        yield Fault((*pointer, "metric"), f'{name} is about {metric}, which is of two models, and has no "baseline"', hint)
    elif analysis and metric in analysis.metrics and metric not in analysis.pair_metrics and named:
        other = f"use {' or '.join(analysis.pair_metrics)}" if analysis.pair_metrics else "name an analysis that compares models"
        yield Fault((*pointer, "baseline"), f"{name} is about {metric}, which takes no baseline", f"delete it, or {other}", "key")
    elif isinstance(model, str) and model == baseline:
        yield Fault((*pointer, "baseline"), f"{name} compares {quoted(model)} with itself", "name two different models")


def _benchmark(draft: Draft, pointer: Pointer, check: Entry) -> Iterator[Fault]:
    analysis = draft.find("analysis", check.get("analysis"))
    covered = draft.benchmarks_of(analysis) if analysis else None
    named, declared = check.get("benchmark"), draft.ids("benchmark")
    if isinstance(named, str) and covered is not None and declared is not None and named in declared and named not in covered:
        message = f"analysis {quoted(str(check['analysis']))} does not speak of the benchmark {quoted(named)}"
        yield Fault((*pointer, "benchmark"), message, f"it speaks of {', '.join(covered)}")


def _subject(draft: Draft, pointer: Pointer, check: Entry) -> Iterator[Fault]:
    if not isinstance(check.get("subject"), str):
        return
    analysis = draft.find("analysis", check.get("analysis"))
    named = check.get("benchmark")
    ids = (named,) if isinstance(named, str) else draft.benchmarks_of(analysis) if analysis else None
    for identifier in ids or ():
        benchmark = draft.find("benchmark", identifier)
        if benchmark is not None and lookup(benchmark, ("groups", "subject")) != "strata":
            message = f"{name_of(pointer, draft.written)} is about one subject, and benchmark {quoted(str(identifier))} declares no strata"
            yield Fault((*pointer, "subject"), message, "add groups: {subject: strata} to the benchmark")


def _decidable(draft: Draft, pointer: Pointer, check: Entry) -> Iterator[Fault]:
    """Yield a fault where an analysis decides nothing, a value has no interval, or the subject of an estimate by subject is not named."""
    entry = draft.find("analysis", check.get("analysis"))
    kind, metric, name = (entry or {}).get("kind"), check.get("metric"), name_of(pointer, draft.written)
    if kind == DESCRIPTIVE:
        message = f"{name} rests on {quoted(str(check['analysis']))}, which describes how much hangs on the rules and decides nothing"
        yield Fault((*pointer, "analysis"), message, "name the analysis that decides; what becomes of its checks under each rule is shown anyway")
    if kind == BY_SUBJECT and check.get("subject") is None:
        yield Fault((*pointer, "metric"), f"{name} names no subject, and {quoted(str(check['analysis']))} speaks of single ones", "add subject")
    if metric in WITHOUT_INTERVAL and check.get("bound") != "value":
        yield Fault((*pointer, "metric"), f"{name} is about {metric}, which has no interval", "add bound: value, which has no error control")


Rule = Callable[[Draft, Pointer, Entry], Iterator[Fault]]
RULES: tuple[Rule, ...] = (_metric, _measured, _one_limit, _bound_fits, _scale, _baseline, _benchmark, _subject, _decidable)
