"""How is one question put to a server, and what record does its answer make?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from evalspec.artifacts.journal import BatchRecord
from evalspec.artifacts.prompts import split_prompt
from evalspec.artifacts.served import Reply, ServerAbilities
from evalspec.artifacts.served_work import ServedOrder
from evalspec.artifacts.work import AskedQuestion, BenchmarkWork
from evalspec.scoring.access import Access, Purse
from evalspec.scoring.forms import Body, forms_of, keys_of, letter_request, option_request
from evalspec.scoring.replies import Limits, Usage, echoed_answer, limits_of, listed_tokens, most_tokens, name_in, refuse_wild, usage_of
from evalspec.scoring.server import Asked, Server, ServerError

MOST_GENERATED = 1

HINT_WILD = "what was answered is kept, and counts as the server counts it; where it charges that, delete the keys price and max_cost"


@dataclass(frozen=True, slots=True)
class Inquiry:
    """One benchmark for one served model, and what its server was found to give."""

    order: ServedOrder
    work: BenchmarkWork
    access: Access
    abilities: ServerAbilities

    async def answer(self, server: Server, purse: Purse, position: int, question: AskedQuestion) -> BatchRecord:
        """Ask a question and return the record of its answer.

        Raises ServerError where there is none, CostLimitError where asking could cost more than is left.
        """
        started, moment = time.perf_counter(), datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        asked: list[Asked] = []
        async with purse.at_most(sum(self._most(question, ending) for ending in self._endings(question))) as hold:
            for ending in self._endings(question):
                address, body = self._request(question, ending)
                asked.append(await server.ask(address, body, again=partial(hold.more, self._most(question, ending))))
            try:
                reply = self._reply(asked, moment)
                hold.spent = 0.0 if self.access.price is None else reply.cost(self.access.price)
                limits, counts = self._limits(question, asked)
            except ValueError as error:
                raise ServerError(f"asked this question, {error}") from error
        return _record(position, question, (limits, counts), reply, time.perf_counter() - started)

    def _endings(self, question: AskedQuestion) -> tuple[str, ...]:
        """Return what follows the prompt in each request: each choice where their texts are compared, else nothing."""
        if self.work.scoring.method == "letter":
            return ("",)
        lead = split_prompt(question.prompt)[1]
        return tuple(lead + answer for answer in question.answers)

    def _request(self, question: AskedQuestion, ending: str) -> tuple[str, Body]:
        chat = self.work.scoring.chat
        prompt = question.prompt if chat else split_prompt(question.prompt)[0] + ending
        if self.work.scoring.method == "letter":
            return letter_request(self.order.identity.model, prompt, self.abilities, chat=chat)
        return option_request(self.order.identity.model, prompt, self.abilities)

    def _most(self, question: AskedQuestion, ending: str) -> float:
        """Return the most that a request can cost."""
        return 0.0 if self.access.price is None else self.access.price.cost(most_tokens(question.prompt, ending), MOST_GENERATED)

    def refuse_wild(self, question: AskedQuestion, reply: Reply | None) -> None:
        """Raise ServerError where a price is stated and what the server counted for a question cannot be what it was asked."""
        if self.access.price is None or reply is None:
            return
        sent = [most_tokens(question.prompt, ending) for ending in self._endings(question)]
        try:
            refuse_wild(Usage(reply.input_tokens or 0, reply.output_tokens or 0), Usage(sum(sent), MOST_GENERATED * len(sent)))
        except ValueError as error:
            raise ServerError(f"asked this question, {error}", hint=HINT_WILD) from error

    def _limits(self, question: AskedQuestion, asked: Sequence[Asked]) -> tuple[tuple[Limits, ...], tuple[int, ...]]:
        """Return what each answer's log-probability is at most and at least, and its number of tokens."""
        if self.work.scoring.method == "letter":
            listed = listed_tokens(asked[0].content, most=self.abilities.listed)
            if self.abilities.steered:  # the server picked the likeliest letter, so that no other has more
                listed = replace(listed, bound=min(listed.bound, listed.logprobs[listed.picked]))
            forms = forms_of(question, chat=self.work.scoring.chat, merge=self.order.identity.merge_variants)
            return tuple(limits_of(listed, keys) for keys in keys_of(forms, self.abilities)), (1,) * len(forms)
        context, told = split_prompt(question.prompt)[0], []
        for one, ending in zip(asked, self._endings(question), strict=True):
            told.append(echoed_answer(one.content, prompt=context + ending, answer=ending))
        return tuple(Limits(value, value) for value, _ in told), tuple(count for _, count in told)

    def _reply(self, asked: Sequence[Asked], moment: str) -> Reply:
        usages = [usage for one in asked if (usage := usage_of(one.content)) is not None]
        counted = len(usages) == len(asked)
        if self.access.price is not None and not counted:
            raise ValueError("it does not tell how many tokens it counts, so that the cost is not known")
        names = ((name_in(one.content, "model"), name_in(one.content, "system_fingerprint")) for one in asked)
        model, fingerprint = (" and ".join(sorted({name for name in some if name})) or None for some in zip(*names, strict=True))
        return Reply(
            asked=moment,
            model=None if model is None else self.access.scrubbed(model)[:200],
            fingerprint=None if fingerprint is None else self.access.scrubbed(fingerprint)[:200],
            requests=len(asked),
            tries=sum(one.tries for one in asked),
            unanswered=sum(one.unanswered for one in asked),
            input_tokens=sum(usage.input_tokens for usage in usages) if counted else None,
            output_tokens=sum(usage.output_tokens for usage in usages) if counted else None,
        )


def _record(position: int, question: AskedQuestion, found: tuple[Sequence[Limits], tuple[int, ...]], reply: Reply, seconds: float) -> BatchRecord:
    limits, counts = found
    exact = all(limit.lowest == limit.highest for limit in limits)
    return BatchRecord(
        index=position,
        questions=(position,),
        logprobs=(tuple(limit.highest for limit in limits),),
        lowest=() if exact else (tuple(limit.lowest for limit in limits),),
        token_counts=(counts,),
        byte_counts=(tuple(len(answer.encode()) for answer in question.answers),),
        padded_tokens=reply.input_tokens or 0,
        real_tokens=reply.input_tokens or 0,
        seconds=round(seconds, 6),
        reply=reply,
    )
