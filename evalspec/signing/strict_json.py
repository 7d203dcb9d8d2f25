"""Is this JSON what it seems to be?  No duplicate keys, no NaN or infinity, no bottomless nesting, a limit on size."""

from __future__ import annotations

import json
import math

from evalspec.artifacts.base import JsonValue

SIZE_LIMIT = 8 * 1024 * 1024


def parse_strictly(content: bytes, *, limit: int = SIZE_LIMIT) -> JsonValue:
    """Return the value that `content` holds; raises ValueError with the reason when it is not strict JSON of at most `limit` bytes."""
    if len(content) > limit:
        raise ValueError(f"{len(content)} bytes of JSON; at most {limit} are read")
    try:
        value: JsonValue = json.loads(
            content.decode("utf-8"), object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant, parse_float=_finite
        )
    except UnicodeDecodeError as error:
        raise ValueError("not UTF-8") from error
    except RecursionError as error:
        raise ValueError("JSON nested too deeply") from error
    return value


def _without_duplicates(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {key!r} stands twice in one JSON object")
            seen.add(key)
    return members


def _refuse_constant(name: str) -> JsonValue:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits} is too large for a number")
    return number
