"""Which responses may leave this machine?  Those that disclose no more of the questions than the study allows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evalspec.artifacts.protocol import Protocol
from evalspec.artifacts.responses import BenchmarkResponses, Origin, Responses


def withheld(responses: Responses, protocol: Protocol) -> Responses:
    """Return the responses without what would disclose more of a benchmark's questions than it allows.

    Where nothing is disclosed, choices and log-probabilities go, and how often each letter was chosen: beside the scores they tell the key.
    Where texts are not disclosed, the first token ids go, which spell the beginning of a question, and answer distributions, which spell answers,
    and generated texts, which may repeat a question.
    """
    hidden = {benchmark.id for benchmark in protocol.benchmarks if benchmark.disclosure == "none"}
    wordless = {benchmark.id for benchmark in protocol.benchmarks if benchmark.disclosure != "full"}

    def reduced(entry: BenchmarkResponses) -> BenchmarkResponses:
        if entry.benchmark in wordless:
            entry = replace(entry, distributions=None, texts=None)
        return replace(entry, choices=np.full_like(entry.choices, -1), logprobs=None) if entry.benchmark in hidden else entry

    def silent(origin: Origin) -> Origin:
        first_ids = () if origin.benchmark in wordless else origin.first_ids
        return origin.model_copy(update={"first_ids": first_ids, "chosen": {} if origin.benchmark in hidden else origin.chosen})

    return replace(responses, benchmarks=tuple(map(reduced, responses.benchmarks)), origins=tuple(map(silent, responses.origins)))
