"""Do the parts of a study fit a model that answers behind a server?"""

from __future__ import annotations

from collections.abc import Iterator

from evalspec.artifacts.base import JsonValue
from evalspec.language.draft import Draft, Entry
from evalspec.language.faults import Fault, lookup, name_of
from evalspec.language.positions import Pointer


def served_models(draft: Draft) -> Iterator[Fault]:
    """Yield the faults of models about what only a server has, or only weights have."""
    for pointer, model in draft.entries("model"):
        if not isinstance(model.get("source"), dict):
            continue
        name = name_of(pointer, draft.written)
        if _is_served(model):
            if model.get("precision") in {"float32", "bfloat16", "float16"}:
                message = f"{name} answers behind a server, which computes as it does; no precision can be asked of it"
                yield Fault((*pointer, "precision"), message, "delete the key precision")
            if "max_cost" in model and "price" not in model:
                hint = "add what the server charges, as in price: {input: 0.1, output: 0.4, per: 1e6, currency: USD}"
                yield Fault((*pointer, "max_cost"), f"{name} may cost so much at most, and no price says what it costs", hint, "key")
            continue
        for key in ("price", "max_cost"):
            if key in model:
                yield Fault((*pointer, key), f"{name} is not asked at a server, so nothing counts its cost", f"delete the key {key}", "key")


def scoring_by_servers(draft: Draft) -> Iterator[Fault]:
    """Yield a fault for every benchmark that is scored in a way that no server offers, in a study that asks one."""
    served = [name_of(pointer, draft.written) for pointer, model in draft.entries("model") if _is_served(model)]
    if not served:
        return
    for pointer, benchmark in draft.entries("benchmark"):
        if lookup(benchmark, ("scoring", "method")) == "sampled":
            message = f"{name_of(pointer, draft.written)} has models write texts, which is not asked of servers, nor of {served[0]}"
            yield Fault((*pointer, "scoring", "method"), message, "compare letters (method: letter), or take the model out of the study")
        if lookup(benchmark, ("scoring", "method")) == "option":
            yield from _option(benchmark, pointer, name_of(pointer, draft.written), served[0])


def _option(benchmark: Entry, pointer: Pointer, name: str, served: str) -> Iterator[Fault]:
    if lookup(benchmark, ("scoring", "chat")) is True:
        message = f"{name} compares the texts of choices in a chat; a server, as of {served}, gives no probabilities of a given answer there"
        yield Fault((*pointer, "scoring", "chat"), message, "compare letters (method: letter), or write chat: false")
    if lookup(benchmark, ("scoring", "distribution")) is not None:
        message = f"{name} asks for answer distributions over the vocabulary, which no server gives, nor that of {served}"
        yield Fault((*pointer, "scoring", "distribution"), message, "delete the key distribution, or take the model out of the study")


def _is_served(model: dict[str, JsonValue]) -> bool:
    source = model.get("source")
    return isinstance(source, dict) and "endpoint" in source
