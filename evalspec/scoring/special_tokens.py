"""Which questions hold a text that a model's tokenizer takes for a special token, as a chat's `<|im_start|>` or an end's `</s>`?

Such a text is read as that token and not as its letters, as by lm-evaluation-harness; whoever plans a study is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from evalspec.artifacts.protocol import Protocol
from evalspec.artifacts.questions import Question
from evalspec.artifacts.work import WorkOrder
from evalspec.errors import InputError, MissingLibrary
from evalspec.scoring.checkpoint import added_tokens, named_alone

Found = tuple[str, tuple[str, ...], tuple[str, ...]]
"""A benchmark, the tokens that its questions hold, and the public ids of these questions."""


def special_token_warnings(orders: Sequence[WorkOrder], protocol: Protocol, questions: Mapping[str, Sequence[Question]]) -> tuple[str, ...]:
    """Return a sentence for each benchmark with questions that hold special tokens of models; `questions` are the true ones, in its order.

    A model whose tokenizer cannot be looked at before the run, for lack of a library or of its file, is left out.
    """
    models: dict[Found, list[str]] = {}
    for order in orders:
        with suppress(MissingLibrary, InputError), named_alone(order.checkpoint, order.identity) as place:
            for found in _found(place, protocol, questions):
                models.setdefault(found, []).append(order.model)
    return tuple(_sentence(found, some, protocol) for found, some in models.items())


def _found(place: Path, protocol: Protocol, questions: Mapping[str, Sequence[Question]]) -> Iterator[Found]:
    tokens = added_tokens(place)
    for benchmark in protocol.benchmarks:
        held = {
            drawn.id: some
            for drawn, question in zip(benchmark.questions, questions[benchmark.id], strict=True)
            if (some := [token for token in tokens if any(token in text for text in (question.stem, *question.choices))])
        }
        if held:
            yield benchmark.id, tuple(sorted({token for some in held.values() for token in some})), tuple(held)


def _sentence(found: Found, models: Sequence[str], protocol: Protocol) -> str:
    benchmark, tokens, names = found
    listed = ", ".join(f"'{token}'" for token in tokens[:3]) + (f" and {len(tokens) - 3} more" if len(tokens) > 3 else "")
    asked = len(protocol.benchmark(benchmark).questions)
    return (
        f"benchmark '{benchmark}': {len(names):,} of {asked:,} questions, first '{names[0]}', hold texts that are special tokens of "
        f"{', '.join(models)} ({listed}); they are read as these tokens, not as their letters"
    )
