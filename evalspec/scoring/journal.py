"""How does finished work survive?  One append-only file per job, one fsynced line per batch, one lock per file.

Lines are written under a secret of the user who scores, which lies outside of the journal's folder: a folder that came from elsewhere holds
nothing that would pass for scored here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from evalspec.alone import locked
from evalspec.artifacts.journal import BatchRecord, ForeignLineError, JobRecord, SessionRecord, read_lines, sealed_line
from evalspec.errors import SecretError, naming
from evalspec.secret_files import obtain_secret, read_secret

ELSEWHERE = "set XDG_CONFIG_HOME to a folder of yours that lasts"


class FileJournal:
    """A folder of journal files, named by job id; `secret_file` is None for a user who has no place to keep a secret in.

    Two runs at once do not harm each other: a job is written under a lock, and who waited for it finds the results of the other.
    """

    def __init__(self, folder: Path, secret_file: Path | None) -> None:
        self.folder = folder
        self.secret_file = secret_file

    def read(self, job: str) -> JobRecord:
        """Return what is recorded of a job, empty when nothing is or when the file is not intact or not this user's; changes nothing."""
        try:
            content = _content(self._path(job))
            return read_lines(content, job, read_secret(self.secret_file)) if self.secret_file else JobRecord(job)
        except (FileNotFoundError, ValueError):
            return JobRecord(job)

    @contextmanager
    def writing(self, job: str, *, waiting: Callable[[], None]) -> Iterator[JobWriter]:
        """Open a job alone; calls `waiting` when another process has it, and then waits for that one to finish.

        Raises SecretError where this user's secret can neither be read nor made.
        """
        if self.secret_file is None:
            raise SecretError("there is no home folder for the secret that marks what this user scored", hint=ELSEWHERE)
        secret = obtain_secret(self.secret_file, elsewhere=ELSEWHERE)
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder / f"{job}.lock", waiting=waiting):
            writer = JobWriter(self._path(job), job, secret)
            try:
                yield writer
            finally:
                writer.close()

    def _path(self, job: str) -> Path:
        return self.folder / f"{job}.jsonl"


class JobWriter:
    """One job's file, open for appending; a torn last line is cut off, a file that is not intact or not this user's is set aside.

    `record` is what was there at opening; `set_aside` names the file that was put away, if one was, and `why` says what was wrong with it.
    """

    def __init__(self, path: Path, job: str, secret: bytes) -> None:
        self._path = path
        self._job = job
        self._secret = secret
        self.set_aside: Path | None = None
        self.why = ""
        self.record = self._recover()
        self._tip = self.record.tip or job
        self._file = self._open()

    def append(self, record: SessionRecord | BatchRecord) -> None:
        """Write one line and return when it is on the disk."""
        line, self._tip = sealed_line(record, self._tip, self._secret)
        with naming(self._path):
            while line:
                line = line[os.write(self._file, line) :]
            os.fsync(self._file)

    def start_over(self) -> None:
        """Set the file aside, because what it holds belongs to another plan, and begin an empty one."""
        self.close()
        self._put_away("a journal file was made for other batches")
        self.record = JobRecord(self._job)
        self._tip = self._job
        self._file = self._open()

    def close(self) -> None:
        """Close the file; what was appended is on the disk already."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _recover(self) -> JobRecord:
        try:
            content = _content(self._path)
            record = read_lines(content, self._job, self._secret)
        except FileNotFoundError:
            return JobRecord(self._job)
        except ForeignLineError:
            lines = content.count(b"\n")
            self._put_away(
                f"{lines} lines of a journal file are not under this user's secret: they were scored by another user or on another machine"
            )
            return JobRecord(self._job)
        except ValueError:
            self._put_away("a journal file was altered")
            return JobRecord(self._job)
        if record.size < len(content):
            os.truncate(self._path, record.size)
        return record

    def _open(self) -> int:
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_CLOEXEC)
        os.fsync(folder)
        os.close(folder)
        return file

    def _put_away(self, why: str) -> None:
        number = 1
        while (target := self._path.with_name(f"{self._path.stem}.rejected-{number}")).exists():
            number += 1
        self._path.rename(target)
        self.set_aside, self.why = target, why


def _content(path: Path) -> bytes:
    """Return what a journal file holds; raises FileNotFoundError where there is none, ValueError for a link or what is no file.

    A link in a folder of somebody else's could lead to any file, which recovering would cut and appending would write to.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise ValueError(f"{path.name} is no file of its own")
    return path.read_bytes()
