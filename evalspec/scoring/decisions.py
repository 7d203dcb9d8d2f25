"""Which choice does a model make, how close was it, and would it be another one with other rounding?"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from evalspec.artifacts.journal import BatchRecord, JobRecord
from evalspec.artifacts.responses import SelfCheck
from evalspec.artifacts.study import LetterScoring, OptionScoring
from evalspec.artifacts.work import CHECKED, AskedQuestion, BenchmarkWork
from evalspec.scoring.generated import chosen_texts

SMALLEST_GAPS = 32
RANDOM_QUESTIONS = CHECKED - SMALLEST_GAPS


@dataclass(frozen=True, slots=True)
class Decisions:
    """Per question: `values` (Q, C) that are compared, NaN beyond its choices; `choices` (Q,), -1 on an exact tie; `gaps` (Q,) of the top two.

    Where a server does not name every letter, the question's values are all NaN and its gap is the least that it can be; `unlisted` (Q,) says
    where that leaves open which choice is the best: there the choice is -1 and the gap infinite.
    `letter_mass` is the mean probability, over all questions, that the model's next token is one of the letters, of a server at least that; None
    when texts are scored.
    """

    values: NDArray[np.float64]
    choices: NDArray[np.int16]
    gaps: NDArray[np.float64]
    unlisted: NDArray[np.bool_]
    letter_mass: float | None


def decide(batches: Sequence[BatchRecord], count: int, scoring: LetterScoring | OptionScoring) -> Decisions:
    """Return the decisions on `count` questions from all their batches; the order of the batches does not matter."""
    widest = max(len(logprobs) for batch in batches for logprobs in batch.logprobs)
    highest, lowest = np.full((count, widest), np.nan), np.full((count, widest), np.nan)
    divisors = np.ones((count, widest))
    for batch in batches:
        sizes, least = _divisors(batch, scoring), batch.lowest or batch.logprobs
        for position, logprobs, known, divisor in zip(batch.questions, batch.logprobs, least, sizes, strict=True):
            highest[position, : len(logprobs)] = logprobs
            lowest[position, : len(logprobs)] = [-np.inf if value is None else value for value in known]
            divisors[position, : len(logprobs)] = divisor
    mass = float(np.nansum(np.exp(lowest), axis=1).mean()) if scoring.method == "letter" else None
    return _decided(highest / divisors, lowest / divisors, mass)


def _decided(highest: NDArray[np.float64], lowest: NDArray[np.float64], mass: float | None) -> Decisions:
    """Return the decisions on what each choice (Q, C) has at most and at least: one whose least clears all others' most is the best."""
    most, least = (np.where(np.isnan(values), -np.inf, values) for values in (highest, lowest))
    best = np.argmax(least, axis=1)
    top = np.max(least, axis=1)
    others = np.arange(least.shape[1]) != best[:, None]
    next_most, next_least = (np.max(values, axis=1, initial=-np.inf, where=others) for values in (most, least))
    listed = np.isfinite(top)
    gaps = np.where(listed, top, 0.0) - np.where(listed, next_most, 0.0)
    settled = listed & ((gaps > 0) | ((gaps == 0) & (next_least < top)))
    unlisted = ~settled & ~(listed & (gaps == 0))
    values = np.where((most != least).any(axis=1)[:, None], np.nan, highest)
    return Decisions(values, np.where(settled, best, -1).astype(np.int16), np.where(unlisted, np.inf, gaps), unlisted, mass)


def chosen_for_check(decisions: Decisions, digests: Sequence[str]) -> tuple[int, ...]:
    """Return the questions to score again, in order: those with the smallest gaps, and as many drawn by a hash of their digests."""
    by_gap = np.lexsort((np.arange(len(digests)), decisions.gaps))[:SMALLEST_GAPS].tolist()
    by_hash = sorted(set(range(len(digests))) - set(by_gap), key=lambda position: hashlib.sha256(f"self-check {digests[position]}".encode()).digest())
    return tuple(sorted([*by_gap, *by_hash[:RANDOM_QUESTIONS]]))


def check_questions(work: BenchmarkWork, records: Sequence[JobRecord]) -> tuple[AskedQuestion, ...]:
    """Return the questions that the self-check scores again, in order, from the records of all shards of a benchmark."""
    if work.scoring.method == "sampled":
        return tuple(work.questions[position] for position in chosen_texts(work.questions))
    decisions = decide(joined_batches(records), len(work.questions), work.scoring)
    return tuple(work.questions[position] for position in chosen_for_check(decisions, [question.sha256 for question in work.questions]))


def joined_batches(records: Sequence[JobRecord]) -> list[BatchRecord]:
    """Return the batches of all shards, which are complete, with positions in the benchmark's whole list."""
    starts = accumulate((record.answered for record in records), initial=0)
    return [
        batch.model_copy(update={"questions": tuple(position + start for position in batch.questions)})
        for start, record in zip(starts, records, strict=False)
        for batch in record.batches.values()
    ]


def compare(planned: Decisions, alone: Decisions, chosen: Sequence[int]) -> SelfCheck | None:
    """Return how the chosen questions, scored one at a time, differ from the run; None where no log-probability is known both times."""
    differences = np.abs(planned.values[list(chosen), : alone.values.shape[1]] - alone.values)
    present = differences[~np.isnan(differences)]
    if not present.size:
        return None
    return SelfCheck(
        questions=len(chosen),
        flips=int(np.sum(planned.choices[list(chosen)] != alone.choices)),
        max_difference=float(present.max()),
        p999_difference=float(np.quantile(present, 0.999)),
    )


def _divisors(batch: BatchRecord, scoring: LetterScoring | OptionScoring) -> Sequence[Sequence[int]]:
    normalise = "sum" if scoring.method == "letter" else scoring.normalise
    if normalise == "per_token":
        return batch.token_counts
    if normalise == "per_byte":
        return batch.byte_counts
    return [[1] * len(logprobs) for logprobs in batch.logprobs]
