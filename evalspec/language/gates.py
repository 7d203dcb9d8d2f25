"""Does every check claim what its analysis tests, under assumptions that it can hold, with an error that can be controlled?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from evalspec.language.consistency import ACCURACY, DIFFERENCE
from evalspec.language.draft import Draft, Entry, options_of
from evalspec.language.faults import Fault, lookup, name_of
from evalspec.language.positions import Pointer
from evalspec.language.scalars import quoted
from evalspec.language.scores import less_is_better

NONINFERIORITY, SUBGROUPS = "noninferiority", "subgroups"
OF_PAIRS = ("mcnemar", "power")
"""The kinds whose options say which pairs of models are compared."""
LOWER, UPPER = ("at_least", "above"), ("at_most", "below")


def gates(draft: Draft) -> Iterator[Fault]:
    """Yield the faults of checks that go beyond one key: assumptions, margins, and what `require: any` asks for."""
    for pointer, check in draft.entries("check"):
        yield from _assumption(draft, pointer, check)
        yield from _margin(draft, pointer, check)
        yield from _compared(draft, pointer, check)
        yield from _correctable(draft, pointer, check)
        yield from _bounded(draft, pointer, check)
    yield from _equivalences(draft)


def _assumption(draft: Draft, pointer: Pointer, check: Entry) -> Iterator[Fault]:
    assumed, metric = check.get("assume"), check.get("metric")
    if not isinstance(assumed, dict):
        return
    name, place = name_of(pointer, draft.written), (*pointer, "assume")
    foreign = [key for key in assumed if (key == ACCURACY) == (metric == DIFFERENCE)] if metric in (ACCURACY, DIFFERENCE) else list(assumed)
    for key in foreign:
        yield Fault((*place, key), f"{name} is about {metric}, and assumes something of another kind: {key}", "delete it", "key")
    truth, share = assumed.get(str(metric)), assumed.get("discordance")
    if metric == DIFFERENCE and isinstance(truth, int | float) and isinstance(share, int | float) and abs(truth) > share:
        message = f"{name} assumes a difference of {truth:g}, and models cannot differ by more than the share of discordant questions, {share:g}"
        yield Fault((*place, "difference"), message, f"assume a discordance of {abs(truth):g} or more")
    limit, lower = _limit(check)
    if isinstance(truth, int | float) and limit is not None and (truth <= limit if lower else truth >= limit):
        side = "above" if lower else "below"
        message = f"{name} assumes a true {metric} of {truth:g}, which is not {side} its limit {limit:g}: then it ought not to pass"
        yield Fault((*place, str(metric)), message, f"assume a value {side} the limit, at which it ought to pass")


def _margin(draft: Draft, pointer: Pointer, check: Entry) -> Iterator[Fault]:
    entry = draft.find("analysis", check.get("analysis"))
    if entry is None or entry.get("kind") != NONINFERIORITY or check.get("bound") == "value":
        return
    name, of = name_of(pointer, draft.written), f"analysis {quoted(str(entry.get('id')))}"
    candidate, baseline = entry.get("candidate"), entry.get("baseline")
    if (check.get("model"), check.get("baseline")) != (candidate, baseline):
        named, known = (candidate, baseline, check.get("model"), check.get("baseline")), draft.ids("model") or ()
        if all(model in known for model in named):  # else a fault of its own
            yield Fault((*pointer, "model"), f"{name} does not name the models of {of}", f"write model: {candidate} and baseline: {baseline}")
        return
    margin, hypothesis = entry.get("margin", 0), entry.get("hypothesis", "noninferiority")
    limit, _ = _limit(check)
    if limit is None or not isinstance(margin, int | float):
        return
    sides: dict[str, float] = {"above": 0.0 - margin, "below": margin}
    wanted_side = "below" if less_is_better(draft, check) else "above"
    allowed = sides if hypothesis == "equivalence" else {wanted_side: sides[wanted_side]}
    written = next(key for key in (*LOWER, *UPPER) if check.get(key) is not None)
    if allowed.get(written) != limit:
        wanted = " and in another check ".join(f"{key}: {value:g}" for key, value in allowed.items())
        yield Fault((*pointer, written), f"{name} holds {of} against another limit than it tests", f"write {wanted}")


def _compared(draft: Draft, pointer: Pointer, check: Entry) -> Iterator[Fault]:
    """Yield a fault for a check of models that its analysis does not look at: it could never be decided."""
    entry, known = draft.find("analysis", check.get("analysis")), set(draft.ids("model") or ())
    analysis = draft.analysis(entry) if entry else None
    models = {model for key in ("model", "baseline") if isinstance(model := check.get(key), str)}
    if entry is None or analysis is None or not models <= known or options_of(analysis, entry) is None:
        return
    name, of = name_of(pointer, draft.written), f"analysis {quoted(str(entry.get('id')))}"
    if analysis.kind == SUBGROUPS:
        yield from _looked_at(entry, pointer, check, (name, of), known)
    elif analysis.kind in OF_PAIRS and len(models) == 2:
        compared = _families(entry)
        if compared and known.issuperset(chain(*compared)) and not any(pair <= models for pair in compared):
            pairs = " or ".join(" with ".join(sorted(pair)) if len(pair) > 1 else f"other models with {min(pair)}" for pair in compared[:3])
            hint = f"it compares {pairs}{', among others' * (len(compared) > 3)}"
            yield Fault((*pointer, "model"), f"{name} is about two models that {of} does not compare", hint)


def _families(entry: Entry) -> list[set[str]] | None:
    """Return the pairs that an analysis compares, or the one model that each of its pairs holds; None where it compares all."""
    baseline, pairs = entry.get("baseline"), entry.get("pairs")
    if isinstance(baseline, str):
        return [{baseline}]
    if entry.get("family") != "named" or not isinstance(pairs, list):
        return None
    named = [{model for model in pair if isinstance(model, str)} for pair in pairs if isinstance(pair, list)]
    return named if len(named) == len(pairs) and all(len(pair) == 2 for pair in named) else None


def _looked_at(entry: Entry, pointer: Pointer, check: Entry, names: tuple[str, str], known: set[str]) -> Iterator[Fault]:
    """Yield a fault where a check of a subject is about another estimate, or other models, than its analysis of subjects."""
    (name, of), model, baseline = names, entry.get("model"), entry.get("baseline")
    metric = ACCURACY if baseline is None else DIFFERENCE
    named, wanted = ({str(one[key]) for key in ("model", "baseline") if one.get(key) is not None} for one in (check, entry))
    if check.get("metric") in (ACCURACY, DIFFERENCE) and check.get("metric") != metric:
        gives = f"the accuracy of {model}" if baseline is None else f"the difference {model} - {baseline}"
        yield Fault((*pointer, "metric"), f"{name} is about {check['metric']}, and {of} gives {gives}", f"write metric: {metric}")
    elif check.get("metric") == metric and named != wanted and len(named) == len(wanted) and wanted <= known:
        models = f"model: {model}" if baseline is None else f"model: {model} and baseline: {baseline}"
        yield Fault((*pointer, "model"), f"{name} does not name the models of {of}", f"write {models}")


def _correctable(draft: Draft, pointer: Pointer, check: Entry) -> Iterator[Fault]:
    if lookup(draft.content, ("thresholds", "require")) != "any":
        return
    name = name_of(pointer, draft.written)
    if check.get("bound") == "value":
        message = f"{name} is about a value alone, which has no error control, and cannot be one of several of which any may pass"
        yield Fault((*pointer, "bound"), message, "hold the bound against the limit, or write require: all")
    entry = draft.find("analysis", check.get("analysis"))
    analysis = draft.analysis(entry) if entry else None
    if analysis is not None and analysis.stricter is None:
        message = f"{name} rests on {analysis.kind}, which gives no bounds at a corrected error rate, as require: any needs"
        yield Fault((*pointer, "analysis"), message, "write require: all")


def _bounded(draft: Draft, pointer: Pointer, check: Entry) -> Iterator[Fault]:
    """Yield a fault for a check of a bound on questions that were chosen and not drawn, whose estimates have none."""
    entry = draft.find("analysis", check.get("analysis"))
    named = (check.get("benchmark"),) if check.get("benchmark") else (draft.benchmarks_of(entry) if entry else None) or ()
    for identifier in named:
        benchmark = draft.find("benchmark", identifier)
        if benchmark is not None and lookup(benchmark, ("sample", "method")) == "chosen" and check.get("bound") != "value":
            place = (*pointer, "bound") if check.get("bound") else (*pointer, "metric")
            message = f'{name_of(pointer, draft.written)} needs an interval, and the questions of benchmark "{identifier}" are chosen and not drawn'
            yield Fault(place, message, "write bound: value, which has no error control, or draw a simple sample")
            return


def _equivalences(draft: Draft) -> Iterator[Fault]:
    """Yield a fault for every equivalence of which the checks hold one side only, or both as alternatives."""
    either = lookup(draft.content, ("thresholds", "require")) == "any"
    for _, entry in draft.entries("analysis"):
        if entry.get("kind") != NONINFERIORITY or entry.get("hypothesis") != "equivalence":
            continue
        held = [(pointer, check) for pointer, check in draft.entries("check") if check.get("analysis") == entry.get("id")]
        sides = {_limit(check)[1] for _, check in held if _limit(check)[0] is not None}
        name = f"analysis {quoted(str(entry.get('id')))}"
        if held and either:
            message = f"{name} tests an equivalence, whose two sides must both hold, and here any check is enough"
            yield Fault((*held[0][0], "analysis"), message, "write require: all, or ask for noninferiority")
        elif len(sides) == 1:
            message = f"the checks hold one side of the equivalence that {name} tests"
            missing = "below" if sides == {True} else "above"
            yield Fault((*held[0][0], "analysis"), message, f"add a check with {missing}, at the margin on the other side")


def _limit(check: Entry) -> tuple[float | None, bool]:
    """Return the limit of a check and whether it is a lower one; None where there is none, or more than one."""
    given = [(value, key in LOWER) for key in (*LOWER, *UPPER) if isinstance(value := check.get(key), int | float) and not isinstance(value, bool)]
    return given[0] if len(given) == 1 else (None, True)
