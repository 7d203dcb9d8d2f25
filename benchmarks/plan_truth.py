"""Does the plan tell the truth?  A study is planned with a calibration and run; both times and both memories are printed.

`python -m benchmarks.plan_truth specs/public-models.yaml` takes another study than the demonstration, here one of a public model.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.measuring import ROOT, conclude, evalspec

DEMO = ROOT / "specs" / "demo.yaml"
TIME_BAR, MEMORY_BAR = 1.5, 0.2


def main() -> None:
    """Plan, run, and print the one line; by the wall, which is what the plan speaks of."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plan_truth", description=__doc__)
    parser.add_argument("study", nargs="?", type=Path, default=DEMO, help="a study whose models are here (default: specs/demo.yaml)")
    study: Path = parser.parse_args().study.resolve()
    with tempfile.TemporaryDirectory() as folder:
        cache = ["--cache", str(Path(folder) / "cache")]
        began = time.perf_counter()
        plan = _plan(study, *cache, "--calibrate")
        calibration = time.perf_counter() - began
        reached = sum(job["journalled"] for job in plan["jobs"]) / sum(job["questions"] for job in plan["jobs"])
        scored = _run(study, Path(folder) / "run", *cache)
        after = {need["model"]: _total(need) for need in _plan(study, *cache)["memory"]}
    memory = {need["model"]: round(_total(need) / after[need["model"]], 3) for need in plan["memory"]}
    ratio = scored / plan["seconds"]
    figures = {
        "planned_s": round(plan["seconds"], 2),
        "scoring_s": round(scored, 2),
        "ratio": round(ratio, 2),
        "time_bar": TIME_BAR,
        "memory_planned_over_used": memory,
        "memory_bar": MEMORY_BAR,
        "calibration_s": round(calibration, 2),
        "share_calibrated": round(reached, 3),
        "agree": 1 / TIME_BAR <= ratio <= TIME_BAR and all(abs(one - 1) <= MEMORY_BAR for one in memory.values()),
    }
    conclude("plan_truth", f"{study.name}: planned with --calibrate and run", figures)


def _plan(study: Path, *options: str) -> dict[str, Any]:
    content = json.loads(_said("plan", str(study), "--json", *options))
    schedule: dict[str, Any] = content["schedule"]
    return schedule


def _run(study: Path, out: Path, *options: str) -> float:
    """Run the study; returns how long scoring took, from its first word of progress to its last."""
    command = evalspec("run", str(study), "--no-pdf", "--throwaway-key", "--out", str(out), *options)
    began = last = None
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("scoring"):
                last = time.perf_counter()
                began = began or last
    if began is None or last is None:
        raise RuntimeError(f"{' '.join(command)} told nothing of its scoring")
    return last - began


def _said(*arguments: str) -> str:
    return subprocess.run(evalspec(*arguments), cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _total(need: dict[str, Any]) -> float:
    return float(need["weights_bytes"] + need["working_bytes"])


if __name__ == "__main__":
    main()
