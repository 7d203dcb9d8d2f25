from __future__ import annotations

from pathlib import Path

import pytest

from evalspec.errors import UsageError
from evalspec.settings import Settings, find_file, read_settings

DEFAULTS = Settings(cache=Path("cache"), hub_cache=Path("hub"))


def written(folder: Path, text: str) -> Path:
    file = folder / "evalspec.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_paths_in_the_file_resolve_from_its_folder(tmp_path: Path) -> None:
    settings = read_settings(written(tmp_path, 'key = "keys/signer.p12"\ntoken_budget = 512\n'), DEFAULTS)
    assert settings.key == tmp_path / "keys" / "signer.p12"
    assert (settings.token_budget, settings.cache) == (512, Path("cache"))


def test_what_was_given_on_the_command_line_wins_and_what_was_not_is_kept() -> None:
    assert DEFAULTS.updated({"cache": Path("other"), "threads": None}) == Settings(cache=Path("other"), hub_cache=Path("hub"))


def test_the_nearest_file_above_the_study_is_found(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert find_file(tmp_path / "a" / "b" / "study.yaml") is None
    outer = written(tmp_path, "")
    assert find_file(tmp_path / "a" / "b" / "study.yaml") == outer
    inner = written(tmp_path / "a", "")
    assert find_file(tmp_path / "a" / "b" / "study.yaml") == inner


@pytest.mark.parametrize(
    ("text", "message"),
    [("token_budget = 0", "token_budget"), ('device = "cuda"', "device"), ("cache = [", "not valid TOML"), ("threads = 'two'", "threads")],
)
def test_a_fault_in_the_file_is_named_with_the_known_keys(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_settings(written(tmp_path, text), DEFAULTS)
