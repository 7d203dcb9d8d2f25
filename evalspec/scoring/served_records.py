"""What does the journal say of a served model?  How its answers came about, and what they took."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from evalspec.artifacts.journal import JobRecord
from evalspec.artifacts.served import Price, Reply, ServerFacts
from evalspec.artifacts.served_work import ServedOrder
from evalspec.artifacts.work import BenchmarkWork
from evalspec.protocols import Journal
from evalspec.scoring.decisions import check_questions
from evalspec.scoring.forms import forms_of


def records_of(order: ServedOrder, work: BenchmarkWork, journal: Journal) -> Iterator[JobRecord]:
    """Yield what the journal has of a benchmark: its shards and, once they are complete, its self-check."""
    shards = [journal.read(order.key(work, shard).digest()) for shard in order.shards(work)]
    yield from shards
    if all(record.complete for record in shards):
        yield journal.read(order.key(work, check_questions(work, shards), one_by_one=True).digest())


def replies_in(records: Iterable[JobRecord]) -> Iterator[Reply]:
    """Yield how each answer came."""
    yield from (batch.reply for record in records for batch in record.batches.values() if batch.reply is not None)


def spent_on(order: ServedOrder, price: Price | None, journal: Journal) -> float:
    """Return what the journal's answers for an order have cost, the questions that were asked again included; 0 without a price."""
    if price is None:
        return 0.0
    return sum(reply.cost(price) for work in order.works for reply in replies_in(records_of(order, work, journal)))


def facts_of(order: ServedOrder, work: BenchmarkWork, records: Sequence[JobRecord]) -> ServerFacts:
    """Return how the answers to a benchmark came about; `records` are complete."""
    replies = list(replies_in(records))
    abilities = [session.server for record in records for session in record.sessions if session.server is not None]
    letters, chat = work.scoring.method == "letter", work.scoring.chat
    batches = [batch for record in records[:-1] for batch in record.batches.values()]
    return ServerFacts(
        endpoint=order.identity.endpoint,
        model=order.identity.model,
        chat=chat,
        reported=tuple(sorted({reply.model for reply in replies if reply.model is not None})),
        fingerprints=tuple(sorted({reply.fingerprint for reply in replies if reply.fingerprint is not None})),
        first=min(reply.asked for reply in replies),
        last=max(reply.asked for reply in replies),
        compared=_compared(order, work) if letters else (),
        listed=min(each.listed for each in abilities) if letters else None,
        exact=letters and all(each.exact for each in abilities),
        censored=sum(bool(batch.lowest) for batch in batches),
    )


def _compared(order: ServedOrder, work: BenchmarkWork) -> tuple[str, ...]:
    merge = order.identity.merge_variants
    forms = (forms_of(question, chat=work.scoring.chat, merge=merge)[0] for question in work.questions)
    return tuple(sorted({form for some in forms for form in some}))
