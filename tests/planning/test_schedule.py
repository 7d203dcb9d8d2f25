"""A schedule says what runs where, how long it takes and what the sample can show; a plan reads well on a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from evalspec.artifacts.protocol import BatchRule, CheckpointIdentity, Pool, Protocol, RecordIdentity
from evalspec.artifacts.questions import QuestionBank, QuestionSet
from evalspec.artifacts.samples import SampleStratified
from evalspec.artifacts.schedule import Device, MemoryNeed, Schedule
from evalspec.artifacts.study import AnalysisRequest, Benchmark, Groups, OptionScoring, Study
from evalspec.artifacts.work import WorkOrder, jobs_of, orders_of
from evalspec.planning.describe import describe
from evalspec.planning.protocol import build_protocol
from evalspec.planning.sampling import Draw, draw
from evalspec.planning.schedule import Outlook, build_schedule
from evalspec.planning.speeds import CPU_RATE, START_SECONDS, Speeds
from evalspec.protocols import Comparison
from evalspec.statistics.paired_power import detectable_difference

CPU = Device(id="cpu", kind="cpu", memory_bytes=16 * 2**30)
NEEDS = tuple(
    MemoryNeed(model=name, parameters=parameters, stored_dtype="bfloat16", weights_bytes=2 * parameters, working_bytes=10**9)
    for name, parameters in (("first", 135_000_000), ("second", 4_000_000_000))
)
COMPARISONS = {"pairs": (Comparison("first − second", 0.05, "exact"),)}


class Planned:
    """A study of two models and two benchmarks, planned as far as the protocol."""

    def __init__(self, study: Study, bank: QuestionBank, identities: dict[str, CheckpointIdentity | RecordIdentity]) -> None:
        self.draws: dict[str, Draw] = {one.id: draw(one.sample, bank.benchmark(one.id), seed=study.seed) for one in study.benchmarks}
        rule = BatchRule(shard_questions=50)
        self.protocol: Protocol = build_protocol(study, bank=bank, draws=self.draws, identities=identities, batch_rule=rule)
        folders = dict.fromkeys(identities, "unused")
        self.orders: tuple[WorkOrder, ...] = orders_of(self.protocol, {name: drawn.questions for name, drawn in self.draws.items()}, folders)
        self.jobs = jobs_of(self.orders)

    def schedule(self, outlook: Outlook) -> Schedule:
        return build_schedule(self.protocol, orders=self.orders, draws=self.draws.values(), outlook=outlook)


@pytest.fixture
def planned(
    study: Callable[..., Study],
    benchmark: Callable[..., Benchmark],
    questions: Callable[..., QuestionSet],
    identity: Callable[[str, int], CheckpointIdentity],
) -> Planned:
    """Two models of 135 million and 4 billion parameters; 60 of 90 questions by letter, 20 by option."""
    sample = SampleStratified(method="stratified", by="subject", size=60)
    one, two = benchmark("everyday", sample=sample), benchmark("short").model_copy(update={"scoring": OptionScoring(method="option")})
    bank = QuestionBank((questions("everyday", art=30, law=59, zoo=1), questions("short", art=20)))
    return Planned(study(one, two), bank, {need.model: identity(f"models/{need.model}", need.parameters) for need in NEEDS})


def test_jobs_are_the_shards_of_the_work_orders_under_the_same_ids(planned: Planned) -> None:
    schedule = planned.schedule(Outlook(devices=(CPU,), memory=NEEDS))
    assert [job.id for job in schedule.jobs] == [job.id for job in planned.jobs]
    assert [(job.model, job.benchmark, job.shard, job.shards, job.questions) for job in schedule.jobs[:3]] == [
        ("first", "everyday", 0, 2, 50),
        ("first", "everyday", 1, 2, 10),
        ("first", "short", 0, 1, 20),
    ]
    assert schedule.protocol_sha256 == planned.protocol.digest()


def test_time_without_an_earlier_run_comes_from_parameters_and_says_so(planned: Planned) -> None:
    tokens = {job.id: 1000 for job in planned.jobs}
    schedule = planned.schedule(Outlook(devices=(CPU,), memory=NEEDS, tokens=tokens))
    assert schedule.jobs[0].seconds == pytest.approx(2 * 135e6 * 1000 / CPU_RATE)
    assert schedule.seconds_basis == "estimated from parameters; no earlier run"
    assert schedule.seconds == pytest.approx(sum(job.seconds or 0 for job in schedule.jobs) + START_SECONDS + (2 * 135e6 + 2 * 4e9) / 1e9)


def test_time_follows_observed_speeds_and_leaves_out_what_the_journal_has(planned: Planned) -> None:
    tokens = {job.id: 1000 for job in planned.jobs}
    half = {planned.jobs[0].id: 25, planned.jobs[1].id: 10}
    speeds = Speeds({("first", "cpu"): 100.0})
    schedule = planned.schedule(Outlook(devices=(CPU,), memory=NEEDS, tokens=tokens, journalled=half, speeds=speeds))
    assert [(job.journalled, job.seconds) for job in schedule.jobs[:3]] == [(25, 5.0), (10, 0.0), (0, 10.0)]
    assert schedule.seconds_basis == "partly from the speed of earlier runs, partly estimated from parameters"
    complete = {job.id: job.questions for job in planned.jobs}
    done = planned.schedule(Outlook(devices=(CPU,), memory=NEEDS, journalled=complete))
    assert done.seconds == 0
    assert "Time\n  nothing is left to score\n" in describe(done, planned.protocol)


def test_what_a_small_part_of_every_job_told_goes_before_all_else_and_covers_the_self_check(planned: Planned) -> None:
    told = Speeds({("first", "cpu"): 1.0}, jobs={job.id: 7.0 for job in planned.jobs}, loads={"first": 2.0, "second": 30.0}, start_seconds=6.0)
    done = {job.id: job.questions for job in planned.jobs if job.model == "first"}
    schedule = planned.schedule(Outlook(devices=(CPU,), memory=NEEDS, journalled=done, speeds=told))
    assert {job.seconds for job in schedule.jobs} == {7.0}
    assert schedule.seconds == pytest.approx(6.0 + 2.0 + 30.0 + 7.0 * len(planned.jobs))
    assert schedule.seconds_basis == "from batches of every job that are scored already, with starting, loading and the self-check"


def test_hours_of_accelerators_are_counted_over_all_of_them(planned: Planned) -> None:
    told = Speeds(jobs={job.id: 1800.0 for job in planned.jobs}, loads={"first": 0.0, "second": 0.0}, start_seconds=0.0)
    large = tuple(device.model_copy(update={"memory_bytes": 80 * 2**30}) for device in GPUS)
    apart = planned.schedule(Outlook(devices=large, memory=NEEDS, speeds=told))
    assert f"  {0.5 * len(planned.jobs):.2g} GPU-hours of scoring" in describe(apart, planned.protocol)
    together = planned.schedule(Outlook(devices=GPUS, memory=NEEDS, speeds=told))
    spread = sum(job.model == "second" for job in planned.jobs)
    assert f"  {0.5 * (len(planned.jobs) + spread):.2g} GPU-hours of scoring" in describe(together, planned.protocol)
    assert "GPU-hours" not in describe(planned.schedule(Outlook(devices=(CPU,), memory=NEEDS, speeds=told)), planned.protocol)


def test_tokens_that_were_not_counted_are_estimated_and_said_to_be(planned: Planned) -> None:
    schedule = planned.schedule(Outlook(devices=(CPU,), memory=NEEDS, speeds=Speeds({("first", "cpu"): 1.0, ("second", "cpu"): 1.0})))
    assert schedule.jobs[0].tokens is None
    assert schedule.seconds_basis == "from the speed of earlier runs; tokens estimated from the length of the texts"
    prompts = sum(len(question.prompt) for question in planned.orders[0].works[0].questions[:50])
    assert schedule.jobs[0].seconds == pytest.approx(prompts / 4)


def test_a_model_that_no_device_has_room_for_is_a_warning_and_makes_the_time_unknown(planned: Planned) -> None:
    small = CPU.model_copy(update={"memory_bytes": 2 * 2**30})
    schedule = planned.schedule(Outlook(devices=(small,), memory=NEEDS))
    assert schedule.warnings[0] == "model 'second' needs about 8.4 GiB; the largest device has 2.0 GiB"
    assert {job.model: job.device for job in schedule.jobs} == {"first": "cpu", "second": None}
    assert (schedule.seconds, schedule.seconds_basis) == (None, None)


def test_large_models_go_to_the_device_that_has_room(planned: Planned) -> None:
    devices = (CPU.model_copy(update={"id": "small", "memory_bytes": 4 * 2**30}), Device(id="cuda:0", kind="cuda", memory_bytes=80 * 2**30))
    schedule = planned.schedule(Outlook(devices=devices, memory=NEEDS))
    assert {job.device for job in schedule.jobs if job.model == "second"} == {"cuda:0"}


GPUS = tuple(Device(id=f"cuda:{number}", kind="cuda", memory_bytes=6 * 2**30, name="Some GPU") for number in range(2))


def test_a_model_that_no_accelerator_has_room_for_is_spread_over_all_of_them_when_the_others_are_done(planned: Planned) -> None:
    schedule = planned.schedule(Outlook(devices=GPUS, memory=NEEDS))
    assert {job.device for job in schedule.jobs if job.model == "second"} == {"cuda:0+cuda:1"}
    assert {job.device for job in schedule.jobs if job.model == "first"} <= {"cuda:0", "cuda:1"}
    assert schedule.warnings[0] == (
        "model 'second' needs about 8.4 GiB; the largest device has 6.0 GiB, so that it is spread layer by layer over all accelerators, "
        "of which one computes at a time"
    )
    alone = planned.schedule(Outlook(devices=GPUS, memory=NEEDS, journalled={job.id: job.questions for job in planned.jobs if job.model == "second"}))
    assert schedule.seconds is not None
    assert alone.seconds is not None
    second = sum(job.seconds or 0 for job in schedule.jobs if job.model == "second") + START_SECONDS + Speeds().load_seconds(NEEDS[1])
    assert schedule.seconds == pytest.approx(alone.seconds + second)


def test_a_model_that_all_accelerators_together_have_no_room_for_has_no_device(planned: Planned) -> None:
    small = tuple(device.model_copy(update={"memory_bytes": 2 * 2**30}) for device in GPUS)
    schedule = planned.schedule(Outlook(devices=small, memory=NEEDS))
    assert {job.device for job in schedule.jobs if job.model == "second"} == {None}
    assert schedule.warnings[0].endswith("the largest device has 2.0 GiB")


def test_strata_are_listed_and_those_that_give_nothing_are_a_warning(planned: Planned) -> None:
    schedule = planned.schedule(Outlook(devices=(CPU,), memory=NEEDS))
    listed = [(stratum.subject, stratum.available, stratum.drawn) for stratum in schedule.strata]
    assert listed == [("art", 30, 20), ("law", 59, 39), ("zoo", 1, 1), ("art", 20, 20)]
    none = replace(planned.draws["everyday"], strata=tuple(replace(stratum, drawn=0) for stratum in planned.draws["everyday"].strata))
    warned = build_schedule(planned.protocol, orders=planned.orders, draws=[none], outlook=Outlook(devices=(CPU,), memory=NEEDS))
    assert warned.warnings == ("benchmark 'everyday': 3 of 3 subjects give no question to this sample (art, law, zoo)",)
    macro = AnalysisRequest(id="a", kind="intervals", benchmarks=("everyday",), options={"average": "macro"})
    averaged = planned.protocol.model_copy(update={"analyses": (macro,)})
    told = build_schedule(averaged, orders=planned.orders, draws=[none], outlook=Outlook(devices=(CPU,), memory=NEEDS))
    assert told.warnings == (f"{warned.warnings[0]}, and the average over subjects of analysis 'a' leaves them out",)
    pool = Pool(size=90, subjects={"art": 30, "law": 59, "zoo": 1})
    of_pool = tuple(one.model_copy(update={"pool": pool} if one.id == "everyday" else {}) for one in averaged.benchmarks)
    asked = averaged.model_copy(update={"benchmarks": of_pool})
    refused = build_schedule(asked, orders=planned.orders, draws=[none], outlook=Outlook(devices=(CPU,), memory=NEEDS))
    why = "is refused, since it is about all of this pool"
    assert refused.warnings == (f"{warned.warnings[0]}, and the average over subjects of analysis 'a' {why}",)
    fixed = tuple(one.model_copy(update={"strata": "subject"} if one.id == "everyday" else {}) for one in of_pool)
    told = build_schedule(
        asked.model_copy(update={"benchmarks": fixed}), orders=planned.orders, draws=[none], outlook=Outlook(devices=(CPU,), memory=NEEDS)
    )
    assert told.warnings == (f"{warned.warnings[0]}, and intervals for all of it are refused, since they are about all of this pool",)


def test_questions_in_clusters_are_said_to_have_no_forecast_and_not_one_that_takes_them_as_independent(
    study: Callable[..., Study], benchmark: Callable[..., Benchmark], questions: Callable[..., QuestionSet]
) -> None:
    record = RecordIdentity(sha256="c" * 64, model="m", origin="results.parquet")
    clustered = benchmark(groups=Groups(subject="clusters"))
    planned = Planned(study(clustered), QuestionBank((questions(a=3, b=2),)), {"first": record, "second": record})
    schedule = planned.schedule(Outlook(devices=(CPU,), memory=()))
    assert schedule.detectable == ()
    (warning,) = schedule.warnings
    assert "come in 2 clusters, so that no gap is forecast for it: forecasts take questions as independent" in warning


@pytest.mark.parametrize(("limit", "expected"), [(-0.02, "+0.05 points (limit -2.0 points)"), (0.0, "0.05 points")])
def test_a_gap_is_rounded_as_in_the_report(limit: float, expected: str, planned: Planned) -> None:
    schedule = planned.schedule(Outlook(devices=(CPU,), memory=NEEDS, comparisons=COMPARISONS))
    gap = schedule.detectable[0].model_copy(update={"difference": 0.00046, "limit": limit})
    text = describe(schedule.model_copy(update={"detectable": (gap,)}), planned.protocol)
    assert re.search(rf"assumed +{re.escape(expected)}\n", text)


def test_each_comparison_has_its_gap_on_each_benchmark_at_the_usual_discordances(planned: Planned) -> None:
    gaps = planned.schedule(Outlook(devices=(CPU,), memory=NEEDS, comparisons=COMPARISONS)).detectable
    assert [(gap.benchmark, gap.n, gap.discordance, gap.discordance_declared) for gap in gaps] == [
        (benchmark, n, discordance, False) for benchmark, n in (("everyday", 60), ("short", 20)) for discordance in (0.1, 0.2, 0.3)
    ]
    assert gaps[2].difference == detectable_difference(60, 0.3).difference
    assert gaps[3].difference is None


def test_a_declared_discordance_and_test_are_used_and_unknown_tests_left_out(planned: Planned) -> None:
    declared = {"pairs": (Comparison("first − second", 0.01, "mid_p", 0.25), Comparison("other", 0.05, "sign"))}
    gaps = planned.schedule(Outlook(devices=(CPU,), memory=NEEDS, comparisons=declared)).detectable
    assert [(gap.comparison, gap.discordance, gap.discordance_declared, gap.alpha, gap.test) for gap in gaps] == [
        ("first − second", 0.25, True, 0.01, "mid_p")
    ] * 2
    assert gaps[0].difference == detectable_difference(60, 0.25, alpha=0.01, test="mid_p").difference


def test_the_plan_reads_as_stored(planned: Planned, golden: Callable[[str, str], str]) -> None:
    tokens = {job.id: 1000 for place, job in enumerate(planned.jobs) if place != 2}
    schedule = planned.schedule(
        Outlook(
            devices=(CPU,),
            memory=NEEDS,
            tokens=tokens,
            journalled={planned.jobs[0].id: 50},
            speeds=Speeds({("second", "cpu"): 10.0}),
            comparisons={"pairs": (*COMPARISONS["pairs"], *(Comparison(f"pair {number}", 0.025, "mid_p", 0.4) for number in range(3)))},
        )
    )
    text = describe(schedule, planned.protocol)
    assert golden("plan.txt", text) == text


def test_a_plan_of_recorded_responses_alone_has_nothing_to_score(
    study: Callable[..., Study], benchmark: Callable[..., Benchmark], questions: Callable[..., QuestionSet]
) -> None:
    record = RecordIdentity(sha256="c" * 64, model="m", origin="results.parquet")
    planned = Planned(study(benchmark()), QuestionBank((questions(a=3),)), {"first": record, "second": record})
    text = describe(planned.schedule(Outlook(devices=(CPU,), memory=())), planned.protocol)
    assert "nothing to score: every model replays recorded responses" in text
    assert "recorded responses" in text.splitlines()[2]
    assert "one pair of models" in text
