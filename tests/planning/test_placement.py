"""Jobs go where they end soonest, the longest first, and a model is spread only where that saves time."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from evalspec.planning.placement import Placement, Task, place


def tasks(*work: tuple[str, float], devices: int = 2) -> tuple[Task, ...]:
    names = [f"d{number}" for number in range(devices)]
    return tuple(Task(f"{model}-{place}", model, dict.fromkeys(names, seconds)) for place, (model, seconds) in enumerate(work))


def placed(work: tuple[Task, ...], load: float) -> Placement:
    return place(work, load_seconds=dict.fromkeys((task.model for task in work), load))


def test_a_model_stays_on_one_device_where_loading_it_twice_saves_nothing() -> None:
    work = tasks(("big", 8.0), ("big", 8.0), ("small", 3.0), ("small", 3.0))
    where = placed(work, load=20.0).device_of
    assert where["big-0"] == where["big-1"] != where["small-2"] == where["small-3"]


def test_a_model_is_spread_where_its_work_is_long() -> None:
    work = tasks(("big", 100.0), ("big", 100.0))
    done = placed(work, load=5.0)
    assert done.device_of["big-0"] != done.device_of["big-1"]
    assert done.seconds == 105.0


def test_a_task_without_a_device_is_left_out() -> None:
    done = place([Task("j", "m", {})], load_seconds={"m": 1.0})
    assert (dict(done.device_of), done.seconds) == ({}, 0.0)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0.1, 100)), min_size=1, max_size=12), st.integers(1, 4), st.floats(0, 50))
@settings(max_examples=100, deadline=None)
def test_every_job_is_placed_and_the_end_is_no_later_than_on_one_device(work: list[tuple[str, float]], devices: int, load: float) -> None:
    made = tasks(*work, devices=devices)
    done = placed(made, load)
    assert set(done.device_of) == {task.job for task in made}
    alone = sum(seconds for _, seconds in work) + load * len({model for model, _ in work})
    assert done.seconds <= alone * (1 + 1e-9)  # sums in another order may differ in the last bits
