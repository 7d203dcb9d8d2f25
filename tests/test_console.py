from __future__ import annotations

import io
import json
import re
import sys

import pytest

from evalspec.console import Console, printable
from evalspec.errors import Diagnostic, Location, StudyError
from evalspec.protocols import Progress


def test_control_and_bidirectional_characters_cannot_steer_the_terminal() -> None:
    assert printable("a\x1b[31mb\u202ec\nd") == "a‹U+001B›[31mb‹U+202E›c\nd"


def test_every_diagnostic_is_printed_with_its_place_excerpt_and_hint(capsys: pytest.CaptureFixture[str]) -> None:
    fault = Diagnostic("unknown key 'modells'", hint="did you mean 'models'?", location=Location("study.yaml", 3, 1), excerpt="modells:", span=7)
    Console().error(StudyError((fault, Diagnostic("another"))))
    printed = capsys.readouterr().err
    assert "study.yaml:3:1: unknown key 'modells'" in printed
    assert "| ^^^^^^^" in printed
    assert "hint: did you mean 'models'?" in printed
    assert "2 faults" in printed


def test_the_caret_stands_under_its_place_where_characters_take_two_columns_or_none() -> None:
    wide = Diagnostic("stray", location=Location("s.yaml", 1, 5), excerpt='"日本" x', span=1)
    assert str(wide).splitlines()[2] == "      | " + " " * 6 + "^"
    assert str(Diagnostic("all", location=Location("s.yaml", 1, 2), excerpt='"日本" x', span=2)).splitlines()[2] == "      |  ^^^^"
    assert str(Diagnostic("accent", location=Location("s.yaml", 1, 3), excerpt="e\u0301x", span=1)).splitlines()[2] == "      |  ^"


def test_a_hint_of_several_lines_stays_under_its_first(capsys: pytest.CaptureFixture[str]) -> None:
    Console().error(StudyError("no library", hint="install it:\nDebian: apt-get install it"))
    assert capsys.readouterr().err.splitlines()[1:] == ["      hint: install it:", "            Debian: apt-get install it"]


def test_an_error_is_one_json_object_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    Console(json=True).error(StudyError(Diagnostic("no", location=Location("s.yaml", 1, 2))))
    content = json.loads(capsys.readouterr().out)
    assert (content["error"], content["exit_code"], content["diagnostics"][0]["column"]) == ("StudyError", 2, 2)


def test_progress_off_a_terminal_takes_about_ten_lines_and_tells_rate_and_rest(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console()
    for done in range(101):
        console.progress(Progress("scoring", done, 100, "questions", "model-a"))
    lines = capsys.readouterr().err.splitlines()
    assert 9 <= len(lines) <= 12
    assert "questions/s" in lines[5]
    assert "left" in lines[5]
    assert "100%" in lines[-1]


class Terminal(io.StringIO):
    """A stream that says of itself that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_progress_on_a_narrow_terminal_is_one_moving_line_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "40")
    console = Console()
    for done in (0, 50, 100):
        console.progress(Progress("scoring", done, 100, "answers", "a-model-with-a-long-name on a-benchmark-with-a-long-name"))
    console.note("over")
    written = terminal.getvalue()
    moving, after = written.rsplit("\n", 2)[0], written.rsplit("\n", 2)[1]
    assert (moving.count("\n"), after) == (0, "over")
    assert max(map(len, moving.replace("\x1b[2K", "").split("\r"))) == 39
    assert re.search(r"\x1b\[[0-9;]*m", written) is None


def test_a_remark_does_not_stand_on_the_moving_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    console = Console()
    console.progress(Progress("scoring", 1, 100, "answers"))
    console.note("a warning")
    assert terminal.getvalue().endswith("1/100 answers\na warning\n")


def test_a_quiet_console_and_a_json_console_show_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    Console(quiet=True).progress(Progress("scoring", 1, 1, "questions"))
    Console(json=True).progress(Progress("scoring", 1, 1, "questions"))
    assert capsys.readouterr() == ("", "")
