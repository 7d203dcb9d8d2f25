"""Which device scores which job?  Longest work first, and a model's jobs together where that costs no time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalspec.artifacts.schedule import WORTH_SPREADING


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


def place(tasks: Sequence[Task], *, load_seconds: Mapping[str, float], start_seconds: float = 0.0) -> Placement:
    """Put models in order of their work, longest first, where they end soonest.

    A device pays `start_seconds` once, and `load_seconds` for each model that it does not hold yet.
    A model's jobs stay together unless they take more than twice that.
    """
    placeable = [task for task in tasks if task.seconds]
    devices = dict.fromkeys(device for task in placeable for device in task.seconds)
    busy = dict.fromkeys(devices, 0.0)
    holds: dict[str, set[str]] = {device: set() for device in devices}
    device_of: dict[str, str] = {}

    def ends(unit: Sequence[Task], device: str) -> float:
        load = 0.0 if unit[0].model in holds[device] else load_seconds[unit[0].model] + (0.0 if holds[device] else start_seconds)
        return busy[device] + sum(task.seconds[device] for task in unit) + load

    for unit in _units(placeable, load_seconds):
        chosen = min(unit[0].seconds, key=lambda device: ends(unit, device))
        busy[chosen] = ends(unit, chosen)
        holds[chosen].add(unit[0].model)
        device_of.update((task.job, chosen) for task in unit)
    return Placement(device_of, max(busy.values(), default=0.0))


def _units(tasks: Sequence[Task], load_seconds: Mapping[str, float]) -> list[list[Task]]:
    """Return what is placed at once, models by falling work: all jobs of a model, or, where it is worth loading it twice, each job."""
    models: dict[str, list[Task]] = {}
    for task in sorted(tasks, key=lambda task: (-_fastest(task), task.job)):
        models.setdefault(task.model, []).append(task)
    work = {model: sum(map(_fastest, members)) for model, members in models.items()}
    units = []
    for model in sorted(models, key=lambda model: (-work[model], model)):
        together = work[model] <= WORTH_SPREADING * load_seconds[model]
        units += [models[model]] if together else [[task] for task in models[model]]
    return units


def _fastest(task: Task) -> float:
    return min(task.seconds.values())
