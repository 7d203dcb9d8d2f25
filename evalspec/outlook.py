"""What is known of a run before it begins?  Devices, memory, tokens, what the journal has, measured speeds, how checks are decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from evalspec.analyses.catalogue import catalogue
from evalspec.artifacts.base import canonical_json
from evalspec.artifacts.protocol import Protocol
from evalspec.artifacts.schedule import MemoryNeed
from evalspec.artifacts.work import EncodedQuestion, WorkOrder, jobs_of
from evalspec.errors import InputError, MissingLibrary
from evalspec.planning.bounds import why_fractional
from evalspec.planning.memory import ALLOWANCE
from evalspec.planning.schedule import Outlook
from evalspec.planning.speeds import Speeds
from evalspec.protocols import CheckTest, Comparison, DeclaredDesign
from evalspec.scoring.calibration import Observed, observe
from evalspec.scoring.checkpoint import named_alone, plan_tokens
from evalspec.scoring.sharing import Sharing
from evalspec.scoring.speeds import expected_pace, read_speeds
from evalspec.settings import Settings
from evalspec.tools import ResolvedModel, devices, journal


def look_ahead(protocol: Protocol, orders: Sequence[WorkOrder], models: Mapping[str, ResolvedModel], settings: Settings) -> Outlook:
    """Return what is known before the run: devices, memory, tokens, what the journal has, earlier speeds, declared comparisons."""
    found = devices(settings if orders else replace(settings, devices=("cpu",), executor="local"))
    recorded = journal(settings)
    seen = read_speeds(recorded.folder)
    paces = {
        (order.model, device.id): pace.tokens_per_second
        for order in orders
        for device in found
        if (pace := expected_pace(seen, order, device.name or device.kind)) is not None and pace.measured
    }
    encoded = _encoded(orders)
    names = [device.name or device.kind for device in found] + [device.id for device in found]
    observed = {order.model: observe(order, encoded.get(order.model, {}), recorded, names) for order in orders}
    starts = [one.start_seconds for one in observed.values() if one.start_seconds is not None]
    speeds = Speeds(
        paces,
        jobs={job: seconds for one in observed.values() for job, seconds in one.seconds.items()},
        loads={model: one.load_seconds for model, one in observed.items() if one.load_seconds is not None},
        **({"start_seconds": max(starts)} if starts else {}),
    )
    return Outlook(
        devices=found,
        memory=tuple(_measured(model.need, observed.get(name)) for name, model in models.items() if model.need is not None),
        tokens=_tokens(orders, encoded),
        journalled={job.id: recorded.read(job.id).answered for job in jobs_of(orders)},
        speeds=speeds,
        comparisons=_comparisons(protocol),
        check_tests=check_tests(protocol),
        refusals=tuple(_refusals(protocol)),
    )


def check_tests(protocol: Protocol) -> dict[str, CheckTest | None]:
    """Return how each check is decided, by its id: at its own error rate, or under `require: any` at the smallest that Holm may ask for."""
    if protocol.thresholds is None:
        return {}
    known, models = catalogue(), tuple(model.id for model in protocol.models)
    requests = {request.id: request for request in protocol.analyses}
    divisor = len(protocol.thresholds.checks) if protocol.thresholds.require == "any" else 1
    found: dict[str, CheckTest | None] = {}
    for check in protocol.thresholds.checks:
        request = requests[check.analysis]
        analysis = known[request.kind]
        options = analysis.options.model_validate_json(canonical_json(request.options))
        if divisor > 1 and analysis.stricter is not None:
            options = analysis.stricter(options, divisor)
        decide = analysis.check_test
        found[check.id] = None if decide is None else decide(options, check, models, len(request.benchmarks))
    return found


def _refusals(protocol: Protocol) -> Iterator[str]:
    """Yield a warning for every analysis that computes nothing on a benchmark, by what is known of its questions and scores before scoring."""
    for request in protocol.analyses:
        analysis = catalogue()[request.kind]
        if analysis.refuses is None:
            continue
        options = analysis.options.model_validate_json(canonical_json(request.options))
        for name in request.benchmarks:
            benchmark = protocol.benchmark(name)
            certain = analysis.refuses(options, DeclaredDesign(clusters=benchmark.clusters is not None))
            likely = analysis.refuses(options, DeclaredDesign(fractional=why_fractional(benchmark) is not None))
            if certain:
                yield f"analysis '{request.id}' ({request.kind}) computes nothing on '{name}': {certain}"
            elif likely:
                yield f"analysis '{request.id}' ({request.kind}) computes nothing on '{name}' unless every score is 0 or 1: {likely}"


def _measured(need: MemoryNeed, observed: Observed | None) -> MemoryNeed:
    """Return what a model needs as it was measured, where it was; a part of the answers tells it less what allocators keep by the end."""
    if observed is None or observed.peak_bytes is None:
        return need
    peak = int(observed.peak_bytes * ALLOWANCE) if observed.part else observed.peak_bytes
    return need.model_copy(update={"working_bytes": max(0, peak - need.weights_bytes), "measured": True})


def _encoded(orders: Sequence[WorkOrder]) -> dict[str, dict[str, tuple[EncodedQuestion, ...]]]:
    """Return the token ids of all questions, by model and benchmark; none where no tokenizer library is installed."""
    found: dict[str, dict[str, tuple[EncodedQuestion, ...]]] = {}
    for order in orders:
        with named_alone(order.checkpoint, order.identity) as place:
            for work in order.works:
                with suppress(MissingLibrary, InputError):
                    found.setdefault(order.model, {})[work.benchmark] = plan_tokens(place, work, model=order.model).questions
    return found


def _tokens(orders: Sequence[WorkOrder], encoded: Mapping[str, Mapping[str, tuple[EncodedQuestion, ...]]]) -> dict[str, int]:
    """Count the tokens that each job makes a model read, where those of one question share what they have in common, and those it may write."""
    counts: dict[str, int] = {}
    for order in orders:
        for work in order.works:
            if work.benchmark not in encoded.get(order.model, {}):
                continue
            sharing = Sharing((), branches=order.batch_rule.branches)
            lengths = iter([sharing.shape(question).tokens for question in encoded[order.model][work.benchmark]])
            for shard in order.shards(work):
                counts[order.key(work, shard).digest()] = sum(next(lengths) + work.most_written for _ in shard)
    return counts


def _comparisons(protocol: Protocol) -> dict[str, tuple[Comparison, ...]]:
    known, models = catalogue(), tuple(model.id for model in protocol.models)
    found = {}
    for request in protocol.analyses:
        analysis = known[request.kind]
        if analysis.comparisons is not None:
            options = analysis.options.model_validate_json(canonical_json(request.options))
            found[request.id] = analysis.comparisons(options, models, len(request.benchmarks))
    return found
