"""The protocol holds what can change a number, and nothing that is not disclosed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from evalspec.artifacts.protocol import BatchRule, CheckpointIdentity, Pool, Protocol
from evalspec.artifacts.questions import Question, QuestionBank, QuestionSet
from evalspec.artifacts.samples import SampleIds, SampleSimple, SampleStratified
from evalspec.artifacts.study import Benchmark, Groups, Study
from evalspec.planning.protocol import build_protocol, list_questions
from evalspec.planning.sampling import draw

MakeStudy = Callable[..., Study]
MakeBenchmark = Callable[..., Benchmark]
MakeSet = Callable[..., QuestionSet]
MakeIdentity = Callable[[str, int], CheckpointIdentity]


def commitment(benchmark: str, question: Question) -> str:
    return hashlib.sha256(f"salt {benchmark} {question.digest()}".encode()).hexdigest()


@pytest.fixture
def build(study: MakeStudy, identity: MakeIdentity) -> Callable[..., Protocol]:
    """Build the protocol of a study with one benchmark."""

    def make(benchmark: Benchmark, question_set: QuestionSet) -> Protocol:
        made = study(benchmark)
        return build_protocol(
            made,
            bank=QuestionBank((question_set,)),
            draws={benchmark.id: draw(benchmark.sample, question_set, seed=made.seed)},
            identities={model.id: identity(model.id, 10) for model in made.models},
            batch_rule=BatchRule(),
            commit=commitment if benchmark.disclosure == "none" else None,
        )

    return make


def test_it_names_the_study_the_models_and_every_drawn_question(build: Callable[..., Protocol], benchmark: MakeBenchmark, questions: MakeSet) -> None:
    sample = SampleStratified(method="stratified", by="subject", size=4, allocation="equal")
    asked, question_set = benchmark(sample=sample, groups=Groups(subject="strata")), questions(a=2, b=6)
    protocol = build(asked, question_set)
    of_benchmark = protocol.benchmark("b")
    assert [model.identity.origin for model in protocol.models] == ["first", "second"]
    assert (of_benchmark.source_size, of_benchmark.strata, of_benchmark.licence) == (8, "subject", "CC0-1.0")
    assert of_benchmark.prompt == "{question}\n{choices}\nAnswer:"
    assert [question.weight for question in of_benchmark.questions] == [0.5, 0.5, 1.5, 1.5]
    by_id = question_set.by_id()
    assert all(question.sha256 == by_id[question.id].digest() for question in of_benchmark.questions)


def test_its_digest_does_not_depend_on_the_order_of_the_file(build: Callable[..., Protocol], benchmark: MakeBenchmark, questions: MakeSet) -> None:
    question_set = questions(a=4, b=4)
    turned = QuestionSet(question_set.benchmark, question_set.questions[::-1], question_set.source, question_set.source_sha256, question_set.licence)
    assert build(benchmark(), question_set).digest() == build(benchmark(), turned).digest()


def test_undisclosed_questions_stand_as_commitments_in_an_order_of_their_own(
    build: Callable[..., Protocol], benchmark: MakeBenchmark, questions: MakeSet
) -> None:
    question_set = questions(secret=12)
    named = tuple(question.id for question in question_set.questions)
    protocol = build(benchmark(disclosure="none", sample=SampleIds(method="ids", ids=named)), question_set)
    drawn = protocol.benchmark("b").questions
    assert [question.id for question in drawn] == sorted(commitment("b", question) for question in question_set.questions)
    assert all(question.sha256 == question.id for question in drawn)
    assert not any(identifier in protocol.to_json().decode() for identifier in named)
    assert not any(question.digest() in protocol.to_json().decode() for question in question_set.questions)


def test_questions_are_listed_beside_their_lines_of_the_protocol(
    build: Callable[..., Protocol], benchmark: MakeBenchmark, questions: MakeSet
) -> None:
    asked, question_set = benchmark(disclosure="none"), questions(a=9)
    listed = list_questions(draw(asked.sample, question_set, seed=7), commitment)
    assert tuple(entry.drawn for entry in listed) == build(asked, question_set).benchmark("b").questions
    assert all(entry.drawn.id == commitment("b", entry.question) for entry in listed)


def test_commitments_are_required_where_nothing_is_disclosed(
    study: MakeStudy, identity: MakeIdentity, benchmark: MakeBenchmark, questions: MakeSet
) -> None:
    made, question_set = study(benchmark(disclosure="none")), questions(a=2)
    with pytest.raises(ValueError, match="need a function that commits"):
        build_protocol(
            made,
            bank=QuestionBank((question_set,)),
            draws={"b": draw(made.benchmarks[0].sample, question_set, seed=1)},
            identities={model.id: identity(model.id, 10) for model in made.models},
            batch_rule=BatchRule(),
        )


def test_clusters_flags_and_the_pool_travel_with_the_questions(build: Callable[..., Protocol], benchmark: MakeBenchmark, questions: MakeSet) -> None:
    plain = questions(a=4, b=6)
    labelled = tuple(
        replace(question, cluster=f"text {place // 2}", flags=("wrong key",) if place == 0 else ()) for place, question in enumerate(plain.questions)
    )
    question_set = replace(plain, questions=labelled)
    clustered = build(benchmark(groups=Groups(cluster="clusters")), question_set).benchmark("b")
    assert clustered.clusters == "cluster"
    assert sorted(clustered.cluster_labels()) == sorted(question.cluster for question in labelled)
    assert [question.flags for question in clustered.questions].count(("wrong key",)) == 1
    assert build(benchmark(groups=Groups(subject="clusters")), question_set).benchmark("b").cluster_labels() == ("a",) * 4 + ("b",) * 6
    pooled = build(benchmark(target="this_pool", sample=SampleSimple(method="simple", size=3)), question_set).benchmark("b")
    assert (pooled.clusters, pooled.cluster_labels(), pooled.pool) == (None, (), Pool(size=10, subjects={"a": 4, "b": 6}))
    assert labelled[0].digest() == plain.questions[0].digest()  # labels are said about a question: nothing is scored again for them


def test_a_question_without_its_declared_cluster_is_an_error(build: Callable[..., Protocol], benchmark: MakeBenchmark, questions: MakeSet) -> None:
    protocol = build(benchmark(groups=Groups(cluster="clusters")), questions(a=2, b=2))
    with pytest.raises(ValueError, match="4 of its questions have none"):
        protocol.benchmark("b").cluster_labels()
