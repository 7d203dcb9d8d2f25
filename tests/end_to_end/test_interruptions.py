from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Command, Run

Batches = Callable[[Path], dict[str, list[int]]]
KILLS = int(os.environ.get("EVALSPEC_KILLS", "2"))
PATIENCE = 120.0


@pytest.fixture
def place(workplace: Path, tmp_path: Path) -> Path:
    """A copy of the workplace, so that journals and reports are its own; the root of the study is its folder."""
    return Path(shutil.copytree(workplace, tmp_path / "place", ignore=shutil.ignore_patterns("whole", "reports", ".evalspec")))


def start(place: Path, make: SimpleNamespace, *more: str) -> subprocess.Popen[str]:
    """Start a run in a process group of its own."""
    arguments = ("run", "study.yaml", "--key", "signer.p12", "--token-budget", str(make.budget), "--no-pdf", *more)
    return subprocess.Popen(
        [sys.executable, "-m", "evalspec", *arguments],
        cwd=place,
        env=make.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def written(cache: Path, batches: Batches) -> int:
    return sum(map(len, batches(cache).values()))


def wait_until(goal: int, cache: Path, batches: Batches, running: subprocess.Popen[str]) -> None:
    """Return once the journal holds that many batches."""
    limit = time.monotonic() + PATIENCE
    while written(cache, batches) < goal:
        assert running.poll() is None, running.communicate()[1]
        assert time.monotonic() < limit, "scoring did not begin"
        time.sleep(0.01)


def workers_of(place: Path) -> list[int]:
    """Return the scoring workers that write into a journal of this place."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if folder.name.isdigit() and b"evalspec.scoring.worker" in command and str(place).encode() in command:
            found.append(int(folder.name))
    return found


@pytest.mark.slow
def test_killed_and_interrupted_runs_go_on_to_the_same_bytes_and_nothing_is_scored_twice(
    scored: Run, place: Path, make: SimpleNamespace, batches: Batches
) -> None:
    cache, whole = place / ".evalspec", written(scored.cache, batches)
    goals = sorted(random.Random().sample(range(1, whole - 40), KILLS + 1))  # any moment must do
    for goal in goals[:-1]:
        running = start(place, make)
        wait_until(goal, cache, batches, running)
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
        deadline = time.monotonic() + PATIENCE
        while workers_of(place):
            assert time.monotonic() < deadline, "the worker outlived the run that started it"
            time.sleep(0.05)
        assert not (place / "reports").exists() or not list((place / "reports" / "study").iterdir())

    running = start(place, make)
    wait_until(goals[-1], cache, batches, running)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=PATIENCE)
    assert (running.returncode, "stopped" in said, "Traceback" in said) == (130, True, False)
    assert "every finished batch of a run is kept" in said
    assert not workers_of(place)

    # Two runs at once finish it together, in two directories.
    both = [start(place, make, "--out", f"reports/{name}") for name in ("one", "two")]
    said_by = [running.communicate(timeout=2 * PATIENCE)[1] for running in both]
    assert [running.returncode for running in both] == [0, 0], said_by
    expected = (scored.folder / "responses.parquet").read_bytes()
    assert (place / "reports" / "one" / "responses.parquet").read_bytes() == expected
    assert (place / "reports" / "two" / "responses.parquet").read_bytes() == expected
    found = batches(cache)
    assert found.keys() == batches(scored.cache).keys()
    assert all(sorted(indices) == list(range(len(indices))) for indices in found.values())
    assert written(cache, batches) == whole
    assert "already in the journal" in said_by[0]


@pytest.mark.slow
def test_one_model_more_scores_one_model(scored: Run, place: Path, make: SimpleNamespace, process: Command, batches: Batches) -> None:
    shutil.copytree(scored.cache, place / "whole")
    shutil.copytree(scored.workplace / ".evalspec", place / ".evalspec", dirs_exist_ok=True)
    before = batches(place / "whole")
    make.study(place, "tiny-a", "tiny-b", "tiny-c")
    arguments = ("--cache", "whole", "--token-budget", make.budget, "--no-pdf", "--throwaway-key")
    planned = process("plan", "study.yaml", "--json", *arguments[:4], cwd=place).content["schedule"]["jobs"]
    assert {job["model"] for job in planned if job["journalled"] < job["questions"]} == {"tiny-c"}
    spoken = process("run", "study.yaml", *arguments, cwd=place)
    assert spoken.code == 0, spoken.err
    after = batches(place / "whole")
    assert {job: after[job] for job in before} == before
    assert len(after) == len(before) * 3 // 2
    assert "loading tiny-c" in spoken.err
    assert "loading tiny-a" not in spoken.err


@pytest.mark.slow
def test_weights_that_are_not_numbers_are_3_and_name_model_and_question(scored: Run, place: Path, make: SimpleNamespace, process: Command) -> None:
    shutil.copytree(scored.cache, place / "whole")
    make.study(place, "damaged", "tiny-a")
    spoken = process("run", "study.yaml", "--cache", "whole", "--token-budget", make.budget, "--no-pdf", "--throwaway-key", cwd=place)
    assert spoken.code == 3
    assert "model 'damaged' gives no finite probability at question 'offennummer" in spoken.err
    assert "Traceback" not in spoken.err
    assert not list((place / "reports" / "study").iterdir())
