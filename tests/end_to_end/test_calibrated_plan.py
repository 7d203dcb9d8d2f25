"""`plan --calibrate` measures; what it adds to memory is what a part of the answers cannot show."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Command, Run


def test_memory_is_measured_with_a_tenth_on_top_until_all_is_scored(
    scored: Run, workplace: Path, tmp_path: Path, process: Command, make: SimpleNamespace
) -> None:
    place = Path(shutil.copytree(workplace, tmp_path / "place", ignore=shutil.ignore_patterns("whole", "reports")))
    plan = ("plan", "study.yaml", "--json", "--token-budget", str(make.budget), "--cache")
    estimated, measured = (process(*plan, "new", *more, cwd=place).content["schedule"] for more in ((), ("--calibrate",)))
    known = process(*plan, scored.cache, cwd=workplace).content["schedule"]
    assert 0 < sum(job["journalled"] for job in measured["jobs"]) < sum(job["questions"] for job in measured["jobs"])
    for guess, need, used in zip(estimated["memory"], measured["memory"], known["memory"], strict=True):
        assert (guess["measured"], need["measured"], used["measured"]) == (False, True, True)
        ratio = (need["weights_bytes"] + need["working_bytes"]) / (used["weights_bytes"] + used["working_bytes"])
        assert ratio == pytest.approx(1.1, rel=0.15)
