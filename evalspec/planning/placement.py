"""Which device scores which job?  Longest work first, and a model's jobs together where that costs no time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Task:
    """A job to place: its model, and the seconds that it takes on each device that has room for the model."""

    job: str
    model: str
    seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Placement:
    """The device of every task that has one, and when the last device is done."""

    device_of: Mapping[str, str]
    seconds: float


def place(tasks: Sequence[Task], *, load_seconds: Mapping[str, float]) -> Placement:
    """Put models in order of their work, longest first, and each job where it ends soonest.

    A device that does not hold the model yet pays `load_seconds` for it, so a model is spread only where that saves time.
    """
    devices = dict.fromkeys(device for task in tasks for device in task.seconds)
    busy = dict.fromkeys(devices, 0.0)
    holds: dict[str, set[str]] = {device: set() for device in devices}
    device_of: dict[str, str] = {}

    def ends(task: Task, device: str) -> float:
        return busy[device] + task.seconds[device] + (0.0 if task.model in holds[device] else load_seconds[task.model])

    for task in _longest_first(tasks):
        chosen = min(task.seconds, key=lambda device: ends(task, device))
        busy[chosen] = ends(task, chosen)
        holds[chosen].add(task.model)
        device_of[task.job] = chosen
    return Placement(device_of, max(busy.values(), default=0.0))


def _longest_first(tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks that some device has room for, grouped by model, by falling time on their fastest device."""
    fastest = {task.job: min(task.seconds.values()) for task in tasks if task.seconds}
    work: dict[str, float] = {}
    for task in tasks:
        work[task.model] = work.get(task.model, 0.0) + fastest.get(task.job, 0.0)
    placeable = [task for task in tasks if task.seconds]
    return sorted(placeable, key=lambda task: (-work[task.model], task.model, -fastest[task.job], task.job))
