"""Does the demonstration come out as it must?  Runs `specs/demo.yaml` from scoring to a verified report and asserts every outcome."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "reports" / "demo"
TRUST = ROOT / "reports" / "demo.trust.yaml"
OUTCOMES = {"above-chance": "passed", "large-beats-mid": "failed", "gpt2-beats-mid": "inconclusive"}


def evalspec(*arguments: str, expected: int) -> None:
    """Run one verb, show what it prints, and stop the demonstration unless its exit code is the expected one."""
    print(f"\n$ evalspec {' '.join(arguments)}", flush=True)
    code = subprocess.run([sys.executable, "-m", "evalspec", *arguments], cwd=ROOT, check=False).returncode
    if code != expected:
        sys.exit(f"the demonstration is broken: exit code {code}, expected {expected}")


def main() -> None:
    """Validate, plan, run, verify with and without trust, recompute."""
    started = time.monotonic()
    evalspec("validate", "specs/demo.yaml", expected=0)
    evalspec("plan", "specs/demo.yaml", expected=0)
    evalspec("run", "specs/demo.yaml", "--out", "reports/demo", "--throwaway-key", "--trust-out", str(TRUST.relative_to(ROOT)), expected=1)
    verdict = json.loads((REPORT / "verdict.json").read_text(encoding="utf-8"))
    found = {check["check"]["id"]: check["outcome"] for check in verdict["checks"]}
    if found != OUTCOMES:
        sys.exit(f"the demonstration is broken: the outcomes are {found}, expected {OUTCOMES}")
    evalspec("verify", "reports/demo", expected=4)
    evalspec("verify", "reports/demo", "--trust", str(TRUST.relative_to(ROOT)), "--recompute", expected=0)
    print(f"\nOne check passed, one failed and one is inconclusive, as they must: exit code 1. ({time.monotonic() - started:.0f} s)")
    print("Read the report: reports/demo/report.html or reports/demo/report.pdf")


if __name__ == "__main__":
    main()
