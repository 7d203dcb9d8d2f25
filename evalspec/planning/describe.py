"""How does a plan read on a terminal?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from evalspec.artifacts.protocol import CheckpointIdentity, EarlierIdentity, PlannedSize, Protocol, ProtocolModel, RecordIdentity
from evalspec.artifacts.schedule import Detectable, GateForecast, Job, Rankable, Schedule
from evalspec.artifacts.study import Scoring
from evalspec.artifacts.work import checked_by
from evalspec.errors import counted
from evalspec.rounding import MINUS, not_zero, signed

Table = Sequence[Sequence[str]]
ABOUT_GAPS = (
    "  gap: true difference in accuracy that the test shows to be other than 0, or above its limit; "
    "discordance: share of the questions that exactly one of the two models answers correctly"
)
ABOUT_NONE = "; none: no gap that this discordance allows is found that often"
ABOUT_RANKS = (
    "  gap: true difference in accuracy that the sample shows in the right order, a tie counting as wrong, as if it were a simple one; "
    "no test stands behind it, and a gap that is ranked may be far from detected"
)
ABOUT_GATES = (
    "  true value: declared in the check, or assumed; alpha: one-sided chance of a false pass where the truth lies at the limit, after "
    "any correction, of this look where several are planned"
)


def describe(schedule: Schedule, protocol: Protocol) -> str:
    """Return the plan as plain text: models, benchmarks, jobs and time, sample by subject, and the gaps that it detects."""
    sections = (
        ("Models", _models(schedule, protocol)),
        ("Benchmarks", _benchmarks(protocol)),
        ("Jobs", _jobs(schedule, protocol)),
        ("Servers", _servers(schedule)),
        ("Time", _time(schedule)),
        ("Sample by subject", _strata(schedule)),
        ("Smallest gap ranked the right way round in 80 % of samples", _ranks(schedule.rankable)),
        ("Smallest gap detected with 80 % power", _gaps(schedule.detectable)),
        ("Checks: chance of passing", _gates(schedule.gates)),
        ("Warnings", "\n".join(f"  {warning}" for warning in schedule.warnings)),
    )
    return "\n\n".join(f"{title}\n{body}" for title, body in sections if body) + "\n"


def percent(share: float) -> str:
    """Return a share in whole percent, more exactly where that would call little nothing, or much all."""
    text = f"{share * 100:.0f} %"
    return text if text not in {"0 %", "100 %"} or share in {0.0, 1.0} else f"{share * 100:.2g} %" if share < 0.5 else f"{share * 100:.4g} %"


def _models(schedule: Schedule, protocol: Protocol) -> str:
    needs = {need.model: need for need in schedule.memory}
    rows = [("model", "source", "parameters", "stored as", "runs as", "memory")]
    for model in protocol.models:
        need = needs.get(model.id)
        memory = (_bytes(need.total_bytes) + (", measured" if need.measured else "")) if need else "-"
        rows.append((model.id, model.identity.origin, *_weights(model), memory))
    return _aligned(rows, right=(2, 5))


def _weights(model: ProtocolModel) -> tuple[str, str, str]:
    identity = model.identity
    if isinstance(identity, EarlierIdentity):
        return "-", "-", f"earlier run {identity.run_id}"
    if not isinstance(identity, CheckpointIdentity):
        return "-", "-", "recorded responses" if isinstance(identity, RecordIdentity) else "behind a server"
    stored = f"GGUF {identity.stored_dtype}" if identity.gguf else identity.stored_dtype
    runs = identity.stored_dtype if model.precision == "as_shipped" else model.precision
    return _count(identity.parameters), stored, f"{runs}, dequantised" if identity.gguf else runs


def _benchmarks(protocol: Protocol) -> str:
    rows = [("benchmark", "source", "questions", "drawn", "sample", "scoring", "disclosure")]
    for benchmark in protocol.benchmarks:
        drawn = f"{len(benchmark.questions):,}"
        rows.append(
            (
                benchmark.id,
                benchmark.source,
                f"{benchmark.source_size:,}",
                drawn,
                benchmark.sample.method if benchmark.planned_size is None else f"{benchmark.sample.method}, {_target(benchmark.planned_size)}",
                _method(benchmark.scoring),
                benchmark.disclosure,
            )
        )
    return _aligned(rows, right=(2, 3))


def _method(scoring: Scoring) -> str:
    if scoring.method != "sampled":
        return scoring.method
    return f"sampled, {counted(scoring.repeats, 'text')} at temperature {scoring.temperature:g}"


def _target(planned: PlannedSize) -> str:
    return f"to detect {100 * planned.detect:g} points by '{planned.analysis}' with {100 * planned.power:.0f} % power"


def _jobs(schedule: Schedule, protocol: Protocol) -> str:
    if not schedule.jobs:
        return "  nothing to score: every model replays recorded responses"
    rows = [("model", "benchmark", "shard", "questions", "in journal", "tokens", "device", "time")]
    for job in schedule.jobs:
        device = job.device or ("-" if job.journalled == job.questions else "none has room")
        rows.append(
            (
                job.model,
                job.benchmark,
                f"{job.shard + 1}/{job.shards}",
                f"{job.questions:,}",
                f"{job.journalled:,}",
                "not counted" if job.tokens is None else f"{job.tokens:,}",
                device,
                _duration(job.seconds),
            )
        )
    return _aligned(rows, right=(3, 4, 5, 7)) + "\n" + _answers(schedule.jobs, protocol)


def _servers(schedule: Schedule) -> str:
    if not schedule.costs:
        return ""
    head = ("model", "server", "requests", "input tokens", "output tokens", "input", "output", "retries", "spent", "in all", "allowed")
    rows: list[Sequence[str]] = [head]
    for cost in schedule.costs:
        amounts = (cost.input_cost, cost.output_cost, cost.retries, cost.spent, cost.total)
        told = [_money(amount, cost.currency) for amount in amounts] if cost.currency else ["no price", "", "", "", ""]
        allowed = "" if cost.max_cost is None else _money(cost.max_cost, cost.currency)
        rows.append((cost.model, cost.host, f"{cost.requests:,}", f"{cost.input_tokens:,}", f"{cost.output_tokens:,}", *told, allowed))
    bases = ", ".join(dict.fromkeys(cost.basis for cost in schedule.costs))
    about = f"  what is left to ask, with the questions of the self-check; tokens: {bases}; spent: what the journal's answers cost"
    return _aligned(rows, right=range(2, 11)) + "\n" + about


def _money(amount: float | None, currency: str | None) -> str:
    return "" if amount is None else f"{amount:.2f} {currency}" if amount >= 0.1 or not amount else f"{amount:.2g} {currency}"


def _answers(jobs: Sequence[Job], protocol: Protocol) -> str:
    """Say how many answers the progress of the run counts: each model's to each question, and those of its self-check."""
    asked: Counter[tuple[str, str]] = Counter()
    for job in jobs:
        asked[job.model, job.benchmark] += job.questions
    once, again = asked.total(), sum(min(count, checked_by(protocol.benchmark(name).scoring)) for (_, name), count in asked.items())
    return f"  {once:,} answers, and {again:,} more where models are asked again, one question at a time, as a self-check: {once + again:,} in all"


def _time(schedule: Schedule) -> str:
    if schedule.seconds is None:
        return "  not known"
    beside = "; what servers take is not known" if any(cost.requests for cost in schedule.costs) else ""
    if not schedule.seconds:
        return f"  {schedule.seconds_basis}{beside}"
    return f"  about {_duration(schedule.seconds)} ({schedule.seconds_basis}){beside}{_accelerators(schedule)}"


def _accelerators(schedule: Schedule) -> str:
    """Say how long accelerators compute, all together; nothing where only processors do."""
    kinds = {device.id: device.kind for device in schedule.devices}
    spans = [(job.seconds or 0.0) * (job.device or "").count("cuda") for job in schedule.jobs if kinds.get(job.device or "", "together") != "cpu"]
    return f"\n  {sum(spans) / 3600:.2g} GPU-hours of scoring, loading not counted" if any(spans) else ""


def _strata(schedule: Schedule) -> str:
    rows = [("benchmark", "subject", "in source", "drawn")]
    rows += [(stratum.benchmark, stratum.subject, f"{stratum.available:,}", f"{stratum.drawn:,}") for stratum in schedule.strata]
    return _aligned(rows, right=(2, 3)) if schedule.strata else ""


def _ranks(rankable: Sequence[Rankable]) -> str:
    if not rankable:
        return ""
    rows = [("benchmark", "questions", "as ranked by", "discordance", "gap")]
    for entry in rankable:
        if entry.undefined is not None or entry.discordance is None:
            rows.append((entry.benchmark, f"{entry.n:,}", entry.undefined or "", "", ""))
            continue
        held = "questions like these" if entry.pool is None else f"all {entry.pool:,} of the source"
        discordance = f"{100 * entry.discordance:.0f} % {'declared' if entry.discordance_declared else 'assumed'}"
        rows.append((entry.benchmark, f"{entry.n:,}", held, discordance, "none" if entry.gap is None else f"{100 * entry.gap:.1f} points"))
    return _aligned(rows, right=(1, 3, 4)) + "\n" + ABOUT_RANKS + (ABOUT_NONE if any(row[4] == "none" for row in rows) else "")


def _gaps(detectable: Sequence[Detectable]) -> str:
    if not detectable:
        return ""
    alike: dict[tuple[object, ...], list[Detectable]] = {}
    for gap in detectable:
        alike.setdefault((gap.analysis, gap.benchmark, gap.n, gap.alpha, gap.test, gap.discordance), []).append(gap)
    rows = [("analysis", "benchmark", "comparison", "questions", "test", "alpha", "discordance", "gap")]
    for gaps in alike.values():
        gap = gaps[0]
        comparison = gap.comparison if len(gaps) == 1 else f"each of {len(gaps)}"
        discordance = f"{100 * gap.discordance:.0f} % {'declared' if gap.discordance_declared else 'assumed'}"
        found = "none" if gap.difference is None else f"{not_zero(gap.difference, 2, 1)} points"
        found = f"{_points(gap.difference)} (limit {_points(gap.limit)})" if gap.limit and gap.difference is not None else found
        test = gap.test.replace("_", "-")
        rows.append((gap.analysis or "none", gap.benchmark, comparison, f"{gap.n:,}", test, f"{gap.alpha:.4g}", discordance, found))
    return _aligned(rows, right=(3, 5, 6, 7)) + "\n" + ABOUT_GAPS + (ABOUT_NONE if any(row[7] == "none" for row in rows) else "")


def _points(difference: float) -> str:
    return f"{signed(difference, 2, 1).replace(MINUS, '-')} points"


def _gates(gates: Sequence[GateForecast]) -> str:
    if not gates:
        return ""
    rows = [("check", "benchmark", "questions", "test", "alpha", "limit", "true value", "discordance", "chance", "80 % from")]
    for gate in gates:
        if gate.undefined is not None:
            rows.append((gate.check, gate.benchmark, f"{gate.n:,}", gate.undefined, "", "", "", "", "", ""))
            continue
        truth = "not declared" if gate.truth is None else f"{gate.truth:g} {'declared' if gate.truth_declared else 'assumed'}"
        discordance = "" if gate.discordance is None else f"{100 * gate.discordance:.0f} % {'declared' if gate.discordance_declared else 'assumed'}"
        chance = _chance(gate)
        needed = _passing_truth(gate) if gate.needed is None else f"{gate.needed:,} questions{_of_last(gate)}"
        test = (gate.test or "").replace("_", "-")
        rows.append((gate.check, gate.benchmark, f"{gate.n:,}", test, f"{gate.alpha:.4g}", f"{gate.limit:g}", truth, discordance, chance, needed))
    return _aligned(rows, right=(2, 4, 5, 8)) + "\n" + ABOUT_GATES


def _chance(gate: GateForecast) -> str:
    now = "-" if gate.power is None else percent(gate.power)
    return now if gate.last is None or gate.last.power is None else f"{now} now, {percent(gate.last.power)} at look {gate.last.look}"


def _of_last(gate: GateForecast) -> str:
    """Say at which alpha questions are counted, where that is not the alpha of this row."""
    return "" if gate.last is None else f" at look {gate.last.look}, alpha {gate.last.alpha:.4g}"


def _passing_truth(gate: GateForecast) -> str:
    return "never" if gate.smallest is None or gate.why_not is not None else f"a true value of {gate.smallest:.3f}{_of_last(gate)}"


def _aligned(rows: Table, *, right: Sequence[int]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.rjust(widths[column]) if column in right else cell.ljust(widths[column]) for column, cell in enumerate(row)]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines)


def _count(number: int) -> str:
    for size, unit in ((10**9, " B"), (10**6, " M"), (10**3, " k")):
        if number >= size:
            return f"{number / size:.2f}{unit}"
    return str(number)


def _bytes(number: int) -> str:
    return f"{number / 2**30:.2f} GiB"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "not known"
    if seconds < 1:
        return "under 1 s" if seconds else "0 s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "min"), (rest, "s"))
    return " ".join(f"{amount} {unit}" for amount, unit in parts if amount) or "0 s"
