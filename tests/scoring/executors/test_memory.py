"""What happens when memory really runs out: under a limit of the address space, and under something that kills who takes too much."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Self

import numpy as np
import pytest

from evalspec.artifacts.protocol import BatchRule
from evalspec.artifacts.responses import Responses
from evalspec.artifacts.study import LetterScoring
from evalspec.artifacts.work import WorkerEvent, jobs_of
from evalspec.protocols import Progress, ignore_progress
from evalspec.scoring.execute import ScoringTask, score
from evalspec.scoring.executors.devices import local_devices
from evalspec.scoring.executors.local import LocalExecutor
from evalspec.scoring.journal import FileJournal

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="limits and measures memory as Linux does")]

MEBIBYTE = 2**20
DRIVER = """
import pickle, resource, sys
from pathlib import Path
from evalspec.artifacts.work import Assignment
from evalspec.errors import ScoringError
from evalspec.scoring.journal import FileJournal
from evalspec.scoring.model_run import Place
from evalspec.scoring.worker import Worker

task, journal, secret = map(Path, sys.argv[1:4])
(order,) = pickle.loads(task.read_bytes()).orders()
(work,) = order.works
journal = FileJournal(journal, secret)
worker = Worker(lambda _assignment: journal, Place("cpu", 1), lambda event: print(event.model_dump_json(), flush=True))
worker.score(Assignment(order=order.part(work, work.questions[:1])))  # loads the model, without a limit
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[4]), resource.RLIM_INFINITY))
try:
    worker.score(Assignment(order=order))
except ScoringError as error:
    sys.exit(str(error))
"""


@pytest.fixture(scope="module")
def wide(make: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> ScoringTask:
    """A model of one layer whose activations outweigh its weights, asked all its questions in one batch: 24,000 tokens of 48 KiB."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    shape = {"hidden_size": 128, "intermediate_size": 4096, "num_hidden_layers": 1, "positions": 4096, "initializer_range": 0.05}
    folder = make.checkpoint(tmp_path_factory.mktemp("wide") / "wide", dtype="float32", **shape)
    questions = make.questions(500)
    rule = BatchRule(token_budget=1 << 16, overhead_tokens=1 << 20, packing=False)
    protocol = make.protocol({"wide": make.identity(folder)}, [make.benchmark("b", questions, LetterScoring(method="letter"))], rule=rule)
    return ScoringTask(protocol, {"b": questions}, {"wide": folder}, {})


@pytest.fixture(scope="module")
def unlimited(make: SimpleNamespace, wide: ScoringTask, tmp_path_factory: pytest.TempPathFactory) -> Responses:
    return score(wide, make.executor(), make.journal(tmp_path_factory.mktemp("unlimited")), ignore_progress).responses


def limited(task: ScoringTask, journal: FileJournal, room: int, folder: Path) -> tuple[list[WorkerEvent], str]:
    """Score in a process that may take so many bytes more once it has loaded the model; return what it tells and how it failed, if it did."""
    (folder / "task").write_bytes(pickle.dumps(task))
    command = [sys.executable, "-c", DRIVER, str(folder / "task"), str(journal.folder), str(journal.secret_file), str(room)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stderr
    return [WorkerEvent.from_json(line.encode()) for line in done.stdout.splitlines()], done.stderr


def assert_close(found: Responses, expected: Responses) -> None:
    one, other = found.benchmark("b"), expected.benchmark("b")
    np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-5)  # float32, other shapes of matrices
    np.testing.assert_array_equal(one.choices, other.choices)


def test_without_room_for_a_batch_it_is_computed_in_parts_which_is_told_and_recorded(
    make: SimpleNamespace, wide: ScoringTask, unlimited: Responses, tmp_path: Path
) -> None:
    journal = make.journal(tmp_path / "journal")
    events, failed = limited(wide, journal, 24 * MEBIBYTE, tmp_path)
    assert not failed
    parts = [event.parts for event in events if event.kind == "warning"]
    assert parts == [2**step for step in range(1, len(parts) + 1)]
    assert parts
    scored = score(wide, make.executor(), journal, ignore_progress)
    assert_close(scored.responses, unlimited)
    (entry,) = scored.jobs
    assert (entry.in_parts, entry.reused) == (1, 500)


def test_what_is_cut_off_after_memory_ran_out_goes_on_in_as_many_parts_to_the_same_bits(
    make: SimpleNamespace, wide: ScoringTask, tmp_path: Path
) -> None:
    rule = BatchRule(token_budget=1 << 11, overhead_tokens=1 << 9, packing=False)
    task = replace(wide, protocol=wide.protocol.model_copy(update={"batch_rule": rule}))
    whole, cut_off = make.journal(tmp_path / "whole"), make.journal(tmp_path / "cut off")
    _, failed = limited(task, whole, 24 * MEBIBYTE, tmp_path)
    assert not failed
    (job,) = jobs_of(task.orders())
    expected = whole.read(job.id)
    parts = [batch.parts for batch in expected.batches.values()]
    assert max(parts) > 1
    settled = parts.index(max(parts))  # from here on memory runs out no more
    assert settled < len(parts) - 1
    cut_off.folder.mkdir()
    lines = (whole.folder / f"{job.id}.jsonl").read_bytes().splitlines(keepends=True)
    (cut_off.folder / f"{job.id}.jsonl").write_bytes(b"".join(lines[: settled + 2]))
    _, failed = limited(task, cut_off, 1 << 40, tmp_path)
    assert not failed
    found = cut_off.read(job.id)
    assert [batch.parts for batch in found.batches.values()] == parts, "also where memory would do for larger ones now"
    assert found.content_sha256() == expected.content_sha256()


def test_without_room_for_a_single_question_the_model_fails_and_says_so(make: SimpleNamespace, wide: ScoringTask, tmp_path: Path) -> None:
    short, long = make.questions(2)
    questions = (short, replace(long, stem="red green blue " * 900))
    protocol = make.protocol({"wide": wide.protocol.models[0].identity}, [make.benchmark("b", questions, LetterScoring(method="letter"))])
    events, failed = limited(ScoringTask(protocol, {"b": questions}, wide.folders, {}), make.journal(tmp_path / "journal"), 24 * MEBIBYTE, tmp_path)
    assert "model 'wide' on benchmark 'b': memory runs out even with one question at a time" in failed
    assert "give the model a device with more memory" in failed
    assert [event.kind for event in events].count("done") == 1, "that of the short question alone"


def test_a_worker_that_is_killed_for_its_memory_goes_on_in_parts(
    make: SimpleNamespace, wide: ScoringTask, unlimited: Responses, workers: Callable[[], set[int]], tmp_path: Path
) -> None:
    told: list[Progress] = []
    with killing(workers, 1300 * MEBIBYTE) as watch:
        scored = score(wide, LocalExecutor(local_devices(("cpu",))), make.journal(tmp_path), told.append)
    assert_close(scored.responses, unlimited)
    assert watch.kills >= 2
    first, *others = [one.warning for one in told if one.warning]
    assert first == "the worker was ended by SIGKILL; it goes on from the journal", "one kill may be anybody's"
    assert others
    assert set(others) == {"the worker was ended by SIGKILL, as when memory runs out; it goes on with smaller batches"}
    assert scored.jobs[0].in_parts == 1


class killing:  # noqa: N801 - a context, as those of contextlib
    """Ends every worker that has more than so many bytes in memory, as a guard of a machine's memory would."""

    def __init__(self, workers: Callable[[], set[int]], most: int) -> None:
        self._workers = workers
        self._most = most
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.kills = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.01):
            for process in self._workers():
                with suppress(OSError, IndexError):
                    resident = int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
                    if resident > self._most:
                        os.kill(process, signal.SIGKILL)
                        self.kills += 1
                        time.sleep(0.5)  # a process needs a moment to die
