from __future__ import annotations

import os
from pathlib import Path

import pytest

from evalspec.errors import SigningError
from evalspec.signing.files import list_files, name_faults, printable, read_regular, sha256_of, write_atomically


def test_a_listing_follows_no_link_and_tells_apart_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_text("")
    (tmp_path / "loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a" / "empty").mkdir()
    listing = list_files(tmp_path)
    assert (listing.regular, listing.links, listing.special, listing.empty) == (("a/b",), ("loop",), ("pipe",), ("a/empty/",))


def test_folders_deeper_than_any_sealed_one_are_told_and_not_entered(tmp_path: Path) -> None:
    here = tmp_path
    for _ in range(3):
        (here := here / ("d" * 240)).mkdir()
    (here / "file").write_text("")
    (here / ("e" * 240)).mkdir()
    (here / ("e" * 240) / "file").write_text("")
    (here / ("e" * 240) / ("f" * 40)).mkdir()
    listing = list_files(tmp_path)
    assert [len(name) for name in listing.regular] == [3 * 241 + 241 + 4, 3 * 241 + 4]
    assert [name[-42:] for name in listing.special] == ["/" + "f" * 40 + "/"]


def test_reading_refuses_links_and_pipes_without_waiting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SigningError, match="cannot be read"):
        read_regular(tmp_path, "link")
    with pytest.raises(SigningError, match="not a regular file"):
        sha256_of(tmp_path, "pipe")
    assert read_regular(tmp_path, "file", limit=3) == b"cont"


def test_a_missing_folder_cannot_be_listed(tmp_path: Path) -> None:
    with pytest.raises(SigningError, match="cannot be read"):
        list_files(tmp_path / "none")


@pytest.mark.parametrize(
    "name", ["", "/etc/passwd", "../x", "a/../b", "a//b", "a/", "./a", "a\\b", "a\0b", "a\nb", "-rf", "a/-rf", "ä", "C:x", "x" * 201]
)
def test_names_that_could_reach_elsewhere_or_deceive_are_refused(name: str) -> None:
    assert len(name_faults([name])) == 1


def test_ordinary_names_are_allowed() -> None:
    assert name_faults(["report.pdf", "data/items-1_a.jsonl", ".hidden", "a+b@c=d"]) == ()


def test_names_that_are_one_file_elsewhere_are_refused() -> None:
    assert name_faults(["Report.pdf", "report.pdf"]) == ("the names 'Report.pdf' and 'report.pdf' are one file on some systems",)
    assert len(name_faults(["a", "a"])) == 1


def test_control_and_direction_characters_are_shown_escaped() -> None:
    assert printable("a\x1b[31m\u202eb\udcff ä") == "a\\x1b[31m\\u202eb\\udcff ä"


def test_writing_leaves_no_partial_file(tmp_path: Path) -> None:
    write_atomically(tmp_path / "new" / "file", b"content")
    with pytest.raises(SigningError, match="cannot be written"):
        write_atomically(tmp_path / "new" / "file" / "below", b"content")
    (tmp_path / "taken").mkdir()
    with pytest.raises(SigningError, match="cannot be written"):
        write_atomically(tmp_path / "taken", b"content")
    assert list_files(tmp_path).regular == ("new/file",)


def test_a_file_larger_than_any_sealed_one_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.truncate(tmp_path / "file", 2**40)
    with pytest.raises(ValueError, match="file has 1099511627776 bytes"):
        sha256_of(tmp_path, "file")


def test_writing_goes_through_no_link_that_lies_in_wait(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("theirs")
    (tmp_path / ".file.partial").symlink_to(tmp_path / "theirs")
    (tmp_path / "file").symlink_to(tmp_path / "theirs")
    write_atomically(tmp_path / "file", b"mine")
    assert ((tmp_path / "file").read_bytes(), (tmp_path / "theirs").read_text()) == (b"mine", "theirs")
