"""How long will a job take?  From speeds that were observed, or from the number of parameters and a stated rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evalspec.artifacts.base import Precision
from evalspec.artifacts.schedule import Device, MemoryNeed

CPU_RATE = 8e10
"""Floating-point operations per second of one current server core in float32, as measured with a 135-million-parameter model."""

CUDA_RATES = {"as_shipped": 3e14, "float32": 3e13}
"""What a current accelerator sustains, taken as 40 % of its data sheet: for planning only."""

START_SECONDS = 4.0
"""To start a worker and import its libraries, until that was measured."""

LOAD_BYTES_PER_SECOND = 1e9


@dataclass(frozen=True, slots=True)
class Speeds:
    """Tokens per second that earlier runs reached, by (model id, device id); seconds of jobs by their id, as their first batches tell.

    Also the seconds to load models, by id, and to start a worker, where they were measured.
    """

    observed: Mapping[tuple[str, str], float] = field(default_factory=dict)
    jobs: Mapping[str, float] = field(default_factory=dict)
    loads: Mapping[str, float] = field(default_factory=dict)
    start_seconds: float = START_SECONDS

    def seconds(self, tokens: float, need: MemoryNeed, device: Device, precision: Precision) -> float:
        """Return the time to score `tokens`; a forward pass takes two operations per parameter and token."""
        speed = self.observed.get((need.model, device.id))
        if speed:
            return tokens / speed
        return 2.0 * need.parameters * tokens / (CPU_RATE if device.kind == "cpu" else CUDA_RATES.get(precision, CUDA_RATES["as_shipped"]))

    def load_seconds(self, need: MemoryNeed) -> float:
        """Return the time to read the weights; a worker has to start before, once on each device."""
        return self.loads.get(need.model, need.weights_bytes / LOAD_BYTES_PER_SECOND)

    def basis(self, used: set[tuple[str, str]]) -> str:
        """Say where the times of these (model id, device id) come from."""
        known = {pair for pair in used if self.observed.get(pair)}
        if known == used:
            return "from the speed of earlier runs"
        return "partly from the speed of earlier runs, partly estimated from parameters" if known else "estimated from parameters; no earlier run"
