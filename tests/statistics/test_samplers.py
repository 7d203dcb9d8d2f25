from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from scipy.optimize import check_grad

from evalspec.statistics.diverse_samplers import projection_process
from evalspec.statistics.item_response import _Objective, fit_item_response
from evalspec.statistics.mdad import Reference, first_crossing
from evalspec.statistics.mdad_trials import TrialPlan, draw_trials
from evalspec.statistics.random_samplers import nearest_groups
from evalspec.statistics.samplers import SAMPLERS, Answers, choose_questions, sampled_scores
from evalspec.statistics.selections import Candidates

RANDOM = ("uniform", "stratified_equal", "stratified_proportional", "confidence_strata")
STRATA = np.repeat([0, 1, 2], [60, 25, 15])


def candidates(*, seed: int = 1, sources: int = 30, strata: NDArray[np.int64] = STRATA) -> tuple[Candidates, NDArray[np.float64]]:
    """Questions that other models answered, and the answers of one more model."""
    rng = np.random.default_rng(seed)
    chance = np.clip(rng.normal(0.55, 0.1, (sources + 1, 1)) + rng.normal(0.0, 0.25, strata.size) + 0.15 * (strata - 1), 0.03, 0.97)
    correct = (rng.random(chance.shape) < chance).astype(np.float64)
    confidence = np.clip(chance + rng.normal(0.0, 0.05, chance.shape), 0.01, 0.99)
    return Candidates(strata, correct[:-1], confidence[:-1]), correct[-1]


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("size", [1, 7, 40, 100])
def test_as_many_different_questions_are_chosen_as_asked_for(name: str, size: int) -> None:
    pool, _ = candidates()
    choice = SAMPLERS[name].prepare(pool, np.random.default_rng(3))(size)
    forms = [choice.own, *([choice.published] if choice.published and name != "confidence_strata" else [])]
    for form in forms:
        assert len(set(form.questions.tolist())) == form.questions.size == size
        assert form.weights.sum() == pytest.approx(1.0)
        assert form.weights.min() >= 0.0


@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize("size", [8, 33])
def test_random_samples_estimate_the_score_without_bias(name: str, size: int) -> None:
    pool, answers = candidates()
    choose = SAMPLERS[name].prepare(pool, np.random.default_rng(5))
    estimates = [choice.weights @ answers[choice.questions] for choice in (choose(size).own for _ in range(4000))]
    error = np.std(estimates) / 4000**0.5
    assert np.mean(estimates) == pytest.approx(answers.mean(), abs=4.5 * error)
    if name in ("stratified_proportional", "confidence_strata"):
        plain = np.sqrt(answers.var(ddof=1) / size * (1 - size / answers.size))
        assert np.std(estimates) < 1.05 * plain  # proportional parts cost hardly anything, and strata that tell something gain


def test_equal_parts_are_equal_until_a_stratum_runs_out() -> None:
    pool, _ = candidates()
    choose = SAMPLERS["stratified_equal"].prepare(pool, np.random.default_rng(1))
    assert np.bincount(STRATA[choose(30).own.questions]).tolist() == [10, 10, 10]
    assert sorted(np.bincount(STRATA[choose(31).own.questions]).tolist()) == [10, 10, 11]
    assert np.bincount(STRATA[choose(90).own.questions]).tolist() == [50, 25, 15]
    assert choose(30).published is not None
    assert choose(90).published is None  # the published form has none


def test_the_published_mean_of_equal_parts_estimates_another_score() -> None:
    pool, answers = candidates()
    choose = SAMPLERS["stratified_equal"].prepare(pool, np.random.default_rng(1))
    published = [answers[choice.questions].mean() for choice in (choose(30).published for _ in range(2000)) if choice is not None]
    subjects = np.mean([answers[pool.strata == place].mean() for place in range(3)])
    assert np.mean(published) == pytest.approx(subjects, abs=0.01)
    assert abs(subjects - answers.mean()) > 0.03


def test_the_published_form_of_proportional_gives_strata_the_same_number() -> None:
    pool, _ = candidates()
    choose = SAMPLERS["stratified_proportional"].prepare(pool, np.random.default_rng(1))
    draws = [choose(12) for _ in range(1500)]
    own = np.mean([np.bincount(STRATA[one.own.questions], minlength=3) for one in draws], axis=0)
    published = np.mean([np.bincount(STRATA[one.published.questions], minlength=3) for one in draws if one.published], axis=0)
    assert own == pytest.approx([7.2, 3.0, 1.8], abs=0.05)
    assert published == pytest.approx([4.0, 4.0, 4.0], abs=0.45)  # without replacement, so small strata fall a little short


def test_confidence_strata_are_groups_of_near_values() -> None:
    values = np.array([0.9, 0.11, 0.5, 0.1, 0.52, 0.91])
    assert nearest_groups(values, 3).tolist() == [2, 0, 1, 0, 1, 2]
    assert nearest_groups(np.full(5, 0.3), 10).tolist() == [0] * 5


def test_anchors_stand_for_the_questions_that_go_with_them() -> None:
    rng = np.random.default_rng(1)
    factors = rng.random((40, 3))
    trust = np.repeat(factors, [5, 3, 2], axis=1) + rng.normal(0, 0.01, (40, 10))
    pool = Candidates(np.zeros(10, dtype=np.int64), (trust > 0.5).astype(float), np.clip(trust, 0, 1))
    choice = SAMPLERS["anchor_points"].prepare(pool, np.random.default_rng(2))(3)
    groups = np.repeat([0, 1, 2], [5, 3, 2])
    assert dict(zip(groups[choice.own.questions].tolist(), choice.own.weights.tolist(), strict=True)) == {0: 0.5, 1: 0.3, 2: 0.2}
    assert choice.published is not None
    assert choice.published.of_confidence
    scores_alone = Candidates(pool.strata, pool.correct)
    assert SAMPLERS["anchor_points"].prepare(scores_alone, np.random.default_rng(2))(3).published is None


def test_a_determinantal_process_draws_points_with_their_chances_and_pairs_more_rarely() -> None:
    points = np.random.default_rng(1).normal(size=(12, 2))
    rng, draws = np.random.default_rng(2), 2000
    counts, together = np.zeros(12), np.zeros((12, 12))
    for _ in range(draws):
        chosen, chances = projection_process(points, 4, rng)
        assert len(set(chosen.tolist())) == 4
        counts[chosen] += 1
        together[np.ix_(chosen, chosen)] += 1
    assert counts / draws == pytest.approx(chances, abs=4.5 * (0.25 / draws) ** 0.5)
    both = together[np.triu_indices(12, 1)] / draws
    alone = np.outer(chances, chances)[np.triu_indices(12, 1)]
    assert np.all(both <= alone + 4.5 * (0.25 / draws) ** 0.5)  # negative dependence


def test_diversity_refuses_more_questions_than_it_can_tell_apart() -> None:
    alike = Candidates(np.zeros(20, dtype=np.int64), np.tile(np.arange(20) % 2, (6, 1)).astype(float) * np.arange(6)[:, None] / 5)
    with pytest.raises(ValueError, match="tells only"):
        SAMPLERS["diversity"].prepare(alike, np.random.default_rng(1))(10)


def test_diversity_has_nothing_to_choose_by_where_all_questions_are_answered_alike() -> None:
    alike = Candidates(np.zeros(20, dtype=np.int64), np.ones((6, 20)))
    choose = SAMPLERS["diversity"].prepare(alike, np.random.default_rng(1))
    assert choose(1).own.questions.size == 1
    with pytest.raises(ValueError, match="only 1 of them apart"):
        choose(2)


def test_the_gradient_of_the_item_response_model_is_right() -> None:
    rng = np.random.default_rng(4)
    objective = _Objective((rng.random((6, 9)) < 0.6).astype(float), 2)
    values = rng.normal(size=6 * 2 + 9 * 2 + 9)
    assert check_grad(lambda at: objective(at)[0], lambda at: objective(at)[1], values) < 1e-4


def test_the_item_response_model_finds_what_made_the_answers() -> None:
    rng = np.random.default_rng(5)
    ability, slope, difficulty = rng.normal(size=(150, 1)), rng.uniform(0.8, 2.0, 60), rng.normal(0, 1.2, 60)
    chances = 1 / (1 + np.exp(difficulty - ability * slope))
    fitted = fit_item_response((rng.random(chances.shape) < chances).astype(float), np.random.default_rng(1), dimensions=1)
    assert np.corrcoef(fitted.difficulties, difficulty)[0, 1] > 0.97
    assert abs(np.corrcoef(fitted.abilities[:, 0], ability[:, 0])[0, 1]) > 0.95
    assert np.abs(fitted.chances() - chances).mean() < 0.07  # of 60 answers each


@pytest.mark.parametrize("scores", [np.full((2, 3), 1.5), np.full((2, 3), np.nan)])
def test_scores_that_are_none_are_refused(scores: NDArray[np.float64]) -> None:
    with pytest.raises(ValueError, match="correct"):
        fit_item_response(scores, np.random.default_rng(1))


def test_the_same_stream_gives_the_same_choice() -> None:
    pool, _ = candidates()
    for sampler in SAMPLERS.values():
        first, second = (sampler.prepare(pool, np.random.default_rng(9))(12).own for _ in range(2))
        assert first.questions.tolist() == second.questions.tolist()


@pytest.fixture(scope="module")
def wmdp(shared: Path) -> Answers:
    """64 models on WMDP-bio with their log-likelihoods (MIT, xyzhu123/tinyBenchmarks): numbers alone, no question is read."""
    table = pq.read_table(shared / "data" / "wmdp_bio_option_loglik_64models.parquet")
    models = [column.removesuffix("|A") for column in table.column_names if column.endswith("|A")]
    logs = np.stack([np.stack([table[f"{model}|{letter}"].to_numpy() for letter in "ABCD"], axis=1) for model in models])
    key = np.array([str(cell) for cell in table["answer"].to_pylist()])
    right = np.array(["ABCD".index(cell) if cell in "ABCD" else int(cell) for cell in key])
    shares = np.exp(logs - logs.max(axis=2, keepdims=True))
    shares /= shares.sum(axis=2, keepdims=True)
    scores = (logs.argmax(axis=2) == right).astype(np.float64)
    return Answers(scores, np.zeros(right.size, dtype=np.int64), shares[:, np.arange(right.size), right])


def test_anchor_points_scored_by_confidence_stall_and_by_right_answers_do_not(wmdp: Answers) -> None:
    rng = np.random.default_rng(1)
    trials = draw_trials(wmdp.strata, 64, TrialPlan(30, 24, 40), rng)
    choices = choose_questions(wmdp, trials, SAMPLERS["anchor_points"], (50, 500), rng)
    totals = np.stack([wmdp.scores[trial.targets][:, trial.seen].sum(axis=1) for trial in trials]).astype(np.int64)
    reference = Reference(totals, trials[0].seen.size)
    found = {}
    for size, entry in zip((50, 500), sampled_scores(wmdp, trials, choices), strict=True):
        assert entry.published is not None
        found[size] = [first_crossing(reference.curve(form), min_pairs=1).gap for form in (entry.own, entry.published)]
    # Computed apart: 4.0 and 0.5 points by right answers, 6.5 and 7.0 by confidence.
    assert found[50] == pytest.approx([0.04, 0.065], abs=0.011)
    assert found[500] == pytest.approx([0.005, 0.07], abs=0.011)
