"""What a report says is picked from the estimates, the checks and the facts of the run."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evalspec.artifacts.findings import Estimate
from evalspec.artifacts.schedule import GateForecast
from evalspec.reporting.compose import compose
from evalspec.reporting.dossier import Dossier
from evalspec.reporting.limits import limitations, main_limitations
from evalspec.reporting.samples import draw_samples
from evalspec.reporting.summary import check_views, overview


def test_the_overview_names_the_range_of_each_benchmark(dossier: Dossier) -> None:
    everyday, triples = overview(dossier).levels
    assert [[placed.item.models for placed in end] for end in (everyday.highest, everyday.lowest)] == [[("demo-large",)], [("recorded",)]]
    assert triples.benchmark == "triples"


def with_estimates(dossier: Dossier, change: Callable[[Estimate], dict[str, Any]]) -> Dossier:
    """The dossier with other estimates, each with the fields that `change` gives it."""
    changed = tuple(
        finding.model_copy(update={"estimates": tuple(one.model_copy(update=change(one)) for one in finding.estimates)})
        for finding in dossier.findings.findings
    )
    return replace(dossier, findings=dossier.findings.model_copy(update={"findings": changed}))


def words_of(dossier: Dossier, name: str) -> str:
    """The words of one section of the report."""
    section = re.search(rf'<section id="{name}".*?</section>', compose(dossier).html, re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", section[0]).split())


def first_page(dossier: Dossier) -> str:
    """The words of the decision and of what was found."""
    return words_of(dossier, "decision")


def test_a_forecast_that_cannot_be_made_gives_its_reason_and_not_that_nothing_was_declared(dossier: Dossier) -> None:
    assert dossier.verdict is not None
    forecast = GateForecast(
        check="c", benchmark="b", n=9, source_size=9, limit=0.0, truth=0.1, truth_declared=True, undefined="questions come in clusters"
    )
    checks = tuple(check.model_copy(update={"forecast": forecast}) for check in dossier.verdict.checks)
    page = first_page(replace(dossier, verdict=dossier.verdict.model_copy(update={"checks": checks})))
    assert "The questions needed cannot be stated: questions come in clusters." in page
    assert "declares no true value" not in page


def test_models_with_the_same_highest_score_are_all_named(dossier: Dossier) -> None:
    top = {one.benchmark: one.value for one in dossier.findings.estimates() if one.models == ("demo-large",) and one.subject is None}
    tied = with_estimates(dossier, lambda one: {"value": top[one.benchmark]} if one.models == ("demo-mid",) and one.subject is None else {})
    everyday = overview(tied).levels[0]
    assert [placed.item.models for placed in everyday.highest] == [("demo-large",), ("demo-mid",)]
    assert "( demo-large and demo-mid ;" in first_page(tied)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, ": the adjusted test puts"),
        ({"p_adjusted": None}, ": the test, not adjusted for the number of comparisons, puts"),
        ({"family_size": 1}, ": the test puts"),
        ({"planned": False}, "(exploratory): the adjusted test puts"),
    ],
)
def test_the_first_page_says_what_a_test_allows_for(change: dict[str, object], words: str, dossier: Dossier) -> None:
    assert words in first_page(with_estimates(dossier, lambda _: change))


def test_the_first_page_says_which_scores_are_exploratory(dossier: Dossier) -> None:
    assert "accuracy : observed accuracy runs from" in first_page(dossier)
    exploratory = first_page(with_estimates(dossier, lambda _: {"planned": False}))
    assert "accuracy (exploratory): observed accuracy runs from" in exploratory


def test_the_first_page_gives_both_ends_of_a_range_at_one_precision(dossier: Dossier) -> None:
    wide = with_estimates(dossier, lambda one: {"low": 0.01, "high": 0.99} if one.models == ("recorded",) else {})
    ends = re.search(r"observed accuracy runs from ([\d.]+) % .*? to ([\d.]+) %", first_page(wide))
    assert ends is not None
    assert [len(end.partition(".")[2]) for end in ends.groups()] == [1, 1]


def test_the_decision_says_why_of_each_check_that_made_it(dossier: Dossier) -> None:
    box = re.sub("<[^>]*>", "", re.search(r'<div class="decision .*?</div>', compose(dossier).html, re.DOTALL)[0])
    assert dossier.verdict.overall is not None
    made = [one for one in dossier.verdict.checks if one.outcome == dossier.verdict.overall]
    assert made
    for result in made:
        assert f"{result.check.id} ({result.why})" in box.replace("&#39;", "'")


def test_models_that_answered_different_numbers_of_questions_are_not_given_one_number(dossier: Dossier) -> None:
    fewer = with_estimates(dossier, lambda one: {"n": 17} if one.models == ("demo-small",) else {})
    assert "each on the questions that it has a score for, 17 to 240 , so not all on the same ones" in first_page(fewer)


def test_every_comparison_of_the_family_is_either_separated_or_open(dossier: Dossier) -> None:
    for comparison in overview(dossier).comparisons:
        assert len(comparison.separated) + len(comparison.open) == 6
        assert all(placed.item.separated for placed in comparison.separated)


def test_a_check_against_zero_is_decided_by_the_test(dossier: Dossier) -> None:
    floor, beats, _ = check_views(dossier)
    assert (floor.by_test, floor.bound_words, floor.limit_words) == (False, "lower bound of ", "at least")
    assert (beats.by_test, beats.bound_words, beats.limit_words) == (True, "", "above")


def test_samples_are_the_same_each_time_and_show_what_is_disclosed(dossier: Dossier) -> None:
    samples = draw_samples(dossier)
    assert samples == draw_samples(dossier)
    assert [len(sample.questions) for sample in samples] == [5, 5]
    assert all(question.stem and sum(choice.right for choice in question.choices) == 1 for question in samples[0].questions)


def test_the_first_failures_follow_with_the_models_that_failed(dossier: Dossier) -> None:
    everyday = draw_samples(dossier)[0]
    assert [question.id for question in everyday.failures] == [f"everyday-{index:03d}" for index in range(5)]
    assert [answer.model for answer in everyday.failures[3].answers] == ["recorded"]
    assert {answer.outcome for question in everyday.failures for answer in question.answers} <= {"wrong", "undetermined"}
    entry = dossier.responses.benchmarks[0]
    for question in everyday.failures:
        scores = entry.scores[:, entry.questions.index(question.id), 0]
        assert [answer.model for answer in question.answers] == [model for model, score in zip(entry.models, scores, strict=True) if not score > 0]


def test_where_no_model_failed_that_is_said(dossier: Dossier) -> None:
    entries = tuple(
        replace(entry, scores=np.ones_like(entry.scores), reasons=np.zeros_like(entry.reasons), choices=np.zeros_like(entry.choices))
        for entry in dossier.responses.benchmarks
    )
    perfect = replace(dossier, responses=replace(dossier.responses, benchmarks=entries))
    assert all(not sample.failures for sample in draw_samples(perfect))
    assert compose(perfect).html.count("None: no model failed a question.") == 2


def test_a_failure_that_was_also_drawn_is_not_shown_twice(build_dossier: Callable[..., Dossier]) -> None:
    html = compose(build_dossier(questions=6)).html
    shown = re.search(r'<section id="samples".*?</section>', html, re.DOTALL)[0]
    stems = re.findall(r"Which of these is item number (\d+) of everyday", shown)
    assert sorted(stems) == sorted(set(stems))
    assert "shown above" in shown


def test_samples_with_ids_alone_give_no_letter_and_no_text(build_dossier: Callable[..., Dossier]) -> None:
    sample = draw_samples(build_dossier(disclosure="ids"))[0]
    assert not sample.has_texts
    assert all(question.stem is None and not question.choices for question in sample.questions)
    assert sample.failures
    assert all(question.stem is None and not question.choices for question in sample.failures)
    assert all(answer.letter is None for question in (*sample.questions, *sample.failures) for answer in question.answers)


def test_a_private_study_shows_no_samples(build_dossier: Callable[..., Dossier]) -> None:
    assert all(not sample.questions and not sample.failures for sample in draw_samples(build_dossier(disclosure="none")))


def test_limitations_follow_from_the_facts(dossier: Dossier) -> None:
    said = "\n".join(limitations(dossier))
    assert "Prompt forms tried: 1; repeats: 1; contamination: not assessed." in said
    assert "more than nine in ten of the choices" in said
    assert "recorded elsewhere and replayed; this run did not meet the model. This holds for recorded." in said
    assert "(undetermined) and counted as wrong" in said


def test_a_model_without_a_single_answer_is_not_said_to_lack_some(dossier: Dossier) -> None:
    summaries = tuple(summary.model_copy(update={"answered": 0}) if summary.missing else summary for summary in dossier.findings.summaries)
    said = "\n".join(limitations(replace(dossier, findings=dossier.findings.model_copy(update={"summaries": summaries}))))
    assert "All scores are missing (undetermined) and counted as wrong. This holds for demo-small" in said
    assert "Some scores are missing" not in said


def test_intervals_for_a_finite_pool_are_not_said_to_speak_of_questions_outside_it(dossier: Dossier) -> None:
    def said(*targets: str) -> str:
        benchmarks = tuple(
            benchmark.model_copy(update={"target": target}) for benchmark, target in zip(dossier.study.benchmarks, targets, strict=True)
        )
        return "\n".join(limitations(replace(dossier, study=dossier.study.model_copy(update={"benchmarks": benchmarks}))))

    assert "Intervals allow for the luck of which questions of their kind were asked." in said("super_population", "super_population")
    assert "Intervals allow for the luck of which part of the source was asked." in said("this_pool", "this_pool")
    mixed = said("super_population", "this_pool")
    assert "the luck of which questions of their kind were, or which part of the source where it alone is the target, was asked" in mixed


def test_the_author_speaks_first_among_the_main_limits(dossier: Dossier) -> None:
    assert main_limitations(dossier)[0] == dossier.study.limitations[0]
    assert len(main_limitations(dossier)) == 3


def test_a_p_value_stands_only_beside_the_check_that_it_decides(dossier: Dossier) -> None:
    # The test of a pair asks whether the difference is 0; of a limit elsewhere its p-value says nothing.
    assert "adjusted p" in words_of(dossier, "thresholds")
    elsewhere = tuple(
        result.model_copy(update={"check": result.check.model_copy(update={"above": 0.02})}) if result.check.above == 0.0 else result
        for result in dossier.verdict.checks
    )
    assert "adjusted p" not in words_of(replace(dossier, verdict=dossier.verdict.model_copy(update={"checks": elsewhere})), "thresholds")
