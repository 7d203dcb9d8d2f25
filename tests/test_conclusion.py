"""What the console says at the end of a run: of an open check, what it would need, under which truth and at which error rate."""

from __future__ import annotations

import pytest

from evalspec.artifacts.schedule import GateForecast, LastLook
from evalspec.conclusion import describe

from .test_gating import bounded, estimate, verdict_of


def test_an_undecided_check_says_with_which_chance_the_questions_asked_would_pass_where_they_are_enough() -> None:
    forecast = GateForecast(check="acc", benchmark="b", n=2691, source_size=9000, limit=0.7, truth=0.72, alpha=0.025, needed=2074, power=0.893)
    told = describe(verdict_of(estimate(0.7, 0.65, 0.75), forecasts=(forecast,), limit=0.7))
    assert "80 % power at alpha 0.025 needs 2,074 questions; the 2,691 asked have 89 %" in told
    short = forecast.model_copy(update={"n": 900, "power": 0.4})
    assert "questions; the" not in describe(verdict_of(estimate(0.7, 0.65, 0.75), forecasts=(short,), limit=0.7))


@pytest.mark.parametrize("changes", [{"truth": 0.72, "needed": 2074}, {"smallest": 0.73}])
def test_where_any_check_is_enough_the_alpha_of_the_plan_is_told_apart_from_that_of_the_decision(changes: dict[str, float]) -> None:
    forecast = GateForecast(check="b", benchmark="b", n=300, source_size=9000, limit=0.6, alpha=0.025 / 3).model_copy(update=changes)
    checks = (bounded("a", 0.65, 0.64, 0.63), bounded("b", 0.5, 0.4, 0.3), bounded("c", 0.5, 0.4, 0.3))
    told = describe(verdict_of(*checks, require="any", forecasts=(forecast,)))
    assert "decided at its error rate / 2" in told
    assert "alpha 0.008333" in told
    assert "that alpha is planned: its error rate / 3, for 3 checks, the smallest that Holm's method may ask for" in told
    assert "that alpha is planned" not in describe(
        verdict_of(estimate(0.7, 0.65, 0.75, analysis="b"), require="any", forecasts=(forecast,), limit=0.7)
    )


def test_a_check_that_fails_is_not_said_to_be_decided_at_a_divided_error_rate() -> None:
    passing, failing = bounded("a", 0.65, 0.64, 0.63), estimate(0.5, 0.4, 0.55, analysis="b")
    told = describe(verdict_of(passing, failing, bounded("c", 0.5, 0.4, 0.3), require="any"))
    lines = told.splitlines()
    place = next(place for place, line in enumerate(lines) if line.startswith("failed"))
    assert "decided at its error rate /" not in lines[place + 1]
    assert "decided at its error rate / 2" in told


@pytest.mark.parametrize(
    ("asked", "last", "told"),
    [
        (
            300,
            LastLook(look=3, n=900, alpha=0.0245, power=0.7),
            "80 % power at the alpha of look 3, the last one planned, 0.0245, needs 1,100 questions",
        ),
        (
            1500,
            LastLook(look=2, n=3000, alpha=0.0245, power=0.998),
            "look 2, the last one planned, of 3,000 questions at alpha 0.0245, passes with a chance of 99.8 %",
        ),
    ],
    ids=["too few questions", "enough"],
)
def test_the_last_planned_look_is_told_with_the_questions_that_it_needs_or_where_it_has_them_with_its_chance(
    asked: int, last: LastLook, told: str
) -> None:
    forecast = GateForecast(
        check="acc", benchmark="b", n=asked, source_size=5000, limit=0.7, alpha=0.001, truth=0.0, discordance=0.2, needed=1100, last=last
    )
    said = describe(verdict_of(estimate(0.7, 0.65, 0.75), forecasts=(forecast,), limit=0.7))
    assert told in said
    assert ("1,100" in said) == (last.n < 1100)  # never a smaller number than were asked


def test_a_forecast_beside_missing_answers_says_that_it_takes_none_as_missing() -> None:
    forecast = GateForecast(check="acc", benchmark="b", n=100, source_size=300, limit=0.7, truth=0.8, alpha=0.025, needed=85, power=0.9)
    verdict = verdict_of(estimate(0.7, 0.65, 0.75), forecasts=(forecast,), limit=0.7)
    assert "takes no answer as missing" not in describe(verdict)
    missing = verdict.model_copy(update={"checks": (verdict.checks[0].model_copy(update={"missing": 17}),)})
    assert "that takes no answer as missing: those that are count against this check until they are given" in describe(missing)
    for unknown in ({"needed": None, "undefined": "clusters"}, {"needed": None}):
        without = verdict.checks[0].model_copy(update={"missing": 17, "forecast": forecast.model_copy(update=unknown)})
        assert "takes no answer as missing" not in describe(verdict.model_copy(update={"checks": (without,)}))


def test_without_a_declared_truth_an_undecided_check_says_which_true_value_would_pass() -> None:
    forecast = GateForecast(check="acc", benchmark="b", n=300, source_size=2000, limit=0.7, alpha=0.025, smallest=0.764)
    told = describe(verdict_of(estimate(0.7, 0.65, 0.75), forecasts=(forecast,), limit=0.7))
    assert "300 questions pass it with a chance of 80 % at alpha 0.025 if the true value is 0.764" in told
    assert "for the number of questions needed, declare the true value that you expect (assume)" in told


def test_assumed_values_and_the_reason_of_an_undefined_estimate_are_told_on_the_console() -> None:
    forecast = GateForecast(check="acc", benchmark="b", n=9, source_size=300, limit=0.7, truth=0.0, alpha=0.025, needed=654, discordance=0.2)
    told = describe(verdict_of(estimate(None, None, None), forecasts=(forecast,), limit=0.7))
    assert "the estimate is undefined: no scores" in told
    assert "with a true value of 0 (assumed) and 20 % discordant questions (assumed), 80 % power at alpha 0.025 needs 654 questions" in told
