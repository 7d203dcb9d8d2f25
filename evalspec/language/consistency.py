"""Do the parts of the study fit each other?  Models, benchmarks and analyses; `limits` looks at the thresholds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from evalspec.artifacts.extraction import ExtractionRule
from evalspec.artifacts.prompts import template_faults
from evalspec.artifacts.study import LetterScoring, OptionScoring, SampledScoring, Scoring
from evalspec.language.draft import Draft, Entry
from evalspec.language.faults import Fault, lookup, name_of
from evalspec.language.positions import Pointer
from evalspec.language.scalars import quoted

DIFFERENCE = "difference"
"""The metric that takes two models."""

ACCURACY = "accuracy"
"""The metric that takes one model."""


COMPUTED = ("float32", "bfloat16", "float16")
"""Precisions that scoring has to bring about."""


def precision_of_records(draft: Draft) -> Iterator[Fault]:
    """Yield a fault where recorded results are asked for in a precision: they are what they are."""
    for pointer, model in draft.entries("model"):
        source = model.get("source")
        if isinstance(source, dict) and {"responses", "run"} & source.keys() and model.get("precision") in COMPUTED:
            message = f"{name_of(pointer, draft.written)} replays recorded results, which cannot be scored again in {model['precision']}"
            yield Fault((*pointer, "precision"), message, "delete the key precision")


def precision_of_weights(draft: Draft) -> Iterator[Fault]:
    """Yield a fault for weights to dequantise that no precision is declared for, and for others that are to be narrowed."""
    for pointer, model in draft.entries("model"):
        source, precision = model.get("source"), model.get("precision", "as_shipped")
        if not isinstance(source, dict) or precision not in {"as_shipped", *COMPUTED}:
            continue
        name = name_of(pointer, draft.written)
        if "gguf" in source and precision == "as_shipped":
            place = (*pointer, "precision") if "precision" in model else (*pointer, "source", "gguf")
            message = f"{name} is a GGUF file, whose weights are dequantised before they compute, and no precision is declared for that"
            yield Fault(place, message, "write precision: float32, or bfloat16 or float16 to save memory")
        elif {"path", "hub"} & source.keys() and precision in {"bfloat16", "float16"}:
            message = f"{name} is a checkpoint, which computes as shipped or in float32; {precision} is for GGUF files"
            yield Fault((*pointer, "precision"), message, "write as_shipped or float32")


def enough_models(draft: Draft) -> Iterator[Fault]:
    """Yield a fault for every analysis that compares models in a study of one model, or does so in a way that is not made for so many."""
    models = draft.ids("model")
    for pointer, entry in draft.entries("analysis"):
        analysis = draft.analysis(entry)
        comparing = analysis and (analysis.least_models > 1 or (analysis.metrics and set(analysis.metrics) <= set(analysis.pair_metrics)))
        if comparing and models is not None and len(models) == 1:
            message = f"{name_of(pointer, draft.written)} compares models, and the study has one model only"
            yield Fault((*pointer, "kind"), message, "add a model, or ask for intervals")
        for (option, value), most in analysis.most_models.items() if analysis and models else ():
            if entry.get(option) == value and len(models or ()) > most:
                message = (
                    f"{name_of(pointer, draft.written)} takes {option}: {value} for up to {most} models, and the study has {len(models or ()):,}"
                )
                yield Fault((*pointer, option), message, f"delete the key {option}, or name fewer models")


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
        yield from _fields(scoring, prompt, place)
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
        whole = lookup(draft.written, (*pointer, "sample")) is None or lookup(benchmark, ("sample", "method")) == "all"
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


def _fields(written: Entry, prompt: str, place: Pointer) -> Iterator[Fault]:
    scoring = _with_prompt(written, prompt)
    for told in template_faults(scoring) if scoring is not None else ():
        hint = "a field is written with single braces and no spaces, as in {question}" if "does not use" in told and "{" in prompt else None
        yield Fault(place, told, hint)


def _with_prompt(written: Entry, prompt: str) -> Scoring | None:
    """Return the scoring method with its prompt, and all that says what a prompt must hold; None where the method is none."""
    match written.get("method"):
        case "letter":
            return LetterScoring(method="letter", prompt=prompt)
        case "option":
            return OptionScoring(method="option", prompt=prompt)
        case "sampled":
            rules = written.get("extract")
            texts_only = isinstance(rules, list) and all(lookup(rule, ("reads",)) == "text" for rule in rules)
            rule = ExtractionRule(pattern=".", reads="text" if texts_only else "letter")
            return SampledScoring(method="sampled", prompt=prompt, extract=(rule,))
    return None
