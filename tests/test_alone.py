"""Two commands never write into one run's folder at once; when one has ended, however it ended, the other may."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalspec.alone import alone_in
from evalspec.cli import main
from evalspec.errors import StoreError


def test_a_folder_is_let_go_when_the_block_ends_also_by_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), alone_in(tmp_path):
        raise ZeroDivisionError
    with alone_in(tmp_path), pytest.raises(StoreError, match="another run is writing into"), alone_in(tmp_path):
        pass
    with alone_in(tmp_path):
        assert not list(tmp_path.iterdir())


def test_a_run_and_a_report_are_refused_where_another_is_at_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path / "first")]) == 0
    arguments = ["run", str(tmp_path / "first" / "study.yaml"), "--out", str(tmp_path / "out"), "--throwaway-key", "--no-pdf", "--quiet"]
    assert main(arguments) in {0, 1, 4}
    before = {entry.name: entry.read_bytes() for entry in (tmp_path / "out").iterdir()}
    capsys.readouterr()
    with alone_in(tmp_path / "out"):
        assert main(arguments) == 3
        assert "name another folder with --out" in capsys.readouterr().err
        assert main(["report", str(tmp_path / "out"), "--throwaway-key", "--no-pdf"]) == 3
    assert {entry.name: entry.read_bytes() for entry in (tmp_path / "out").iterdir()} == before
