"""Which benchmarks are there?  `python -m benchmarks` runs all of them, one after the other."""

from __future__ import annotations

import subprocess
import sys

NAMES = (
    "startup",
    "power",
    "boundary",
    "pairs",
    "redraw",
    "redraw_wide",
    "mdad",
    "harmony",
    "harmony_full",
    "benchpress",
    "growth",
    "coverage",
    "scoring_bundled",
    "plan_truth",
    "gpu_scoring",
    "report",
)


def main() -> int:
    """Run every benchmark; return how many failed."""
    return sum(subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode != 0 for name in NAMES)


if __name__ == "__main__":
    sys.exit(main())
