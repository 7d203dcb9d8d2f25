from __future__ import annotations

import json
import math
import struct
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalspec.artifacts.journal import BatchRecord, SessionRecord, read_lines, sealed_line
from evalspec.scoring.journal import FileJournal

JOB = "ab" * 32
SESSION = SessionRecord(questions=6, batches=3, plan_sha256="0" * 64, first_ids=(1, 2), head="h", dtype="d", versions={}, device="cpu", threads=1)


def batch(index: int, value: float = -1.5) -> BatchRecord:
    return BatchRecord(
        index=index,
        questions=(2 * index, 2 * index + 1),
        logprobs=((value, -2.0), (-3.0, value)),
        token_counts=((1, 1), (1, 1)),
        byte_counts=((1, 1), (1, 1)),
        padded_tokens=8,
        real_tokens=7,
        seconds=0.5,
    )


@pytest.fixture
def journal(tmp_path: Path) -> FileJournal:
    return FileJournal(tmp_path / "journal")


@pytest.fixture
def path(journal: FileJournal) -> Path:
    """A journal with a session and two of three batches."""
    with journal.writing(JOB, waiting=pytest.fail) as writer:
        for record in (SESSION, batch(0), batch(1)):
            writer.append(record)
    return journal.folder / f"{JOB}.jsonl"


def test_what_was_written_is_read_back(journal: FileJournal, path: Path) -> None:
    record = journal.read(JOB)
    assert record.batches == {0: batch(0), 1: batch(1)}
    assert (record.answered, record.complete, record.size) == (4, False, path.stat().st_size)


@pytest.mark.usefixtures("path")
def test_a_job_is_complete_when_every_batch_is_there(journal: FileJournal) -> None:
    with journal.writing(JOB, waiting=pytest.fail) as writer:
        writer.append(batch(2))
    assert journal.read(JOB).complete


@given(st.floats(max_value=0.0, allow_infinity=False, allow_nan=False))
def test_numbers_come_back_to_the_same_bits(value: float) -> None:
    first, digest = sealed_line(SESSION, JOB)
    second, _ = sealed_line(batch(0, value), digest)
    read = read_lines(first + second, JOB).batches[0].logprobs[0][0]
    assert struct.pack("<d", read) == struct.pack("<d", value)


@pytest.mark.parametrize("kept", [1, 10, 200])
def test_a_torn_last_line_is_cut_off_and_the_rest_is_kept(journal: FileJournal, path: Path, kept: int) -> None:
    whole = path.read_bytes()
    start = whole[:-1].rfind(b"\n") + 1
    path.write_bytes(whole[: start + kept])
    assert set(journal.read(JOB).batches) == {0}
    with journal.writing(JOB, waiting=pytest.fail) as writer:
        assert writer.set_aside is None
        writer.append(batch(1))
    assert path.read_bytes() == whole


@pytest.mark.parametrize("line", [0, 1, 2])
def test_an_altered_number_in_any_line_puts_the_file_aside(journal: FileJournal, path: Path, line: int) -> None:
    lines = path.read_bytes().split(b"\n")
    lines[line] = lines[line].replace(b'"questions":6', b'"questions":8').replace(b"-3.0", b"-0.1")
    path.write_bytes(b"\n".join(lines))
    assert journal.read(JOB).answered == 0
    with journal.writing(JOB, waiting=pytest.fail) as writer:
        assert writer.set_aside == path.with_name(f"{JOB}.rejected-1")
        assert writer.record.answered == 0
        writer.append(SESSION)
    assert journal.read(JOB).sessions == (SESSION,)


def test_a_line_that_was_taken_out_or_doubled_puts_the_file_aside(journal: FileJournal, path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    for number, forged in enumerate(([lines[0], lines[2]], [*lines, lines[2]], [lines[1], lines[0], lines[2]]), start=1):
        path.write_bytes(b"".join(forged))
        with journal.writing(JOB, waiting=pytest.fail) as writer:
            assert writer.set_aside == path.with_name(f"{JOB}.rejected-{number}")


def test_the_lines_of_another_job_do_not_fit(journal: FileJournal, path: Path) -> None:
    other = "cd" * 32
    path.rename(path.with_name(f"{other}.jsonl"))
    assert journal.read(other).answered == 0


def test_a_batch_that_is_not_in_the_plan_does_not_fit() -> None:
    first, digest = sealed_line(SESSION, JOB)
    with pytest.raises(ValueError, match="line 2"):
        read_lines(first + sealed_line(batch(3), digest)[0], JOB)


def test_not_a_number_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="finite"):
        batch(0, math.nan)


def test_no_text_of_a_question_has_a_place_in_a_line(path: Path) -> None:
    keys = {key for line in path.read_text().splitlines() for key in json.loads(line)["body"]}
    assert keys == set(SessionRecord.model_fields) | set(BatchRecord.model_fields)


def test_a_second_writer_waits_and_then_finds_the_first_ones_batches(journal: FileJournal) -> None:
    waiting, found = threading.Event(), []

    def second() -> None:
        with journal.writing(JOB, waiting=waiting.set) as writer:
            found.append(set(writer.record.batches))

    with journal.writing(JOB, waiting=pytest.fail) as writer:
        thread = threading.Thread(target=second)
        thread.start()
        assert waiting.wait(10)
        writer.append(SESSION)
        writer.append(batch(0))
    thread.join(10)
    assert found == [{0}]
