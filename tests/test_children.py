from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from evalspec import children


def test_a_child_sees_no_secret_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALSPEC_KEY_PASSPHRASE", "secret")
    assert "secret" not in children.environment().values()


def test_a_child_imports_nothing_from_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "argparse.py").write_text("open('ran', 'w')\n")
    done = subprocess.run(
        children.command("evalspec", "--version"), cwd=tmp_path, env=children.environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("evalspec ")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("errors", "library"),
    [
        ("Traceback (most recent call last):\nModuleNotFoundError: No module named 'fontTools'\n", "fontTools"),
        ("ModuleNotFoundError: No module named 'pyhanko.pdf_utils'; 'pyhanko' is not a package\n", "pyhanko"),
        ("MemoryError\n", None),
    ],
)
def test_the_library_that_a_child_lacks_is_told(errors: str, library: str | None) -> None:
    assert children.absent_library(errors) == library
