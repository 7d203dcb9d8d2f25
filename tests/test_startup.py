"""What does a verb import?  Lists instead of times: nobody waits for a library that the verb has no use for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"torch", "transformers", "tokenizers", "safetensors", "weasyprint", "pyhanko", "fontTools", "matplotlib", "pandas", "statsmodels", "httpx2"}
NUMBERS = {"numpy", "scipy", "pyarrow"}
COMPOSING = {"jinja2", "cryptography", "shtab"}


def libraries(*command: str, cwd: Path) -> set[str]:
    """Return the top-level names that a command imports; it must end with 0."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env={**os.environ, "PYTHONPROFILEIMPORTTIME": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines() if line.startswith("import time:")}


def test_the_help_imports_nothing_from_outside_the_standard_library(root: Path) -> None:
    found = libraries("-m", "evalspec", "--help", cwd=root)
    assert "evalspec" in found
    assert found & (HEAVY | NUMBERS | COMPOSING | {"pydantic", "yaml"}) == set()


def test_validating_a_study_of_checkpoints_imports_no_library_that_computes_or_composes(root: Path) -> None:
    found = libraries("-m", "evalspec", "validate", "specs/demo.yaml", cwd=root)
    assert {"evalspec", "pydantic", "yaml"} <= found
    assert found & (HEAVY | NUMBERS | COMPOSING) == set()


@pytest.mark.parametrize("arguments", [("validate",), ("plan",)])
def test_a_study_of_recorded_answers_needs_no_model_library(root: Path, arguments: tuple[str, ...]) -> None:
    assert libraries("-m", "evalspec", *arguments, "specs/article-replay.yaml", cwd=root) & HEAVY == set()


def test_verifying_a_report_imports_no_library_that_scores_computes_or_composes(root: Path) -> None:
    found = libraries("-c", "import sys; from evalspec.cli import main; sys.exit(main(['verify', 'reports/example']) % 4)", cwd=root)
    assert {"evalspec", "cryptography"} <= found
    assert found & ((HEAVY - {"pyhanko"}) | NUMBERS | {"jinja2"}) == set()


def test_every_analysis_can_be_asked_for_without_the_libraries_that_compute_it(root: Path) -> None:
    ask_for_all = "from evalspec.analyses.catalogue import built_in; assert len(list(built_in().values())) >= 10"
    assert libraries("-c", ask_for_all, cwd=root) & (HEAVY | NUMBERS | COMPOSING) == set()
