"""Which questions share a forward pass?  The partition of the length-sorted list that costs least under a token budget; end to end, what fits."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evalspec.artifacts.base import canonical_json, sha256_hex
from evalspec.artifacts.protocol import BatchRule
from evalspec.artifacts.work import EncodedQuestion
from evalspec.scoring.sharing import SEPARATE, Abilities, Sharing, share

GENERATED_PER_READ = 8
"""How many tokens that may be generated count as one that is read, when a batch is held against its budget."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Questions of one forward pass, by their place in the job, and what their rows share."""

    questions: tuple[int, ...]
    sharing: Sharing = SEPARATE


Plan = tuple[Batch, ...]


def plan_questions(questions: Sequence[EncodedQuestion], abilities: Abilities, rule: BatchRule) -> Plan:
    """Return the batches of a job, group by group, each with its common beginning."""
    batches = []
    for group in share(questions, abilities, rule):
        shapes = [group.sharing.shape(questions[number]) for number in group.questions]
        if group.sharing.packing:
            partition = plan_packed([one.tokens for one in shapes], _budget(abilities, rule))
        else:
            partition = plan_batches([one.longest for one in shapes], [one.rows for one in shapes], rule, cached=len(group.sharing.prefix))
        batches += [Batch(tuple(group.questions[place] for place in places), group.sharing) for places in partition]
    return tuple(batches)


def plan_batches(lengths: Sequence[int], rows: Sequence[int], rule: BatchRule, *, cached: int = 0) -> tuple[tuple[int, ...], ...]:
    """Return the batches, longest first, that together cost the fewest padded tokens plus `overhead_tokens` per batch.

    `lengths` is the longest row of each question and `rows` how many rows it has; a batch takes (its rows) x (its longest row) tokens. With the
    `cached` tokens that every row keeps beside it, that stays within the budget unless one question alone exceeds it. A dynamic programme over
    the sorted list: an optimal batch never skips a length.
    """
    order = np.lexsort((np.arange(len(lengths)), np.asarray(lengths, dtype=np.int64)))
    length = np.asarray(lengths, dtype=np.int64)[order]
    rows_before = np.concatenate(([0], np.cumsum(np.asarray(rows, dtype=np.int64)[order])))
    best = np.zeros(len(order) + 1, dtype=np.int64)
    first_of = np.zeros(len(order) + 1, dtype=np.int64)
    earliest = 0
    for end in range(1, len(order) + 1):
        while earliest < end - 1 and (rows_before[end] - rows_before[earliest]) * (length[end - 1] + cached) > rule.token_budget:
            earliest += 1
        cost = best[earliest:end] + (rows_before[end] - rows_before[earliest:end]) * length[end - 1] + rule.overhead_tokens
        cheapest = int(np.argmin(cost))
        best[end], first_of[end] = cost[cheapest], earliest + cheapest
    return _walk_back(order.tolist(), first_of.tolist())


def plan_packed(tokens: Sequence[int], budget: int) -> tuple[tuple[int, ...], ...]:
    """Return batches of questions with so many tokens each, in as few batches as best fit, longest first, finds.

    Each question, from the longest on, goes where it leaves the least of the budget, or opens a batch; one that exceeds the budget is alone.
    """
    batches: list[list[int]] = []
    rooms: list[tuple[int, int]] = []  # sorted: what is left of a batch's budget, and which batch it is
    for question in sorted(range(len(tokens)), key=lambda number: (-tokens[number], number)):
        place = bisect_left(rooms, (tokens[question], 0))
        room, batch = rooms.pop(place) if place < len(rooms) else (budget, len(batches))
        if batch == len(batches):
            batches.append([])
        batches[batch].append(question)
        insort(rooms, (room - tokens[question], batch))
    return tuple(map(tuple, batches))


def _budget(abilities: Abilities, rule: BatchRule) -> int:
    """Return how many tokens a batch has at most whose rows are laid end to end."""
    most = abilities.packing.most_tokens if abilities.packing else None
    return rule.token_budget if most is None else min(most, rule.token_budget)


def plan_texts(questions: Sequence[EncodedQuestion], abilities: Abilities, rule: BatchRule, *, max_tokens: int) -> Plan:
    """Return the batches of a job whose answers are generated, group by group, each with its common beginning.

    Each prompt counts as if an eighth of what may be generated belonged to it: rows that grow take memory for keys and values, and little else.
    Where a model cannot go on from a cache with gaps, and where its window is shorter than a row may become, only prompts of one length go together.
    A text that may stretch positions is written alone.
    """
    longest = max(question.longest for question in questions) + max_tokens
    fits = abilities.window is None or longest <= abilities.window
    able = replace(abilities, packing=None) if fits else Abilities(stretched_from=abilities.stretched_from)
    groups = share(questions, able, rule, written=max_tokens)
    steps = rule.model_copy(update={"overhead_tokens": rule.overhead_tokens * max_tokens})
    batches = []
    for group in groups:
        alike: dict[tuple[int, int | None], list[int]] = {}
        for number in group.questions:
            length = questions[number].longest
            apart = abilities.cache and not (abilities.gaps and fits)
            alike.setdefault((length if apart else 0, number if abilities.stretches(length + max_tokens) else None), []).append(number)
        for numbers in alike.values():
            lengths = [questions[number].longest - len(group.sharing.prefix) for number in numbers]
            cached = len(group.sharing.prefix) - (-max_tokens // GENERATED_PER_READ)
            partition = plan_batches(lengths, [1] * len(lengths), steps, cached=cached)
            batches += [Batch(tuple(numbers[place] for place in places), group.sharing) for places in partition]
    return tuple(batches)


def one_by_one(count: int) -> Plan:
    """Return batches of a single question each."""
    return tuple(Batch((number,)) for number in range(count))


def plan_digest(plan: Plan) -> str:
    """Return the SHA-256 of a plan: the questions of every batch, how much of their rows is shared, and whether they are laid end to end."""
    return sha256_hex(canonical_json([[batch.questions, len(batch.sharing.prefix), batch.sharing.branches, batch.sharing.packing] for batch in plan]))


def _walk_back(order: list[int], first_of: list[int]) -> tuple[tuple[int, ...], ...]:
    batches = []
    end = len(order)
    while end:
        batches.append(tuple(order[first_of[end] : end]))
        end = first_of[end]
    return tuple(batches)
