from __future__ import annotations

import numpy as np
import pytest

from evalspec.statistics.mdad_trials import TrialPlan, draw_trials


def test_halves_part_the_questions_of_every_stratum() -> None:
    strata = np.repeat([0, 1, 2], [10, 7, 2])
    for trial in draw_trials(strata, 30, TrialPlan(20, 6, 9), np.random.default_rng(1)):
        assert sorted([*trial.seen, *trial.fresh]) == list(range(19))
        assert np.bincount(strata[trial.seen]).tolist() == [5, 3, 1]


def test_models_judged_and_looked_at_differ_and_change_from_trial_to_trial() -> None:
    trials = draw_trials(np.zeros(8, dtype=np.int64), 30, TrialPlan(20, 6, 9), np.random.default_rng(1))
    for trial in trials:
        assert len({*trial.targets, *trial.sources}) == 15
    assert len({tuple(trial.targets) for trial in trials}) > 15
    assert len({tuple(trial.seen) for trial in trials}) > 10


def test_only_named_models_are_judged_and_the_others_can_be_looked_at() -> None:
    trials = draw_trials(np.zeros(8, dtype=np.int64), 12, TrialPlan(30, 50, 50), np.random.default_rng(1), judged=[3, 5, 7])
    assert {tuple(trial.targets) for trial in trials} == {(3, 5, 7)}
    assert {trial.sources.size for trial in trials} == {9}


@pytest.mark.parametrize(
    ("strata", "models", "plan", "message"),
    [
        ([0, 0, 0], 1, TrialPlan(3, 5), "models to judge"),
        ([0, 0, 1], 9, TrialPlan(3, 5), "every stratum"),
        ([0, 0, 0], 6, TrialPlan(3, 5, 2), "beside those judged"),
        ([0, 0, 0], 6, TrialPlan(0, 5), "trials"),
    ],
)
def test_what_cannot_be_drawn_is_refused(strata: list[int], models: int, plan: TrialPlan, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw_trials(np.array(strata), models, plan, np.random.default_rng(1))
