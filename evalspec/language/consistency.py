"""Do the parts of the study fit each other?  Models, benchmarks and analyses; `limits` looks at the thresholds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from evalspec.artifacts.prompts import template_faults
from evalspec.artifacts.study import LetterScoring, OptionScoring
from evalspec.language.draft import Draft
from evalspec.language.faults import Fault, lookup, name_of
from evalspec.language.positions import Pointer
from evalspec.language.scalars import quoted

DIFFERENCE = "difference"
"""The metric that takes two models."""

ACCURACY = "accuracy"
"""The metric that takes one model."""


def precision_of_records(draft: Draft) -> Iterator[Fault]:
    """Yield a fault where recorded results are asked for in a precision: they are what they are."""
    for pointer, model in draft.entries("model"):
        source = model.get("source")
        if isinstance(source, dict) and "responses" in source and model.get("precision") == "float32":
            message = f"{name_of(pointer, draft.written)} replays recorded results, which cannot be scored again in float32"
            yield Fault((*pointer, "precision"), message, "delete the key precision")


def enough_models(draft: Draft) -> Iterator[Fault]:
    """Yield a fault for every analysis that compares models in a study of one model."""
    models = draft.ids("model")
    for pointer, entry in draft.entries("analysis"):
        analysis = draft.analysis(entry)
        comparing = analysis and (analysis.least_models > 1 or (analysis.metrics and set(analysis.metrics) <= set(analysis.pair_metrics)))
        if comparing and models is not None and len(models) == 1:
            message = f"{name_of(pointer, draft.written)} compares models, and the study has one model only"
            yield Fault((*pointer, "kind"), message, "add a model, or ask for intervals")


def named_samples(draft: Draft) -> Iterator[Fault]:
    """Yield a fault for every question id that a sample names twice, and where naming ids would disclose them."""
    for pointer, benchmark in draft.entries("benchmark"):
        ids = lookup(benchmark, ("sample", "ids"))
        if not isinstance(ids, list):
            continue
        if benchmark.get("disclosure") == "none":
            message = f"{name_of(pointer, draft.written)} discloses nothing of its questions, and its sample names their ids in this file"
            yield Fault((*pointer, "sample", "method"), message, "draw a random sample, or write disclosure: ids")
        counts = Counter(identifier for identifier in ids if isinstance(identifier, str))
        for index, identifier in enumerate(ids):
            if isinstance(identifier, str) and counts[identifier] > 1 and ids.index(identifier) < index:
                yield Fault((*pointer, "sample", "ids", index), f"the sample names the question {quoted(identifier)} twice", "name it once")


def prompts(draft: Draft) -> Iterator[Fault]:
    """Yield the faults of prompt templates: fields, and white space where the answer begins."""
    for pointer, benchmark in draft.entries("benchmark"):
        scoring, place = benchmark.get("scoring"), (*pointer, "scoring", "prompt")
        prompt = lookup(scoring, ("prompt",))
        if not isinstance(scoring, dict) or not isinstance(prompt, str):
            continue
        yield from _fields(scoring.get("method"), prompt, place)
        if prompt != prompt.rstrip():
            ending = "a line break" if prompt.endswith("\n") else "a space"
            hint = "write |- instead of |" if prompt.endswith("\n") else "delete it: the scorer puts the space in front of the answer"
            yield Fault(place, f"the prompt ends with {ending}, which changes how the answer is cut into tokens", hint)


def worked_examples(draft: Draft) -> Iterator[Fault]:
    """Yield a fault for worked examples that nothing asks for, or that nothing is left for."""
    for pointer, benchmark in draft.entries("benchmark"):
        scoring, shots = benchmark.get("scoring"), lookup(benchmark, ("scoring", "shots"))
        if not isinstance(scoring, dict) or (shots is not None and not isinstance(shots, int)):
            continue
        if "examples" in scoring and not shots:
            yield Fault((*pointer, "scoring", "examples"), "examples are named, and none are shown", "write how many: shots: 5")
        whole = lookup(benchmark, ("sample", "method")) in {None, "all"}
        if shots and whole and lookup(scoring, ("examples", "source")) is None:
            message = f"{name_of(pointer, draft.written)} asks every question, which leaves none to show as worked examples"
            yield Fault((*pointer, "scoring", "shots"), message, "name a file of others: examples: {source: {file: ...}}; or draw a smaller sample")


def answer_distributions(draft: Draft) -> Iterator[Fault]:
    """Yield a fault for answer distributions of questions whose texts are not disclosed: their tokens spell the right answers."""
    for pointer, benchmark in draft.entries("benchmark"):
        if lookup(benchmark, ("scoring", "distribution")) is not None and benchmark.get("disclosure") in {"ids", "none"}:
            message = f"{name_of(pointer, draft.written)} does not disclose its texts, and answer distributions would spell its right answers"
            yield Fault((*pointer, "scoring", "distribution"), message, "delete the key, or write disclosure: full")


def published_vectors(draft: Draft) -> Iterator[Fault]:
    """Yield a fault for an encoder's vectors of hidden questions: their table, with ids, is part of the run's files."""
    hidden = {str(benchmark.get("id")) for _, benchmark in draft.entries("benchmark") if benchmark.get("disclosure") == "none"}
    for pointer, entry in draft.entries("analysis"):
        named = hidden.intersection(draft.benchmarks_of(entry) or ())
        if named and lookup(entry, ("embedding", "encoder")) is not None:
            message = (
                f"{name_of(pointer, draft.written)} reads vectors of questions, whose table is published, and {quoted(min(named))} discloses nothing"
            )
            yield Fault((*pointer, "embedding", "encoder"), message, "name other benchmarks, or use the subjects: partition: declared")


def _fields(method: object, prompt: str, place: Pointer) -> Iterator[Fault]:
    scoring = {"letter": LetterScoring, "option": OptionScoring}.get(str(method))
    if scoring is None:
        return
    for told in template_faults(scoring(method=str(method), prompt=prompt)):
        hint = "a field is written with single braces and no spaces, as in {question}" if "does not use" in told and "{" in prompt else None
        yield Fault(place, told, hint)
