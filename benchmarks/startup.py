"""How long do people wait before anything happens?  `--help` and `validate`, against the help of two harnesses where they are installed."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from benchmarks.measuring import conclude, evalspec, median_child_seconds

BARS = {"help": 0.3, "validate": 0.7}


def main() -> None:
    """Measure our two verbs and the peers' help."""
    ours = {
        "help": round(median_child_seconds(evalspec("--help")), 3),
        "validate": round(median_child_seconds(evalspec("validate", "specs/demo.yaml")), 3),
    }
    peers = {}
    for name in ("lm_eval", "inspect"):
        command = shutil.which(name, path=str(Path(sys.executable).parent))
        peers[name] = round(median_child_seconds([command, "--help"], runs=3), 3) if command else None
    known = [seconds for seconds in peers.values() if seconds]
    figures = {
        "ours_s": ours["help"],
        "validate_s": ours["validate"],
        "peers_s": peers,
        "ratio": round(min(known) / ours["help"], 2) if known else None,
        "limit_s": BARS["help"],
        "of_limit": round(ours["help"] / BARS["help"], 2),
        "validate_limit_s": BARS["validate"],
        "agree": True,
    }
    conclude("startup", "evalspec --help; evalspec validate specs/demo.yaml", figures)


if __name__ == "__main__":
    main()
