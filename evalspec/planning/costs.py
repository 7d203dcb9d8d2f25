"""What will it take to ask a served model what is left?  Requests, tokens and money, from the lengths of the texts and from what was asked before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evalspec.artifacts.prompts import split_prompt
from evalspec.artifacts.schedule import CostEstimate
from evalspec.artifacts.served import Reply
from evalspec.artifacts.served_work import ServedOrder
from evalspec.artifacts.study import Model
from evalspec.artifacts.work import AskedQuestion, BenchmarkWork

BYTES_PER_TOKEN = 4
"""A rough mean for English text, used until a server has counted."""

RETRIES_SHARE = 0.05
"""What requests that must be sent again are taken to add, as nobody knows before."""

ENOUGH = 20
"""Replies from which on their tokens speak for those to come."""


@dataclass(frozen=True, slots=True)
class Left:
    """What of a benchmark is left to ask: questions, and how many are asked `again` as a self-check; `asked` are those that `replies` answered.

    `all_replies` are those to the questions that were asked again too.
    """

    work: BenchmarkWork
    questions: tuple[AskedQuestion, ...]
    again: int
    asked: tuple[AskedQuestion, ...] = ()
    replies: tuple[Reply, ...] = ()
    all_replies: tuple[Reply, ...] = ()


def estimate(model: Model, order: ServedOrder, left: Sequence[Left]) -> CostEstimate:
    """Return what asking what is left is expected to take, and what was spent so far."""
    ratio = _tokens_per_byte(left)
    requests = sum(_requests(one) for one in left)
    tokens = round(sum(_bytes_left(one) for one in left) * (1 / BYTES_PER_TOKEN if ratio is None else ratio))
    found = CostEstimate(
        model=model.id,
        host=order.identity.host,
        requests=requests,
        input_tokens=tokens,
        output_tokens=requests,
        basis="guessed from the length of the texts" if ratio is None else "as the server counted so far",
        max_cost=model.max_cost,
    )
    price = model.price
    if price is None:
        return found
    input_cost, output_cost = price.cost(tokens, 0), price.cost(0, requests)
    return found.model_copy(
        update={
            "input_cost": input_cost,
            "output_cost": output_cost,
            "retries": RETRIES_SHARE * (input_cost + output_cost),
            "spent": sum(reply.cost(price) for one in left for reply in one.all_replies),
            "currency": price.currency,
        }
    )


def _requests(left: Left) -> int:
    """Return the number of requests: one for each question, or for each choice where their texts are compared."""
    if left.work.scoring.method == "letter":
        return len(left.questions) + left.again
    mean = sum(len(question.answers) for question in left.work.questions) / len(left.work.questions)
    return sum(len(question.answers) for question in left.questions) + round(mean * left.again)


def _bytes_left(left: Left) -> float:
    mean = _sent(left.work, left.work.questions) / len(left.work.questions)
    return _sent(left.work, left.questions) + mean * left.again


def _sent(work: BenchmarkWork, questions: Iterable[AskedQuestion]) -> int:
    """Return how many bytes are sent to ask these questions once."""
    total = 0
    for question in questions:
        prompt = len(question.prompt.encode())
        if work.scoring.method == "letter":
            total += prompt
        else:
            lead = len(split_prompt(question.prompt)[1])
            total += sum(prompt + lead + len(answer.encode()) for answer in question.answers)
    return total


def _tokens_per_byte(left: Sequence[Left]) -> float | None:
    """Return how many tokens the server counted for a byte; None where it has counted too few replies, or none."""
    told = [(reply.input_tokens, reply.requests) for one in left for reply in one.replies]
    counted = sum(tokens or 0 for tokens, _ in told)
    sent = sum(_sent(one.work, one.asked) for one in left)
    return counted / sent if sent and counted and sum(requests for _, requests in told) >= ENOUGH else None
