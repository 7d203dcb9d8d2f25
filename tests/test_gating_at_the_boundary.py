"""The error that gates control is a false pass: it is measured with the truth exactly at the limit, from responses to verdict."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from evalspec.analyses.analyse import analyse
from evalspec.analyses.catalogue import built_in
from evalspec.artifacts.base import JsonValue
from evalspec.artifacts.protocol import BatchRule, DrawnQuestion, Protocol, ProtocolBenchmark, ProtocolModel, RecordIdentity
from evalspec.artifacts.responses import BenchmarkResponses, Origin, Reason, Responses
from evalspec.artifacts.samples import SampleAll
from evalspec.artifacts.study import AnalysisRequest, LetterScoring
from evalspec.artifacts.thresholds import Check, Thresholds
from evalspec.gating import gate
from evalspec.statistics.proportions import clopper_pearson

pytestmark = pytest.mark.slow

QUESTIONS = 100
RUNS = 120
ALPHA = 0.1
"""Larger than a study would take, so that few runs tell whether it is kept."""


def most(rate: float) -> int:
    """The number of false passes in all runs that a true rate exceeds once in 10,000 times only."""
    return int(binom.ppf(0.9999, RUNS, rate))


def protocol(models: tuple[str, ...], analyses: dict[str, dict[str, JsonValue]], thresholds: Thresholds) -> Protocol:
    identity = RecordIdentity(sha256="0" * 64, model="m", origin="made.csv")
    benchmark = ProtocolBenchmark(
        id="x",
        source="made.jsonl",
        source_sha256="0" * 64,
        source_size=QUESTIONS,
        sample=SampleAll(),
        questions=tuple(DrawnQuestion(id=f"q{index}", sha256="0" * 64) for index in range(QUESTIONS)),
        missing="complete_case",
        scoring=LetterScoring(method="letter"),
        prompt="{question}",
        disclosure="full",
    )
    return Protocol(
        study_sha256="0" * 64,
        seed=1,
        models=tuple(ProtocolModel(id=model, precision="as_shipped", identity=identity) for model in models),
        benchmarks=(benchmark,),
        analyses=tuple(AnalysisRequest(id=name, kind=str(options["kind"]), benchmarks=("x",), options=options) for name, options in analyses.items()),
        thresholds=thresholds,
        batch_rule=BatchRule(),
    )


def responses(models: tuple[str, ...], scores: np.ndarray, clusters: tuple[str, ...] = ()) -> Responses:
    gone = np.isnan(scores.astype(np.float64))[:, :, None]
    benchmark = BenchmarkResponses(
        benchmark="x",
        models=models,
        questions=tuple(f"q{index}" for index in range(QUESTIONS)),
        subjects=(None,) * QUESTIONS,
        weights=np.ones(QUESTIONS),
        scores=scores.astype(np.float64)[:, :, None],
        reasons=np.where(gone, Reason.UNDETERMINED, Reason.NONE).astype(np.int8),
        choices=np.full((*scores.shape, 1), -1, dtype=np.int16),
        logprobs=None,
        missing="complete_case",
        clusters=clusters,
    )
    origins = tuple(Origin(model=model, benchmark="x", route="recorded", precision="as_shipped") for model in models)
    return Responses(benchmarks=(benchmark,), origins=origins, protocol_sha256="0" * 64)


def false_passes(plan: Protocol, draws: np.ndarray, clusters: tuple[str, ...] = ()) -> int:
    """Count the runs whose verdict is a pass, from responses of shape (runs, models, questions)."""
    models = tuple(model.id for model in plan.models)
    passed = 0
    for scores in draws:
        findings = analyse(responses(models, scores, clusters), plan, built_in(), responses_sha256="0" * 64)
        passed += gate(findings, plan.thresholds).overall == "passed"
    return passed


@pytest.mark.parametrize("floor", [0.7, 0.95])
def test_an_exact_floor_is_cleared_wrongly_at_most_as_often_as_declared(floor: float) -> None:
    draws = np.random.default_rng(11).random((RUNS, 1, QUESTIONS)) < floor
    check = Check(id="floor", analysis="accuracy", metric="accuracy", model="m", at_least=floor)
    plan = protocol(("m",), {"accuracy": {"kind": "intervals", "method": "clopper_pearson", "level": 1 - 2 * ALPHA}}, Thresholds(checks=(check,)))
    assert false_passes(plan, draws) <= most(ALPHA)


UNEQUAL = (30, *(10,) * 4, *(3,) * 10)
EQUAL = (5,) * 20


def in_clusters(sizes: tuple[int, ...], right: float, rng: np.random.Generator) -> tuple[np.ndarray, tuple[str, ...]]:
    """Draw answers of clusters that are known as a whole or not at all, and say which cluster each question is of."""
    shares = np.repeat(rng.beta(right / 2, (1 - right) / 2, (RUNS, len(sizes))), sizes, axis=1)
    return (rng.random(shares.shape) < shares)[:, None, :], tuple(f"c{place}" for place in np.repeat(np.arange(len(sizes)), sizes))


@pytest.mark.parametrize("sizes", [EQUAL, UNEQUAL], ids=["equal", "unequal"])
@pytest.mark.parametrize("floor", [0.7, 0.9])
def test_a_floor_is_cleared_wrongly_by_answers_in_clusters_at_most_as_often_as_declared(floor: float, sizes: tuple[int, ...]) -> None:
    draws, clusters = in_clusters(sizes, floor, np.random.default_rng(15))
    assert false_passes(floored(floor), draws, clusters) <= most(ALPHA)


def test_student_s_bound_is_cleared_wrongly_by_answers_in_clusters_more_often_than_declared() -> None:
    draws, clusters = in_clusters(UNEQUAL, 0.9, np.random.default_rng(15))
    assert false_passes(floored(0.9, method="wilson"), draws, clusters) > most(ALPHA)  # what Gaffke's bound is there for


@pytest.mark.parametrize("sizes", [EQUAL, UNEQUAL], ids=["equal", "unequal"])
def test_a_candidate_that_is_worse_in_clusters_passes_at_most_as_often_as_declared(sizes: tuple[int, ...]) -> None:
    rng, margin = np.random.default_rng(16), 0.05
    baseline, clusters = in_clusters(sizes, 0.9, rng)
    candidate = baseline & (rng.random(baseline.shape) >= margin / 0.9)
    assert false_passes(release(1, margin, method="exact"), np.concatenate([baseline, candidate], axis=1), clusters) <= most(ALPHA)


def gain(kind: str, **options: JsonValue) -> Protocol:
    """A check that one model is better than another, or holds the first rank, with the options that a gate takes where the study names none."""
    compared: dict[str, dict[str, JsonValue]] = {
        "mcnemar": {"family": "named", "pairs": [["new", "old"]], "alpha": 2 * ALPHA, "level": 1 - 2 * ALPHA},
        "tiers": {"alpha": ALPHA},
    }
    claims = {"mcnemar": {"metric": "difference", "baseline": "old", "above": 0.0}, "tiers": {"metric": "rank", "at_most": 1}}
    chosen = {**built_in()[kind].gate_defaults, **options}
    check = Check(id="gain", analysis="gain", model="new", **claims[kind])
    return protocol(("new", "old"), {"gain": {"kind": kind, **compared[kind], **chosen}}, Thresholds(checks=(check,)))


@pytest.mark.parametrize("kind", ["mcnemar", "tiers"])
@pytest.mark.parametrize("sizes", [EQUAL, UNEQUAL], ids=["equal", "unequal"])
def test_a_gain_is_claimed_wrongly_at_most_as_often_as_declared_where_one_model_varies_between_clusters(kind: str, sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(18)
    varying, clusters = in_clusters(sizes, 0.95, rng)
    draws = np.concatenate([rng.random(varying.shape) < 0.95, varying], axis=1)
    assert false_passes(gain(kind), draws, clusters) <= most(ALPHA)


def rare_losses() -> np.ndarray:
    """Draw two equally good models: the first loses rarely and much, and gains a little on half of the other questions."""
    rng, lost = np.random.default_rng(19), 0.01
    gains = np.where(rng.random((RUNS, 1, QUESTIONS)) < 0.5, lost / (1 - lost), 0.0)
    return np.concatenate([np.where(rng.random(gains.shape) < lost, 0.0, 0.5 + gains), np.full(gains.shape, 0.5)], axis=1)


@pytest.mark.parametrize("kind", ["mcnemar", "tiers"])
def test_a_gain_that_rare_losses_make_good_is_claimed_wrongly_at_most_as_often_as_declared(kind: str) -> None:
    assert false_passes(gain(kind), rare_losses()) <= most(ALPHA)


def test_student_s_test_claims_a_gain_that_rare_losses_make_good_more_often_than_declared() -> None:
    assert false_passes(gain("mcnemar", method="score"), rare_losses()) > most(ALPHA)  # what Gaffke's test is there for


def test_fractional_scores_near_1_clear_a_floor_wrongly_at_most_as_often_as_declared() -> None:
    draws = np.random.default_rng(17).beta(0.9, 0.1, (RUNS, 1, QUESTIONS))
    assert false_passes(floored(0.9), draws) <= most(ALPHA)


def candidates(count: int, margin: float, *, discordance: float = 0.3) -> np.ndarray:
    """Draw a baseline and candidates that are truly worse by the margin, all on the same questions."""
    rng, right = np.random.default_rng(12), 0.7
    baseline = rng.random((RUNS, 1, QUESTIONS)) < right
    chance = rng.random((RUNS, count, QUESTIONS))
    lost, won = (discordance + margin) / 2 / right, (discordance - margin) / 2 / (1 - right)
    return np.concatenate([baseline, np.where(baseline, chance >= lost, chance < won)], axis=1)


def release(count: int, margin: float, *, method: str = "score", require: str = "all") -> Protocol:
    names = tuple(f"candidate-{index}" for index in range(count))
    analyses: dict[str, dict[str, JsonValue]] = {
        name: {"kind": "noninferiority", "candidate": name, "baseline": "baseline", "margin": margin, "alpha": ALPHA, "method": method}
        for name in names
    }
    checks = tuple(Check(id=name, analysis=name, metric="difference", model=name, baseline="baseline", above=-margin) for name in names)
    return protocol(("baseline", *names), analyses, Thresholds(require=require, checks=checks))


@pytest.mark.parametrize("method", ["score", "e_value"])
def test_a_candidate_that_is_worse_by_the_margin_passes_at_most_as_often_as_declared(method: str) -> None:
    assert false_passes(release(1, 0.05, method=method), candidates(1, 0.05)) <= most(ALPHA)


def test_any_of_four_candidates_passes_wrongly_at_most_as_often_as_one() -> None:
    draws = candidates(4, 0.05)
    passed = false_passes(release(4, 0.05, require="any"), draws)
    assert passed <= most(ALPHA)
    uncorrected = sum(false_passes(release(1, 0.05), draws[:, [0, place]]) for place in (1, 2, 3, 4))
    assert uncorrected > most(ALPHA)  # what the correction is there for


def test_requiring_all_needs_no_correction() -> None:
    assert false_passes(release(3, 0.05), candidates(3, 0.05)) <= most(ALPHA)


def hidden(draws: np.ndarray, *, share: float = 0.4) -> np.ndarray:
    """Lose a share of the wrong answers of every candidate, and of none of the baseline, which is the first of several models."""
    lost = (np.random.default_rng(13).random(draws.shape) < share) & ~draws
    if draws.shape[1] > 1:
        lost[:, 0] = False
    return np.where(lost, np.nan, draws.astype(np.float64))


def floored(floor: float, *, method: str = "clopper_pearson") -> Protocol:
    check = Check(id="floor", analysis="accuracy", metric="accuracy", model="m", at_least=floor)
    return protocol(("m",), {"accuracy": {"kind": "intervals", "method": method, "level": 1 - 2 * ALPHA}}, Thresholds(checks=(check,)))


def test_wrong_answers_that_get_lost_clear_no_floor() -> None:
    draws = np.random.default_rng(14).random((RUNS, 1, QUESTIONS)) < 0.7
    lossy = hidden(draws)
    assert false_passes(floored(0.7), lossy) <= most(ALPHA)
    answered = [scores[~np.isnan(scores)] for scores in lossy[:, 0]]
    left_out = sum(clopper_pearson(int(scores.sum()), scores.size, level=1 - 2 * ALPHA).low >= 0.7 for scores in answered)
    assert left_out > most(ALPHA)  # what counting them against the check is there for


def gains(count: int, *, require: str) -> Protocol:
    names = tuple(f"candidate-{index}" for index in range(count))
    analyses: dict[str, dict[str, JsonValue]] = {"gain": {"kind": "mcnemar", "family": "vs_baseline", "baseline": "baseline", "alpha": 2 * ALPHA}}
    checks = tuple(Check(id=name, analysis="gain", metric="difference", model=name, baseline="baseline", above=0.0) for name in names)
    return protocol(("baseline", *names), analyses, Thresholds(require=require, checks=checks))


@pytest.mark.parametrize("require", ["any", "all"])
@pytest.mark.parametrize("lost", [False, True])
def test_candidates_that_gain_nothing_pass_wrongly_at_most_as_often_as_declared(require: str, lost: bool) -> None:
    draws = candidates(2, 0.0)
    assert false_passes(gains(2, require=require), hidden(draws) if lost else draws) <= most(ALPHA)


def test_checks_of_one_family_are_corrected_once() -> None:
    # One candidate has truly gained: at the rate for three checks it passes more often than if its family corrected on top.
    draws = np.concatenate([candidates(2, 0.0), candidates(1, -0.12)[:, 1:]], axis=1)
    once = false_passes(gains(3, require="any"), draws)
    # Three candidates at a third of the rate, of which the family's own correction takes another third.
    twice = sum(passes_twice(scores) for scores in draws)
    assert once > twice


def passes_twice(scores: np.ndarray) -> bool:
    ahead, behind = ((scores[1:] & ~scores[0]).sum(axis=1), (scores[0] & ~scores[1:]).sum(axis=1))
    p_values = [binomtest(int(won), int(won + gone)).pvalue for won, gone in zip(ahead, behind, strict=True) if won > gone]
    return min(p_values, default=1.0) <= 2 * ALPHA / 9
