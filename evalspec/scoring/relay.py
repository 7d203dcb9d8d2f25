"""How does a worker keep what it scored where it cannot reach the journal?  What is recorded comes with the job, what is new goes out as events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from evalspec.artifacts.journal import BatchRecord, JobRecord, Record, SessionRecord
from evalspec.artifacts.work import Assignment, WorkerEvent

Tell = Callable[[WorkerEvent], None]


class RelayedJournal:
    """The journal of one assignment, as a worker on another machine sees it; whoever hears its events holds the lock and writes."""

    def __init__(self, assignment: Assignment, tell: Tell) -> None:
        self._assignment = assignment
        self._tell = tell

    @contextmanager
    def writing(self, job: str, *, waiting: Callable[[], None]) -> Iterator[RelayingWriter]:
        """Open the job of the assignment; nobody waits, because the lock is held elsewhere."""
        del waiting
        yield RelayingWriter(job_record(job, self._assignment.recorded), self._assignment.order.model, self._tell)


class RelayingWriter:
    """Sends what is to be kept."""

    set_aside: Path | None = None
    why = ""

    def __init__(self, record: JobRecord, model: str, tell: Tell) -> None:
        self.record = record
        self._model = model
        self._tell = tell

    def append(self, record: SessionRecord | BatchRecord) -> None:
        """Send one record."""
        self._tell(WorkerEvent(kind="record", model=self._model, record=record))

    def start_over(self) -> None:
        """Ask for what there is to be set aside."""
        self.record = JobRecord(self.record.job)
        self._tell(WorkerEvent(kind="anew", model=self._model))


def job_record(job: str, records: tuple[Record, ...]) -> JobRecord:
    """Return what these records say of a job."""
    sessions = tuple(record for record in records if isinstance(record, SessionRecord))
    return JobRecord(job, sessions, {record.index: record for record in records if isinstance(record, BatchRecord)})


def records_of(record: JobRecord) -> tuple[Record, ...]:
    """Return everything that is recorded of a job, its sessions first."""
    return (*record.sessions, *record.batches.values())
