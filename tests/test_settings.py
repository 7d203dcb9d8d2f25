from __future__ import annotations

from pathlib import Path

import pytest

from evalspec.errors import UsageError
from evalspec.scoring.silence import LEAST_SILENCE
from evalspec.settings import Settings, find_file, read_settings, settings_for, user_folder

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


def test_devices_are_a_list_with_commas(tmp_path: Path) -> None:
    assert DEFAULTS.devices == ("auto",)
    assert read_settings(written(tmp_path, 'devices = "cpu,cpu"'), DEFAULTS).devices == ("cpu", "cpu")


def test_how_long_a_worker_may_be_silent_is_ten_minutes_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    assert DEFAULTS.worker_silence == LEAST_SILENCE
    assert read_settings(written(tmp_path, "worker_silence = 90"), DEFAULTS).worker_silence == 90


def test_every_fault_in_the_file_has_its_line_plain_words_and_a_hint_that_is_about_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read_settings(written(tmp_path, 'cache = 3\n\nthreds = 2\nexecutor = "slurm"\nthreads = "two"\n'), DEFAULTS)
    faults = caught.value.diagnostics
    assert [fault.location and (fault.location.line, fault.location.column) for fault in faults] == [(1, 1), (3, 1), (4, 1), (5, 1)]
    assert [fault.message for fault in faults] == [
        "cache: must be a valid string, not 3",
        "threds: unknown key",
        "executor: must be 'local' or 'ray', not 'slurm'",
        "threads: must be a valid integer, not 'two'",
    ]
    assert [fault.hint for fault in faults] == [None, "did you mean threads?", None, None]


@pytest.mark.parametrize(("text", "place"), [("a = 1\nb = = 2\n", (2, 5)), ("threads = 1\ncache = [\n", (2, 1))])
def test_what_is_no_toml_has_its_place(tmp_path: Path, text: str, place: tuple[int, int]) -> None:
    with pytest.raises(UsageError) as caught:
        read_settings(written(tmp_path, text), DEFAULTS)
    location = caught.value.diagnostics[0].location
    assert location is not None
    assert (location.line, location.column) == place


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("devices = 'gpu'", "devices: .*'gpu' names no devices; allowed are"),
        ("devices = ['cpu']", "devices"),
        ("token_budget = 0", "token_budget"),
        ("worker_silence = 0.5", "worker_silence: must be greater than or equal to 1, not 0.5"),
        ("worker_silence = true", "worker_silence"),
        ("worker_silence = inf", "worker_silence"),
        ('device = "cuda"', "device"),
        ("cache = [", "not valid TOML"),
        ("threads = 'two'", "threads"),
        ("cache = ''", "cache"),
        ('key = "a\\u0000b"', "key"),
        ("cache = " + "[" * 100_000, "nested too deeply"),
        ("threads = " + "9" * 5000, "not valid TOML: Exceeds the limit"),
        ("#" * 1_100_000, "larger than 1048576 bytes"),
    ],
)
def test_a_fault_in_the_file_is_named_with_the_known_keys(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_settings(written(tmp_path, text), DEFAULTS)


def nobody(_uid: int) -> None:
    raise KeyError("uid not found")


def test_a_users_own_files_lie_in_the_configuration_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_folder({"XDG_CONFIG_HOME": "/etc/mine"}) == Path("/etc/mine/evalspec")
    assert user_folder({"XDG_CONFIG_HOME": "relative"}) == user_folder({}) == tmp_path / ".config" / "evalspec"


def test_a_user_without_a_home_folder_has_none_and_settings_all_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", nobody)
    assert user_folder({}) is None
    assert settings_for(tmp_path / "study.yaml", {}, {}).user_folder is None
