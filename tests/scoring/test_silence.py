"""When is a worker's silence too long?  On assignments that nobody scores."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from evalspec.artifacts.protocol import BatchRule, CheckpointIdentity, FileDigest
from evalspec.artifacts.study import LetterScoring, OptionScoring
from evalspec.artifacts.work import Assignment, WorkerEvent, WorkOrder, work_of
from evalspec.scoring.silence import GENEROUS, STARTING, WAKING, Clock, Watch

Give = Callable[..., Assignment]

LEAST = 60.0
BUDGET = 1000


@pytest.fixture
def give(make: SimpleNamespace) -> Give:
    """An assignment of ten questions for a model of so many bytes and parameters."""

    def assignment(*, size: int = 1, parameters: int = 1, benchmark: str = "b", one_by_one: bool = False, option: bool = False) -> Assignment:
        identity = CheckpointIdentity(
            files=(FileDigest(name="config.json", sha256="a" * 64, size=size),),
            weights_sha256="a" * 64,
            tokenizer_sha256="a" * 64,
            architecture="any",
            parameters=parameters,
            stored_dtype="float32",
            origin="a",
        )
        questions = make.questions(10)
        scoring = OptionScoring(method="option") if option else LetterScoring(method="letter")
        work = work_of(make.benchmark(benchmark, questions, scoring), questions)
        rule = BatchRule(token_budget=BUDGET)
        order = WorkOrder(model="m", folder="unused", precision="float32", identity=identity, batch_rule=rule, works=(work,))
        return Assignment(order=order, one_by_one=one_by_one)

    return assignment


def say(watch: Watch, kind: str, tokens: int = 0) -> None:
    watch.heard(WorkerEvent.model_validate({"kind": kind, "model": "m", "tokens": tokens}))


def started(assignment: Assignment, seconds: float, tokens: int = BUDGET) -> Watch:
    """A watch of a worker whose first batch of so many tokens took so long."""
    watch = Watch(LEAST)
    watch.assigned(assignment)
    for kind in ("loading", "ready"):
        say(watch, kind)
    watch.passed(seconds)
    say(watch, "batch", tokens)
    return watch


def test_before_the_first_batch_there_is_time_to_start_to_load_and_to_compute_it(give: Give) -> None:
    small, large = give(), give(size=20 * 10**9, parameters=10**10)
    watch, faster = Watch(LEAST), Watch(LEAST, accelerated=True)
    watch.assigned(small)
    assert watch.limit(small) == pytest.approx(LEAST + STARTING, abs=0.1)
    watch.assigned(large)
    faster.assigned(large)
    loading, computing = 20e9 / 2e7, 2 * 10**10 * BUDGET
    assert watch.limit(large) == pytest.approx(LEAST + STARTING + loading + computing / 4e9)
    assert faster.limit(large) == pytest.approx(LEAST + STARTING + loading + computing / 1e12)


def test_afterwards_a_batch_has_many_times_as_long_as_the_slowest_pace_says_and_never_less_than_the_least(give: Give) -> None:
    one = give()
    assert started(one, 1.0).limit(one) == LEAST
    watch = started(one, 10.0, tokens=BUDGET // 2)
    assert watch.limit(one) == GENEROUS * 20.0
    watch.passed(1.0)
    say(watch, "batch", BUDGET)
    assert watch.limit(one) == GENEROUS * 20.0, "the slowest pace counts"
    watch.passed(GENEROUS * 20.0)
    assert not watch.overdue()
    watch.passed(0.1)
    assert watch.overdue()


def test_every_benchmark_and_the_self_check_have_a_pace_of_their_own_and_so_has_loading(give: Give) -> None:
    one = give()
    watch = started(one, 1.0)
    for other in (give(benchmark="other"), give(one_by_one=True)):
        watch.assigned(other)
        assert watch.limit(other) > LEAST + STARTING
    watch.assigned(one)
    assert watch.limit(one) == LEAST
    say(watch, "loading")
    assert watch.limit(one) > LEAST + STARTING


@pytest.mark.parametrize("kind", ["ready", "batch", "warning", "record", "begun"])
def test_whatever_a_worker_says_ends_its_silence(give: Give, kind: str) -> None:
    watch = started(give(), 1.0)
    watch.passed(LEAST + 1)
    assert watch.overdue()
    say(watch, kind)
    assert not watch.overdue()


def test_who_waits_for_another_run_or_has_nothing_to_do_is_not_silent(give: Give) -> None:
    watch = started(give(), 1.0)
    say(watch, "waiting")
    watch.passed(10 * LEAST)
    assert not watch.overdue()
    say(watch, "begun")
    watch.passed(10 * LEAST)
    assert watch.overdue()
    say(watch, "done")
    watch.passed(10 * LEAST)
    assert not watch.overdue()
    watch.assigned(give())
    watch.passed(LEAST + 1)
    assert watch.overdue(), "its model is loaded, and its pace is known"


def test_a_standstill_of_the_watching_process_itself_is_nobodys_silence() -> None:
    clock = Clock(iter([0.0, 0.5, 4000.0]).__next__)
    assert [clock.step(), clock.step()] == [0.5, 2 * WAKING]
