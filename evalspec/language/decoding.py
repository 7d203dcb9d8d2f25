"""Are these bytes a text that we can show and parse?"""

from __future__ import annotations

import re

from evalspec.errors import Diagnostic, Location, StudyError
from evalspec.language.positions import Page

MAX_BYTES = 1 << 20
INVISIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")
LINE_BREAK = re.compile(r"\r\n|\r|\n")


def decode(text: bytes, file: str) -> Page:
    """Return the lines of a UTF-8 text, a byte order mark left out; raises StudyError for anything else."""
    if len(text) > MAX_BYTES:
        raise StudyError(
            f"{file} has more than the {MAX_BYTES:,} bytes that a study may have", hint="keep questions and results in files of their own"
        )
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = text[: error.start].decode("utf-8-sig", errors="replace")
        raise _stop(file, before, f"the byte {text[error.start]:#04x} is not UTF-8", "save the file as UTF-8") from error
    found = INVISIBLE.search(decoded)
    if found:
        message = f"the invisible character U+{ord(found.group()):04X} is not allowed in a study"
        raise _stop(file, decoded[: found.start()], message, "delete it, or type the word anew")
    return Page(file, tuple(LINE_BREAK.split(decoded)))


def _stop(file: str, before: str, message: str, hint: str) -> StudyError:
    lines = LINE_BREAK.split(before)
    return StudyError(Diagnostic(message, hint, Location(file, len(lines), len(lines[-1]) + 1)))
