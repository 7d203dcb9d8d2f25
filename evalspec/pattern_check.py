"""Can a pattern of the study be used, and does it say what is found?  Patterns are those of RE2, an engine that never goes back in a text."""

from __future__ import annotations


def pattern_fault(pattern: str) -> str | None:
    """Return what is wrong with a pattern, in words; None where nothing is."""
    import pyarrow as pa  # noqa: PLC0415 - costs half a second, and most studies have no patterns

    try:
        groups_of(pattern)
    except pa.ArrowInvalid as error:
        return str(error).removeprefix("Invalid regular expression: ").splitlines()[0][:200]
    return None


def groups_of(pattern: str) -> int:
    """Return how many groups a pattern has, 2 standing for more as well; raises ArrowInvalid, a ValueError, where it is none."""
    import pyarrow as pa  # noqa: PLC0415 - as above
    import pyarrow.compute as pc  # noqa: PLC0415 - as above

    nothing = pa.array([""], pa.string())
    pc.replace_substring_regex(nothing, pattern=pattern, replacement="")
    for number in (2, 1):
        try:
            pc.replace_substring_regex(nothing, pattern=pattern, replacement=f"\\{number}")
        except pa.ArrowInvalid:
            continue
        return number
    return 0
