from __future__ import annotations

from collections.abc import Callable

import pytest

from evalspec.artifacts.questions import Question, QuestionBank, QuestionSet
from evalspec.errors import StudyError
from evalspec.language.against_questions import check_against_questions
from evalspec.language.compile import CompiledStudy
from evalspec.statistics.one_sided import LimitTest
from evalspec.statistics.one_sided_power import limit_questions
from evalspec.statistics.paired_power import questions_needed

Compile = Callable[..., CompiledStudy]
Changed = Callable[..., str]
TARGET = "{method: simple, size: {detect: 0.05, power: 0.8, discordance: 0.2}}"
BEFORE = "source: {file: questions.jsonl}\n    scoring: {method: letter}"
WHOLE = (BEFORE, BEFORE.replace("    scoring", f"    sample: {TARGET}\n    scoring"))


def size(study: CompiledStudy) -> int:
    return study.sizes["facts"].questions


def test_a_sample_that_must_detect_a_difference_has_the_questions_that_its_test_needs(compiled: Compile, changed: Changed) -> None:
    study = compiled(changed(WHOLE))
    assert size(study) == questions_needed(0.2, 0.05).questions == pytest.approx(658, abs=10)
    planned = study.sizes["facts"]
    assert (planned.analysis, planned.test, planned.alpha, planned.wanted) == ("pairs", "exact", 0.05, 0.8)
    assert planned.power >= 0.8
    assert study.sample("facts").size == size(study)
    assert study.study.benchmark("facts").sample.size.detect == 0.05
    assert study.sample("riddles").size == 1


def test_the_correction_and_the_variant_of_the_test_are_planned_for(compiled: Compile, changed: Changed) -> None:
    models = ("  - id: old\n", "  - {id: older, source: {responses: results.csv}}\n  - {id: oldest, source: {responses: results.csv}}\n  - id: old\n")
    assert size(compiled(changed(WHOLE, models))) == questions_needed(0.2, 0.05, alpha=0.05 / 6).questions
    mid_p = ("family: all_pairs", "family: all_pairs, test: mid_p")
    assert size(compiled(changed(WHOLE, mid_p))) == questions_needed(0.2, 0.05, test="mid_p").questions


def test_where_any_check_is_enough_their_number_is_planned_for(compiled: Compile, changed: Changed) -> None:
    any_of = ("thresholds:\n", "thresholds:\n  require: any\n")
    assert size(compiled(changed(WHOLE, any_of))) == questions_needed(0.2, 0.05, alpha=0.05 / 2).questions
    margin = "  - {id: no-loss, kind: noninferiority, candidate: new, baseline: old, margin: 0.05, benchmarks: [facts]}\n  - {id: pairs,"
    better = "{id: better, analysis: pairs, metric: difference, model: new, baseline: old, above: 0}"
    release = better.replace("pairs", "no-loss").replace("above: 0", "above: -0.05")
    study = compiled(changed(WHOLE, any_of, ("  - {id: pairs,", margin), (better, release)))
    assert size(study) == limit_questions(0.2, 0.0, LimitTest(-0.05, 0.025 / 2, "exact")).questions


def test_the_first_paired_analysis_of_the_benchmark_is_planned_for(compiled: Compile, changed: Changed) -> None:
    before = "  - {id: no-loss, kind: noninferiority, candidate: new, baseline: old, margin: 0.05, benchmarks: [BENCHMARK]}\n  - {id: pairs,"
    text = changed(WHOLE, ("  - {id: pairs,", before))
    study = compiled(text.replace("BENCHMARK", "facts"))
    assert (study.sizes["facts"].analysis, study.sizes["facts"].limit) == ("no-loss", -0.05)
    assert size(study) == limit_questions(0.2, 0.0, LimitTest(-0.05)).questions  # the difference is counted from the limit
    assert compiled(text.replace("BENCHMARK", "riddles")).sizes["facts"].analysis == "pairs"


def test_a_source_that_is_too_small_is_a_fault_that_names_both_numbers(compiled: Compile, changed: Changed) -> None:
    study = compiled(changed(WHOLE))
    sets = (
        QuestionSet(name, tuple(Question(f"q{number}", "?", ("a", "b", "c", "d"), 0) for number in range(100)), "q.jsonl", "0" * 64)
        for name in ("facts", "riddles")
    )
    with pytest.raises(StudyError) as raised:
        check_against_questions(study, QuestionBank(tuple(sets)))
    (fault,) = raised.value.diagnostics
    expected = f'the sample of benchmark "facts" asks for {size(study)} questions to detect 0.05 by analysis "pairs", and the source has 100'
    assert fault.message == expected
