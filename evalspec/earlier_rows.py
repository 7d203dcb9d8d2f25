"""Are answers that a report takes from an earlier run the answers of that run?  Asked by whoever has that run's directory too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evalspec.analyses.recomputation import MOST_SHOWN, Divergence
from evalspec.artifacts.base import sha256_hex
from evalspec.artifacts.protocol import EarlierIdentity
from evalspec.artifacts.responses import BenchmarkResponses
from evalspec.earlier_runs import EarlierModel
from evalspec.row_check import FILE
from evalspec.scoring.assemble import ModelRows
from evalspec.signing.files import read_regular
from evalspec.signing.statement import MANIFEST
from evalspec.signing.verification import Verification
from evalspec.signing.verify import verify
from evalspec.store import first_fault
from evalspec.verified_run import VerifiedRun

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class EarlierComparison:
    """What came of holding answers against those of the run that they are taken from; `models` are those that were compared."""

    models: tuple[str, ...] = ()
    divergences: tuple[Divergence, ...] = ()
    why: str = ""

    @property
    def state(self) -> Literal["same", "differs", "not_compared"]:
        """Whether they are the same."""
        return "differs" if self.divergences else "same" if self.models else "not_compared"

    @property
    def exit_code(self) -> int:
        """The exit code that this asks for: 1 where something differs, 3 where nothing could be compared."""
        return {"same": 0, "differs": 1, "not_compared": 3}[self.state]

    def describe(self) -> str:
        """Return what came of it, for people."""
        if self.state == "not_compared":
            return f"not held against the earlier run: {self.why}"
        if self.state == "same":
            return f"taken from the earlier run as they are there: the answers of {', '.join(self.models)}"
        more = len(self.divergences) - MOST_SHOWN
        return "\n".join([*map(str, self.divergences[:MOST_SHOWN]), *([f"and {more} more places"] if more > 0 else [])])


def compare_with_earlier(folder: Path, verification: Verification, earlier: Path) -> EarlierComparison:
    """Compare the answers of every model that is taken from the run in `earlier`, all read from verified bytes."""
    if verification.outcome == "altered":
        return EarlierComparison(why="the content is not as it was signed")
    try:
        return _compared(VerifiedRun(folder, verification), earlier)
    except Exception as error:  # noqa: BLE001 - a signed report can hold anything
        return EarlierComparison(why=first_fault(error))


def _compared(run: VerifiedRun, earlier: Path) -> EarlierComparison:
    there, manifest = verify(earlier), read_regular(earlier, MANIFEST)
    if there.outcome == "altered":
        return EarlierComparison(why=f"{earlier} is not as it was signed")
    taken = [
        EarlierModel(model.id, model.identity, VerifiedRun(earlier, there), manifest)
        for model in run.protocol.models
        if isinstance(model.identity, EarlierIdentity) and model.identity.manifest_sha256 == sha256_hex(manifest)
    ]
    if not taken:
        return EarlierComparison(why=f"no model is taken from the run in {earlier}")
    return EarlierComparison(tuple(model.model for model in taken), tuple(fault for model in taken for fault in _differing(run, model)))


def _differing(run: VerifiedRun, model: EarlierModel) -> Iterator[Divergence]:
    """Yield what the earlier run asked otherwise, else every answer that is another one than there."""
    asked = [Divergence("protocol.json", f"/models/{model.model}", "as there", told) for told in model.differences(run.protocol)]
    yield from asked
    for benchmark in () if asked else run.protocol.benchmarks:
        entry, rows = run.responses.benchmark(benchmark.id), model.rows(benchmark)
        row = entry.models.index(model.model)
        parts = (
            ("score", entry.scores[row], rows.scores),
            ("choice", entry.choices[row], rows.choices),
            ("reason", entry.reasons[row], rows.reasons),
            ("logprobs", *_logprobs(entry, row, rows)),
        )
        yield from _other_texts(entry, row, rows)
        for index, question in enumerate(entry.questions):
            for name, here, there in parts:
                repeated = np.resize(there[index], here[index].shape)  # a model that answered once is repeated as often as others did
                if not np.array_equal(here[index], repeated, equal_nan=True):
                    place = int(np.flatnonzero(~((here[index] == repeated) | (np.isnan(here[index]) & np.isnan(repeated))))[0])
                    path = f"/{benchmark.id}/{model.model}/{question}/{name}"
                    yield Divergence(FILE, path, _number(here[index][place]), _number(repeated[place]))


def _other_texts(entry: BenchmarkResponses, row: int, rows: ModelRows) -> Iterator[Divergence]:
    """Yield every text that is another one than there; where either run does not disclose them, there is none to compare."""
    if entry.texts is None or rows.texts is None:
        return
    for index, question in enumerate(entry.questions):
        for here, there in zip(entry.texts[row, index], np.resize(rows.texts[index], entry.texts[row, index].shape), strict=True):
            if here is not None and there is not None and here != there:
                yield Divergence(FILE, f"/{entry.benchmark}/{entry.models[row]}/{question}/text", str(here), str(there))


def _logprobs(entry: BenchmarkResponses, row: int, rows: ModelRows) -> tuple[Values, Values]:
    """Return the log-probabilities here and there in the same shape, NaN where there are none."""
    here, there = (np.full((len(entry.questions), 0), np.nan) if side is None else side for side in (_of(entry, row), rows.logprobs))
    width = max(here.shape[1], there.shape[1])
    return _widened(here, width), _widened(there, width)


def _of(entry: BenchmarkResponses, row: int) -> Values | None:
    return None if entry.logprobs is None else entry.logprobs[row]


def _widened(values: Values, width: int) -> Values:
    return np.pad(values, ((0, 0), (0, width - values.shape[1])), constant_values=np.nan)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
