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

from evalspec.artifacts.protocol import BatchRule
from evalspec.artifacts.study import LetterScoring
from evalspec.artifacts.work import WorkerEvent, WorkOrders, jobs_of
from evalspec.errors import ScoringError
from evalspec.protocols import Progress, ignore_progress
from evalspec.scoring.execute import ScoringTask, score
from evalspec.scoring.executors.local import LocalExecutor
from evalspec.scoring.journal import FileJournal
from evalspec.scoring.worker import main

pytest.importorskip("torch")
pytest.importorskip("transformers")

DRIVER = """
import pickle, sys
from pathlib import Path
from evalspec.scoring.execute import score
from evalspec.scoring.executors.local import LocalExecutor
from evalspec.scoring.journal import FileJournal
score(pickle.loads(Path(sys.argv[1]).read_bytes()), LocalExecutor(threads=1), FileJournal(Path(sys.argv[2])), lambda one: print(one.done, flush=True))
"""


@pytest.fixture
def task(make: SimpleNamespace, llama: Path) -> ScoringTask:
    questions = make.questions(150)
    rule = BatchRule(token_budget=128, overhead_tokens=4)
    protocol = make.protocol({"m": make.identity(llama)}, [make.benchmark("b", questions, LetterScoring(method="letter"))], rule=rule)
    return ScoringTask(protocol, {"b": questions}, {"m": llama}, {})


@contextmanager
def drive(task: ScoringTask, folder: Path, journal: Path) -> Iterator[subprocess.Popen[str]]:
    (folder / "task").write_bytes(pickle.dumps(task))
    command = [sys.executable, "-c", DRIVER, str(folder / "task"), str(journal)]
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
    journal = FileJournal(tmp_path / "journal")
    with drive(task, tmp_path, journal.folder) as driver:
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

    whole = score(task, make.executor(), FileJournal(tmp_path / "whole"), ignore_progress)
    assert resumed.responses.origins == whole.responses.origins
    first, second = (one.responses.benchmark("b").logprobs for one in (resumed, whole))
    assert first is not None
    assert second is not None
    assert first.tobytes() == second.tobytes()
    lines = [json.loads(line)["body"] for line in (journal.folder / f"{jobs_of(task.orders())[0].id}.jsonl").read_text().splitlines()]
    assert set(Counter(line["index"] for line in lines if line["kind"] == "batch").values()) == {1}


@pytest.mark.skipif(sys.platform != "linux", reason="finds the worker through /proc")
def test_control_c_ends_the_worker_too(task: ScoringTask, tmp_path: Path) -> None:
    with drive(task, tmp_path, tmp_path / "journal") as driver:
        assert driver.stdout is not None
        driver.stdout.readline()
        worker = first_child_of(driver.pid)
        driver.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in driver.communicate()[1]
        wait_until_gone(worker)


@pytest.mark.skipif(sys.platform != "linux", reason="finds the worker through /proc")
def test_a_worker_that_crashes_three_times_is_given_up(task: ScoringTask, tmp_path: Path) -> None:
    others = set(children_of(os.getpid()))
    tries = []

    def kill_while_loading(event: WorkerEvent) -> None:
        if event.kind == "loading":
            tries.append((set(children_of(os.getpid())) - others).pop())
            os.kill(tries[-1], signal.SIGKILL)

    with pytest.raises(ScoringError, match="ended by SIGKILL 3 times") as caught:
        LocalExecutor().run(task.orders(), tmp_path, kill_while_loading)
    assert len(tries) == len(set(tries)) == 3
    assert "memory" in str(caught.value.diagnostics[0].hint)


def test_a_worker_that_cannot_write_its_journal_is_not_tried_again_and_says_what_to_mend(task: ScoringTask, tmp_path: Path) -> None:
    (tmp_path / "journal").write_bytes(b"a file where a folder should be")
    with pytest.raises(ScoringError, match=r"(?s)scoring of 'm' stopped: .*Not a directory.*what was scored is kept"):
        LocalExecutor().run(task.orders(), tmp_path / "journal", lambda _event: None)


def test_every_model_that_cannot_be_scored_is_named_and_the_others_are_scored(
    task: ScoringTask, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY", "USE_HUB_KERNELS"):
        monkeypatch.setenv(name, "1")
    order = task.orders()[0]
    broken = order.model_copy(
        update={"model": "broken", "folder": str(tmp_path), "identity": order.identity.model_copy(update={"weights_sha256": "f" * 64})}
    )
    (tmp_path / "jobs.json").write_bytes(WorkOrders(orders=(broken, order)).to_json())
    assert main(["--jobs", str(tmp_path / "jobs.json"), "--journal", str(tmp_path / "journal"), "--threads", "1"]) == 3
    events = [WorkerEvent.from_json(line.encode()) for line in capsys.readouterr().out.splitlines()]
    assert [event.model for event in events if event.kind == "failed"] == ["broken"]
    assert sum(event.questions for event in events if event.model == "m") == 150 + 64


def test_a_waiting_run_says_so_and_takes_the_results_of_the_other(make: SimpleNamespace, task: ScoringTask, tmp_path: Path) -> None:
    journal = FileJournal(tmp_path)
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
