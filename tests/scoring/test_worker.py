from __future__ import annotations

import fcntl
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from evalspec.artifacts.journal import BatchRecord
from evalspec.artifacts.protocol import BatchRule
from evalspec.artifacts.study import LetterScoring
from evalspec.artifacts.work import Assignment, WorkerEvent, jobs_of
from evalspec.errors import ScoringError
from evalspec.protocols import Progress, ignore_progress
from evalspec.scoring.execute import ScoringTask, score
from evalspec.scoring.executors.local import LocalExecutor
from evalspec.scoring.executors.process import WorkerProcess
from evalspec.scoring.journal import FileJournal
from evalspec.scoring.relay import job_record, records_of

pytest.importorskip("torch")
pytest.importorskip("transformers")

DRIVER = """
import pickle, sys
from pathlib import Path
from evalspec.scoring.execute import score
from evalspec.scoring.executors.local import LocalExecutor
from evalspec.scoring.journal import FileJournal
task, folder, secret = map(Path, sys.argv[1:])
score(pickle.loads(task.read_bytes()), LocalExecutor(threads=1), FileJournal(folder, secret), lambda one: print(one.done, flush=True))
"""


END_TO_END = """
import pickle, sys
from pathlib import Path
from evalspec.artifacts.work import Assignment
from evalspec.scoring.journal import FileJournal
from evalspec.scoring.model_run import Place
from evalspec.scoring.worker import Worker
task, folder, secret = map(Path, sys.argv[1:])
(order,), journal = pickle.loads(task.read_bytes()).orders(), FileJournal(folder, secret)
worker = Worker(lambda _assignment: journal, Place("cpu", 1, packing=True), lambda event: print(event.questions, flush=True))
worker.score(Assignment(order=order))
"""


@pytest.fixture
def task(make: SimpleNamespace, llama: Path) -> ScoringTask:
    questions = make.questions(150)
    rule = BatchRule(token_budget=128, overhead_tokens=4)
    protocol = make.protocol({"m": make.identity(llama)}, [make.benchmark("b", questions, LetterScoring(method="letter"))], rule=rule)
    return ScoringTask(protocol, {"b": questions}, {"m": llama}, {})


@contextmanager
def drive(task: ScoringTask, folder: Path, journal: FileJournal, script: str = DRIVER) -> Iterator[subprocess.Popen[str]]:
    (folder / "task").write_bytes(pickle.dumps(task))
    command = [sys.executable, "-c", script, str(folder / "task"), str(journal.folder), str(journal.secret_file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as driver:
        try:
            yield driver
        finally:
            driver.kill()


def children_of(process: int) -> list[int]:
    children: list[int] = []
    for thread in Path(f"/proc/{process}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread ended meanwhile
            children += map(int, (thread / "children").read_text().split())
    return children


def first_child_of(process: int) -> int:
    deadline = time.monotonic() + 60
    while not (children := children_of(process)):
        assert time.monotonic() < deadline, f"process {process} started no worker"
        time.sleep(0.01)
    return children[0]


def wait_until_gone(process: int) -> None:
    deadline = time.monotonic() + 20
    while Path(f"/proc/{process}/cmdline").exists() and Path(f"/proc/{process}/cmdline").read_bytes():
        assert time.monotonic() < deadline, f"process {process} outlived its parent"
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds the worker through /proc")
def test_killing_everything_while_scoring_and_then_the_worker_still_gives_the_same_bytes(
    make: SimpleNamespace, task: ScoringTask, tmp_path: Path
) -> None:
    journal = make.journal(tmp_path / "journal")
    with drive(task, tmp_path, journal) as driver:
        assert driver.stdout is not None
        assert int(driver.stdout.readline()) == 0
        worker = first_child_of(driver.pid)
        while int(driver.stdout.readline() or -1) == 0:
            pass
        os.killpg(driver.pid, signal.SIGKILL)
        driver.communicate()
        wait_until_gone(worker)
    kept = journal.read(jobs_of(task.orders())[0].id).answered
    assert 0 < kept < 150

    others = set(children_of(os.getpid()))
    told: list[Progress] = []
    killed: list[int] = []

    def kill_once(one: Progress) -> None:
        told.append(one)
        if one.done > told[0].done and not killed:
            killed.extend(set(children_of(os.getpid())) - others)
            os.kill(killed[0], signal.SIGKILL)

    resumed = score(task, LocalExecutor(threads=1), journal, kill_once)
    assert [one.warning for one in told if one.warning] == ["the worker was ended by SIGKILL; it goes on from the journal"]
    assert (told[0].done, resumed.jobs[0].reused) == (kept, kept)

    whole = score(task, make.executor(), make.journal(tmp_path / "whole"), ignore_progress)
    assert resumed.responses.origins == whole.responses.origins
    first, second = (one.responses.benchmark("b").logprobs for one in (resumed, whole))
    assert first is not None
    assert second is not None
    assert first.tobytes() == second.tobytes()
    lines = [json.loads(line)["body"] for line in (journal.folder / f"{jobs_of(task.orders())[0].id}.jsonl").read_text().splitlines()]
    assert set(Counter(line["index"] for line in lines if line["kind"] == "batch").values()) == {1}


def test_a_worker_that_is_killed_over_rows_end_to_end_is_followed_by_one_that_comes_to_the_same_bits(
    make: SimpleNamespace, llama: Path, tmp_path: Path
) -> None:
    questions, rule = make.questions(150), BatchRule(token_budget=256, branches=False)
    benchmark = make.benchmark("b", questions, LetterScoring(method="letter"))
    protocol = make.protocol({"m": make.identity(llama)}, [benchmark], rule=rule, precision="float32")
    task = ScoringTask(protocol, {"b": questions}, {"m": llama}, {})
    job, killed, whole = jobs_of(task.orders())[0].id, make.journal(tmp_path / "killed"), make.journal(tmp_path / "whole")
    with drive(task, tmp_path, killed, END_TO_END) as driver:
        assert driver.stdout is not None
        while int(driver.stdout.readline()) == 0:
            pass
        driver.kill()
    kept = killed.read(job).answered
    assert 0 < kept < 150
    for journal in (killed, whole):
        with drive(task, tmp_path, journal, END_TO_END) as driver:
            _, failed = driver.communicate()
            assert driver.returncode == 0, failed
    found, expected = killed.read(job), whole.read(job)
    assert all(batch.packed for batch in found.batches.values())
    assert found.content_sha256() == expected.content_sha256()
    assert (len(found.sessions), len(found.batches)) == (2, len(expected.batches))


@pytest.mark.skipif(sys.platform != "linux", reason="finds the worker through /proc")
def test_control_c_ends_the_worker_too(make: SimpleNamespace, task: ScoringTask, tmp_path: Path) -> None:
    with drive(task, tmp_path, make.journal(tmp_path / "journal")) as driver:
        assert driver.stdout is not None
        driver.stdout.readline()
        worker = first_child_of(driver.pid)
        driver.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in driver.communicate(timeout=60)[1]
        wait_until_gone(worker)


@pytest.mark.skipif(sys.platform != "linux", reason="finds the worker through /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_worker_that_stands_still_ends_with_its_parent_too(make: SimpleNamespace, task: ScoringTask, tmp_path: Path, how: signal.Signals) -> None:
    with drive(task, tmp_path, make.journal(tmp_path / "journal")) as driver:
        assert driver.stdout is not None
        while int(driver.stdout.readline() or -1) == 0:
            pass
        worker = first_child_of(driver.pid)
        os.kill(worker, signal.SIGSTOP)
        try:
            driver.send_signal(how)
            driver.communicate(timeout=60)
            wait_until_gone(worker)
        finally:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="finds the worker through /proc")
def test_a_worker_that_crashes_three_times_is_given_up(make: SimpleNamespace, task: ScoringTask, tmp_path: Path) -> None:
    others = set(children_of(os.getpid()))
    tries = []

    def kill_while_loading(event: WorkerEvent) -> None:
        if event.kind == "loading":
            tries.append((set(children_of(os.getpid())) - others).pop())
            os.kill(tries[-1], signal.SIGKILL)

    with pytest.raises(ScoringError, match="ended by SIGKILL 3 times") as caught:
        LocalExecutor().run(task.orders(), make.journal(tmp_path), kill_while_loading)
    assert len(tries) == len(set(tries)) == 3
    assert "memory" in str(caught.value.diagnostics[0].hint)


def test_a_worker_that_cannot_write_its_journal_is_not_tried_again_and_says_what_to_mend(
    make: SimpleNamespace, task: ScoringTask, tmp_path: Path
) -> None:
    (tmp_path / "journal" / f"{jobs_of(task.orders())[0].id}.lock").mkdir(parents=True)
    told: list[WorkerEvent] = []
    with pytest.raises(ScoringError, match=r"(?s)scoring of 'm' stopped: .*lock: Is a directory.*what was scored is kept"):
        LocalExecutor().run(task.orders(), make.journal(tmp_path / "journal"), told.append)
    assert told == []


def sent(worker: WorkerProcess, *assignments: Assignment) -> list[WorkerEvent]:
    """Send assignments one after another; return all that the worker says until the last of them is done or has failed."""
    said: list[WorkerEvent] = []
    deadline = time.monotonic() + 60
    for number, assignment in enumerate(assignments, start=1):
        worker.send(assignment)
        while sum(event.kind in {"done", "failed"} for event in said) < number:
            assert time.monotonic() < deadline
            worker.write()
            events = worker.read()
            assert events is not None, worker.end()
            said += events
            time.sleep(0.01)
    return said


def test_a_model_that_cannot_be_scored_is_named_and_its_worker_scores_the_next_one(make: SimpleNamespace, task: ScoringTask, tmp_path: Path) -> None:
    order, journal = task.orders()[0], make.journal(tmp_path / "journal")
    broken = order.model_copy(
        update={"model": "broken", "folder": str(tmp_path), "identity": order.identity.model_copy(update={"weights_sha256": "f" * 64})}
    )
    worker = WorkerProcess(["--journal", str(journal.folder), "--secret", str(journal.secret_file), "--threads", "1", "--name", "first"])
    try:
        events = sent(worker, Assignment(order=broken), Assignment(order=order, ahead=broken))
    finally:
        worker.kill()
    assert [event.kind for event in events if event.model == "broken"] == ["loading", "failed"]
    assert [event.kind for event in events if event.model == "m" and event.kind != "batch"] == ["loading", "ready", "done"]
    assert sum(event.questions for event in events) == 150
    record = journal.read(Assignment(order=order).key().digest())
    assert (record.complete, record.sessions[0].device, record.sessions[0].threads) == (True, "first", 1)


def test_a_worker_without_a_journal_tells_what_is_to_be_written_and_goes_on_from_what_it_is_told(
    make: SimpleNamespace, task: ScoringTask, tmp_path: Path
) -> None:
    score(task, make.executor(), make.journal(tmp_path), ignore_progress)
    assignment = Assignment(order=task.orders()[0])
    written = make.journal(tmp_path).read(assignment.key().digest())
    records = records_of(written)
    worker = WorkerProcess(["--journal", "-", "--threads", "1"])
    try:
        events = sent(worker, assignment.model_copy(update={"recorded": records[:5]}))
    finally:
        worker.kill()
    told = job_record(written.job, (*records[:5], *(event.record for event in events if event.record is not None)))
    assert told.content_sha256() == written.content_sha256()
    assert [event.record.index for event in events if isinstance(event.record, BatchRecord)] == [*range(4, written.sessions[0].batches)]


def test_a_waiting_run_says_so_and_takes_the_results_of_the_other(make: SimpleNamespace, task: ScoringTask, tmp_path: Path) -> None:
    journal = make.journal(tmp_path)
    job = jobs_of(task.orders())[0].id
    lock = (tmp_path / f"{job}.lock").open("wb")
    fcntl.flock(lock, fcntl.LOCK_EX)
    told: list[Progress] = []

    def release(one: Progress) -> None:
        told.append(one)
        if one.warning:
            lock.close()

    score(task, make.executor(), journal, release)
    assert [one.warning for one in told if one.warning] == ["another run is scoring this; waiting for its results"]
    assert told[-1].done == told[-1].total
