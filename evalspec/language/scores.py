"""Is what the study declares of scores true of every model, understood by every analysis, and held against limits on the right side?"""

from __future__ import annotations

from collections.abc import Iterator

from evalspec.language.draft import Draft, Entry
from evalspec.language.faults import Fault, lookup, name_of
from evalspec.language.positions import Pointer
from evalspec.language.scalars import quoted

RIGHT_ANSWERS = ("article_compat", "benchpress", "harmony", "mdad", "power")
"""The kinds of analysis whose numbers are of right answers, and of no other score."""

OF_REPEATS = ("always_right", "worst_question")
OF_SCORES = ("accuracy", "difference")
"""Metrics that are mean scores, or differences of two."""

WITH_MARGIN = "noninferiority"
"""The kind whose checks must hold the limits that it tests, whichever side they are on."""

LOWER, UPPER = ("at_least", "above"), ("at_most", "below")


def scores(draft: Draft) -> Iterator[Fault]:
    """Yield the faults of declared scores: models that are scored as right or wrong, analyses of right answers, limits on the wrong side."""
    for pointer, benchmark in draft.entries("benchmark"):
        if isinstance(benchmark.get("score"), dict):
            yield from _recorded(draft, pointer)
    for pointer, entry in draft.entries("analysis"):
        named = _declared(draft, draft.benchmarks_of(entry) or ())
        if named and entry.get("kind") in RIGHT_ANSWERS:
            message = f"{name_of(pointer, draft.written)} speaks of right answers, and benchmark {quoted(next(iter(named)))} declares another score"
            yield Fault((*pointer, "kind"), message, "name the benchmarks of right answers: benchmarks: [...]; or delete the key score")
    for pointer, check in draft.entries("check"):
        yield from _side(draft, pointer, check)


def less_is_better(draft: Draft, check: Entry) -> bool:
    """Return whether a check is about scores of which less is better, on every benchmark that it speaks of."""
    benchmarks = _benchmarks(draft, check)
    named = _declared(draft, benchmarks)
    return bool(named) and len(named) == len(benchmarks) and all(score.get("polarity") == "lower_is_better" for score in named.values())


def _recorded(draft: Draft, pointer: Pointer) -> Iterator[Fault]:
    for _, model in draft.entries("model"):
        source = model.get("source")
        if isinstance(source, dict) and "responses" not in source:
            scored = f"model {quoted(str(model.get('id')))} is scored by evalspec, as right or wrong"
            message = f"{scored}, and {name_of(pointer, draft.written)} declares a score"
            yield Fault((*pointer, "score"), message, "delete the key score, or replay recorded scores for every model of the study", "key")
            return


def _side(draft: Draft, pointer: Pointer, check: Entry) -> Iterator[Fault]:
    entry = draft.find("analysis", check.get("analysis"))
    named = _declared(draft, _benchmarks(draft, check))
    metric, name = check.get("metric"), name_of(pointer, draft.written)
    if named and metric in OF_REPEATS:
        yield Fault((*pointer, "metric"), f"{name} is about right answers, and benchmark {quoted(next(iter(named)))} declares another score")
        return
    if entry is None or metric not in OF_SCORES or entry.get("kind") == WITH_MARGIN:
        return
    for benchmark, score in named.items():
        less = score.get("polarity") == "lower_is_better"
        wrong = next((key for key in (LOWER if less else UPPER) if check.get(key) is not None), None)
        if wrong is not None:
            better, allowed = ("less", UPPER) if less else ("more", LOWER)
            message = f"{name} asks for {'more' if less else 'less'} of a score of benchmark {quoted(benchmark)}, of which {better} is better"
            yield Fault((*pointer, wrong), message, f"write {' or '.join(allowed)}, or mend the polarity of the benchmark's score", "key")
            return


def _benchmarks(draft: Draft, check: Entry) -> tuple[str, ...]:
    entry = draft.find("analysis", check.get("analysis"))
    named = check.get("benchmark")
    return (named,) if isinstance(named, str) else (draft.benchmarks_of(entry) if entry else None) or ()


def _declared(draft: Draft, benchmarks: tuple[str, ...]) -> dict[str, Entry]:
    """Return what is declared of the scores of these benchmarks; those of right answers have no entry."""
    found = {identifier: lookup(draft.find("benchmark", identifier), ("score",)) for identifier in benchmarks}
    return {identifier: score for identifier, score in found.items() if isinstance(score, dict)}
