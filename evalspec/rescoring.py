"""Do models give the recorded answers?  Some questions, drawn by whoever verifies, are scored again from the same weights and compared."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evalspec.analyses.recomputation import MOST_SHOWN, Divergence
from evalspec.artifacts.protocol import Protocol, system_of
from evalspec.artifacts.responses import BenchmarkResponses, Responses
from evalspec.artifacts.schedule import Device
from evalspec.artifacts.tolerance import tolerance_of
from evalspec.errors import EvalspecError, InputError, ScoringError
from evalspec.materials import Asked, Materials, Where
from evalspec.protocols import ProgressSink, ignore_progress
from evalspec.row_check import FILE, best_choices, choice_gaps, letter, row_faults
from evalspec.scoring.execute import ScoringTask, score
from evalspec.scoring.executors.local import LocalExecutor
from evalspec.scoring.journal import FileJournal
from evalspec.signing.verification import Verification
from evalspec.statistics.mcnemar import mcnemar_exact_p
from evalspec.store import first_fault
from evalspec.verified_run import VerifiedRun

Values = NDArray[np.float64]

ALPHA = 1e-3
"""The chance with which honest rounding may be taken for a forgery, over all models of a check."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """How many questions are to be scored again, drawn by which seed, and from which materials."""

    questions: int
    seed: int
    where: Where


@dataclass(frozen=True, slots=True)
class Bench:
    """What scores: devices, and processor threads where they are set."""

    devices: tuple[Device, ...]
    threads: int | None = None
    progress: ProgressSink = ignore_progress


@dataclass(frozen=True, slots=True)
class Compared:
    """One model on one benchmark: how many questions were compared, the largest difference in nats, and how many fragile choices differ.

    Of those that differ, `gained` are right as recorded and wrong as scored again, `lost` the other way round.
    """

    model: str
    benchmark: str
    questions: int
    largest: float
    tolerance: float
    fragile: int
    otherwise: int
    gained: int
    lost: int

    def __str__(self) -> str:
        turned = f"{self.otherwise} of them chosen otherwise" + (f" ({self.gained} right as recorded, {self.lost} now)" if self.otherwise else "")
        choices = f"; {self.fragile} fragile, {turned}" if self.fragile else ""
        asked = "1 question" if self.questions == 1 else f"{self.questions} questions"
        return f"  {self.model} on {self.benchmark}: {asked}, largest difference {self.largest:.2g} nats, allowed {self.tolerance:g}{choices}"


@dataclass(frozen=True, slots=True)
class Rescoring:
    """What came of scoring questions again; `left_out` says what could not be, and why."""

    wanted: Wanted
    compared: tuple[Compared, ...] = ()
    divergences: tuple[Divergence, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def state(self) -> Literal["rescored", "differs", "not_rescored"]:
        """Whether what was compared agrees."""
        return "differs" if self.divergences else "rescored" if self.compared else "not_rescored"

    @property
    def exit_code(self) -> int:
        """The exit code that this asks for: 1 where something differs, 3 where nothing could be compared."""
        return {"rescored": 0, "differs": 1, "not_rescored": 3}[self.state]

    def describe(self) -> str:
        """Return what came of it, for people."""
        asked = f"--rescore {self.wanted.questions} --seed {self.wanted.seed}"
        head = {
            "rescored": f"re-scored ({asked}): log-probabilities and choices are those that the weights give",
            "differs": f"re-scored ({asked}): recorded rows are not what they should be",
            "not_rescored": "nothing was re-scored",
        }[self.state]
        more = len(self.divergences) - MOST_SHOWN
        told = [*map(str, self.divergences[:MOST_SHOWN]), *([f"and {more} more places"] if more > 0 else [])]
        return "\n".join([head, *map(str, self.compared), *told, *(f"not re-scored: {why}" for why in self.left_out)])


def rescore(folder: Path, verification: Verification, wanted: Wanted, bench: Bench) -> Rescoring:
    """Score questions again and compare; everything of the run is read from verified bytes."""
    if verification.outcome == "altered":
        return Rescoring(wanted, left_out=("the content is not as it was signed",))
    try:
        return _Rescorer(VerifiedRun(folder, verification), wanted, bench).rescore()
    except Exception as error:  # noqa: BLE001 - a signed report can hold anything
        return Rescoring(wanted, left_out=(first_fault(error),))


@dataclass(slots=True)
class _Rescorer:
    run: VerifiedRun
    wanted: Wanted
    bench: Bench
    left_out: list[str] = field(default_factory=list)

    def rescore(self) -> Rescoring:
        protocol, responses, materials = self.run.protocol, self.run.responses, Materials(self.run, self.wanted.where)
        if responses.protocol_sha256 != protocol.digest():
            return Rescoring(self.wanted, divergences=(Divergence(FILE, "/protocol_sha256", responses.protocol_sha256, protocol.digest()),))
        asked = self._questions(materials)
        faults = list(row_faults(responses, protocol, {name: known.questions for name, known in asked.items()}))
        drawn, compared = self._draw(self._compared(asked)), list[Compared]()
        places = self._weights(materials, faults) if drawn else {}
        for model, again in self._scored(places, drawn, asked).items():
            for benchmark, indices in drawn.items():
                keys = np.array([asked[benchmark].questions[index].answer for index in indices])
                found, differing = compare(protocol, responses, (model, benchmark), (indices, keys), again)
                compared.append(found)
                faults += differing
        faults += one_sided(compared)
        return Rescoring(self.wanted, tuple(compared), tuple(dict.fromkeys(faults)), tuple(dict.fromkeys(self.left_out)))

    def _weights(self, materials: Materials, faults: list[Divergence]) -> dict[str, Path]:
        """Find the weights of each model; adds to `faults` what the protocol states of them and is not so."""
        found = {}
        for model in self.run.protocol.models:
            try:
                found[model.id] = materials.weights(model.id)
            except InputError as error:
                self._note(error)
            except ScoringError as error:
                faults.append(Divergence("protocol.json", f"/models/{model.id}", "as stated", error.diagnostics[0].message))
        return found

    def _questions(self, materials: Materials) -> dict[str, Asked]:
        asked = {}
        for benchmark in self.run.protocol.benchmarks:
            try:
                asked[benchmark.id] = materials.asked(benchmark.id)
            except InputError as error:
                self._note(error)
        return asked

    def _compared(self, asked: Mapping[str, Asked]) -> dict[str, Asked]:
        """Return the benchmarks whose answers have log-probabilities that can be compared."""
        written = [name for name in asked if self.run.protocol.benchmark(name).scoring.method == "sampled"]
        for name in written:
            told = "its answers are texts, of which another device may write others; choices were read again off the recorded texts instead"
            self.left_out.append(f"benchmark '{name}': {told}")
        return {name: known for name, known in asked.items() if name not in written}

    def _draw(self, asked: Mapping[str, Asked]) -> dict[str, list[int]]:
        """Draw questions from all benchmarks whose texts are known, by their places."""
        pool = [(name, place) for name, known in asked.items() for place in range(len(known.questions))]
        picked = random.Random(self.wanted.seed).sample(pool, min(self.wanted.questions, len(pool)))  # noqa: S311 - a draw that others can repeat
        return {name: places for name in asked if (places := sorted(place for one, place in picked if one == name))}

    def _scored(self, places: Mapping[str, Path], drawn: Mapping[str, Sequence[int]], asked: Mapping[str, Asked]) -> dict[str, Responses]:
        """Score the drawn questions by every model, all in one go; where a model fails, each by itself, so that the others are compared."""
        if not places:
            return {}
        with tempfile.TemporaryDirectory() as apart:
            journal = FileJournal(Path(apart) / "journal", Path(apart) / "secret")
            try:
                return dict.fromkeys(places, self._score(places, drawn, asked, journal))
            except EvalspecError:
                found = {}
                for model, place in places.items():
                    try:
                        found[model] = self._score({model: place}, drawn, asked, journal)
                    except EvalspecError as error:
                        self._note(error)
                return found

    def _score(self, places: Mapping[str, Path], drawn: Mapping[str, Sequence[int]], asked: Mapping[str, Asked], journal: FileJournal) -> Responses:
        task = ScoringTask(
            protocol=_reduced(self.run.protocol, places, drawn),
            questions={name: tuple(asked[name].questions[index] for index in indices) for name, indices in drawn.items()},
            folders=places,
            records={},
            preambles={name: asked[name].preambles for name in drawn},
        )
        executor = LocalExecutor(self.bench.devices, threads=self.bench.threads)
        return score(task, executor, journal, self.bench.progress).responses

    def _note(self, error: EvalspecError) -> None:
        first = error.diagnostics[0]
        self.left_out.append(first.message + (f" ({first.hint})" if first.hint else ""))


def _reduced(protocol: Protocol, models: Container[str], drawn: Mapping[str, Sequence[int]]) -> Protocol:
    """Return the protocol of some models and the drawn questions; a tie is not to stop it."""
    benchmarks = tuple(
        entry.model_copy(update={"questions": tuple(entry.questions[place] for place in drawn[entry.id]), "missing": "wrong"})
        for entry in protocol.benchmarks
        if entry.id in drawn
    )
    scored = tuple(one.model_copy(update={"identity": system_of(one.identity)}) for one in protocol.models if one.id in models)
    return protocol.model_copy(update={"models": scored, "benchmarks": benchmarks})


def one_sided(compared: Sequence[Compared]) -> Iterator[Divergence]:
    """Yield every model whose fragile choices differ in favour of one outcome: rounding turns as many from right to wrong as the other way."""
    models = {one.model for one in compared}
    for model in sorted(models):
        gained, lost = (sum(getattr(one, part) for one in compared if one.model == model) for part in ("gained", "lost"))
        if float(mcnemar_exact_p(gained, lost)) < ALPHA / len(models):
            yield Divergence(FILE, f"/{model}, fragile choices that differ", f"{gained} right", f"{lost} right")


def compare(
    protocol: Protocol, recorded: Responses, which: tuple[str, str], drawn: tuple[Sequence[int], NDArray[np.int64]], again: Responses
) -> tuple[Compared, tuple[Divergence, ...]]:
    """Hold the recorded rows of one model on one benchmark against the new ones."""
    (model, benchmark), (places, keys) = which, drawn
    entry, new, origin = recorded.benchmark(benchmark), again.benchmark(benchmark), recorded.origin(model, benchmark)
    tolerance = tolerance_of(protocol.model(model), origin.self_check)
    row = entry.models.index(model)
    scored = new.logprobs[new.models.index(model)] if new.logprobs is not None else np.full((len(places), 1), np.nan)
    held = np.full_like(scored, np.nan)
    if entry.logprobs is not None:
        width = min(scored.shape[1], entry.logprobs.shape[2])
        held[:, :width] = entry.logprobs[row, list(places), :width]
    distances = np.where(np.isnan(held) & np.isnan(scored), 0.0, np.abs(held - scored))
    fragile = choice_gaps(scored) <= 2 * tolerance
    chosen, best = entry.choices[row, list(places)], best_choices(scored)
    otherwise = (chosen != best[:, None]).any(axis=1)
    right, now_right = (chosen == keys[:, None]).all(axis=1), best == keys
    differing = tuple(_differing(entry, (model, places), (held, scored), tolerance, otherwise & ~fragile))
    known = distances[np.isfinite(distances)]
    largest = float(known.max()) if known.size else float("nan")
    turned = fragile & otherwise
    counts = (int(rows.sum()) for rows in (fragile, turned, turned & right & ~now_right, turned & ~right & now_right))
    return Compared(model, benchmark, len(places), largest, tolerance, *counts), differing


def _differing(
    entry: BenchmarkResponses, which: tuple[str, Sequence[int]], pair: tuple[Values, Values], tolerance: float, otherwise: NDArray[np.bool_]
) -> Iterator[Divergence]:
    """Yield for every row that differs its log-probability that lies farthest off, and its choice."""
    (model, places), (held, scored) = which, pair
    for number, place in enumerate(places):
        at = f"/{entry.benchmark}/{model}/{entry.questions[place]}"
        distances = np.abs(held[number] - scored[number])
        absent = np.isnan(held[number]) != np.isnan(scored[number])
        if absent.any() or np.nanmax(distances, initial=0.0) > tolerance:
            worst = int(np.argmax(absent)) if absent.any() else int(np.nanargmax(distances))
            values = [None if np.isnan(side[number, worst]) else float(side[number, worst]) for side in (held, scored)]
            yield Divergence(FILE, f"{at}/logprobs/{letter(worst)}", *values)
        if otherwise[number]:
            recorded = int(entry.choices[entry.models.index(model), place, 0])
            yield Divergence(FILE, f"{at}/choice", letter(recorded), letter(int(best_choices(scored[number : number + 1])[0])))
