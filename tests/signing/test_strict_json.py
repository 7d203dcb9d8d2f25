from __future__ import annotations

import pytest

from evalspec.signing.strict_json import parse_strictly


def test_plain_json_is_read() -> None:
    assert parse_strictly(b'{"a": [1, 2.5, null, true, "x"]}') == {"a": [1, 2.5, None, True, "x"]}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"a": 1, "b": {"c": 1, "c": 2}}', "'c' stands twice"),
        (b"[NaN]", "NaN is not JSON"),
        (b"[-Infinity]", "-Infinity is not JSON"),
        (b"[1e999]", "too large"),
        (b"[" * 100_000, "nested too deeply"),
        (b"\xff", "not UTF-8"),
        (b"{", "Expecting"),
        (b"[" + b"1" * 5000 + b"]", "Exceeds the limit"),
    ],
)
def test_json_that_readers_could_understand_differently_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_strictly(content)


def test_json_beyond_the_limit_is_not_read() -> None:
    with pytest.raises(ValueError, match="at most 4"):
        parse_strictly(b"[1, 2]", limit=4)
