"""How long will scoring take?  Speeds seen in earlier runs, per model and device; they change no result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from evalspec.alone import locked
from evalspec.artifacts.base import Artifact, Digest
from evalspec.artifacts.journal import BatchRecord
from evalspec.artifacts.work import WorkOrder
from evalspec.errors import InputError
from evalspec.foreign import read_file
from evalspec.places import write_whole

FILE = "speeds.json"


class Speed(Artifact):
    """Padded tokens per second of one model on one kind of device."""

    weights_sha256: Digest
    precision: str
    device: str
    parameters: Annotated[int, Field(ge=1)]
    tokens_per_second: Annotated[float, Field(gt=0)]


class Speeds(Artifact):
    """Every speed seen, the newest per model, precision and device."""

    speeds: tuple[Speed, ...] = ()


@dataclass(frozen=True, slots=True)
class Pace:
    """How many tokens per second to expect; `measured` with this very model, or else scaled by size from another one."""

    tokens_per_second: float
    measured: bool


def read_speeds(journal: Path) -> Speeds:
    """Return the speeds that a journal folder has seen; none when there is no readable file."""
    try:
        return Speeds.from_json(read_file(journal / FILE, name=FILE))
    except (InputError, ValidationError):
        return Speeds()


def record_speed(journal: Path, order: WorkOrder, device: str, batches: Iterable[BatchRecord]) -> None:
    """Keep the speed of these batches, so that the next plan can say how long it will take."""
    done = list(batches)
    seconds = sum(batch.seconds for batch in done)
    pace = round(sum(batch.padded_tokens for batch in done) / seconds, 3) if seconds > 0 else 0.0
    if pace <= 0:
        return
    seen = Speed(
        weights_sha256=order.identity.weights_sha256,
        precision=order.precision,
        device=device,
        parameters=order.identity.parameters,
        tokens_per_second=pace,
    )
    with locked(journal / f"{FILE}.lock"):
        others = [speed for speed in read_speeds(journal).speeds if _same_place(speed) != _same_place(seen)]
        write_whole(journal / FILE, Speeds(speeds=(*others, seen)).to_json())


def expected_pace(speeds: Speeds, order: WorkOrder, device: str) -> Pace | None:
    """Return the pace seen with this model, else one scaled by size from the model nearest in size; None when nothing was seen on such a device."""
    here = [speed for speed in speeds.speeds if speed.device == device]
    for speed in here:
        if (speed.weights_sha256, speed.precision) == (order.identity.weights_sha256, order.precision):
            return Pace(speed.tokens_per_second, measured=True)
    if not here:
        return None
    size = order.identity.parameters
    nearest = min(here, key=lambda speed: max(speed.parameters, size) / min(speed.parameters, size))
    return Pace(nearest.tokens_per_second * nearest.parameters / size, measured=False)


def _same_place(speed: Speed) -> tuple[str, str, str]:
    return speed.weights_sha256, speed.precision, speed.device
