"""The first page says what the outcomes of the checks come to by the study's rule, how far each is decided, and what would settle an open one."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from evalspec.artifacts.schedule import GateForecast, LastLook
from evalspec.artifacts.verdict import CheckResult
from evalspec.reporting.compose import compose
from evalspec.reporting.dossier import Dossier


def decision(dossier: Dossier) -> str:
    """The words of the first section."""
    section = re.search(r'<section id="decision".*?</section>', compose(dossier).html, re.DOTALL)[0]
    return re.sub(r" (?=[,;.])", "", " ".join(re.sub(r"<[^>]+>", " ", section).split()))


def follows(dossier: Dossier) -> str:
    """What stands between the decision and what was asked."""
    return re.search(r"What follows\. (.*?) What was asked", decision(dossier))[1]


def judged(dossier: Dossier, outcomes: dict[str, str], overall: str, *, require: str = "all", inconclusive: str = "block") -> Dossier:
    """The dossier with other outcomes of its checks."""
    checks = tuple(result.model_copy(update={"outcome": outcomes[result.check.id]}) for result in dossier.verdict.checks)
    thresholds = dossier.protocol.thresholds.model_copy(update={"require": require})
    verdict = dossier.verdict.model_copy(update={"checks": checks, "overall": overall, "inconclusive": inconclusive})
    return replace(dossier, verdict=verdict, protocol=dossier.protocol.model_copy(update={"thresholds": thresholds}))


ALL_MET = {"floor": "passed", "beats-small": "passed", "small-floor": "passed"}
ONE_OPEN = ALL_MET | {"beats-small": "inconclusive"}
RULE = "By the study’s own rule (every check must pass) its requirements as a whole are "
OTHER = RULE.replace("every check must pass", "one check is enough that passes after the correction for their number")
PARTS = "Open: beats-small (the test does not separate the two models). Met: floor, small-floor."
WHY = "the whole interval is on the other side of the limit"
NO_MORE = "That speaks for these models on these benchmarks, and for nothing that no check asks."


@pytest.mark.parametrize(
    ("outcomes", "overall", "rules", "expected"),
    [
        (ALL_MET, "passed", {}, f"{RULE}met. Met: floor, beats-small, small-floor. {NO_MORE}"),
        (
            ONE_OPEN,
            "passed",
            {"require": "any"},
            f"{OTHER}met. Open: beats-small; this cannot change the outcome. Met: floor, small-floor. {NO_MORE}",
        ),
        (
            ONE_OPEN,
            "inconclusive",
            {},
            f"{RULE}neither met nor missed, which the study counts as not met: an undecided check blocks. {PARTS}",
        ),
        (
            ONE_OPEN,
            "inconclusive",
            {"inconclusive": "warn"},
            f"{RULE}neither met nor missed, which the study lets pass with a warning: an undecided check does not block. {PARTS}",
        ),
    ],
)
def test_what_follows_names_every_check_by_what_became_of_it(
    outcomes: dict[str, str], overall: str, rules: dict[str, str], expected: str, dossier: Dossier
) -> None:
    assert follows(judged(dossier, outcomes, overall, **rules)) == expected


def test_an_open_check_cannot_change_what_failed(dossier: Dossier) -> None:
    assert follows(dossier) == f"{RULE}not met. Missed: small-floor ({WHY}). Open: beats-small; this cannot change the outcome. Met: floor."


def test_without_limits_nothing_follows(bare_dossier: Dossier) -> None:
    assert follows(bare_dossier) == (
        "Nothing by a rule of the study: whoever decides has the estimates below, and no limit that the study sets for them."
    )


def test_a_check_on_several_benchmarks_is_named_with_each(dossier: Dossier) -> None:
    first, *others = dossier.verdict.checks
    again = first.model_copy(update={"benchmark": "triples", "outcome": "failed"})
    assert f"Missed: floor on triples ({again.why}), small-floor ({WHY})." in follows(with_checks(dossier, first, again, *others))
    assert "Met: floor on everyday." in follows(with_checks(dossier, first, again, *others))


def with_checks(dossier: Dossier, *checks: CheckResult) -> Dossier:
    return replace(dossier, verdict=dossier.verdict.model_copy(update={"checks": checks}))


def test_each_check_says_how_far_it_is_decided(dossier: Dossier) -> None:
    said = decision(dossier)
    assert "floor ✓ passed, decided at its error rate: the requirement counts as met Required" in said
    assert "small-floor ✗ failed, decided at its error rate: the requirement counts as missed Required" in said
    assert "beats-small ? inconclusive, open: neither that the requirement is met nor that it is missed is shown Required" in said
    by_value = with_checks(dossier, *(result.model_copy(update={"error_control": False}) for result in dossier.verdict.checks))
    assert "floor ✓ passed, decided by a value alone, without error control: the requirement counts as met Required" in decision(by_value)


FORECAST = GateForecast(check="c", benchmark="b", n=240, source_size=320, limit=0.0, alpha=0.0025, discordance=0.2, smallest=0.0912)
SEES = "The 240 questions asked let this check pass with a chance of 80 % where the true difference is +9.1 points and 20 % of them are discordant"


def settled_by(dossier: Dossier, **changes: Any) -> str:
    """What the open check says that would settle it."""
    return decision(with_checks(dossier, *(one.model_copy(update={"advice": None} | changes) for one in dossier.verdict.checks)))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, f"{SEES} (assumed). A truth nearer to the limit needs more questions."),
        ({"source_size": 240}, "A truth nearer to the limit needs more questions, and this source has no more."),
        ({"source_size": 240, "subject": "tools"}, "A truth nearer to the limit needs more questions."),
        ({"discordance_declared": True}, f"{SEES} (declared)."),
        ({"discordance": None, "smallest": 0.78}, "where the true accuracy is 78.0 %. A truth nearer"),
        (
            {"last": LastLook(look=3, n=900, alpha=0.01)},
            "The 900 questions of the last look that is planned let this check pass with a chance of 80 %",
        ),
        ({"smallest": None}, "The study declares no true value under which the questions needed could be stated."),
        ({"why_not": "no number of questions is enough"}, "The questions needed cannot be stated: no number of questions is enough."),
        ({"needed": 700, "truth": 0.05}, "Were the true difference +5.0 points (assumed)"),
    ],
)
def test_an_open_check_says_what_this_sample_could_see_and_what_would_settle_it(changes: dict[str, Any], expected: str, dossier: Dossier) -> None:
    assert expected in settled_by(dossier, forecast=FORECAST.model_copy(update=changes))


@pytest.mark.parametrize("changes", [{}, {"needed": 700, "truth": 0.05}])
def test_where_any_check_is_enough_a_forecast_says_for_which_error_rate_it_was_made(changes: dict[str, Any], dossier: Dossier) -> None:
    forecast = FORECAST.model_copy(update=changes)
    told = "The plan took the error rate of this check divided by 3, the number of checks, which is the smallest that Holm’s method may ask for"
    assert told not in settled_by(dossier, forecast=forecast)
    any_is_enough = judged(dossier, ONE_OPEN, "passed", require="any")
    assert f"{told}; it was decided at its error rate divided by 2." in settled_by(any_is_enough, forecast=forecast, divisor=2)
    assert f"{told}; it was decided at its error rate, undivided." in settled_by(any_is_enough, forecast=forecast)


def test_the_plan_of_checks_of_which_one_is_enough_says_at_which_error_rate_it_was_made(dossier: Dossier) -> None:
    planned = replace(dossier, schedule=dossier.schedule.model_copy(update={"gates": (FORECAST,)}))
    told = "each is planned at its error rate divided by 3, the number of checks"
    pages = [re.sub(r"<[^>]+>", "", compose(one).html) for one in (planned, judged(planned, ONE_OPEN, "passed", require="any"))]
    assert [told in page for page in pages] == [False, True]


def with_answers(dossier: Dossier, model: str, answered: int, missing: dict[str, int], rule: str = "wrong") -> Dossier:
    """The dossier with another number of answers of one model, in what the findings say of it."""
    summaries = tuple(
        one.model_copy(update={"answered": answered, "missing": missing} if one.model == model else {"missing": {}})
        for one in dossier.findings.summaries
    )
    benchmarks = tuple(one.model_copy(update={"missing": rule}) for one in dossier.protocol.benchmarks)
    return replace(
        dossier,
        findings=dossier.findings.model_copy(update={"summaries": summaries}),
        protocol=dossier.protocol.model_copy(update={"benchmarks": benchmarks}),
    )


def test_a_claim_that_rests_on_missing_answers_says_so_where_it_is_made(dossier: Dossier) -> None:
    silent = decision(with_answers(dossier, "recorded", 0, {"not_recorded": 240}))
    assert silent.count("Of recorded no answer is there at all: every question counts as wrong.") == 4  # accuracies and comparisons, two benchmarks
    assert "Missing answers of recorded count as wrong." in decision(with_answers(dossier, "recorded", 239, {"not_recorded": 1}))
    for other in (with_answers(dossier, "recorded", 240, {}), with_answers(dossier, "recorded", 0, {"not_recorded": 240}, "complete_case")):
        assert "no answer is there" not in decision(other)
        assert "count as wrong" not in decision(other)


def test_missing_answers_would_bear_on_an_open_check(dossier: Dossier) -> None:
    assert "The missing answers, once given, would bear on it too." in settled_by(dossier, missing=2)
    assert "The missing answers" not in settled_by(dossier, missing=0)


def test_more_questions_are_not_asked_for_where_they_would_not_help(dossier: Dossier) -> None:
    open_check = next(one for one in dossier.verdict.checks if one.outcome == "inconclusive")
    observed = open_check.observed
    for found, said in (
        (None, "To settle it, the analysis has to compare these models; more questions alone do not."),
        (
            observed.model_copy(update={"value": None, "low": None, "high": None, "undefined": "no scores"}),
            "To settle it, the estimate has to be defined",
        ),
        (observed.model_copy(update={"basis": "predicted"}), "To settle it, the model has to be measured here."),
    ):
        page = decision(with_checks(dossier, open_check.model_copy(update={"observed": found})))
        assert said in page
        assert "declares no true value" not in page
