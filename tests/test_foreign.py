"""Files of others are read within limits and as strictly as their standards; what they are not is said in one plain line."""

from __future__ import annotations

import gzip
import os
import socket
from pathlib import Path

import pytest

from evalspec.errors import InputError
from evalspec.foreign import DEEPEST, LONGEST_NUMBER, parse_bytes, parse_json, read_file, read_object, unpack


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert read_file(tmp_path / "file", name="file", limit=5) == b"12345"
    with pytest.raises(InputError, match="file has 5 bytes; at most 4 are read"):
        read_file(tmp_path / "file", name="file", limit=4)


def test_what_is_no_regular_file_is_refused_without_being_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "device").symlink_to("/dev/full")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for name, told in {
            "pipe": "is no regular file",
            "folder": "is a folder; a file is needed here",
            "loop": "cannot be read: Too many levels of symbolic links",
            "device": "is no regular file",
            "socket": "is no regular file",
            "absent": "there is no file 'absent'",
            "n" * 300: "cannot be read: File name too long",
        }.items():
            with pytest.raises(InputError, match=told):
                read_file(tmp_path / name, name=name)


def test_a_small_file_that_unpacks_to_very_much_is_given_up_at_the_limit() -> None:
    packed = gzip.compress(bytes(50_000_000))
    assert len(packed) < 100_000
    with pytest.raises(InputError, match=r"r\.csv\.gz unpacks to more than 1,000 bytes"):
        unpack(packed, name="r.csv.gz", limit=1000)
    assert unpack(gzip.compress(b"1" * 1000, mtime=0), name="r.csv.gz", limit=1000) == b"1" * 1000


@pytest.mark.parametrize("content", [b"question_id\n", gzip.compress(b"a" * 99, mtime=0)[:-9], gzip.compress(b"a", mtime=0) + b"more", b""])
def test_what_is_no_whole_gzip_file_is_refused_without_a_byte_of_it(content: bytes) -> None:
    if not content:
        assert unpack(content, name="r.csv.gz") == b""
        return
    with pytest.raises(InputError) as caught:
        unpack(content, name="r.csv.gz")
    assert caught.value.diagnostics[0].message.startswith("r.csv.gz cannot be unpacked: it ")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not JSON: Expecting property name enclosed in double quotes at character 2"),
        ('{"a": 1, "a": 2}', "a key stands twice"),
        ("NaN", "NaN is not a JSON value"),
        ("[-Infinity]", "-Infinity is not a JSON value"),
        ('"\\ud800"', "lone surrogate"),
        ("[" * 100_000, "nested too deeply"),
        ("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), f"at most {DEEPEST} may stand inside each other"),
        ('{"a":' * (DEEPEST + 1) + "1" + "}" * (DEEPEST + 1), "nested too deeply"),
        ("1" * (LONGEST_NUMBER + 1), f"a whole number has {LONGEST_NUMBER + 1} digits"),
        ("1" * 5000, "a whole number has 5,000 digits"),
        ("[1e999]", "too large for a float"),
    ],
)
def test_json_beyond_the_standard_or_the_limits_is_refused(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        parse_json(text)


def test_bytes_of_json_are_read_within_a_limit_and_as_utf_8_alone() -> None:
    assert parse_bytes(b'{"a": [1, 2.5, null, true, "x"]}', limit=100) == {"a": [1, 2.5, None, True, "x"]}
    for content, told in ((b"[1, 2]", "6 bytes of JSON; at most 4"), (b"\xff", "not UTF-8")):
        with pytest.raises(ValueError, match=told):
            parse_bytes(content, limit=4)


def test_json_up_to_the_limits_is_read() -> None:
    assert parse_json("[" * DEEPEST + "1" + "]" * DEEPEST)
    assert isinstance(parse_json("9" * LONGEST_NUMBER), int)
    assert parse_json('[NaN, "\\u00e9"]', constant=str) == ["NaN", "é"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"[]", "is not a JSON object"),
        (b"\xff{}", "cannot be read as JSON: it is not UTF-8"),
        (b"{", "cannot be read as JSON: not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": 1' + b"0" * 400 + b"}", "401 digits"),
    ],
)
def test_a_json_object_is_read_from_a_file_or_the_file_is_named(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(InputError, match=rf"m/config\.json .*{told}"):
        read_object(tmp_path / "config.json", name="m/config.json")
    (tmp_path / "config.json").write_bytes(b'\xef\xbb\xbf{"a": NaN}')
    assert list(read_object(tmp_path / "config.json", name="m/config.json")) == ["a"]
