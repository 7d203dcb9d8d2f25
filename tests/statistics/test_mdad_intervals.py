from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from evalspec.statistics.mdad import AgreementCurve, Reference, rising_crossing
from evalspec.statistics.mdad_intervals import GapInterval, Resampling, crossing_intervals
from evalspec.statistics.mdad_trials import Trial, TrialPlan, draw_trials


def setting(
    trials: int, *, models: int = 40, targets: int = 12, questions: int = 200, seed: int = 1
) -> tuple[tuple[Trial, ...], NDArray[np.float64]]:
    """Trials over made-up models, and their scores."""
    rng = np.random.default_rng(seed)
    chances = np.clip(rng.normal(0.5, 0.1, (models, 1)) + rng.normal(0.0, 0.2, (1, questions)), 0.02, 0.98)
    scores = (rng.random((models, questions)) < chances).astype(np.float64)
    return draw_trials(np.zeros(questions, dtype=np.int64), models, TrialPlan(trials, targets), rng), scores


def judged(trials: tuple[Trial, ...], scores: NDArray[np.float64], size: int = 20) -> tuple[Reference, NDArray[np.float32], NDArray[np.int64]]:
    rng = np.random.default_rng(2)
    totals = np.stack([scores[trial.targets][:, trial.seen].sum(axis=1) for trial in trials]).astype(np.int64)
    reference = Reference(totals, trials[0].seen.size)
    samples = [rng.choice(trial.seen, size, replace=False) for trial in trials]
    estimates = np.stack([scores[trial.targets][:, chosen].mean(axis=1) for trial, chosen in zip(trials, samples, strict=True)])
    return reference, reference.outcomes(estimates), np.stack([trial.targets for trial in trials])


def test_resampled_curves_are_those_of_a_loop_over_pairs() -> None:
    reference, outcomes, models = judged(*setting(6))
    draws, level = 25, 0.7
    found = crossing_intervals(reference, [outcomes], models, np.random.default_rng(5), resampling=Resampling(draws, 0.5), rule=(level, 5))
    # The same resamples, pair by pair: a model that is drawn k times counts k times in each of its pairs, a trial as often as it is drawn.
    rng = np.random.default_rng(5)
    size = int(models.max()) + 1
    model_times = rng.multinomial(size, np.full(size, 1 / size), size=draws)
    trial_times = rng.multinomial(6, np.full(6, 1 / 6), size=draws)
    ranked = np.take_along_axis(models, reference.order, axis=1)
    gaps = []
    for draw in range(draws):
        pairs, right = np.zeros((2, 1, reference.gaps.size))
        for trial in range(6):
            for number, (first, second) in enumerate(zip(reference.first, reference.second, strict=True)):
                weight = model_times[draw, ranked[trial, first]] * model_times[draw, ranked[trial, second]] * trial_times[draw, trial]
                pairs[0, reference.places[trial, number]] += weight
                right[0, reference.places[trial, number]] += weight * outcomes[trial, number]
        gap = rising_crossing(AgreementCurve(reference.gaps, pairs, right), level=level, min_pairs=5).gap
        gaps.append(np.inf if gap is None else gap)
    low, high = np.sort(gaps)[[int(np.ceil(0.25 * draws)) - 1, int(np.ceil(0.75 * draws)) - 1]]
    assert found == (GapInterval(low if np.isfinite(low) else None, high if np.isfinite(high) else None),)


def test_models_resampled_widen_what_pairs_resampled_leave_narrow() -> None:
    reference, outcomes, models = judged(*setting(60))
    ours = crossing_intervals(reference, [outcomes], models, np.random.default_rng(1), rule=(0.75, 30))[0]
    rng, cells, gaps = np.random.default_rng(1), reference.places.ravel(), []
    for _ in range(400):
        chosen = rng.integers(0, cells.size, cells.size)
        pairs = np.bincount(cells[chosen], minlength=reference.gaps.size).astype(float)
        right = np.bincount(cells[chosen], outcomes.ravel()[chosen], minlength=reference.gaps.size)
        gap = rising_crossing(AgreementCurve(reference.gaps, pairs[None], right[None]), level=0.75).gap
        gaps.append(np.inf if gap is None else gap)
    narrow = np.quantile(gaps, 0.975) - np.quantile(gaps, 0.025)
    assert ours.low is not None
    assert ours.high is None or ours.high - ours.low > 1.3 * narrow


def test_the_interval_holds_the_estimate_and_most_runs_with_other_draws() -> None:
    estimates, intervals = [], []
    for seed in range(12):
        reference, outcomes, models = judged(*setting(30, models=80, targets=30, seed=7 + seed))
        gap = rising_crossing(reference.curve_of(outcomes), level=0.75).gap
        assert gap is not None
        estimates.append(gap)
        intervals.append(crossing_intervals(reference, [outcomes], models, np.random.default_rng(seed), rule=(0.75, 30))[0])
    centre = np.median(estimates)
    held = [(one.low or 0.0) <= centre <= (np.inf if one.high is None else one.high) for one in intervals]
    assert sum(held) >= 9  # 95% intervals, of which other models and other questions ask more than they promise


def test_a_curve_that_never_reaches_the_level_has_no_bounds() -> None:
    reference, outcomes, models = judged(*setting(4))
    assert crossing_intervals(reference, [outcomes * 0], models, np.random.default_rng(1)) == (GapInterval(None, None),)


@pytest.mark.parametrize("resampling", [Resampling(0), Resampling(100, 1.0)])
def test_impossible_resampling_is_refused(resampling: Resampling) -> None:
    reference, outcomes, models = judged(*setting(4))
    with pytest.raises(ValueError, match=r"draws|confidence"):
        crossing_intervals(reference, [outcomes], models, np.random.default_rng(1), resampling=resampling)
