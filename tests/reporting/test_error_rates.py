"""What the report says of error rates is true of the check that it says it of: what was divided, what a bound's guarantee is, what is left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evalspec.artifacts.findings import StricterBounds
from evalspec.artifacts.scores import Score
from evalspec.artifacts.thresholds import Check
from evalspec.reporting.dossier import Dossier

from .test_consequences import ALL_MET
from .test_consequences import judged as with_outcomes
from .test_wording import judged, observed_of, with_analyses, with_benchmarks, with_check, words_of

FLOOR = Check(id="floor", analysis="accuracy", metric="accuracy", model="demo-large", benchmark="everyday", at_least=0.7)
RANK = Check(id="rank", analysis="ranks", metric="rank", model="demo-large", benchmark="everyday", at_most=1)


@pytest.fixture
def corrected(dossier: Dossier) -> Dossier:
    """One check is enough; the error rates of all were divided by two, and one failed."""
    either = with_outcomes(dossier, ALL_MET | {"floor": "failed"}, "passed", require="any")
    checks = []
    for result in either.verdict.checks:
        observed = result.observed.model_copy(update={"stricter": (StricterBounds(divisor=2, low=0.11, high=0.91, separated=True),)})
        checks.append(result.model_copy(update={"divisor": 2, "observed": observed}))
    return replace(either, verdict=either.verdict.model_copy(update={"checks": tuple(checks)}))


def test_a_check_that_fails_is_not_said_to_be_decided_at_a_divided_error_rate(corrected: Dossier) -> None:
    decision, table = words_of(corrected, "decision"), words_of(corrected, "thresholds")
    failed = decision[decision.index("floor ✗ failed") : decision.index("beats-small ✓ passed")]
    assert "decided at its error rate divided by" not in failed
    assert decision.count("decided at its error rate divided by 2") == 2
    assert table.count("error rate / 2") == 2
    told = "A check fails at its own error rate, which is not divided: the whole fails only where every check does."
    assert told in table
    assert told not in words_of(with_outcomes(corrected, ALL_MET, "passed", require="any"), "thresholds")


@pytest.mark.parametrize(
    ("method", "caveat"),
    [
        ("gaffke_weighted, average over subjects", "where questions weigh differently, calculation alone supports the bound"),
        ("gaffke_clustered, simultaneous", "where they differ in size and every question counts the same, calculation alone supports the bound"),
        ("fay_lumbard, simultaneous", "at a limit of zero at every sample size, elsewhere by a conjecture of their authors"),
    ],
)
def test_what_a_bound_takes_for_granted_is_told_of_averages_and_of_bounds_for_all_together_too(method: str, caveat: str, dossier: Dossier) -> None:
    studied = with_check(dossier, FLOOR)
    named = judged(studied, observed=observed_of(studied).model_copy(update={"method": method}))
    assert caveat in words_of(named, "thresholds")
    assert caveat not in words_of(studied, "thresholds")


@pytest.mark.parametrize("method", ["stratified_t", "cluster_means_t", "stratified_t, average over subjects"])
def test_no_measured_rates_are_claimed_of_student_s_bounds_that_were_not_measured(method: str, dossier: Dossier) -> None:
    studied = with_check(dossier, FLOOR)
    said = words_of(judged(studied, observed=observed_of(studied).model_copy(update={"method": method})), "thresholds")
    assert "approximately at best; no rates were measured" in said
    assert "measured rates" not in said


@pytest.mark.parametrize("method", ["holm", "max_t", "exact"])
def test_a_rank_by_two_sided_tests_is_not_said_to_keep_an_error_rate_that_does_not_cover_directions(method: str, dossier: Dossier) -> None:
    said = words_of(with_check(with_analyses(dossier, ranks={"kind": "tiers", "method": method}), RANK), "thresholds")
    told = "of two equally accurate models as far as its tests keep theirs; models that differ and are separated the wrong way round are not covered"
    assert (f"Holm, all pairs: {told}" in said) == (method == "holm")
    assert ("max-T, all pairs: approximately, as its section says" in said) == (method == "max_t")


def test_two_analyses_that_part_over_two_models_are_reconciled_where_both_are_told(dossier: Dossier) -> None:
    told = "That one analysis separates two models which another one leaves open is no contradiction"
    assert told not in words_of(dossier, "decision")
    strict = {"kind": "mcnemar", "family": "all_pairs", "alpha": 1e-12}
    assert f"{told}: tests, families and error rates differ, and stand with their results." in words_of(
        with_analyses(dossier, strict=strict), "decision"
    )


def test_the_plan_counts_a_missing_score_as_the_worst_one(dossier: Dossier) -> None:
    toxic = Score(unit="share of toxic sentences", polarity="lower_is_better")
    assert "everyday: a missing answer counts as wrong" in words_of(dossier, "power")
    assert "everyday: a missing answer counts as the worst score" in words_of(with_benchmarks(dossier, score=toxic), "power")
