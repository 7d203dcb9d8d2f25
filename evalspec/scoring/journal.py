"""How does finished work survive?  One append-only file per job, one fsynced line per batch, one lock per file."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from evalspec.artifacts.journal import BatchRecord, JobRecord, SessionRecord, read_lines, sealed_line


class FileJournal:
    """A folder of journal files, named by job id.

    Two runs at once do not harm each other: a job is written under a lock, and who waited for it finds the results of the other.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, job: str) -> JobRecord:
        """Return what is recorded of a job, empty when nothing is or when the file is not intact; changes nothing."""
        try:
            return read_lines(self._path(job).read_bytes(), job)
        except (FileNotFoundError, ValueError):
            return JobRecord(job)

    @contextmanager
    def writing(self, job: str, *, waiting: Callable[[], None]) -> Iterator[JobWriter]:
        """Open a job alone; calls `waiting` when another process has it, and then waits for that one to finish."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"{job}.lock").open("wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(lock, fcntl.LOCK_EX)
            writer = JobWriter(self._path(job), job)
            try:
                yield writer
            finally:
                writer.close()

    def _path(self, job: str) -> Path:
        return self.folder / f"{job}.jsonl"


class JobWriter:
    """One job's file, open for appending; a torn last line is cut off, a file that is not intact is set aside.

    `record` is what was there at opening; `set_aside` names the file that was put away, if one was.
    """

    def __init__(self, path: Path, job: str) -> None:
        self._path = path
        self._job = job
        self.set_aside: Path | None = None
        self.record = self._recover()
        self._tip = self.record.tip or job
        self._file = self._open()

    def append(self, record: SessionRecord | BatchRecord) -> None:
        """Write one line and return when it is on the disk."""
        line, self._tip = sealed_line(record, self._tip)
        written = os.write(self._file, line)
        if written != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        os.fsync(self._file)

    def start_over(self) -> None:
        """Set the file aside, because what it holds belongs to another plan, and begin an empty one."""
        self.close()
        self._put_away()
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
            content = self._path.read_bytes()
        except FileNotFoundError:
            return JobRecord(self._job)
        try:
            record = read_lines(content, self._job)
        except ValueError:
            self._put_away()
            return JobRecord(self._job)
        if record.size < len(content):
            os.truncate(self._path, record.size)
        return record

    def _open(self) -> int:
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_CLOEXEC)
        os.fsync(folder)
        os.close(folder)
        return file

    def _put_away(self) -> None:
        number = 1
        while (target := self._path.with_name(f"{self._path.stem}.rejected-{number}")).exists():
            number += 1
        self._path.rename(target)
        self.set_aside = target
