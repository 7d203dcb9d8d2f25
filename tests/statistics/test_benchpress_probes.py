"""Probe sets: the two published ones in their order (arXiv:2606.24020), and the errors of hidden scores that they leave, found independently."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evalspec.statistics.benchpress import PUBLISHED_SEEDS, Method
from evalspec.statistics.benchpress_intervals import points
from evalspec.statistics.benchpress_probes import Budget, Objective, Trials, cross_validated, search
from evalspec.statistics.benchpress_rows import predict_row

from .benchpress_matrix import Published, made_up, made_up_tops, read_published

CHEAP = [
    "aime_2026", "aime_2025", "ifbench", "matharena_apex_2025", "tau2_bench_telecom", "gpqa_diamond", "aider_polyglot_diff", "arena_hard",
    "math_500", "mmlu_pro",
]  # fmt: skip
"""Those of the published list of 25 benchmarks that cost little to run which either search chooses, and two of the others."""

PUBLISHED_PATH = ("gpqa_diamond", "hle", "codeforces_rating", "mmlu_pro", "arc_agi_1")
RIVALS = ("livecodebench", "hle_text", "aime_2025")
"""Other good probes; `benchmarks/benchpress.py` searches all 133."""

TOPS = made_up_tops()


@pytest.fixture(scope="module")
def published(shared: Path) -> Published:
    return read_published(shared)


@pytest.fixture(scope="module")
def trials(published: Published) -> Trials:
    """What was fitted for one search serves the next."""
    return Trials(published.scores, Method(PUBLISHED_SEEDS))


@pytest.mark.slow
def test_counting_revealed_scores_gives_the_published_cheap_set_in_its_order(published: Published, trials: Trials) -> None:
    path = search(trials, published.places(*CHEAP), 5, Objective(count_revealed=True))
    assert [published.columns[step.benchmark] for step in path] == ["gpqa_diamond", "mmlu_pro", "aider_polyglot_diff", "math_500", "aime_2026"]
    assert [step.revealed for step in path] == pytest.approx([5.979, 5.467, 5.022, 4.757, 4.549], abs=5e-4)
    assert path[-1].revealed == pytest.approx(4.5493, abs=5e-5)
    assert path[-1].hidden == pytest.approx(5.333, abs=5e-4)
    assert (path[0].cells, path[0].unpredicted) == (2522, 0)


@pytest.mark.slow
def test_hidden_scores_choose_another_cheap_set_which_leaves_less(published: Published, trials: Trials) -> None:
    path = search(trials, published.places(*CHEAP), 5, Objective())
    chosen = {published.columns[step.benchmark] for step in path}
    assert chosen == {"gpqa_diamond", "arena_hard", "matharena_apex_2025", "tau2_bench_telecom", "mmlu_pro"}
    assert path[-1].hidden == pytest.approx(5.23, abs=0.006)


@pytest.mark.slow
def test_counting_revealed_scores_gives_the_published_set_in_its_order(published: Published, trials: Trials) -> None:
    path = search(trials, published.places(*PUBLISHED_PATH, *RIVALS), 5, Objective(count_revealed=True))
    assert tuple(published.columns[step.benchmark] for step in path) == PUBLISHED_PATH
    assert [step.revealed for step in path] == pytest.approx([5.979, 4.933, 4.495, 4.203, 3.926], abs=5e-4)
    assert [step.hidden for step in path] == pytest.approx([6.305, 5.429, 4.988, 4.880, 4.756], abs=5e-4)


def small() -> Trials:
    return Trials(made_up(), Method((42, 43), TOPS))


def test_a_step_is_the_candidate_whose_error_is_smallest_over_all_hidden_cells() -> None:
    scores = made_up()
    path = search(small(), range(9), 2, Objective())
    for number, step in enumerate(path):
        before = [earlier.benchmark for earlier in path[:number]]
        errors = {}
        for probe in range(9):
            if probe in before:
                continue
            found = []
            for model, row in enumerate(scores):
                visible = np.zeros((1, 9), dtype=bool)
                visible[0, [*before, probe]] = True
                predicted = predict_row(scores, model, visible, Method((42, 43), TOPS)).value[0]
                found += [abs(predicted[at] - row[at]) for at in range(9) if not np.isnan(row[at]) and at not in {*before, probe}]
            errors[probe] = float(np.median(found))
        assert step.benchmark == min(errors, key=errors.__getitem__)
        assert step.hidden == pytest.approx(errors[step.benchmark], abs=1e-9)


def test_revealed_scores_make_an_error_look_smaller() -> None:
    for step in search(small(), range(9), 4, Objective()):
        assert step.revealed < step.hidden


def test_the_unit_of_a_benchmark_moves_no_choice_by_errors_in_points() -> None:
    """A rating may be counted in thousandths: in points it weighs the same, in the published error, which mixes units, it does not."""
    unbounded = int(np.flatnonzero(np.isnan(TOPS))[0])
    scores = made_up()
    wider = scores.copy()
    wider[:, unbounded] *= 0.001
    paths = []
    for table in (scores, wider):
        method = Method((42, 43), TOPS)
        point = points(TOPS, np.nanstd(table, axis=0))
        paths.append(search(Trials(table, method, point=point), range(unbounded), 2, Objective()))
    assert [step.benchmark for step in paths[0]] == [step.benchmark for step in paths[1]]
    assert [step.hidden for step in paths[0]] == pytest.approx([step.hidden for step in paths[1]])
    assert all(far.mixed != near.mixed and far.revealed != near.revealed for near, far in zip(*paths, strict=True))


def test_without_a_point_errors_are_in_the_units_of_the_benchmarks() -> None:
    for step in search(small(), range(9), 2, Objective()):
        assert step.hidden == step.mixed


def test_relative_errors_are_of_the_score_itself() -> None:
    trials, scores = small(), made_up()
    step = search(trials, [1], 1, Objective("medape"))[0]
    errors = np.array([trials.errors(model, [1]) for model in range(len(scores))])
    known = ~np.isnan(scores) & (np.arange(9) != 1)
    assert step.hidden == pytest.approx(np.median((errors / np.abs(scores))[known]))


def test_what_was_fitted_once_is_not_fitted_again() -> None:
    told: list[int] = []
    trials = Trials(made_up(), Method((42,), TOPS), lambda done, _of: told.append(done))
    first = search(trials, range(9), 2, Objective())
    count = len(told)
    assert search(trials, range(9), 2, Objective()) == first
    assert len(told) == count


def test_a_budget_is_kept_and_benchmarks_without_a_cost_are_never_affordable() -> None:
    costs = np.array([5.0, 1.0, 1.0, 3.0, np.nan, 1.0, 2.0, 9.0, 1.0])
    path = search(small(), range(9), 6, Objective(), budget=Budget(4.0, costs))
    assert path[-1].cost is not None
    assert path[-1].cost <= 4.0
    assert [step.cost for step in path] == np.cumsum(costs[[step.benchmark for step in path]]).tolist()
    assert not {0, 4, 7} & {step.benchmark for step in path}
    assert len(path) < 6


def test_equal_errors_leave_the_choice_to_the_first_column() -> None:
    scores = made_up()
    scores[:, 2] = scores[:, 1]
    twin = search(Trials(scores, Method((42,), TOPS)), [2, 1], 1, Objective())[0]
    alone = search(Trials(scores, Method((42,), TOPS)), [1], 1, Objective())[0]
    assert twin.hidden <= alone.hidden
    assert twin.benchmark == 1 or twin.hidden < alone.hidden


def test_a_choice_without_some_models_is_measured_on_them_alone() -> None:
    trials = small()
    parts = np.array_split(np.random.default_rng(3).permutation(14), 4)
    held = cross_validated(trials, range(9), 2, Objective(), parts)
    assert (held.folds, sum(held.chosen.values())) == (4, 8)
    pooled = []
    for part in parts:
        rest = [model for model in range(14) if model not in part]
        probes = [step.benchmark for step in search(trials, range(9), 1, Objective(), models=rest)]
        for model in part.tolist():
            errors = trials.errors(model, probes)
            pooled += [errors[at] for at in range(9) if at not in probes and not np.isnan(errors[at])]
    assert held.hidden[0] == pytest.approx(np.median(pooled))
    assert held.revealed[0] < held.hidden[0]


def test_a_search_ends_where_no_hidden_score_is_left() -> None:
    scores = np.array([[70.0, 60.0, 50.0], [80.0, 75.0, 55.0], [65.0, 50.0, 45.0], [90.0, 85.0, 80.0]])
    trials = Trials(scores, Method((42,), np.full(3, 100.0)))
    assert [step.cells for step in search(trials, range(3), 5, Objective())] == [8, 4]
    held = cross_validated(trials, range(3), 5, Objective(), [np.array([0, 1]), np.array([2, 3])])
    assert (len(held.hidden), len(held.revealed)) == (2, 2)
    assert np.isfinite([*held.hidden, *held.revealed]).all()
