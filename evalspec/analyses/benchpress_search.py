"""Which few benchmarks tell most about a model's other scores, and would other models have chosen the same ones?"""

from __future__ import annotations

import numpy as np

from evalspec.analyses.benchpress_accuracy import Ground
from evalspec.analyses.benchpress_options import BenchpressOptions, ProbeSearch
from evalspec.analyses.benchpress_results import OtherProbe, ProbeResult, ProbeRow
from evalspec.analyses.benchpress_table import Matrix
from evalspec.protocols import Progress, ProgressSink
from evalspec.statistics.benchpress import PUBLISHED_SEEDS
from evalspec.statistics.benchpress_probes import Budget, CrossValidated, Objective, ProbeStep, Trials, cross_validated, search


def find_probes(ground: Ground, options: BenchpressOptions, asked: ProbeSearch, rng: np.random.Generator, progress: ProgressSink) -> ProbeResult:
    """Search on all models, and where folds are asked for, again without each part of them; from ten starts, whatever the mode."""
    matrix = ground.matrix

    def tell(done: int, of: int) -> None:
        progress(Progress("analyse", done, of, "fits", "probes"))

    trials = Trials(matrix.scores, matrix.method(options, PUBLISHED_SEEDS), tell, ground.point)
    candidates = [matrix.place(name) for name in asked.candidates or matrix.columns]
    objective = Objective(asked.objective, asked.count_revealed)
    budget = None
    if asked.budget is not None:
        costs = np.array([np.nan if column.cost is None else column.cost for column in matrix.declared])
        budget = Budget(asked.budget, costs)
        candidates = [place for place in candidates if not np.isnan(costs[place])]
    path = search(trials, candidates, asked.steps, objective, budget=budget)
    held = None
    if asked.folds is not None:
        parts = np.array_split(rng.permutation(len(matrix.models)), min(asked.folds, len(matrix.models)))
        held = cross_validated(trials, candidates, asked.steps, objective, parts, budget)
    return ProbeResult(
        objective=asked.objective,
        count_revealed=asked.count_revealed,
        candidates=len(candidates),
        asked=asked.steps,
        starts=len(PUBLISHED_SEEDS),
        folds=None if held is None else held.folds,
        budget=asked.budget,
        rows=tuple(_row(step, number, matrix, held) for number, step in enumerate(path)),
        others=_others(path, held, matrix),
    )


def _row(step: ProbeStep, number: int, matrix: Matrix, held: CrossValidated | None) -> ProbeRow:
    row = ProbeRow(
        column=matrix.columns[step.benchmark],
        hidden=step.hidden,
        mixed=step.mixed,
        revealed=step.revealed,
        cells=step.cells,
        unpredicted=step.unpredicted,
        cost=step.cost,
    )
    if held is None or number >= len(held.hidden):
        return row
    chosen = held.chosen.get(step.benchmark, 0)
    return row.model_copy(update={"cross_validated": held.hidden[number], "cross_validated_revealed": held.revealed[number], "chosen": chosen})


def _others(path: tuple[ProbeStep, ...], held: CrossValidated | None, matrix: Matrix) -> tuple[OtherProbe, ...]:
    if held is None:
        return ()
    own = {step.benchmark for step in path}
    found = sorted(((count, place) for place, count in held.chosen.items() if place not in own), key=lambda pair: (-pair[0], pair[1]))
    return tuple(OtherProbe(column=matrix.columns[place], chosen=count) for count, place in found)
