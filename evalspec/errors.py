"""What can go wrong, where was it, and how is it mended?

One tree.  `cli.main` is the only place that catches `EvalspecError`; anything else is a bug and shows its traceback.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place in a text file; line and column count from 1."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One fault: what was wrong and, where known, its place, its source line and how to mend it."""

    message: str
    hint: str | None = None
    location: Location | None = None
    excerpt: str | None = None
    span: int = 1

    def __str__(self) -> str:
        """Render as `file:line:column: message`, the excerpt with carets below, then the hint."""
        where = f"{self.location}: " if self.location else ""
        lines = [f"{where}{self.message}"]
        if self.location and self.excerpt is not None:
            gutter = f"{self.location.line:>5} | "
            lines.append(gutter + self.excerpt)
            start = self.location.column - 1
            before, marked = _columns(self.excerpt[:start]), _columns(self.excerpt[start : start + self.span])
            lines.append(" " * (len(gutter) - 2) + "| " + " " * before + "^" * max(1, marked))
        if self.hint:
            lines.append("      hint: " + self.hint.replace("\n", "\n" + " " * 12))
        return "\n".join(lines)


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun.

    >>> counted(1, "check"), counted(2, "analysis", "analyses")
    ('1 check', '2 analyses')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def in_file_order(faults: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return faults by the place that they name; those that name none stand last."""
    return sorted(faults, key=lambda fault: (fault.location is None, fault.location or Location("", 0)))


def _columns(text: str) -> int:
    """Return how many columns of a terminal a text takes: two for a wide character (UAX #11), none for a combining one."""
    return sum(0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "FW" else 1 for character in text)


class EvalspecError(Exception):
    """A fault that a user can mend; carries every diagnostic at once, each one time, and the exit code of the command."""

    exit_code = 3

    def __init__(self, diagnostics: Diagnostic | Iterable[Diagnostic] | str, *, hint: str | None = None) -> None:
        if isinstance(diagnostics, str):
            diagnostics = Diagnostic(diagnostics, hint=hint)
        if isinstance(diagnostics, Diagnostic):
            diagnostics = (diagnostics,)
        self.diagnostics = tuple(dict.fromkeys(diagnostics))
        super().__init__("\n".join(str(diagnostic) for diagnostic in self.diagnostics))


class StudyError(EvalspecError):
    """The study file does not say something that can be run."""

    exit_code = 2


class UsageError(EvalspecError):
    """The command line asks for something that does not exist or does not fit together."""

    exit_code = 2


class InputError(EvalspecError):
    """A file that the study names cannot be read, or its content is wrong."""


class ScoringError(EvalspecError):
    """A model could not be scored; batches finished before stay in the journal."""


class AnalysisError(EvalspecError):
    """An analysis cannot be computed from these responses."""


class StoreError(EvalspecError):
    """A run directory cannot be written, or what is in it does not fit together."""


class ReportError(EvalspecError):
    """The report cannot be rendered; what was computed stays."""


class MissingLibrary(EvalspecError):
    """A library that this step needs is not installed."""


class SigningError(EvalspecError):
    """A key cannot be read or made, or a signature cannot be made or checked."""


class SecretError(EvalspecError):
    """A secret of this user cannot be read or kept."""


class Interrupted(EvalspecError):
    """Somebody stopped the command, as with Ctrl-C."""

    exit_code = 130


def refuse_all(of_study: Sequence[Diagnostic], of_files: Sequence[Diagnostic]) -> None:
    """Raise every fault at once: as StudyError where the study itself is wrong, else as InputError; does nothing where there are none."""
    if of_study:
        raise StudyError((*of_study, *of_files))
    if of_files:
        raise InputError(of_files)


def how_to_install(extra: str) -> str:
    """Return how the libraries of an extra are got: from a clone, since no package index has this distribution."""
    return f"install the extra `{extra}`, in the folder of your clone of evalspec: python -m pip install -c constraints.txt '.[{extra}]'"


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Name a file in an OSError that does not say what it is about, as that of a write to a full disk does not."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(file)
        raise
