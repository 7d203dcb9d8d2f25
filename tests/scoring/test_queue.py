"""Which device gets which job: on orders of models that are never loaded, with what a journal holds of them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from evalspec.artifacts.journal import BatchRecord, SessionRecord
from evalspec.artifacts.protocol import BatchRule, CheckpointIdentity, FileDigest
from evalspec.artifacts.study import LetterScoring
from evalspec.artifacts.work import BenchmarkWork, WorkOrder, work_of
from evalspec.scoring.journal import FileJournal
from evalspec.scoring.queue import Estimates, Queue, Task

RULE = BatchRule(shard_questions=10)


def identity(seed: str) -> CheckpointIdentity:
    digest = seed * 64
    return CheckpointIdentity(
        files=(FileDigest(name="config.json", sha256=digest, size=1),),
        weights_sha256=digest,
        tokenizer_sha256=digest,
        architecture="any",
        parameters=1000,
        stored_dtype="float32",
        origin=seed,
    )


@pytest.fixture
def work(make: SimpleNamespace) -> BenchmarkWork:
    """Thirty questions, three shards."""
    questions = make.questions(30)
    return work_of(make.benchmark("b", questions, LetterScoring(method="letter")), questions)


@pytest.fixture
def journal(make: SimpleNamespace, tmp_path: Path) -> FileJournal:
    journal: FileJournal = make.journal(tmp_path)
    return journal


def order(model: str, *works: BenchmarkWork, weights: str | None = None) -> WorkOrder:
    return WorkOrder(model=model, folder="unused", precision="float32", identity=identity(weights or model), batch_rule=RULE, works=works)


def queue_of(journal: FileJournal, *orders: WorkOrder, seconds: dict[str, float], loading: float = 1.0, **room: set[str]) -> Queue:
    """Return the queue of orders whose every shard takes the seconds of its model."""
    jobs = {one.key(work, shard).digest(): seconds[one.model] for one in orders for work in one.works for shard in one.shards(work)}
    places = {model: frozenset(devices) for model, devices in room.items()}
    return Queue(orders, journal, Estimates(jobs, dict.fromkeys(seconds, loading), places))


def record(journal: FileJournal, task: Task) -> None:
    """Put the results of a job into the journal, as its worker would."""
    (work,) = task.order.works
    count = len(work.questions)
    session = SessionRecord(
        questions=count, batches=1, plan_sha256="0" * 64, first_ids=(1,), attention="a", head="h", dtype="d", versions={}, device="cpu", threads=1
    )
    values = tuple(tuple(-1.0 - number - place for place in range(4)) for number in range(count))
    ones = ((1, 1, 1, 1),) * count
    batch = BatchRecord(
        index=0,
        questions=tuple(range(count)),
        logprobs=values,
        token_counts=ones,
        byte_counts=ones,
        padded_tokens=1,
        real_tokens=1,
        seconds=1.0,
    )
    with journal.writing(task.job, waiting=lambda: None) as writer:
        writer.append(session)
        writer.append(batch)


def taken(queue: Queue, device: str) -> tuple[str, bool] | None:
    task = queue.take(device)
    return None if task is None else (task.model, task.one_by_one)


def finish(queue: Queue, journal: FileJournal, device: str) -> None:
    task = queue.under_way(device)
    assert task is not None
    record(journal, task)
    queue.done(device)


def test_the_longest_model_comes_first_and_stays_on_its_device(journal: FileJournal, work: BenchmarkWork) -> None:
    queue = queue_of(journal, order("a", work), order("b", work), order("c", work), seconds={"a": 1.0, "b": 3.0, "c": 2.0}, loading=9.0)
    assert [taken(queue, "x"), taken(queue, "y")] == [("b", False), ("c", False)]
    for _ in range(2):
        finish(queue, journal, "x")
        assert taken(queue, "x") == ("b", False)
    finish(queue, journal, "x")
    assert taken(queue, "x") == ("b", True), "its self-check follows its last shard, on the device that has it loaded"
    finish(queue, journal, "x")
    assert taken(queue, "x") == ("a", False)


def test_shards_of_a_long_model_are_spread_over_devices_that_have_nothing_else(journal: FileJournal, work: BenchmarkWork) -> None:
    queue = queue_of(journal, order("a", work), seconds={"a": 10.0}, loading=9.0)
    assert [taken(queue, "x"), taken(queue, "y"), taken(queue, "z")] == [("a", False), ("a", False), None]
    finish(queue, journal, "x")
    finish(queue, journal, "y")
    assert [taken(queue, "x"), taken(queue, "y")] == [("a", False), None]
    finish(queue, journal, "x")
    assert taken(queue, "y") == ("a", True), "the self-check waits for all shards, wherever they were scored"
    finish(queue, journal, "y")
    assert taken(queue, "x") is None
    assert queue.waiting() == ()


def test_a_model_whose_loading_takes_as_long_as_its_work_is_loaded_once(journal: FileJournal, work: BenchmarkWork) -> None:
    queue = queue_of(journal, order("a", work), seconds={"a": 10.0}, loading=11.0)
    assert [taken(queue, "x"), taken(queue, "y")] == [("a", False), None]


def test_a_model_goes_only_where_it_has_room(journal: FileJournal, work: BenchmarkWork) -> None:
    queue = queue_of(journal, order("a", work), order("b", work), seconds={"a": 9.0, "b": 1.0}, a={"large"})
    assert [taken(queue, "small"), taken(queue, "large")] == [("b", False), ("a", False)]


def test_two_names_of_one_checkpoint_are_not_scored_at_once(journal: FileJournal, work: BenchmarkWork) -> None:
    once = work.model_copy(update={"questions": work.questions[:10]})
    queue = queue_of(journal, order("a", once, weights="e"), order("b", once, weights="e"), seconds={"a": 1.0, "b": 1.0})
    assert [taken(queue, "x"), taken(queue, "y")] == [("a", False), None]
    finish(queue, journal, "x")
    assert {taken(queue, "x"), taken(queue, "y")} == {("a", True), ("b", False)}


def test_what_the_journal_has_is_not_handed_out_again(journal: FileJournal, work: BenchmarkWork) -> None:
    first = queue_of(journal, order("a", work), seconds={"a": 1.0})
    for _ in range(4):
        assert first.take("x")
        finish(first, journal, "x")
    assert first.take("x") is None
    assert queue_of(journal, order("a", work), seconds={"a": 1.0}).waiting() == ()


def test_a_job_that_is_put_back_is_taken_again_and_one_that_is_dropped_is_not(journal: FileJournal, work: BenchmarkWork) -> None:
    queue = queue_of(journal, order("a", work), seconds={"a": 1.0})
    lost = queue.take("x")
    queue.put_back("x")
    assert queue.take("y", shun=[lost.job] if lost else []) != lost
    queue.drop("y")
    assert len(queue.waiting()) == 2
    queue.take("x")
    queue.drop_model("x")
    assert queue.waiting() == ()


def test_the_next_job_of_a_device_can_be_foreseen(journal: FileJournal, work: BenchmarkWork) -> None:
    queue = queue_of(journal, order("a", work), order("b", work), seconds={"a": 3.0, "b": 1.0}, loading=9.0)
    for _ in range(3):
        assert queue.take("x")
        following = queue.ahead("x")
        finish(queue, journal, "x")
    assert following is not None
    assert following.model == "b"
