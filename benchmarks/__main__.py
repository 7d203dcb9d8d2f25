"""Which benchmarks are there?  `python -m benchmarks` runs all of them, one after the other, or those that are named."""

from __future__ import annotations

import argparse
import subprocess
import sys

NAMES = (
    "startup",
    "power",
    "boundary",
    "bounded_means",
    "cluster_sizes",
    "weighted_strata",
    "separations",
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
    "scoring_letter",
    "scoring_option",
    "scoring_prefix",
    "plan_truth",
    "gpu_scoring",
    "report",
)


def main() -> int:
    """Run the benchmarks one after the other; return how many failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure, and print one line of JSON for each benchmark.")
    parser.add_argument("names", nargs="*", metavar="NAME", default=NAMES, help=f"one of {', '.join(NAMES)}; default: all")
    names: tuple[str, ...] = parser.parse_args().names
    for name in names:
        if name not in NAMES:
            parser.error(f"there is no benchmark '{name}'; there are {', '.join(NAMES)}")
    return sum(subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode != 0 for name in names)


if __name__ == "__main__":
    sys.exit(main())
