from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evalspec.errors import SecretError
from evalspec.secret_files import obtain_secret, read_secret, write_once


def test_a_secret_is_made_once_for_its_owner_alone_and_then_kept(tmp_path: Path) -> None:
    path = tmp_path / "settings" / "one.secret"
    first = obtain_secret(path, elsewhere="name another")
    assert (len(first), path.stat().st_mode & 0o777) == (32, 0o600)
    assert obtain_secret(path, elsewhere="name another") == first == read_secret(path)
    assert list(path.parent.iterdir()) == [path]


def test_two_secrets_are_never_alike(tmp_path: Path) -> None:
    assert obtain_secret(tmp_path / "a", elsewhere="name another") != obtain_secret(tmp_path / "b", elsewhere="name another")


@pytest.mark.parametrize(("content", "size"), [(b"", "0"), (b"x" * 31, "31"), (b"x" * 5000, "more than 4096")])
def test_a_file_that_is_no_whole_secret_is_refused_and_left_alone(tmp_path: Path, content: bytes, size: str) -> None:
    path = tmp_path / "one.secret"
    path.write_bytes(content)
    with pytest.raises(SecretError, match=f"is no whole secret: it has {size} bytes") as error:
        obtain_secret(path, elsewhere="name another")
    assert "put back the copy" in (error.value.diagnostics[0].hint or "")
    assert path.read_bytes() == content


def test_a_secret_without_end_is_not_read_to_it(tmp_path: Path) -> None:
    (tmp_path / "one.secret").symlink_to("/dev/zero")
    with pytest.raises(SecretError, match="more than 4096"):
        read_secret(tmp_path / "one.secret")


def test_a_place_where_no_secret_can_be_is_a_plain_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(SecretError, match="cannot be read: Is a directory"):
        obtain_secret(tmp_path / "folder", elsewhere="name another")
    with pytest.raises(SecretError, match="Not a directory"):
        obtain_secret(tmp_path / "file" / "one.secret", elsewhere="name another")


def test_a_file_is_never_written_over_another_or_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"theirs")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("file", "link"):
        with pytest.raises(FileExistsError):
            write_once(tmp_path / name, b"mine")
    assert (tmp_path / "file").read_bytes() == b"theirs"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "link"]


def test_processes_that_make_a_secret_at_once_get_the_same(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from evalspec.secret_files import obtain_secret\n"
        "print(obtain_secret(Path(sys.argv[1]), elsewhere='').hex())"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "one.secret")]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) for _ in range(4)]
    assert len({process.communicate()[0] for process in started}) == 1


def test_a_pipe_in_the_place_of_a_secret_is_an_error_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "secret")
    with pytest.raises(SecretError, match="cannot be read: it is a pipe"):
        read_secret(tmp_path / "secret")
