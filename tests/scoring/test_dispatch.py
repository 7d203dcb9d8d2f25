"""What becomes of jobs whose workers end: on orders of models that are never loaded."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from evalspec.artifacts.protocol import BatchRule, CheckpointIdentity, FileDigest
from evalspec.artifacts.study import LetterScoring
from evalspec.artifacts.work import WorkerEvent, WorkOrder, work_of
from evalspec.errors import ScoringError
from evalspec.scoring.dispatch import FAILED, Dispatch, Ended
from evalspec.scoring.queue import Estimates, Queue

KILLED = Ended(-signal.SIGKILL)
CRASHED = Ended(1, "Traceback:\n  a bug")
SILENT = Ended(-signal.SIGKILL, silent=601.2)
IDENTITY = CheckpointIdentity(
    files=(FileDigest(name="config.json", sha256="a" * 64, size=1),),
    weights_sha256="a" * 64,
    tokenizer_sha256="a" * 64,
    architecture="any",
    parameters=1000,
    stored_dtype="float32",
    origin="a",
)

Start = Callable[..., Dispatch]


@pytest.fixture
def told() -> list[WorkerEvent]:
    return []


@pytest.fixture
def start(make: SimpleNamespace, told: list[WorkerEvent], tmp_path: Path) -> Start:
    """Hand out the jobs of these models, each on ten questions."""

    def dispatch(*models: str, devices: Sequence[str] = ("x",), room: dict[str, frozenset[str]] | None = None, shard: int = 10) -> Dispatch:
        questions = make.questions(10)
        work = work_of(make.benchmark("b", questions, LetterScoring(method="letter")), questions)
        orders = [
            WorkOrder(
                model=model,
                folder="unused",
                precision="float32",
                identity=IDENTITY.model_copy(update={"weights_sha256": f"{number:064x}"}),
                batch_rule=BatchRule(shard_questions=shard),
                works=(work,),
            )
            for number, model in enumerate(models)
        ]
        return Dispatch(Queue(orders, make.journal(tmp_path), Estimates(room=room or {})), devices, told.append)

    return dispatch


def assigned(dispatch: Dispatch, device: str = "x") -> tuple[str, int] | None:
    """Return the model that a device is given, and in how many parts."""
    assignment = dispatch.assign(device)
    return None if assignment is None else (assignment.order.model, assignment.parts)


def say(dispatch: Dispatch, kind: str, device: str = "x", model: str = "m", questions: int = 0) -> None:
    dispatch.heard(device, WorkerEvent.model_validate({"kind": kind, "model": model, "questions": questions}))


def warnings(told: list[WorkerEvent]) -> list[str]:
    return [event.message for event in told if event.kind == "warning"]


def failures(dispatch: Dispatch) -> list[str]:
    with pytest.raises(ScoringError) as caught:
        dispatch.conclude()
    return [diagnostic.message for diagnostic in caught.value.diagnostics]


def test_a_job_is_given_up_after_three_tries_and_the_others_are_scored(start: Start, told: list[WorkerEvent]) -> None:
    dispatch = start("m", "other")
    for _ in range(3):
        assert assigned(dispatch) == ("m", 1)
        dispatch.ended("x", CRASHED)
    assert warnings(told) == ["the worker ended with code 1; it goes on from the journal"] * 2
    assert assigned(dispatch) == ("other", 1)
    assert failures(dispatch) == [
        "model 'm' on benchmark 'b': the scoring worker ended with code 1 3 times; its last lines were:\nTraceback:\n  a bug"
    ]


def test_a_job_that_makes_progress_has_three_tries_again(start: Start) -> None:
    dispatch = start("m")
    for _ in range(9):
        assert assigned(dispatch) == ("m", 1)
        say(dispatch, "batch", questions=1)
        dispatch.ended("x", KILLED)
    dispatch.conclude()


def test_a_job_whose_workers_fall_silent_is_given_up_after_three_tries_with_whole_batches(start: Start, told: list[WorkerEvent]) -> None:
    dispatch = start("m", "other")
    for _ in range(3):
        assert assigned(dispatch) == ("m", 1)
        for kind in ("loading", "ready"):
            say(dispatch, kind)
        dispatch.ended("x", SILENT)
    assert warnings(told) == ["the worker finished nothing for 601 s and was ended; it goes on from the journal"] * 2
    assert assigned(dispatch) == ("other", 1)
    with pytest.raises(
        ScoringError, match="model 'm' on benchmark 'b': the scoring worker finished nothing for 601 s and was ended 3 times"
    ) as caught:
        dispatch.conclude()
    assert "`worker_silence`" in str(caught.value.diagnostics[0].hint)


def test_waiting_for_another_run_is_told(start: Start, told: list[WorkerEvent]) -> None:
    dispatch = start("m")
    assert assigned(dispatch)
    dispatch.heard("x", WorkerEvent(kind="waiting", model="m", message="another run is scoring this"))
    say(dispatch, "begun")
    assert warnings(told) == ["another run is scoring this"]


def test_the_last_try_is_left_to_another_device(start: Start) -> None:
    dispatch = start("m", devices=("x", "y"))
    for _ in range(2):
        assert assigned(dispatch, "x") == ("m", 1)
        dispatch.ended("x", CRASHED)
    assert (assigned(dispatch, "x"), assigned(dispatch, "y")) == (None, ("m", 1))


def test_the_last_try_stays_where_no_other_device_has_room(start: Start) -> None:
    dispatch = start("m", devices=("x", "y"), room={"m": frozenset({"x"})})
    for _ in range(3):
        assert (assigned(dispatch, "y"), assigned(dispatch, "x")) == (None, ("m", 1))
        dispatch.ended("x", CRASHED)


@pytest.mark.parametrize(("how", "parts"), [(Ended(-signal.SIGKILL, out_of_memory=True), [1, 2, 4, 8]), (KILLED, [1, 1, 2, 4]), (CRASHED, [1, 1, 1])])
def test_batches_are_halved_at_once_where_memory_ran_out_and_after_a_second_unexplained_kill(
    start: Start, told: list[WorkerEvent], how: Ended, parts: list[int]
) -> None:
    dispatch = start("m")
    found = []
    for _ in parts:
        found.append(assigned(dispatch))
        say(dispatch, "loading")
        say(dispatch, "ready")
        dispatch.ended("x", how)
    assert found == [("m", part) for part in parts]
    assignment = dispatch.assign("x")
    assert (assignment.too_few_parts if assignment else 0) == (parts[-1] if how != CRASHED else 0)
    assert any("goes on with smaller batches" in message for message in warnings(told)) == (how != CRASHED)


def test_a_worker_that_is_killed_while_it_loads_gains_nothing_by_smaller_batches(start: Start) -> None:
    dispatch = start("m")
    for _ in range(3):
        assert assigned(dispatch) == ("m", 1)
        say(dispatch, "loading")
        dispatch.ended("x", Ended(-signal.SIGKILL, out_of_memory=True))
    with pytest.raises(ScoringError, match="ended by SIGKILL 3 times") as caught:
        dispatch.conclude()
    assert "memory" in str(caught.value.diagnostics[0].hint)


def test_smaller_batches_hold_for_every_job_of_the_model_also_where_it_was_loaded_for_an_earlier_one(start: Start) -> None:
    dispatch = start("m", shard=5)
    assert assigned(dispatch) == ("m", 1)
    for kind in ("loading", "ready", "done"):
        say(dispatch, kind)
    assert assigned(dispatch) == ("m", 1)
    dispatch.ended("x", Ended(-signal.SIGKILL, out_of_memory=True))
    assert assigned(dispatch) == ("m", 2)


def test_parts_that_a_worker_found_are_kept_for_the_one_that_follows_it(start: Start) -> None:
    dispatch = start("m")
    assert assigned(dispatch) == ("m", 1)
    dispatch.heard("x", WorkerEvent(kind="warning", model="m", message="memory ran out", parts=4))
    dispatch.ended("x", CRASHED)
    assert assigned(dispatch) == ("m", 4)


def test_a_model_that_fails_is_named_once_and_not_tried_again(start: Start) -> None:
    dispatch = start("m", "other", devices=("x", "y"))
    assert (assigned(dispatch, "x"), assigned(dispatch, "y")) == (("m", 1), ("other", 1))
    say(dispatch, "failed")
    assert assigned(dispatch, "x") is None
    assert len(failures(dispatch)) == 1


def test_a_worker_that_cannot_write_the_journal_stops_everything(start: Start) -> None:
    dispatch = start("m", "other")
    assert assigned(dispatch)
    dispatch.heard("x", WorkerEvent(kind="failed", model="m", message="no room on the disk"))
    with pytest.raises(ScoringError, match="no room on the disk"):
        dispatch.ended("x", Ended(FAILED))


def test_answers_whose_event_was_lost_are_counted_when_the_job_is_done(start: Start, told: list[WorkerEvent]) -> None:
    dispatch = start("m")
    assert assigned(dispatch)
    say(dispatch, "batch", questions=3)
    say(dispatch, "done")
    assert sum(event.questions for event in told) == 10


def test_the_jobs_of_a_lost_device_go_to_the_others_and_without_any_are_named(start: Start, told: list[WorkerEvent]) -> None:
    dispatch = start("m", devices=("x", "y"))
    assert assigned(dispatch, "x")
    dispatch.lost("x")
    assert warnings(told) == ["the device x is lost; the others go on from the journal"]
    assert assigned(dispatch, "y") == ("m", 1)
    dispatch.lost("y")
    dispatch.give_up()
    assert failures(dispatch) == ["no device is left that can score model 'm'"]


def test_what_an_idle_worker_does_is_of_no_consequence(start: Start, told: list[WorkerEvent]) -> None:
    dispatch = start("m")
    say(dispatch, "batch", questions=3)
    dispatch.ended("x", KILLED)
    assert told == []
