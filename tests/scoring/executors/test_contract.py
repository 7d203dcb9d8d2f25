"""What must every executor do?  The same bytes whatever its devices, whatever is killed; say what happens; leave nothing behind."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from evalspec.artifacts.responses import Responses
from evalspec.artifacts.work import WorkerEvent
from evalspec.errors import ScoringError
from evalspec.protocols import Executor, Progress, ignore_progress
from evalspec.scoring.execute import ScoringTask, score
from evalspec.scoring.executors.devices import local_devices
from evalspec.scoring.executors.local import LocalExecutor
from evalspec.scoring.journal import FileJournal

pytestmark = pytest.mark.slow

Start = Callable[..., Executor]
Workers = Callable[[], set[int]]


@dataclass(frozen=True, slots=True)
class Case:
    """A study and what it must come to, a journal for it, an executor that works in this process, and one that may not be asked."""

    study: ScoringTask
    expected: Responses
    journal: FileJournal
    no_worker: Executor
    no_executor: Executor


@pytest.fixture
def case(make: SimpleNamespace, study: ScoringTask, expected: Responses, tmp_path: Path) -> Case:
    return Case(study, expected, make.journal(tmp_path / "journal"), make.executor(), make.no_executor())


@pytest.fixture(params=["local", "ray"])
def start(request: pytest.FixtureRequest) -> Start:
    """Start an executor on so many devices; more may be said of it."""
    if request.param == "local":
        return lambda count, **more: LocalExecutor(local_devices(("cpu",) * count), **more)
    address = request.getfixturevalue("ray_nodes").address
    from evalspec.scoring.executors.ray_cluster import RayExecutor, cluster_devices

    return lambda count, **more: RayExecutor(cluster_devices(("cpu",), address)[:count], address=address, **more)


def wait_until_gone(workers: Workers) -> None:
    """Return once no worker lives; a process that was ended on another machine needs a moment."""
    deadline = time.monotonic() + 20
    while workers():
        assert time.monotonic() < deadline, "a worker outlived its run"
        time.sleep(0.02)


def assert_same(found: Responses, expected: Responses) -> None:
    for one, other in zip(found.benchmarks, expected.benchmarks, strict=True):
        assert one.logprobs is not None
        assert other.logprobs is not None
        assert one.logprobs.tobytes() == other.logprobs.tobytes(), f"log-probabilities on {one.benchmark} differ"
        assert one.choices.tobytes() == other.choices.tobytes()
    assert found.origins == expected.origins


def test_responses_are_the_same_bytes_whatever_the_devices_and_all_answers_are_counted(start: Start, case: Case, workers: Workers) -> None:
    told: list[Progress] = []
    scored = score(case.study, start(3), case.journal, told.append)
    assert_same(scored.responses, case.expected)
    wait_until_gone(workers)
    assert len({entry.device for entry in scored.jobs}) == 3, "every device had something to do"
    assert [one.done for one in told if one.total] == sorted(one.done for one in told if one.total)
    assert told[-1].done == told[-1].total == 3 * (150 + 64 + 40 + 40)
    assert {one.note for one in told if one.note.startswith("loading")} == {"loading llama", "loading larger", "loading gpt2"}
    again = score(case.study, case.no_executor, case.journal, ignore_progress)
    assert_same(again.responses, case.expected)


def test_a_worker_that_is_killed_in_mid_run_costs_nothing_but_time(start: Start, case: Case, workers: Workers) -> None:
    told: list[Progress] = []
    killed: list[int] = []

    def kill_once(one: Progress) -> None:
        told.append(one)
        if one.done > 100 and not killed:
            killed.append(min(workers()))
            os.kill(killed[0], signal.SIGKILL)

    scored = score(case.study, start(2), case.journal, kill_once)
    assert_same(scored.responses, case.expected)
    assert [one.warning for one in told if one.warning] == ["the worker was ended by SIGKILL; it goes on from the journal"]
    assert told[-1].done == told[-1].total
    assert [entry.in_parts for entry in scored.jobs] == [0] * len(scored.jobs)


def test_a_worker_that_stands_still_is_ended_which_is_told_and_another_one_goes_on(start: Start, case: Case, workers: Workers) -> None:
    told: list[Progress] = []
    stopped: list[int] = []

    def stop_once(one: Progress) -> None:
        told.append(one)
        if one.done > 100 and not stopped:
            stopped.append(min(workers()))
            os.kill(stopped[0], signal.SIGSTOP)

    scored = score(case.study, start(1, silence=2.0), case.journal, stop_once)
    assert_same(scored.responses, case.expected)
    (warning,) = (one.warning for one in told if one.warning)
    assert re.fullmatch(r"the worker finished nothing for \d+ s and was ended; it goes on from the journal", warning)
    assert told[-1].done == told[-1].total
    assert [entry.in_parts for entry in scored.jobs] == [0] * len(scored.jobs), "silence is no lack of memory"
    wait_until_gone(workers)


def test_every_model_that_fails_is_named_and_the_others_are_scored(start: Start, case: Case, workers: Workers) -> None:
    wrong = dict.fromkeys(("larger", "gpt2"), case.journal.folder / "nothing")
    with pytest.raises(ScoringError) as caught:
        score(replace(case.study, folders={**case.study.folders, **wrong}), start(2), case.journal, ignore_progress)
    assert len(caught.value.diagnostics) == 1, "both models lie in one folder, and one fault is told once"
    assert "'nothing': config.json is not the file that the protocol names" in str(caught.value)
    wait_until_gone(workers)
    events: list[WorkerEvent] = []
    (llama,) = [order for order in case.study.orders() if order.model == "llama"]
    case.no_worker.run([llama], case.journal, events.append)
    assert events == [], "what could be scored is in the journal"


def test_cancelling_ends_every_worker_and_keeps_what_is_scored(start: Start, case: Case, workers: Workers) -> None:
    def stop(one: Progress) -> None:
        if one.done > 100:
            assert workers()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score(case.study, start(2), case.journal, stop)
    wait_until_gone(workers)
    told: list[Progress] = []
    assert_same(score(case.study, case.no_worker, case.journal, told.append).responses, case.expected)
    assert told[0].done > 100


@pytest.mark.usefixtures("workers")
def test_two_runs_at_once_share_one_journal(start: Start, case: Case) -> None:
    told: list[Progress] = []
    with ThreadPoolExecutor(2) as both:
        runs = [both.submit(score, case.study, start(1), case.journal, told.append) for _ in range(2)]
    for run in runs:
        assert_same(run.result().responses, case.expected)
    assert {one.warning for one in told if one.warning} <= {"another run is scoring this; waiting for its results"}
    assert_same(score(case.study, case.no_executor, case.journal, ignore_progress).responses, case.expected)
    assert not list(case.journal.folder.glob("*.rejected-*")), "a batch that is written twice makes its file one to be put aside"
