"""How does the command line speak?  Results to stdout, progress and notes to stderr, JSON for machines."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from evalspec.errors import Diagnostic, EvalspecError, StoreError, counted

if TYPE_CHECKING:
    from evalspec.artifacts.base import JsonValue
    from evalspec.protocols import Progress

REDRAW_SECONDS = 0.2
PLAIN_STEPS = 10
FEW = 20
"""Units below which a step shows neither rate nor remaining time."""


@dataclass(slots=True)
class Console:
    """Prints for people, or one JSON object on stdout for machines; `quiet` drops progress and notes."""

    json: bool = False
    quiet: bool = False
    _started: dict[str, tuple[float, int]] = field(default_factory=dict)
    _shown: tuple[str, int, int] = ("", -1, -1)
    _drawn: float = 0.0
    _open: bool = False

    def result(self, content: Mapping[str, JsonValue], text: str) -> None:
        """Print the result of a verb: `content` as JSON when asked for, else `text`."""
        self._close()
        _print(json.dumps(content, indent=2) if self.json else printable(text), sys.stdout)

    def note(self, text: str) -> None:
        """Print a remark to stderr."""
        self._close()
        if not self.quiet:
            _print(printable(text), sys.stderr)

    def error(self, error: EvalspecError) -> None:
        """Print every diagnostic of an error; as a JSON object on stdout when asked for."""
        self._close()
        if self.json:
            _print(json.dumps(error_content(error), indent=2), sys.stdout)
            return
        for diagnostic in error.diagnostics:
            prefix = "" if diagnostic.location else "error: "
            _print(printable(f"{prefix}{diagnostic}"), sys.stderr)
        if len(error.diagnostics) > 1:
            _print(counted(len(error.diagnostics), "fault"), sys.stderr)

    def progress(self, progress: Progress) -> None:
        """Show how far a step is, with rate and remaining time: one moving line on a terminal, about ten lines elsewhere."""
        if progress.warning:
            self.note(f"warning: {progress.warning}")
        if self.quiet or self.json or not progress.total:
            return
        now = time.monotonic()
        started, first = self._started.get(progress.stage, (now, progress.done))
        if progress.done == first:
            started = now  # before the first result the time goes into loading, which says nothing about the rate
        self._started[progress.stage] = started, first
        line, finished = _line(progress, now - started, first), progress.done >= progress.total
        if sys.stderr.isatty():
            if now - self._drawn >= REDRAW_SECONDS or finished:
                self._drawn, self._open = now, not finished
                _print(f"\r\x1b[2K{line[: shutil.get_terminal_size().columns - 1]}", sys.stderr, end="\n" if finished else "")
        elif self._is_news(progress):
            _print(line, sys.stderr)
        if finished:
            self._started.pop(progress.stage, None)

    def _is_news(self, progress: Progress) -> bool:
        """Whether a tenth more is done, or something other than counting goes on, such as loading a model."""
        stage, tenth, done = self._shown
        now = progress.stage, progress.done * PLAIN_STEPS // progress.total, progress.done
        news = (stage, tenth) != now[:2] or done == progress.done
        self._shown = now if news else (stage, tenth, progress.done)
        return news

    def _close(self) -> None:
        if self._open:
            _print("", sys.stderr)
            self._open = False


def open_streams() -> None:
    """Make the standard streams usable whatever they are: characters that they cannot show become codes, one that is closed leads nowhere."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open as long as the process is
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr] # the standard streams are text files


def close_streams() -> None:
    """Write out what the standard streams still hold, such as a help text; raises StoreError as `Console.result` does."""
    for stream in (sys.stderr, sys.stdout):
        _print("", stream, end="")


def error_content(error: EvalspecError) -> dict[str, JsonValue]:
    """Return an error as a JSON object."""
    return {"error": type(error).__name__, "exit_code": error.exit_code, "diagnostics": [_fault(diagnostic) for diagnostic in error.diagnostics]}


def printable(text: str) -> str:
    """Return `text` with control, escape and bidirectional characters written as codes, so that a name cannot steer the terminal."""
    return "".join(
        character if character in "\n\t" or unicodedata.category(character) not in {"Cc", "Cf", "Cs"} else f"‹U+{ord(character):04X}›"
        for character in text
    )


def _line(progress: Progress, seconds: float, first: int) -> str:
    share = progress.done / progress.total if progress.total else 1.0
    rate = (progress.done - first) / seconds if seconds > 0 else 0.0
    left = f", {_duration((progress.total - progress.done) / rate)} left" if rate and progress.done < progress.total else ""
    speed = f", {rate:,.0f} {progress.unit}/s" if rate >= 1 else ""
    if progress.total < FEW:
        left = speed = ""
    note = f"  {printable(progress.note)}" if progress.note else ""
    return f"{progress.stage:<9}{share:>5.0%}  {progress.done:,}/{progress.total:,} {progress.unit}{speed}{left}{note}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _fault(diagnostic: Diagnostic) -> dict[str, JsonValue]:
    place = diagnostic.location
    return {
        "message": diagnostic.message,
        "hint": diagnostic.hint,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
    }


def _print(text: str, stream: TextIO, *, end: str = "\n") -> None:
    """Print to a standard stream; a reader who has gone, as after `| head`, ends nothing and changes no exit code.

    Raises StoreError where a result cannot be written for another reason, such as a full disk.
    """
    try:
        print(text, file=stream, end=end, flush=True)
    except OSError as error:
        _silence(stream)
        if stream is sys.stdout and not isinstance(error, BrokenPipeError):
            raise StoreError(f"the result cannot be written: {error.strerror}") from error


def _silence(stream: TextIO) -> None:
    """Send what is left in a stream, and all that follows, nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
