"""What is known of a study's servers before they are asked: how they are reached, what asking them takes, and what must be said about them?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from evalspec.artifacts.schedule import CostEstimate, Job
from evalspec.artifacts.served import ServedIdentity, ServedModel, identity_of
from evalspec.artifacts.served_work import ServedOrder
from evalspec.artifacts.study import Model, Study
from evalspec.artifacts.work import CHECKED, BenchmarkWork, jobs_of
from evalspec.errors import Diagnostic, StudyError, UsageError
from evalspec.language.compile import CompiledStudy, located
from evalspec.language.faults import Fault
from evalspec.planning.costs import Left, estimate
from evalspec.protocols import Journal
from evalspec.scoring.access import Access, Patience
from evalspec.scoring.served_records import records_of, replies_in
from evalspec.settings import Settings

_KEY = re.compile(r"[!-~]{1,4096}")


def identities(study: Study) -> dict[str, ServedIdentity]:
    """Return what each served model's id stands for."""
    return {model.id: identity_of(source) for model, source in _served(study)}


def accesses(study: Study, settings: Settings) -> dict[str, Access]:
    """Return how each served model is reached; raises UsageError for keys that cannot be sent.

    A key that is not there is missed only by a run that has something to ask.
    """
    patience = Patience(at_once=settings.server_requests, tries=settings.server_tries, timeout=settings.server_timeout)
    faults: dict[Diagnostic, None] = {}
    found = {}
    for model, source in _served(study):
        key = settings.environment.get(source.key_variable, "").strip() or None
        if key is not None and not _KEY.fullmatch(key):
            faults[Diagnostic(f"the variable {source.key_variable} holds no key: one has at most 4,096 plain characters and no spaces")] = None
        found[model.id] = Access(
            endpoint=source.endpoint.rstrip("/"),
            key=key,
            key_variable=source.key_variable,
            key_needed=source.api_key_env is not None,
            price=model.price,
            max_cost=model.max_cost,
            patience=patience,
        )
    if faults:
        raise UsageError(faults)
    return found


def served_jobs(orders: Sequence[ServedOrder], journal: Journal) -> tuple[Job, ...]:
    """Return the jobs of the orders, with what the journal has of each."""
    hosts = {order.model: order.identity.host for order in orders}
    return tuple(
        job.model_copy(update={"journalled": min(journal.read(job.id).answered, job.questions), "device": f"server {hosts[job.model]}"})
        for job in jobs_of(orders)
    )


def costs(study: Study, orders: Sequence[ServedOrder], journal: Journal) -> tuple[CostEstimate, ...]:
    """Return what asking each served model is expected to take."""
    return tuple(estimate(study.model(order.model), order, [_left(order, work, journal) for work in order.works]) for order in orders)


def refuse_too_costly(expected: Sequence[CostEstimate], compiled: CompiledStudy) -> None:
    """Raise StudyError for every model that is expected to cost more than the study allows."""
    faults = []
    places = {model.id: place for place, model in enumerate(compiled.study.models)}
    for cost in expected:
        if cost.max_cost is not None and cost.total is not None and cost.requests and cost.total > cost.max_cost:
            message = (
                f"asking model '{cost.model}' is expected to cost {cost.total:.4g} {cost.currency} in all, {cost.spent or 0.0:.4g} of it spent; "
                f"the study allows {cost.max_cost:g}. Nothing was asked"
            )
            hint = "raise max_cost, or ask fewer questions; evalspec plan shows how the estimate is made up"
            faults.append(Fault(("models", places[cost.model], "max_cost"), message, hint))
    if faults:
        raise StudyError(located(faults, compiled.source))


def warnings(study: Study, expected: Sequence[CostEstimate], settings: Settings) -> tuple[str, ...]:
    """Return what must be said about models that answer behind a server; what they are sent only of those that are still to be asked."""
    asked = {cost.model for cost in expected if cost.requests}
    told = (text for model, source in _served(study) for text in _warnings(study, (model, source), settings, asked=model.id in asked))
    return tuple(dict.fromkeys(told))


def _warnings(study: Study, served: tuple[Model, ServedModel], settings: Settings, *, asked: bool) -> Iterator[str]:
    model, source = served
    identity = identity_of(source)
    yield f"model '{model.id}' is asked at {identity.host}: which weights answer there cannot be verified, and nothing is claimed about them"
    if identity.alias:
        yield (
            f"model '{model.id}': the name '{identity.model}' has neither a date nor a revision, so that other weights may answer under it tomorrow; "
            "name a dated version where the server has one"
        )
    hidden = [benchmark.id for benchmark in study.benchmarks if benchmark.disclosure != "full"]
    if asked and hidden:
        yield f"the questions of {', '.join(hidden)}, which the report does not show, are sent to {identity.host}; whoever runs it can read them"
    if asked and settings.environment.get(source.key_variable):
        yield f"the key in {source.key_variable} is sent to {identity.host}"
    if model.price is None:
        yield f"model '{model.id}' states no price, so that nothing is known of what it costs"


def _served(study: Study) -> Iterator[tuple[Model, ServedModel]]:
    yield from ((model, model.source) for model in study.models if isinstance(model.source, ServedModel))


def _left(order: ServedOrder, work: BenchmarkWork, journal: Journal) -> Left:
    """Return which questions are left to ask, and what those that were asked took."""
    shards = order.shards(work)
    records = list(records_of(order, work, journal))
    open_questions = [
        question for shard, record in zip(shards, records, strict=False) for place, question in enumerate(shard) if place not in record.batches
    ]
    asked = [question for shard, record in zip(shards, records, strict=False) for place, question in enumerate(shard) if place in record.batches]
    checked = records[-1].answered if len(records) > len(shards) else 0
    again = min(len(work.questions), CHECKED) - checked
    return Left(work, tuple(open_questions), again, tuple(asked), tuple(replies_in(records[: len(shards)])), tuple(replies_in(records)))
