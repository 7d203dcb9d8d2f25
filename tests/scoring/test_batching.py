from __future__ import annotations

import time
from itertools import combinations, pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from evalspec.artifacts.protocol import BatchRule
from evalspec.scoring.batching import Batch, one_by_one, plan_batches, plan_digest, plan_packed
from evalspec.scoring.sharing import SEPARATE, Sharing

QUESTIONS = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 5)), min_size=1, max_size=40)
LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=40)
RULES = st.builds(BatchRule, token_budget=st.integers(20, 200), overhead_tokens=st.integers(0, 50))


def batch_tokens(batch: tuple[int, ...], lengths: list[int], rows: list[int]) -> int:
    return sum(rows[position] for position in batch) * max(lengths[position] for position in batch)


def total_cost(plan: tuple[tuple[int, ...], ...], lengths: list[int], rows: list[int], rule: BatchRule) -> int:
    return sum(batch_tokens(batch, lengths, rows) + rule.overhead_tokens for batch in plan)


@given(QUESTIONS, RULES)
def test_every_question_is_in_exactly_one_batch(questions: list[tuple[int, int]], rule: BatchRule) -> None:
    lengths, rows = map(list, zip(*questions, strict=True))
    plan = plan_batches(lengths, rows, rule)
    assert sorted(position for batch in plan for position in batch) == list(range(len(questions)))


@given(QUESTIONS, RULES)
def test_a_batch_exceeds_the_budget_only_when_one_question_alone_does(questions: list[tuple[int, int]], rule: BatchRule) -> None:
    lengths, rows = map(list, zip(*questions, strict=True))
    for batch in plan_batches(lengths, rows, rule):
        assert len(batch) == 1 or batch_tokens(batch, lengths, rows) <= rule.token_budget


@given(QUESTIONS, RULES)
@settings(max_examples=50)
def test_the_order_of_the_questions_changes_no_cost(questions: list[tuple[int, int]], rule: BatchRule) -> None:
    lengths, rows = map(list, zip(*sorted(questions), strict=True))
    forward = total_cost(plan_batches(lengths, [1] * len(rows), rule), lengths, [1] * len(rows), rule)
    lengths.reverse()
    assert total_cost(plan_batches(lengths, [1] * len(rows), rule), lengths, [1] * len(rows), rule) == forward


@given(st.lists(st.integers(1, 30), min_size=1, max_size=9), RULES)
@settings(max_examples=50)
def test_no_other_partition_of_the_sorted_list_costs_less(lengths: list[int], rule: BatchRule) -> None:
    rows, order = [1] * len(lengths), sorted(range(len(lengths)), key=lengths.__getitem__)
    costs = []
    for count in range(len(lengths)):
        for cuts in combinations(range(1, len(lengths)), count):
            edges = (0, *cuts, len(lengths))
            plan = tuple(tuple(order[start:end]) for start, end in pairwise(edges))
            if all(len(batch) == 1 or batch_tokens(batch, lengths, rows) <= rule.token_budget for batch in plan):
                costs.append(total_cost(plan, lengths, rows, rule))
    assert total_cost(plan_batches(lengths, rows, rule), lengths, rows, rule) == min(costs)


@given(LENGTHS, RULES)
def test_end_to_end_every_question_is_in_one_batch_that_exceeds_the_budget_only_alone(tokens: list[int], rule: BatchRule) -> None:
    plan = plan_packed(tokens, rule.token_budget)
    assert sorted(position for batch in plan for position in batch) == list(range(len(tokens)))
    assert all(len(batch) == 1 or sum(tokens[position] for position in batch) <= rule.token_budget for batch in plan)
    assert plan == plan_packed(tokens, rule.token_budget)


@given(LENGTHS, RULES)
def test_end_to_end_the_longest_come_first_and_no_two_batches_would_fit_in_one(tokens: list[int], rule: BatchRule) -> None:
    batches = [[tokens[position] for position in batch] for batch in plan_packed(tokens, rule.token_budget)]
    assert batches[0][0] == max(tokens)
    assert all(batch == sorted(batch, reverse=True) for batch in batches)
    assert [batch[0] for batch in batches] == sorted((batch[0] for batch in batches), reverse=True)
    assert all(sum(one) + sum(other) > rule.token_budget for one, other in combinations(batches, 2))


@given(LENGTHS, RULES, st.randoms())
def test_end_to_end_the_order_of_the_questions_changes_no_batch(tokens: list[int], rule: BatchRule, random: Random) -> None:
    plan = [[tokens[position] for position in batch] for batch in plan_packed(tokens, rule.token_budget)]
    random.shuffle(tokens)
    assert [[tokens[position] for position in batch] for batch in plan_packed(tokens, rule.token_budget)] == plan


def test_ten_thousand_questions_end_to_end_are_planned_in_a_fraction_of_a_second() -> None:
    started = time.process_time()
    plan = plan_packed([20 + (number * 7919) % 400 for number in range(10_000)], 2048)
    assert time.process_time() - started < 0.5
    assert sum(len(batch) for batch in plan) == 10_000


def test_two_thousand_questions_are_planned_in_a_fraction_of_a_second() -> None:
    lengths = [20 + (number * 7919) % 400 for number in range(2000)]
    started = time.process_time()
    plan_batches(lengths, [1] * 2000, BatchRule(token_budget=65_536))
    assert time.process_time() - started < 0.3


def test_a_plan_has_one_digest_and_another_plan_another() -> None:
    assert plan_digest(one_by_one(3)) == plan_digest((Batch((0,)), Batch((1,)), Batch((2,))))
    assert plan_digest(one_by_one(3)) != plan_digest((Batch((0, 1)), Batch((2,))))
    sharings = (SEPARATE, Sharing(branches=True), Sharing((1,)), Sharing(packing=True))
    assert len({plan_digest((Batch((0,), sharing),)) for sharing in sharings}) == len(sharings)
