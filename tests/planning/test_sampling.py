"""Draws depend on the seed and on ids alone; larger samples contain smaller ones; weights average 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalspec.artifacts.questions import Question, QuestionSet
from evalspec.artifacts.samples import SampleAll, SampleIds, SampleSimple, SampleStratified
from evalspec.errors import InputError
from evalspec.planning.sampling import Draw, draw

MakeSet = Callable[..., QuestionSet]

subject_sizes = st.lists(st.integers(1, 30), min_size=1, max_size=8)


def made(sizes: list[int]) -> QuestionSet:
    rows = (Question(f"s{subject}-{number}", "?", ("x", "y"), 0, f"s{subject}") for subject, size in enumerate(sizes) for number in range(size))
    return QuestionSet("b", tuple(rows), "b.jsonl", "a" * 64)


def ids(drawn: Draw) -> set[str]:
    return {question.id for question in drawn.questions}


def stratified(size: int, allocation: str) -> SampleStratified:
    return SampleStratified(method="stratified", by="subject", size=size, allocation=allocation)  # type: ignore[arg-type]


@given(subject_sizes, st.randoms(use_true_random=False), st.integers(0, 2**63 - 1), st.data())
@settings(max_examples=40, deadline=None)
def test_a_draw_does_not_depend_on_the_order_of_the_file(sizes: list[int], shuffler: object, seed: int, data: st.DataObject) -> None:
    question_set = made(sizes)
    shuffled = list(question_set.questions)
    shuffler.shuffle(shuffled)  # type: ignore[attr-defined]
    size = data.draw(st.integers(len(sizes), sum(sizes)))
    for sample in (SampleSimple(method="simple", size=size), stratified(size, "proportional"), stratified(size, "equal"), SampleAll()):
        assert draw(sample, question_set, seed=seed) == draw(sample, replace(question_set, questions=tuple(shuffled)), seed=seed)


@given(subject_sizes, st.sampled_from(["simple", "proportional", "equal"]), st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_a_larger_sample_contains_the_smaller_one(sizes: list[int], method: str, seed: int) -> None:
    question_set = made(sizes)
    smaller: set[str] = set()
    for size in range(len(sizes), sum(sizes) + 1):
        sample = SampleSimple(method="simple", size=size) if method == "simple" else stratified(size, method)
        larger = ids(draw(sample, question_set, seed=seed))
        assert len(larger) == size
        assert smaller <= larger
        smaller = larger


@given(subject_sizes, st.data())
@settings(max_examples=50, deadline=None)
def test_proportional_samples_stay_close_to_each_stratum_s_share(sizes: list[int], data: st.DataObject) -> None:
    size = data.draw(st.integers(1, sum(sizes)))
    for stratum in draw(stratified(size, "proportional"), made(sizes), seed=1).strata:
        assert stratum.drawn <= stratum.available
        # Webster's method can miss the quota by more than one only in contrived cases of many strata; 2 is never reached with 8 of them.
        assert abs(stratum.drawn - size * stratum.available / sum(sizes)) < 2


@given(subject_sizes, st.data())
@settings(max_examples=50, deadline=None)
def test_equal_samples_differ_by_one_unless_a_stratum_is_used_up(sizes: list[int], data: st.DataObject) -> None:
    size = data.draw(st.integers(len(sizes), sum(sizes)))
    strata = draw(stratified(size, "equal"), made(sizes), seed=1).strata
    open_strata = [stratum.drawn for stratum in strata if stratum.drawn < stratum.available]
    assert all(stratum.drawn <= min(open_strata) + 1 for stratum in strata if open_strata)


@given(subject_sizes, st.data())
@settings(max_examples=50, deadline=None)
def test_weights_average_one_and_restore_the_source_s_shares(sizes: list[int], data: st.DataObject) -> None:
    size = data.draw(st.integers(len(sizes), sum(sizes)))
    drawn = draw(stratified(size, "equal"), made(sizes), seed=1)
    tolerance = 1e-12  # sums of at most 240 doubles near 1
    assert abs(sum(drawn.weights) / size - 1) < tolerance
    for stratum in drawn.strata:
        share = sum(weight for question, weight in zip(drawn.questions, drawn.weights, strict=True) if question.subject == stratum.subject) / size
        assert abs(share - stratum.available / sum(sizes)) < tolerance


def test_other_samples_weigh_every_question_the_same(questions: MakeSet) -> None:
    question_set = questions(a=5, b=15)
    for sample in (SampleAll(), SampleSimple(method="simple", size=7), stratified(7, "proportional")):
        assert set(draw(sample, question_set, seed=1).weights) == {1.0}


def test_seed_and_benchmark_each_give_another_draw(questions: MakeSet) -> None:
    sample = SampleSimple(method="simple", size=20)
    here = ids(draw(sample, questions(a=100), seed=1))
    assert here != ids(draw(sample, questions(a=100), seed=2))
    assert here != ids(draw(sample, questions("other", a=100), seed=1))


def test_the_ranking_is_the_same_on_every_machine_and_version(questions: MakeSet) -> None:
    drawn = draw(SampleSimple(method="simple", size=3), questions(a=50), seed=20261129)
    assert [question.id for question in drawn.questions] == ["a-0011", "a-0014", "a-0025"]


def test_simple_draws_favour_no_question(questions: MakeSet) -> None:
    question_set = questions(a=20)
    counts = dict.fromkeys(ids(draw(SampleAll(), question_set, seed=0)), 0)
    for seed in range(400):
        for identifier in ids(draw(SampleSimple(method="simple", size=5), question_set, seed=seed)):
            counts[identifier] += 1
    # Each count is binomial(400, 1/4): mean 100, standard deviation 8.7; five of them either way.
    assert all(56 < count < 144 for count in counts.values())


def test_questions_come_sorted_by_id_with_what_each_subject_gave(questions: MakeSet) -> None:
    drawn = draw(stratified(10, "proportional"), questions(a=10, b=30), seed=1)
    assert [question.id for question in drawn.questions] == sorted(ids(drawn))
    assert [(stratum.subject, stratum.available, stratum.drawn) for stratum in drawn.strata] == [("a", 10, 2), ("b", 30, 8)]


def test_named_ids_are_drawn_and_faults_among_them_named(questions: MakeSet) -> None:
    assert ids(draw(SampleIds(method="ids", ids=("a-0003", "a-0001")), questions(a=5), seed=1)) == {"a-0001", "a-0003"}
    with pytest.raises(InputError) as caught:
        draw(SampleIds(method="ids", ids=("a-0001", "a-0001", "nope")), questions(a=5), seed=1)
    assert [fault.message for fault in caught.value.diagnostics] == [
        "benchmark 'b': question id 'nope' is not in the source",
        "benchmark 'b': question id 'a-0001' is named 2 times",
    ]


def test_samples_that_the_source_cannot_give_are_refused(questions: MakeSet) -> None:
    question_set = questions(a=3, b=3)
    without_subject = replace(question_set, questions=(*question_set.questions, Question("q", "?", ("x", "y"), 0)))
    with pytest.raises(InputError, match="asks for 7 questions and the source has 6"):
        draw(SampleSimple(method="simple", size=7), question_set, seed=1)
    with pytest.raises(InputError, match="cannot be shared among 2 subjects"):
        draw(stratified(1, "equal"), question_set, seed=1)
    with pytest.raises(InputError, match="1 questions have none"):
        draw(stratified(2, "proportional"), without_subject, seed=1)
