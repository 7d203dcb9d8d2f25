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
KILLS = int(os.environ.get("EVALSPEC_KILLS", "1"))
PATIENCE = 120.0


@pytest.fixture
def place(scored: Run, workplace: Path, tmp_path: Path) -> Path:
    """A copy of the workplace, so that journals and reports are its own, with the secret that commitments are made with."""
    place = Path(shutil.copytree(workplace, tmp_path / "place", ignore=shutil.ignore_patterns("whole", "reports", "second")))
    (place / ".evalspec").mkdir()
    shutil.copy2(scored.cache / "commitments.secret", place / ".evalspec")
    return place


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


def wait_for_folder(folder: Path, running: subprocess.Popen[str]) -> None:
    """Return once a run has made its folder: it is past its start, and hears Ctrl-C."""
    limit = time.monotonic() + PATIENCE
    while not folder.exists():
        assert running.poll() is None, running.communicate()[1]
        assert time.monotonic() < limit, "the run did not begin"
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
    scored: Run, place: Path, make: SimpleNamespace, evalspec: Command, batches: Batches
) -> None:
    cache, whole = place / ".evalspec", written(scored.cache, batches)
    *kills, stop = sorted(random.Random().sample(range(1, whole - 60), KILLS + 1))  # any moment must do
    for goal in kills:
        running = start(place, make)
        wait_until(goal, cache, batches, running)
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
        wait_until_ended(place)
        assert not list((place / "reports" / "study").iterdir())

    # Two runs at once, of which one is stopped as by Ctrl-C; the other finishes.
    stopped = start(place, make, "--out", "reports/stopped")
    wait_for_folder(place / "reports" / "stopped", stopped)
    other = start(place, make)
    wait_until(stop, cache, batches, stopped)
    stopped.send_signal(signal.SIGINT)
    _, said = stopped.communicate(timeout=PATIENCE)
    assert (stopped.returncode, "stopped" in said, "every finished batch of a run is kept" in said) == (130, True, True), said
    assert "Traceback" not in said
    _, said = other.communicate(timeout=2 * PATIENCE)
    assert (other.returncode, "already in the journal" in said) == (0, bool(kills)), said
    wait_until_ended(place)

    found = batches(cache)
    assert {job: sorted(indices) for job, indices in found.items()} == {job: sorted(indices) for job, indices in batches(scored.cache).items()}
    expected = (scored.folder / "responses.parquet").read_bytes()
    assert (place / "reports" / "study" / "responses.parquet").read_bytes() == expected
    assert evalspec("verify", "reports/study", "--trust", "team.yaml", "--recompute", cwd=place).code == 0
    again = evalspec("run", "study.yaml", "--key", "signer.p12", "--token-budget", make.budget, "--no-pdf", "--out", "again", cwd=place)
    assert (again.code, "loading" in again.err, batches(cache) == found) == (0, False, True)
    assert (place / "again" / "responses.parquet").read_bytes() == expected


@pytest.mark.slow
def test_of_two_models_more_only_those_are_scored_and_a_damaged_one_is_named_with_its_question(
    scored: Run, place: Path, make: SimpleNamespace, evalspec: Command, batches: Batches
) -> None:
    shutil.copytree(scored.cache, place / "whole")
    before = batches(place / "whole")
    make.study(place, "tiny-a", "damaged", "tiny-b", "tiny-c")
    machine = ("--cache", "whole", "--token-budget", make.budget)

    def unfinished() -> set[str]:
        jobs = evalspec("plan", "study.yaml", "--json", *machine, cwd=place).content["schedule"]["jobs"]
        return {job["model"] for job in jobs if job["journalled"] < job["questions"]}

    assert unfinished() == {"damaged", "tiny-c"}
    spoken = evalspec("run", "study.yaml", *machine, "--no-pdf", "--throwaway-key", cwd=place)
    assert spoken.code == 3
    assert "model 'damaged' gives no finite probability at question 'offennummer" in spoken.err
    assert [name for name in ("tiny-a", "tiny-b", "tiny-c") if f"loading {name}" in spoken.err] == ["tiny-c"]
    assert not list((place / "reports" / "study").iterdir())
    assert not (place / "reports" / "study.trust.yaml").exists()
    grown = {job: indices for job, indices in batches(place / "whole").items() if indices and job not in before}
    assert len(grown) == len(before) // 2
    assert {job: batches(place / "whole")[job] for job in before} == before
    assert unfinished() == {"damaged"}


def wait_until_ended(place: Path) -> None:
    """Return once no worker of this place is left; the run that started it is gone already."""
    limit = time.monotonic() + PATIENCE
    while workers_of(place):
        assert time.monotonic() < limit, "the worker outlived the run that started it"
        time.sleep(0.05)
