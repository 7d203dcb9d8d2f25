"""What does a file that somebody else wrote hold?  Its bytes within a limit, and JSON as strict as the standard."""

from __future__ import annotations

import gzip
import io
import json
import math
import stat
import zlib
from collections.abc import Callable
from pathlib import Path

from evalspec.artifacts.base import JsonValue
from evalspec.errors import InputError

LARGEST_FILE = 1 << 30
"""Bytes that are read of a table, and that one may have when it is unpacked."""

LARGEST_OBJECT = 1 << 24
"""Bytes of a JSON file that is read whole, such as a model's config.json."""

DEEPEST = 32
"""Lists and objects inside each other."""

LONGEST_NUMBER = 300
"""Digits of a whole number; so many still fit into a float."""


def read_file(path: Path, *, name: str, limit: int = LARGEST_FILE) -> bytes:
    """Return the content of a regular file of at most `limit` bytes, called `name` in messages; raises InputError for anything else."""
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            raise InputError(f"'{name}' is {_sort_of(state.st_mode)}; a file is needed here")
        if state.st_size > limit:
            raise InputError(f"{name} has {state.st_size:,} bytes; at most {limit:,} are read")
        with path.open("rb") as stream:
            return stream.read(limit)
    except FileNotFoundError as error:
        raise InputError(f"there is no file '{name}'", hint="paths are read from the folder of the study file") from error
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror or error}") from error


def unpack(content: bytes, *, name: str, limit: int = LARGEST_FILE) -> bytes:
    """Return what gzip packed, if it is at most `limit` bytes, of which not many more are unpacked; raises InputError."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            unpacked = stream.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        reason = "it ends too early" if isinstance(error, EOFError) else "it is damaged, or packed in another way than gzip"
        raise InputError(f"{name} cannot be unpacked: {reason}", hint="its name ends in .gz; copy or download the file again") from error
    if len(unpacked) > limit:
        raise InputError(f"{name} unpacks to more than {limit:,} bytes, which is the most that is read")
    return unpacked


def parse_json(text: str, *, constant: Callable[[str], JsonValue] | None = None) -> JsonValue:
    """Return the JSON value of `text`, as strict as the standard; raises ValueError with what is wrong, and repeats no content.

    `constant` reads NaN, Infinity and -Infinity, which are refused without it, as are numbers too large for a float.
    """
    real = float if constant else _finite
    try:
        value: JsonValue = json.loads(text, object_pairs_hook=_distinct, parse_constant=constant or _no_constant, parse_int=_whole, parse_float=real)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at character {error.pos + 1}") from error
    except RecursionError as error:
        raise ValueError("lists or objects are nested too deeply") from error
    if text.count("[") + text.count("{") > DEEPEST and _is_deep(value):
        raise ValueError(f"lists or objects are nested too deeply: at most {DEEPEST} may stand inside each other")
    if "\\u" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ValueError("half of a character stands alone (a lone surrogate)") from error
    return value


def parse_bytes(content: bytes, *, limit: int) -> JsonValue:
    """Return the JSON value of at most `limit` bytes of UTF-8; raises ValueError as `parse_json` does."""
    if len(content) > limit:
        raise ValueError(f"{len(content):,} bytes of JSON; at most {limit:,} are read")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError("not UTF-8") from error
    return parse_json(text)


def read_object(path: Path, *, name: str) -> dict[str, JsonValue]:
    """Return the JSON object that a file holds; raises InputError when it is none."""
    content = read_file(path, name=name, limit=LARGEST_OBJECT)
    try:
        value = parse_json(content.decode("utf-8-sig"), constant=float)
    except ValueError as error:
        reason = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error
        raise InputError(f"{name} cannot be read as JSON: {reason}", hint="copy or download the file again") from error
    if not isinstance(value, dict):
        raise InputError(f"{name} is not a JSON object")
    return value


def _sort_of(mode: int) -> str:
    """Say what stands where a file should."""
    return "a folder" if stat.S_ISDIR(mode) else "no regular file but a pipe, a socket or a device"


def _distinct(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    cells = dict(pairs)
    if len(cells) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return cells


def _no_constant(name: str) -> JsonValue:
    raise ValueError(f"{name} is not a JSON value")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number is too large for a float")
    return number


def _whole(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise ValueError(f"a whole number has {len(digits):,} digits; at most {LONGEST_NUMBER} are read")
    return int(digits)


def _is_deep(value: JsonValue) -> bool:
    """Tell whether lists and objects stand deeper inside each other than is read, without recursion."""
    level = [value] if isinstance(value, list | dict) else []
    for _ in range(DEEPEST):
        inner = (one for outer in level for one in (outer.values() if isinstance(outer, dict) else outer))
        level = [one for one in inner if isinstance(one, list | dict)]
    return bool(level)
