"""What will run where, how long will it take, and what can the sample show?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from evalspec.artifacts.base import canonical_json, sha256_hex
from evalspec.artifacts.protocol import Protocol
from evalspec.artifacts.schedule import CostEstimate, Device, Job, MemoryNeed, Schedule, StratumSize, taken_together
from evalspec.artifacts.work import AskedQuestion, BenchmarkWork, WorkOrder, jobs_of
from evalspec.planning.bounds import guarantee_warnings
from evalspec.planning.forecasts import forecast_gates, gate_warnings
from evalspec.planning.placement import Placement, Task, place
from evalspec.planning.power import detectable_gaps
from evalspec.planning.ranking import rankable_gaps
from evalspec.planning.sampling import Draw
from evalspec.planning.speeds import Speeds
from evalspec.protocols import CheckTest, Comparison

USABLE_MEMORY = 0.9
WRITTEN_COST = 4
"""Tokens that are read in the time in which one is generated: a pass for each, which only the texts of a batch share. A rough figure."""

BYTES_PER_TOKEN = 4
"""A rough mean for English text, used only where tokens were not counted."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is known before the run: devices, memory, tokens and journalled questions by job id, earlier speeds.

    Also the comparisons that each analysis declares, by its id, and how each check is decided, by its id; what analyses are known
    to refuse; the jobs that servers are asked, and what they are expected to cost.
    """

    devices: tuple[Device, ...]
    memory: tuple[MemoryNeed, ...]
    tokens: Mapping[str, int] = field(default_factory=dict)
    journalled: Mapping[str, int] = field(default_factory=dict)
    speeds: Speeds = field(default_factory=Speeds)
    comparisons: Mapping[str, Sequence[Comparison]] = field(default_factory=dict)
    check_tests: Mapping[str, CheckTest | None] = field(default_factory=dict)
    refusals: Sequence[str] = ()
    served: tuple[Job, ...] = ()
    costs: tuple[CostEstimate, ...] = ()


def build_schedule(protocol: Protocol, *, orders: Sequence[WorkOrder], draws: Iterable[Draw], outlook: Outlook) -> Schedule:
    """Return jobs on devices with their time, the sample by stratum and the gaps that it detects."""
    pieces = _pieces(orders, outlook)
    tasks = tuple(_task(piece, outlook) for piece in pieces if _is_pending(piece, outlook))
    needs = {need.model: need for need in outlook.memory}
    placement = _place(tasks, outlook, {model: outlook.speeds.load_seconds(need) for model, need in needs.items()})
    seconds_of = {task.job: task.seconds for task in tasks}
    jobs = tuple(_placed(piece, placement, seconds_of, outlook) for piece in pieces)
    strata = tuple(
        StratumSize(benchmark=draw.benchmark, subject=stratum.subject, available=stratum.available, drawn=stratum.drawn)
        for draw in draws
        for stratum in draw.strata
    )
    gates = forecast_gates(protocol, outlook.check_tests)
    unplaced = any(job.device is None and job.journalled < job.questions for job in jobs)
    return Schedule(
        protocol_sha256=protocol.digest(),
        devices=outlook.devices,
        jobs=(*jobs, *outlook.served),
        memory=outlook.memory,
        strata=strata,
        detectable=detectable_gaps(protocol, outlook.comparisons),
        rankable=rankable_gaps(protocol, outlook.comparisons),
        gates=gates,
        costs=outlook.costs,
        seconds=None if unplaced else placement.seconds,
        seconds_basis=None if unplaced else _basis(pieces, placement, outlook),
        warnings=(
            *_memory_warnings(outlook),
            *_strata_warnings(protocol, strata),
            *_cluster_warnings(protocol),
            *outlook.refusals,
            *gate_warnings(gates),
            *guarantee_warnings(protocol, outlook.check_tests),
        ),
    )


def disclosed(schedule: Schedule, protocol: Protocol) -> Schedule:
    """Return the schedule as it may be published: the id of a job on hidden questions is made of their commitments alone.

    The journal's own id of such a job is a digest over the questions, keys included, and would let guesses be tested.
    """
    hidden = {entry.id for entry in protocol.benchmarks if entry.disclosure == "none"}
    named = protocol.digest()
    jobs = tuple(
        job.model_copy(update={"id": sha256_hex(canonical_json([named, job.model, job.benchmark, job.shard]))}) if job.benchmark in hidden else job
        for job in schedule.jobs
    )
    return schedule.model_copy(update={"jobs": jobs})


@dataclass(frozen=True, slots=True)
class _Piece:
    """A job before it has a device; `left` is the number of tokens that the journal does not have."""

    job: Job
    order: WorkOrder
    left: float


def _pieces(orders: Sequence[WorkOrder], outlook: Outlook) -> tuple[_Piece, ...]:
    shards = ((order, work, shard) for order in orders for work in order.works for shard in order.shards(work))
    return tuple(_piece(job, *shard, outlook) for job, shard in zip(jobs_of(orders), shards, strict=True))


def _piece(job: Job, order: WorkOrder, work: BenchmarkWork, shard: Sequence[AskedQuestion], outlook: Outlook) -> _Piece:
    tokens = outlook.tokens.get(job.id)
    journalled = min(outlook.journalled.get(job.id, 0), job.questions)
    passes = (WRITTEN_COST - 1) * work.most_written * len(shard)
    left = ((_guessed_tokens(work, shard) if tokens is None else tokens) + passes) * (1 - journalled / job.questions)
    return _Piece(job.model_copy(update={"tokens": tokens, "journalled": journalled}), order, left)


def _guessed_tokens(work: BenchmarkWork, shard: Sequence[AskedQuestion]) -> float:
    answers = sum(len(text.encode()) for question in shard for text in question.answers) if work.scoring.method == "option" else 0
    return (sum(len(question.prompt.encode()) for question in shard) + answers) / BYTES_PER_TOKEN + work.most_written * len(shard)


def _is_pending(piece: _Piece, outlook: Outlook) -> bool:
    """Return whether anything of a job is left, be it the self-check that follows it."""
    return bool(piece.left or outlook.speeds.jobs.get(piece.job.id))


def _task(piece: _Piece, outlook: Outlook) -> Task:
    need = _need(piece.order.model, outlook)
    roomy = devices_with_room(need, outlook.devices)
    known = outlook.speeds.jobs.get(piece.job.id)
    seconds = {device.id: outlook.speeds.seconds(piece.left, need, device, piece.order.precision) if known is None else known for device in roomy}
    return Task(piece.job.id, piece.order.model, seconds)


def _placed(piece: _Piece, placement: Placement, seconds_of: Mapping[str, Mapping[str, float]], outlook: Outlook) -> Job:
    if not _is_pending(piece, outlook):
        return piece.job.model_copy(update={"seconds": 0.0})
    device = placement.device_of.get(piece.job.id)
    return piece.job if device is None else piece.job.model_copy(update={"device": device, "seconds": seconds_of[piece.job.id][device]})


def _basis(pieces: Sequence[_Piece], placement: Placement, outlook: Outlook) -> str:
    pending = [piece for piece in pieces if _is_pending(piece, outlook)]
    if not pending:
        return "nothing is left to score"
    known = [piece for piece in pending if piece.job.id in outlook.speeds.jobs]
    if len(known) == len(pending):
        return "from batches of every job that are scored already, with starting, loading and the self-check"
    basis = outlook.speeds.basis({(piece.job.model, placement.device_of[piece.job.id]) for piece in pending if piece not in known})
    guessed = any(piece.job.tokens is None for piece in pending)
    basis += "; texts taken to be as long as they may become" if any(work.most_written for piece in pending for work in piece.order.works) else ""
    return basis + ("; tokens estimated from the length of the texts" if guessed else "")


def _need(model: str, outlook: Outlook) -> MemoryNeed:
    return {need.model: need for need in outlook.memory}[model]


def devices_with_room(need: MemoryNeed, devices: Sequence[Device]) -> tuple[Device, ...]:
    """Return the devices that have room for a model; where none has, all accelerators together, if they have; else nothing."""
    roomy = tuple(device for device in devices if _fits(need, device))
    together = taken_together(devices)
    return roomy or ((together,) if together is not None and _fits(need, together) else ())


def _place(tasks: Sequence[Task], outlook: Outlook, load_seconds: Mapping[str, float]) -> Placement:
    """Put the jobs onto devices; those of models that take all accelerators together come last, when nothing else runs."""
    together = taken_together(outlook.devices)
    last = [task for task in tasks if together is not None and task.seconds.keys() == {together.id}]
    start = outlook.speeds.start_seconds
    placements = [place(some, load_seconds=load_seconds, start_seconds=start) for some in ([task for task in tasks if task not in last], last)]
    device_of = {job: device for placement in placements for job, device in placement.device_of.items()}
    return Placement(device_of, sum(placement.seconds for placement in placements))


def _fits(need: MemoryNeed, device: Device) -> bool:
    return device.memory_bytes is None or need.total_bytes <= USABLE_MEMORY * device.memory_bytes


def _memory_warnings(outlook: Outlook) -> list[str]:
    largest = max((device.memory_bytes or 0 for device in outlook.devices), default=0)
    together, warnings = taken_together(outlook.devices), []
    for need in outlook.memory:
        if not any(_fits(need, device) for device in outlook.devices):
            warned = f"model '{need.model}' needs about {need.total_bytes / 2**30:.1f} GiB; the largest device has {largest / 2**30:.1f} GiB"
            if together in devices_with_room(need, outlook.devices):
                warned += ", so that it is spread layer by layer over all accelerators, of which one computes at a time"
            warnings.append(warned)
    return warnings


def _strata_warnings(protocol: Protocol, strata: Sequence[StratumSize]) -> list[str]:
    warnings = []
    for benchmark in dict.fromkeys(stratum.benchmark for stratum in strata):
        of_benchmark = [stratum for stratum in strata if stratum.benchmark == benchmark]
        empty = [stratum.subject for stratum in of_benchmark if not stratum.drawn]
        if empty:
            listed = ", ".join(empty[:5]) + (", ..." if len(empty) > 5 else "")
            left_out = _left_out(protocol, benchmark)
            warnings.append(
                f"benchmark '{benchmark}': {len(empty)} of {len(of_benchmark)} subjects give no question to this sample ({listed}){left_out}"
            )
    return warnings


def _left_out(protocol: Protocol, benchmark: str) -> str:
    """Say what does without subjects that give no question, or is refused; nothing where subjects stand for others like them."""
    asked = protocol.benchmark(benchmark)
    if asked.pool is not None and asked.strata is not None and asked.sample.method != "simple":
        return ", and intervals for all of it are refused, since they are about all of this pool"
    averaged = [f"'{one.id}'" for one in protocol.analyses if benchmark in one.benchmarks and one.options.get("average") == "macro"]
    if not averaged or asked.clusters is not None:
        return ""
    become = "leaves them out" if asked.pool is None else "is refused, since it is about all of this pool"
    return f", and the average over subjects of analysis {', '.join(averaged)} {become}"


def _cluster_warnings(protocol: Protocol) -> list[str]:
    """Say why questions in clusters have no forecast of power."""
    return [
        f"benchmark '{benchmark.id}': its questions come in {len(set(benchmark.cluster_labels()))} clusters, so that no gap is forecast for it: "
        "forecasts take questions as independent, and with clusters larger gaps stay open"
        for benchmark in protocol.benchmarks
        if benchmark.clusters
    ]
