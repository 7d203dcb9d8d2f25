"""How is CPU time measured?  Whole processes with their children, medians, and one line of JSON at the end."""

from __future__ import annotations

import gzip
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).parents[1]


def child_seconds(command: Sequence[str], *, expected: int = 0) -> float:
    """Return the CPU seconds, user and system, of a command and its children; raises RuntimeError when it ends otherwise than expected."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}  # installed packages have their bytecode
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env={**kept, "OMP_NUM_THREADS": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != expected:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def median_child_seconds(command: Sequence[str], *, runs: int = 5, expected: int = 0) -> float:
    """Return the median CPU seconds of several runs, after one that is not counted."""
    child_seconds(command, expected=expected)
    return statistics.median(child_seconds(command, expected=expected) for _ in range(runs))


def median_seconds(work: Callable[[], object], *, runs: int = 5) -> float:
    """Return the median CPU seconds of several calls in this process, after one that is not counted."""
    work()
    return statistics.median(seconds(work) for _ in range(runs))


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds of one call in this process."""
    started = time.process_time()
    work()
    return time.process_time() - started


def peak_mib() -> int:
    """Return the most memory that this process has held so far."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def shared_data(name: str) -> Path:
    """Return a file of real responses from beside the repository (EVALSPEC_SHARED says otherwise where); ends the benchmark without it."""
    path = Path(os.environ.get("EVALSPEC_SHARED", ROOT.parent / "shared")) / "data" / name
    if not path.is_file():
        sys.exit(f"needs {path}; set EVALSPEC_SHARED to the folder of real responses")
    return path


def read_scores(name: str) -> NDArray[np.bool_]:
    """Return the 0/1 matrix of a shared table, of shape (models, questions); its columns are item_id, subject and one per model."""
    with gzip.open(shared_data(name), "rt", encoding="utf-8") as lines:
        next(lines)
        rows = [line.rstrip("\n").split(",")[2:] for line in lines]
    return np.array(rows).T == "1"


def evalspec(*arguments: str) -> list[str]:
    """Return the command line of one verb under this Python."""
    return [sys.executable, "-m", "evalspec", *arguments]


def conclude(benchmark: str, work: str, figures: Mapping[str, object]) -> None:
    """Print the one JSON line of a benchmark."""
    print(json.dumps({"benchmark": benchmark, "work": work, **figures}))
