"""Which few benchmarks tell most about a model's other scores?

Each model in turn is treated as new: of its row only the probes are visible, all other models keep theirs, and its other known scores are
predicted. Probes are added one at a time, each the one with the smallest error. The published error counts the probes' own scores as predicted
without error, which makes every set look better the more cells it reveals, and it pools the units of all benchmarks, Elo points among percentages;
here errors are of hidden cells, and in points, unless that is asked for. The set is chosen on the very errors that it is reported with:
`cross_validated` chooses on some models and reports on others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from evalspec.statistics.arguments import FloatArray, IntArray
from evalspec.statistics.benchpress import Method
from evalspec.statistics.benchpress_folds import SMALLEST
from evalspec.statistics.benchpress_rows import predict_row

Measure = Literal["medae", "medape"]
"""The median error, or the median relative error."""

Done = Callable[[int, int], None]
"""Is told how many fits of a step are done, and of how many."""


@dataclass(frozen=True, slots=True)
class Objective:
    """What probes are chosen by; ``count_revealed`` takes the published error: all units mixed, the probes' own scores counted as errors of 0."""

    measure: Measure = "medae"
    count_revealed: bool = False


@dataclass(frozen=True, slots=True)
class Budget:
    """What probes may cost together, and what each benchmark costs, (D,); a benchmark with a cost of NaN is no candidate."""

    total: float
    costs: FloatArray


@dataclass(frozen=True, slots=True)
class ProbeStep:
    """A probe that was added, with the errors that the set up to it leaves.

    ``hidden`` is the error of hidden cells in points, ``mixed`` the same with each cell in the units of its benchmark, and ``revealed`` that with
    the probes' own scores counted as errors of 0, as published. ``cells`` counts the hidden ones, ``unpredicted`` those among them that could not be
    predicted. ``cost`` is that of the set up to here, None without costs.
    """

    benchmark: int
    hidden: float
    mixed: float
    revealed: float
    cells: int
    unpredicted: int
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class CrossValidated:
    """Probes chosen without some models, and the error on those: by step, of hidden cells, over all models together.

    Steps end where no hidden score of the models left out can be predicted. ``chosen`` says how many of the ``folds`` choices hold each benchmark
    that any of them holds, by benchmark.
    """

    hidden: tuple[float, ...]
    revealed: tuple[float, ...]
    chosen: Mapping[int, int]
    folds: int


def ignore_done(_done: int, _of: int) -> None:
    """Drop reports of progress.

    Examples
    --------
    >>> ignore_done(1, 2)
    """


@dataclass(slots=True)
class Trials:
    """Errors of every model under every set of visible probes that was tried; equal visible scores are fitted once.

    ``point`` is what one point is on each benchmark's scale, (D,); where it is None, the unit of every benchmark is one.
    """

    scores: FloatArray
    method: Method
    tell: Done = ignore_done
    point: FloatArray | None = None
    _errors: dict[tuple[int, tuple[int, ...]], FloatArray] = field(default_factory=dict)

    def errors(self, model: int, probes: Sequence[int]) -> FloatArray:
        """Return the absolute errors of a model's cells, (D,), NaN where it has no score."""
        return self._errors[self._key(model, probes)]

    def run(self, models: Iterable[int], sets: Sequence[Sequence[int]]) -> None:
        """Fit what is not known yet of these models under these sets of probes."""
        wanted: dict[int, dict[tuple[int, ...], None]] = {}
        for model in models:
            for probes in sets:
                key = self._key(model, probes)
                if key not in self._errors:
                    wanted.setdefault(model, {})[key[1]] = None
        total, done = sum(map(len, wanted.values())), 0
        for model, seen in wanted.items():
            visible = np.zeros((len(seen), self.scores.shape[1]), dtype=np.bool_)
            for place, probes in enumerate(seen):
                visible[place, list(probes)] = True
            errors = np.abs(predict_row(self.scores, model, visible, self.method).value - self.scores[model])
            self._errors.update({(model, probes): row for probes, row in zip(seen, errors, strict=True)})
            done += len(seen)
            self.tell(done, total)

    def _key(self, model: int, probes: Sequence[int]) -> tuple[int, tuple[int, ...]]:
        return model, tuple(sorted(probe for probe in probes if not np.isnan(self.scores[model, probe])))


def search(
    trials: Trials,
    candidates: Sequence[int],
    steps: int,
    objective: Objective,
    *,
    models: Sequence[int] | None = None,
    budget: Budget | None = None,
) -> tuple[ProbeStep, ...]:
    """Add up to ``steps`` probes, each time the candidate that leaves the smallest error, the first of equals.

    Parameters
    ----------
    trials
        The table, and what was tried on it before.
    candidates
        Benchmarks that may be probes, by column.
    steps
        How many probes are wanted; fewer come where nothing affordable, or no hidden score that can be predicted, is left.
    objective
        What they are chosen by.
    models
        Models whose errors count, by row; all when None.
    budget
        What they may cost.

    References
    ----------
    Zeng and Papailiopoulos (2026), arXiv:2606.24020; with revealed cells counted, both published sets come out in their order.

    Examples
    --------
    >>> table = np.outer([3.0, 2.0, 1.0, 0.0], [20.0, 10.0, 30.0]) + 5.0
    >>> found = search(Trials(table, Method((42,), np.full(3, 100.0))), [0, 1, 2], 1, Objective())
    >>> len(found), found[0].cells
    (1, 8)
    """
    among = range(len(trials.scores)) if models is None else models
    path: list[ProbeStep] = []
    for _ in range(steps):
        chosen = [step.benchmark for step in path]
        spent = path[-1].cost or 0.0 if path else 0.0
        open_to_choice = [probe for probe in sorted(candidates) if probe not in chosen and _affordable(probe, spent, budget)]
        if not open_to_choice:
            break
        trials.run(among, [[*chosen, probe] for probe in open_to_choice])
        tried = [_step(trials, among, [*chosen, probe], objective.measure) for probe in open_to_choice]
        best = min(tried, key=lambda step: step.revealed if objective.count_revealed else step.hidden)
        if not best.cells:
            break
        path.append(best if budget is None else _with_cost(best, spent + float(budget.costs[best.benchmark])))
    return tuple(path)


def cross_validated(
    trials: Trials, candidates: Sequence[int], steps: int, objective: Objective, parts: Sequence[IntArray], budget: Budget | None = None
) -> CrossValidated:
    """Choose probes without each part of the models, and measure them on that part; the other models still fill the table.

    References
    ----------
    Stone (1974), J. R. Stat. Soc. B 36, 111-147 (choosing and judging on different cases).

    Examples
    --------
    >>> table = np.outer([3.0, 2.0, 1.0, 0.0], [20.0, 10.0, 30.0]) + 5.0
    >>> trials = Trials(table, Method((42,), np.full(3, 100.0)))
    >>> cross_validated(trials, [0, 1, 2], 1, Objective(), [np.array([0, 1]), np.array([2, 3])]).folds
    2
    """
    everybody = np.concatenate(list(parts))
    choices: list[tuple[IntArray, list[int]]] = []
    for part in parts:
        rest = [int(model) for model in everybody if model not in part]
        path = search(trials, candidates, steps, objective, models=rest, budget=budget)
        choices.append((part, [step.benchmark for step in path]))
    reached = min(len(probes) for _, probes in choices)
    hidden, revealed = [], []
    for step in range(1, reached + 1):
        pooled = []
        for part, probes in choices:
            trials.run(part.tolist(), [probes[:step]])
            pooled.append(_pooled(trials, part.tolist(), probes[:step], objective.measure))
        points = np.concatenate([each.points for each in pooled])
        if np.isnan(points).all():
            break
        hidden.append(float(np.nanmedian(points)))
        zeros = np.zeros(sum(each.shown for each in pooled))
        revealed.append(float(np.nanmedian(np.concatenate([*(each.mixed for each in pooled), zeros]))))
    held = Counter(probe for _, probes in choices for probe in probes)
    return CrossValidated(tuple(hidden), tuple(revealed), dict(sorted(held.items())), len(parts))


def _affordable(probe: int, spent: float, budget: Budget | None) -> bool:
    return budget is None or spent + float(budget.costs[probe]) <= budget.total


def _with_cost(step: ProbeStep, cost: float) -> ProbeStep:
    return replace(step, cost=cost)


def _step(trials: Trials, models: Iterable[int], probes: Sequence[int], measure: Measure) -> ProbeStep:
    pooled = _pooled(trials, models, probes, measure)
    predicted = ~np.isnan(pooled.mixed)
    cells, unpredicted = len(predicted), int((~predicted).sum())
    if cells == unpredicted:
        return ProbeStep(probes[-1], np.inf, np.inf, np.inf, 0, unpredicted)
    mixed = pooled.mixed[predicted]
    with_shown = float(np.median(np.concatenate([mixed, np.zeros(pooled.shown)])))
    return ProbeStep(probes[-1], float(np.median(pooled.points[predicted])), float(np.median(mixed)), with_shown, cells, unpredicted)


@dataclass(frozen=True, slots=True)
class _Pooled:
    """Errors of all hidden cells, NaN where there is no prediction: in points, and each in its own units; and how many cells the probes show."""

    points: FloatArray
    mixed: FloatArray
    shown: int


def _pooled(trials: Trials, models: Iterable[int], probes: Sequence[int], measure: Measure) -> _Pooled:
    """Return the errors of all hidden cells with a score; relative ones, which have no unit, where asked for."""
    among = list(models)
    errors = np.array([trials.errors(model, probes) for model in among])
    truth = trials.scores[among]
    known = ~np.isnan(truth)
    points = errors if trials.point is None else errors / trials.point
    if measure == "medape":
        known &= np.abs(truth) > SMALLEST
        points = errors = errors / np.where(known, np.abs(truth), 1.0)
    shown = int(known[:, list(probes)].sum())
    known[:, list(probes)] = False
    return _Pooled(points[known], errors[known], shown)
