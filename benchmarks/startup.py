"""How long do people wait before anything happens?  `--help` and `validate`, against the help of two harnesses where they are installed.

The harnesses are looked for beside this Python and then on PATH, so that each can have an environment of its own.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
from pathlib import Path

from benchmarks.measuring import child_seconds, conclude, evalspec

BARS = {"help": 0.3, "validate": 0.7}
OURS = {"help": evalspec("--help"), "validate": evalspec("validate", "specs/demo.yaml")}
PEERS = ("lm_eval", "inspect")
TURNS = 9


def main() -> None:
    """Measure our two verbs and the peers' help in turns, so that all meet the same machine."""
    commands = {**OURS, **{name: [found, "--help"] for name in PEERS if (found := _find(name))}}
    for command in commands.values():
        child_seconds(command)
    turns = [{name: child_seconds(command) for name, command in commands.items()} for _ in range(TURNS)]
    medians = {name: round(statistics.median(turn[name] for turn in turns), 3) for name in commands}
    known = [medians[name] for name in PEERS if name in medians]
    figures = {
        "ours_s": medians["help"],
        "validate_s": medians["validate"],
        "peer_s": min(known, default=None),
        "peers_s": {name: medians.get(name) for name in PEERS},
        "ratio": round(min(known) / medians["help"], 1) if known else None,
        "validate_ratio": round(min(known) / medians["validate"], 1) if known else None,
        "limit_s": BARS["help"],
        "of_limit": round(medians["help"] / BARS["help"], 2),
        "validate_limit_s": BARS["validate"],
        "validate_of_limit": round(medians["validate"] / BARS["validate"], 2),
        "agree": all(medians[name] <= bar for name, bar in BARS.items()),
    }
    conclude("startup", "evalspec --help; evalspec validate specs/demo.yaml", figures)


def _find(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath))))


if __name__ == "__main__":
    main()
