"""How does the command line behave when its streams, its places or its arguments are not what they should be, and when somebody stops it?"""

from __future__ import annotations

import json
import os
import pwd
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evalspec.cli import main

COMMAND = (sys.executable, "-m", "evalspec")
PATIENCE = 60.0


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A first study, which replays invented answers."""
    folder = tmp_path_factory.mktemp("first")
    assert main(["init", str(folder / "study")]) == 0
    return folder / "study" / "study.yaml"


def environment(**more: str) -> dict[str, str]:
    """This environment without what changes how Python buffers its streams."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "EVALSPEC_"))} | {"OMP_NUM_THREADS": "1"} | more


@contextmanager
def start(*arguments: str | Path, cwd: Path, **streams: int | None) -> Iterator[subprocess.Popen[str]]:
    """Start a command of its own, without a terminal, which does not outlive the block."""
    given: dict[str, int | None] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
    command = [*COMMAND, *map(str, arguments)]
    with subprocess.Popen(command, cwd=cwd, env=environment(), text=True, **given) as running:  # type: ignore[call-overload]
        try:
            yield running
        finally:
            running.kill()


def without_reader(*arguments: str | Path, cwd: Path, stream: str) -> tuple[int, str]:
    """Return the exit code and the other stream of a command of which nobody reads one stream."""
    reading, writing = os.pipe()
    os.close(reading)
    with start(*arguments, cwd=cwd, **{stream: writing}) as running:
        os.close(writing)
        out, err = running.communicate(timeout=PATIENCE)
    return running.returncode, err if stream == "stdout" else out


def opened_by_reader(pipe: Path, reader: subprocess.Popen[str]) -> int:
    """Open a named pipe for writing as soon as a command reads from it."""
    limit = time.monotonic() + PATIENCE
    while True:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads yet
            assert reader.poll() is None, reader.communicate()
            assert time.monotonic() < limit, "nobody opened the pipe"
            time.sleep(0.005)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("--help",), 0), (("--version",), 0), (("validate", "study.yaml"), 0), (("schema",), 0), (("validate", "absent.yaml", "--json"), 2)],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_reader_who_has_gone_changes_no_exit_code_and_brings_no_complaint(study: Path, arguments: tuple[str, ...], code: int) -> None:
    assert without_reader(*arguments, cwd=study.parent, stream="stdout") == (code, "")


def test_a_run_whose_progress_nobody_reads_goes_on_to_its_report(study: Path, tmp_path: Path) -> None:
    code, said = without_reader("run", study, "--no-pdf", cwd=tmp_path, stream="stderr")
    assert (code, "verdict: passed" in said, (tmp_path / "reports" / "study" / "report.html").is_file()) == (0, True, True)
    assert without_reader("validate", "absent.yaml", cwd=tmp_path, stream="stderr") == (2, "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_from_the_start_is_no_fault(study: Path, closed: str) -> None:
    command = f"{sys.executable} -m evalspec validate study.yaml {closed}"
    done = subprocess.run(["sh", "-c", command], cwd=study.parent, env=environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [("--help",), ("validate", "study.yaml")])
def test_a_result_that_cannot_be_written_is_3_and_says_why(study: Path, arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full, start(*arguments, cwd=study.parent, stdout=full.fileno()) as running:
        _, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, err) == (3, "error: the result cannot be written: No space left on device\n")


def test_characters_that_a_stream_cannot_show_become_codes(study: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "study.yaml"
    wrong.write_text(study.read_text(encoding="utf-8").replace("models:", "modèles:"), encoding="utf-8")
    plain = environment(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    done = subprocess.run([*COMMAND, "validate", "study.yaml"], cwd=tmp_path, env=plain, capture_output=True, check=False)
    assert (done.returncode, b"mod\\xe8les" in done.stderr, b"Traceback" in done.stderr) == (2, True, False)


@pytest.mark.parametrize(("verb", "goes_on"), [("validate", False), ("run", True)])
def test_ctrl_c_ends_a_verb_with_130_and_says_what_is_kept_where_something_is(tmp_path: Path, verb: str, goes_on: bool) -> None:
    os.mkfifo(tmp_path / "study.yaml")
    with start(verb, "study.yaml", cwd=tmp_path) as running:
        held = opened_by_reader(tmp_path / "study.yaml", running)  # the command now waits for the study to be written
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=PATIENCE)
        os.close(held)
    assert (running.returncode, "Traceback" in err) == (130, False)
    assert err.startswith("error: stopped\n")
    assert ("every finished batch of a run is kept" in err) == goes_on


AT_THE_IMPORT = """
import sys
class Happening:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise {what}
sys.meta_path.insert(0, Happening())
sys.argv = ["evalspec", "validate", "study.yaml"]
from evalspec.__main__ import start
start()
"""


def at_the_import(module: str, what: str, *, stderr: int = subprocess.PIPE) -> tuple[int, str]:
    """Return exit code and stderr of `evalspec validate study.yaml` to which something happens when it imports a module."""
    command = [sys.executable, "-c", AT_THE_IMPORT.format(module=module, what=what)]
    done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, stderr=stderr, text=True, check=False)
    return done.returncode, done.stderr


def test_ctrl_c_before_there_is_a_command_line_is_130_without_a_traceback() -> None:
    assert at_the_import("evalspec.cli", "KeyboardInterrupt") == (130, "")
    assert at_the_import("evalspec.checking", "KeyboardInterrupt") == (130, "error: stopped\n")


def test_a_bug_shows_its_traceback_and_is_never_taken_for_a_failed_check() -> None:
    code, err = at_the_import("evalspec.checking", "RuntimeError('a bug')")
    assert (code, "RuntimeError: a bug" in err, "this is a bug in evalspec" in err) == (3, True, True)
    reading, writing = os.pipe()
    os.close(reading)
    assert at_the_import("evalspec.checking", "RuntimeError('a bug')", stderr=writing)[0] == 3
    os.close(writing)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("run", "study.yaml", "--thread", "2"), "did you mean --threads?"),
        (("verify", "x", "--recomptue"), "did you mean --recompute?"),
        (("validate", "study.yaml", "second.yaml"), "unrecognized arguments: second.yaml"),
        (("--quiet", "run", "study.yaml"), "--quiet stands behind the verb: evalspec run --quiet"),
        (("run", "study.yaml", "--threads", "٣"), "is not a whole number"),
        (("run", ""), "an empty text names no file"),
        (("run", "study.yaml", "--out", ""), "an empty text names no file"),
        (("verify", ""), "an empty text names no file"),
        (("verify", ".", "--fingerprint", ""), "'' is not a fingerprint"),
        (("report", "."), "there is no finished run in ."),
        (("report", "nowhere"), "there is no finished run in reports/nowhere"),
    ],
)
def test_a_wrong_command_line_is_2_and_says_what_was_wrong(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(study.parent)
    assert main(arguments) == 2
    assert says in capsys.readouterr().err


def test_the_hint_for_an_unknown_option_is_about_the_verb_that_was_typed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keygen", "--frobnicate", "--json", "--organisation", "X", "--out", "k.p12"]) == 2
    assert json.loads(capsys.readouterr().out)["diagnostics"][0]["hint"] == "see evalspec keygen --help"


def test_every_place_that_a_run_cannot_write_to_is_named_before_it_has_cost_anything(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert main(["run", str(study), "--no-pdf", "--out", "file/out", "--cache", "file/cache", "--trust-out", "file/trust.yaml"]) == 3
    said = capsys.readouterr().err
    assert main(["plan", str(study), "--cache", "file"]) == 3
    assert "the cache folder file is a file" in capsys.readouterr().err
    assert [f"file/{name} cannot be written" in said for name in ("out", "cache", "trust.yaml")] == [True, True, True]
    assert "/file is no folder: name another place with --out" in said
    assert "analyse" not in said


def test_a_folder_without_a_checkpoint_is_told_once_for_each_line_that_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path / "s")]) == 0
    (tmp_path / "s" / "empty").mkdir()
    written = tmp_path / "s" / "study.yaml"
    written.write_text(written.read_text(encoding="utf-8").replace("responses: recorded.csv", "path: empty"), encoding="utf-8")
    lines = [number for number, line in enumerate(written.read_text(encoding="utf-8").splitlines(), start=1) if "path: empty" in line]
    for verb in ("validate", "plan"):
        assert main([verb, str(written)]) == 3
        said = re.findall(r":(\d+):\d+: 'empty' has no config.json", capsys.readouterr().err)
        assert list(map(int, said)) == lines
    assert len(lines) == 2


def test_a_trust_file_that_is_none_leaves_no_new_key_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "team.yaml").write_text("- nothing")
    assert main(["keygen", "--organisation", "X", "--out", str(tmp_path / "k.p12"), "--no-passphrase", "--trust", str(tmp_path / "team.yaml")]) == 3
    assert "the trust file is not right" in capsys.readouterr().err
    assert not (tmp_path / "k.p12").exists()


def test_a_user_without_a_home_folder_can_do_everything_but_remember_keys(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unknown(_number: int) -> pwd.struct_passwd:
        raise KeyError

    for name in ("HOME", "XDG_CONFIG_HOME", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert main(["validate", str(study)]) == 0
    assert main(["verify", str(study.parent), "--tofu"]) == 2
    assert "there is no home folder to remember a key in" in capsys.readouterr().err


def test_no_passphrase_at_the_prompt_is_an_error_and_no_bug(tmp_path: Path) -> None:
    terminal, end = os.openpty()
    running = subprocess.Popen(
        ["setsid", "--ctty", *COMMAND, "keygen", "--organisation", "X", "--out", "k.p12"],  # passphrases are asked for on the terminal
        cwd=tmp_path,
        env=environment(),
        stdin=end,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(end)
    os.read(terminal, 100)  # the prompt
    os.write(terminal, b"\x04")
    _, err = running.communicate(timeout=PATIENCE)
    os.close(terminal)
    assert (running.returncode, "no passphrase was given" in err, (tmp_path / "k.p12").exists()) == (2, True, False)
