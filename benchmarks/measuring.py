"""How is CPU time measured?  Whole processes with their children, medians, and one line of JSON at the end."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]


def child_seconds(command: Sequence[str], *, expected: int = 0) -> float:
    """Return the CPU seconds, user and system, of a command and its children; raises RuntimeError when it ends otherwise than expected."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != expected:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def median_child_seconds(command: Sequence[str], *, runs: int = 5, expected: int = 0) -> float:
    """Return the median CPU seconds of several runs, after one that is not counted."""
    child_seconds(command, expected=expected)
    return statistics.median(child_seconds(command, expected=expected) for _ in range(runs))


def evalspec(*arguments: str) -> list[str]:
    """Return the command line of one verb under this Python."""
    return [sys.executable, "-m", "evalspec", *arguments]


def conclude(benchmark: str, work: str, figures: Mapping[str, object]) -> None:
    """Print the one JSON line of a benchmark."""
    print(json.dumps({"benchmark": benchmark, "work": work, **figures}))
