from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
import resource
import struct
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalspec.artifacts.journal import BatchRecord, SessionRecord, read_lines, sealed_line
from evalspec.errors import SecretError
from evalspec.scoring.journal import FileJournal

JOB = "ab" * 32
SECRET = bytes(range(32))
SESSION = SessionRecord(
    questions=6, batches=3, plan_sha256="0" * 64, first_ids=(1, 2), attention="a", head="h", dtype="d", versions={}, device="cpu", threads=1
)


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
    return FileJournal(tmp_path / "journal", tmp_path / "journal.secret")


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
    first, mac = sealed_line(SESSION, JOB, SECRET)
    second, _ = sealed_line(batch(0, value), mac, SECRET)
    read = read_lines(first + second, JOB, SECRET).batches[0].logprobs[0][0]
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
    first, mac = sealed_line(SESSION, JOB, SECRET)
    with pytest.raises(ValueError, match="line 2"):
        read_lines(first + sealed_line(batch(3), mac, SECRET)[0], JOB, SECRET)


def chained(*bodies: object, secret: bytes = SECRET) -> bytes:
    """Return lines of a journal that are chained as they should be, whatever is in them."""
    name = json.loads(sealed_line(SESSION, JOB, secret)[0])["key"]
    lines, previous = [], JOB
    for body in bodies:
        mac = hmac.digest(secret, json.dumps([previous, body], sort_keys=True, separators=(",", ":")).encode(), "sha256").hex()
        lines.append(json.dumps({"body": body, "key": name, "mac": mac, "previous": previous}, sort_keys=True, separators=(",", ":")))
        previous = mac
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.fixture
def put(journal: FileJournal) -> Callable[[bytes], None]:
    """Write the file of the job, and the secret that `chained` uses."""

    def write(content: bytes) -> None:
        assert journal.secret_file
        journal.secret_file.write_bytes(SECRET)
        journal.secret_file.chmod(0o600)
        journal.folder.mkdir(parents=True)
        (journal.folder / f"{JOB}.jsonl").write_bytes(content)

    return write


SOUND = (SESSION.model_dump(mode="json"), batch(0).model_dump(mode="json"))


def test_lines_that_are_chained_by_hand_are_read_like_ours(journal: FileJournal, put: Callable[[bytes], None]) -> None:
    put(chained(*SOUND))
    assert journal.read(JOB).batches == {0: batch(0)}


@pytest.mark.parametrize(
    "odd",
    [
        {"index": -1}, {"index": 10**30}, {"index": "0"}, {"index": True}, {"index": None},
        {"questions": [0, 0]}, {"questions": [0, 6]}, {"questions": [0, -1]}, {"questions": [0]}, {"questions": [0, 10**400]}, {"questions": "01"},
        {"logprobs": [[-1.0], [-1.0]]}, {"logprobs": [[], []]}, {"logprobs": [[-1.0, -2.0]]}, {"logprobs": [[math.nan, -1.0], [-1.0, -2.0]]},
        {"logprobs": [[-math.inf, -1.0], [-1.0, -2.0]]}, {"logprobs": [[1e308, -1.0], [-1.0, -2.0]]}, {"logprobs": [["x", -1.0], [-1.0, -2.0]]},
        {"token_counts": [[0, 1], [1, 1]]}, {"byte_counts": [[1, 1], [1, 10**400]]}, {"byte_counts": [[1], [1]]},
        {"seconds": -1.0}, {"seconds": math.inf}, {"real_tokens": 10**400}, {"padded_tokens": -1},
        {"packed": True}, {"packed": True, "padded_tokens": 7}, {"packed": 1},
        {"seconds": True}, {"parts": 0}, {"parts": True}, {"peak_bytes": True}, {"logprobs": [[True, -1.0], [-1.0, -2.0]]}, {"packed": None},
        {"distributions": [{"tokens": [1], "probabilities": [0.5]}]}, {"distributions": [{"tokens": [1], "probabilities": []}] * 2},
        {"distributions": [{"tokens": [1, 1], "probabilities": [0.5, 0.1]}] * 2},
        {"distributions": [{"tokens": [1, 2], "probabilities": [0.9, 0.9]}] * 2},
        {"distributions": [{"tokens": [1], "probabilities": [math.nan]}] * 2},
        {"kind": "other"}, {"kind": ["batch"]}, {"more": 1},
    ],
)  # fmt: skip
def test_a_batch_that_no_worker_writes_puts_the_file_aside(journal: FileJournal, put: Callable[[bytes], None], odd: dict[str, object]) -> None:
    put(chained(SOUND[0], {**SOUND[1], **odd}))
    assert journal.read(JOB).answered == 0
    with journal.writing(JOB, waiting=pytest.fail) as writer:
        assert writer.set_aside is not None


@pytest.mark.parametrize(
    "odd",
    [
        {"questions": True}, {"questions": -1}, {"questions": 6.0}, {"batches": "3"}, {"batches": math.nan}, {"plan_sha256": "0"},
        {"plan_sha256": None}, {"attention": None}, {"attention": 1}, {"attention": ["sdpa"]},
        {"packing": True}, {"packing": 0}, {"branches": 1}, {"prefix_tokens": True},
        {"letters": [["A"]]}, {"letters": [["A", -1]]}, {"first_ids": [True]}, {"first_ids": None}, {"versions": {"torch": 2}}, {"threads": True},
        {"load_seconds": math.inf}, {"load_seconds": -1.0}, {"ends": [True]}, {"server": True}, {"more": 1},
    ],
)  # fmt: skip
def test_a_session_that_no_worker_writes_puts_the_file_aside(journal: FileJournal, put: Callable[[bytes], None], odd: dict[str, object]) -> None:
    put(chained({**SOUND[0], **odd}, SOUND[1]))
    assert journal.read(JOB).answered == 0
    with journal.writing(JOB, waiting=pytest.fail) as writer:
        assert writer.set_aside is not None


@pytest.mark.parametrize("odd", [{"questions": 8}, {"batches": 4}, {"plan_sha256": "1" * 64}])
def test_a_later_session_of_another_plan_puts_the_file_aside(journal: FileJournal, put: Callable[[bytes], None], odd: dict[str, object]) -> None:
    put(chained(*SOUND, {**SOUND[0], **odd}))
    assert journal.read(JOB).answered == 0
    with journal.writing(JOB, waiting=pytest.fail) as writer:
        assert writer.set_aside is not None


def test_a_session_without_its_attention_puts_the_file_aside(journal: FileJournal, put: Callable[[bytes], None]) -> None:
    put(chained({key: value for key, value in SOUND[0].items() if key != "attention"}, SOUND[1]))
    assert journal.read(JOB).answered == 0


def test_rows_end_to_end_have_a_keeper_and_no_padding() -> None:
    session, packed = {**SOUND[0], "packing": "a kernel"}, {**SOUND[1], "packed": True}
    assert read_lines(chained(session, {**packed, "padded_tokens": 7}), JOB, SECRET).batches[0].packed
    written = {"generated": [{"text": "A", "ended": "end", "tokens": 1}] * 2, "logprobs": [], "token_counts": [], "byte_counts": []}
    assert read_lines(chained(session, {**SOUND[1], **written}), JOB, SECRET).answered == 2
    for odd in (packed, {**packed, "padded_tokens": 6}, {**packed, **written, "padded_tokens": 7}):
        with pytest.raises(ValueError, match="line 2"):
            read_lines(chained(session, odd), JOB, SECRET)


def test_two_batches_do_not_answer_one_question() -> None:
    second = {**batch(1).model_dump(mode="json"), "questions": [1, 2]}
    with pytest.raises(ValueError, match="line 3"):
        read_lines(chained(*SOUND, second), JOB, SECRET)


@pytest.mark.parametrize(
    "line",
    [b"[]", b"1", b"null", b'"x"', b"{}", b"[" * 100_000, b'{"a":' * 900 + b"1" + b"}" * 900, b"9" * 5000, b'{"body": NaN}', b"\xff", b"\0", b""],
)
def test_lines_of_another_sort_put_the_file_aside(journal: FileJournal, put: Callable[[bytes], None], line: bytes) -> None:
    put(chained(*SOUND) + line + b"\n")
    assert journal.read(JOB).answered == 0


def test_a_record_fits_only_as_many_questions_with_as_many_answers() -> None:
    record = read_lines(chained(*SOUND), JOB, SECRET)
    assert record.fits([2] * 6)
    assert not record.fits([2] * 5)
    assert not record.fits([3] * 6)
    assert read_lines(b"", JOB, SECRET).fits([4])


def test_a_disk_that_is_full_is_an_error_that_names_the_file_and_leaves_what_was_written(journal: FileJournal, path: Path) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = path.stat().st_size
    with journal.writing(JOB, waiting=pytest.fail) as writer:
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, most))
            with pytest.raises(OSError, match="File too large") as caught:
                writer.append(batch(2))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    assert caught.value.filename == str(path)
    assert set(journal.read(JOB).batches) == {0, 1}
    with journal.writing(JOB, waiting=pytest.fail) as writer:
        writer.append(batch(2))
    assert journal.read(JOB).complete


@pytest.mark.parametrize("content", [b"kept without an end of line", b"kept\n"])
def test_a_link_in_the_place_of_a_journal_file_is_put_aside_and_what_it_leads_to_stays(journal: FileJournal, path: Path, content: bytes) -> None:
    other = path.with_name("of somebody else")
    other.write_bytes(content)
    path.unlink(missing_ok=True)
    path.symlink_to(other)
    assert journal.read(JOB).answered == 0
    with journal.writing(JOB, waiting=pytest.fail) as writer:
        assert writer.set_aside is not None
        writer.append(SESSION)
    assert other.read_bytes() == content
    assert journal.read(JOB).sessions == (SESSION,)


def test_a_link_in_the_place_of_a_lock_is_an_error_and_what_it_leads_to_stays(journal: FileJournal, path: Path) -> None:
    other, lock = path.with_name("of somebody else"), path.with_suffix(".lock")
    other.write_bytes(b"kept")
    lock.unlink(missing_ok=True)
    lock.symlink_to(other)
    with pytest.raises(OSError, match="symbolic links") as caught, journal.writing(JOB, waiting=pytest.fail):
        pass
    assert (caught.value.filename, other.read_bytes()) == (str(lock), b"kept")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_in_the_place_of_one_is_put_aside_and_never_waited_for(
    journal: FileJournal, path: Path, make: Callable[[Path], None]
) -> None:
    path.unlink(missing_ok=True)
    make(path)
    assert journal.read(JOB).answered == 0
    with journal.writing(JOB, waiting=pytest.fail) as writer:
        assert writer.set_aside is not None
        writer.append(SESSION)
    assert journal.read(JOB).sessions == (SESSION,)


def test_not_a_number_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="finite"):
        batch(0, math.nan)


def test_no_text_of_a_question_has_a_place_in_a_line(path: Path) -> None:
    keys = {key for line in path.read_text().splitlines() for key in json.loads(line)["body"]}
    assert keys == set(SessionRecord.model_fields) | set(BatchRecord.model_fields)


@pytest.mark.usefixtures("path")
def test_lines_under_another_secret_are_not_read_and_are_put_aside_with_their_number(journal: FileJournal, tmp_path: Path) -> None:
    theirs = FileJournal(journal.folder, tmp_path / "another.secret")
    assert theirs.read(JOB).answered == 0
    with theirs.writing(JOB, waiting=pytest.fail) as writer:
        assert writer.record.answered == 0
        assert writer.set_aside == journal.folder / f"{JOB}.rejected-1"
        assert writer.why.startswith("3 lines of a journal file are not under this user's secret")
        writer.append(SESSION)
    assert theirs.read(JOB).sessions == (SESSION,)
    assert journal.read(JOB).sessions == ()


def chained_by_digests_alone(*records: SessionRecord | BatchRecord) -> bytes:
    """Lines as anybody can write them: each names the digest of the one before."""
    content, tip = b"", JOB
    for record in records:
        body = record.model_dump(mode="json")
        digest = hashlib.sha256(json.dumps([tip, body], sort_keys=True, separators=(",", ":")).encode()).hexdigest()
        content += json.dumps({"body": body, "previous": tip, "sha256": digest}, sort_keys=True, separators=(",", ":")).encode() + b"\n"
        tip = digest
    return content


def test_lines_that_only_a_digest_holds_together_are_nobodys(journal: FileJournal) -> None:
    journal.folder.mkdir()
    (journal.folder / f"{JOB}.jsonl").write_bytes(chained_by_digests_alone(SESSION, batch(0, -0.1), batch(1, -0.1), batch(2, -0.1)))
    assert journal.read(JOB).answered == 0
    with journal.writing(JOB, waiting=pytest.fail) as writer:
        assert writer.why.startswith("4 lines of a journal file are not under this user's secret")


def test_naming_the_right_secret_is_not_having_it(journal: FileJournal, path: Path, tmp_path: Path) -> None:
    named = json.loads(path.read_bytes().splitlines()[0])["key"]
    theirs = FileJournal(tmp_path / "theirs", tmp_path / "another.secret")
    with theirs.writing(JOB, waiting=pytest.fail) as writer:
        for record in (SESSION, batch(0, -0.1)):
            writer.append(record)
    forged = (theirs.folder / f"{JOB}.jsonl").read_bytes()
    path.write_bytes(forged.replace(json.loads(forged.splitlines()[0])["key"].encode(), named.encode()))
    with journal.writing(JOB, waiting=pytest.fail) as writer:
        assert (writer.record.answered, writer.why) == (0, "a journal file was altered")


def test_reading_makes_no_secret_and_writing_does(journal: FileJournal) -> None:
    assert journal.secret_file is not None
    journal.read(JOB)
    assert not journal.secret_file.exists()
    with journal.writing(JOB, waiting=pytest.fail):
        assert journal.secret_file.stat().st_mode & 0o777 == 0o600


def test_no_line_tells_anything_of_the_secret(journal: FileJournal, path: Path) -> None:
    assert journal.secret_file is not None
    assert journal.secret_file.read_bytes().hex()[:16].encode() not in path.read_bytes()


def test_a_damaged_secret_or_none_is_a_plain_error_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "short.secret").write_bytes(b"short")
    for secret, says in ((tmp_path / "short.secret", "is no whole secret"), (None, "there is no home folder")):
        with pytest.raises(SecretError, match=says), FileJournal(tmp_path / "journal", secret).writing(JOB, waiting=pytest.fail):
            pytest.fail("a journal was opened without a secret")
    assert not (tmp_path / "journal").exists()
    assert FileJournal(tmp_path / "journal", None).read(JOB).answered == 0


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
