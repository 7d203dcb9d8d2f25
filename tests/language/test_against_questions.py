from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from evalspec.artifacts.questions import Question, QuestionBank, QuestionSet
from evalspec.artifacts.samples import SampleStratified
from evalspec.errors import Diagnostic, StudyError
from evalspec.language.against_questions import check_against_questions
from evalspec.language.compile import CompiledStudy
from evalspec.planning.sampling import draw

Compile = Callable[..., CompiledStudy]
Changed = Callable[..., str]


def questions(benchmark: str, *, choices: int = 4, without: int = 0, **subjects: int) -> QuestionSet:
    made = [
        Question(f"{subject}{number}", "?", tuple(map(str, range(choices))), 0, subject)
        for subject, count in subjects.items()
        for number in range(count)
    ]
    made += [Question(f"plain{number}", "?", tuple(map(str, range(choices))), 0) for number in range(without)]
    return QuestionSet(benchmark, tuple(made), "questions.jsonl", "0" * 64)


def found(study: CompiledStudy, facts: QuestionSet, riddles: QuestionSet | None = None) -> tuple[Diagnostic, ...]:
    try:
        check_against_questions(study, QuestionBank((facts, riddles or questions("riddles", logic=5))))
    except StudyError as error:
        return error.diagnostics
    return ()


def test_questions_that_fit_are_no_fault(compiled: Compile, sound: str) -> None:
    assert found(compiled(sound), questions("facts", biology=3, history=2)) == ()


def test_a_sample_larger_than_its_source_is_a_fault_at_its_size(compiled: Compile, changed: Changed) -> None:
    (fault,) = found(compiled(changed(("size: 1", "size: 2000"))), questions("facts", biology=3))
    assert fault.message == 'the sample of benchmark "riddles" asks for 2,000 questions, and the source has 5'
    assert fault.excerpt
    assert fault.location
    assert fault.excerpt[fault.location.column - 1 :][: fault.span] == "2000"


def test_a_stratified_sample_needs_a_subject_of_every_question(compiled: Compile, changed: Changed) -> None:
    text = changed(("{method: simple, size: 1}", "{method: stratified, by: subject, size: 1}"))
    (fault,) = found(compiled(text), questions("facts", biology=3), questions("riddles", logic=3, without=2))
    assert "2 questions have no subject" in fault.message


def test_a_sample_that_leaves_a_stratum_empty_names_the_size_that_does_not(compiled: Compile, changed: Changed) -> None:
    text = changed(("{method: simple, size: 1}", "{method: stratified, by: subject, size: 10}"))
    (fault,) = found(compiled(text), questions("facts", biology=3), questions("riddles", logic=90, words=2))
    assert fault.hint == "ask for at least 24 questions, or write allocation: equal"


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=5), st.integers(1, 80), st.sampled_from(["proportional", "equal"]))
def test_strata_are_called_empty_only_when_the_draw_leaves_one_empty(
    compiled: Compile, sound: str, sizes: list[int], size: int, allocation: str
) -> None:
    strata = {f"s{number}": count for number, count in enumerate(sizes)}
    source = questions("riddles", **strata)
    if size > sum(sizes):
        return
    sample = SampleStratified(method="stratified", by="subject", size=size, allocation=allocation)  # type: ignore[arg-type]
    written = f"{{method: stratified, by: subject, size: {size}, allocation: {allocation}}}"
    told = found(compiled(sound.replace("{method: simple, size: 1}", written)), questions("facts", biology=3), source)
    if told:
        assert allocation == "equal" or len(Counter(question.subject for question in draw(sample, source, seed=7).questions)) < len(strata)
        enough = int(str(told[0].hint).split()[4].replace(",", ""))
        larger = sample.model_copy(update={"size": enough})
        assert len(Counter(question.subject for question in draw(larger, source, seed=7).questions)) == len(strata)


def test_unknown_question_ids_are_named_each_with_one_like_it(compiled: Compile, changed: Changed) -> None:
    text = changed(("{method: simple, size: 1}", "{method: ids, ids: [logic1, logik2, zzz]}"))
    faults = found(compiled(text), questions("facts", biology=3))
    assert [fault.hint for fault in faults] == ['did you mean "logic2"?', "its questions are: logic0, logic1, logic2, logic3, logic4"]


def test_letters_end_at_twenty_six_choices(compiled: Compile, sound: str) -> None:
    (fault,) = found(compiled(sound), questions("facts", biology=3, choices=27), questions("riddles", logic=3, choices=27))
    assert fault.message == 'a question of benchmark "facts" has 27 choices, and there are 26 letters'


def test_strata_that_are_declared_must_be_there(compiled: Compile, changed: Changed) -> None:
    text = changed(("scoring: {method: letter}", "scoring: {method: letter}\n    groups: {subject: strata}"))
    (fault,) = found(compiled(text), questions("facts", biology=3, without=1))
    assert "one question has no subject" in fault.message


def test_a_prompt_with_a_subject_needs_one_of_every_question(compiled: Compile, changed: Changed) -> None:
    text = changed(("{method: letter}", '{method: letter, prompt: "{subject}: {question} {choices}"}'))
    (fault,) = found(compiled(text), questions("facts", biology=3, without=1))
    assert "uses {subject}" in fault.message


def test_a_check_on_an_unknown_subject_names_one_like_it(compiled: Compile, changed: Changed) -> None:
    text = changed(
        ("scoring: {method: letter}", "scoring: {method: letter}\n    groups: {subject: strata}"),
        ("at_least: 0.7", "at_least: 0.7, benchmark: facts, subject: biologie"),
    )
    (fault,) = found(compiled(text), questions("facts", biology=3))
    assert fault.hint == 'did you mean "biology"?'


def test_a_benchmark_whose_questions_are_not_here_is_passed_over(compiled: Compile, changed: Changed) -> None:
    check_against_questions(compiled(changed(("size: 1", "size: 2000"))), QuestionBank((questions("facts", biology=3),)))


def test_clusters_need_a_label_of_every_question_and_more_than_one_cluster(compiled: Compile, changed: Changed) -> None:
    declared = ("    scoring: {method: letter}", "    groups: {cluster: clusters}\n    scoring: {method: letter}")
    (fault,) = found(compiled(changed(declared)), questions("facts", biology=3))
    assert fault.message == 'benchmark "facts" declares its clusters as clusters, and 3 questions have no cluster'
    subjects = (declared[0], declared[1].replace("cluster:", "subject:"))
    (fault,) = found(compiled(changed(subjects)), questions("facts", biology=3))
    assert "all its questions are in one" in fault.message
    assert found(compiled(changed(subjects)), questions("facts", biology=3, history=2)) == ()


def test_a_pool_that_is_asked_in_full_leaves_nothing_to_be_sure_about(compiled: Compile, changed: Changed) -> None:
    text = changed(("size: 1}", "size: 5}\n    target: this_pool"))
    (fault,) = found(compiled(text), questions("facts", biology=3), questions("riddles", logic=5))
    assert "its sample takes them all" in fault.message
    assert found(compiled(text), questions("facts", biology=3), questions("riddles", logic=9)) == ()


def test_a_planned_look_needs_a_sample_of_just_as_many_questions(compiled: Compile, changed: Changed) -> None:
    look = "{id: gate, kind: noninferiority, candidate: new, baseline: old, margin: 0.1, benchmarks: [riddles], looks: {at: [2, 4], this: THIS}}"
    pairs = "  - {id: pairs, kind: mcnemar, family: all_pairs, benchmarks: [facts]}"

    def faults(this: int, sample: str) -> tuple[str, ...]:
        text = changed((pairs, f"{pairs}\n  - {look.replace('THIS', str(this))}"), ("{method: simple, size: 1}", sample))
        return tuple(fault.message for fault in found(compiled(text), questions("facts", biology=3), questions("riddles", logic=4)))

    assert faults(1, "{method: simple, size: 2}") == ()
    assert faults(2, "{method: all}") == ()
    for sample, asked in (("{method: simple, size: 1}", 1), ("{method: all}", 4), ("{method: ids, ids: [logic0, logic1, logic2]}", 3)):
        message = f'look 1 of analysis "gate" is planned at 2 questions, and the sample of benchmark "riddles" has {asked}'
        assert faults(1, sample) == (message,)
