"""What a sample ranks is stated for every sample, apart from what a test on it detects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from evalspec.artifacts.protocol import BatchRule, CheckpointIdentity, Protocol
from evalspec.artifacts.questions import QuestionBank, QuestionSet
from evalspec.artifacts.samples import SampleIds, SampleSimple, SampleStratified
from evalspec.artifacts.study import Benchmark, Groups, Study
from evalspec.planning.power import detectable_gaps
from evalspec.planning.protocol import build_protocol
from evalspec.planning.ranking import CLUSTERED, NAMED, WEIGHTED, rankable_gaps
from evalspec.planning.sampling import draw
from evalspec.protocols import Comparison
from evalspec.statistics.mdad_closed_form import rankable_gap
from evalspec.statistics.planned_tests import PlannedTest

NONE: Mapping[str, Sequence[Comparison]] = {}


@pytest.fixture
def protocol(
    study: Callable[..., Study],
    benchmark: Callable[..., Benchmark],
    questions: Callable[..., QuestionSet],
    identity: Callable[[str, int], CheckpointIdentity],
) -> Callable[..., Protocol]:
    """Plan one benchmark of 600 questions with these fields."""

    def make(**fields: object) -> Protocol:
        one = benchmark("b", **fields)
        bank = QuestionBank((questions("b", art=400, law=200),))
        made = study(one)
        draws = {"b": draw(one.sample, bank.benchmark("b"), seed=made.seed)}
        identities = {model.id: identity(f"models/{model.id}", 10) for model in made.models}
        return build_protocol(made, bank=bank, draws=draws, identities=identities, batch_rule=BatchRule())

    return make


def test_a_sample_is_held_against_its_source_and_against_questions_like_it(protocol: Callable[..., Protocol]) -> None:
    found = rankable_gaps(protocol(sample=SampleSimple(method="simple", size=100)), NONE)
    assert [(entry.n, entry.pool, entry.discordance, entry.discordance_declared) for entry in found] == [
        (100, pool, discordance, False) for pool in (600, None) for discordance in (0.1, 0.2, 0.3)
    ]
    assert [entry.gap for entry in found] == [rankable_gap(100, entry.pool, entry.discordance or 0.0) for entry in found]


def test_all_of_a_source_ranks_itself_and_is_held_against_questions_like_it(protocol: Callable[..., Protocol]) -> None:
    assert {(entry.n, entry.pool) for entry in rankable_gaps(protocol(), NONE)} == {(600, None)}


def test_a_pool_that_is_the_target_stands_for_no_other_questions(protocol: Callable[..., Protocol]) -> None:
    found = rankable_gaps(protocol(sample=SampleSimple(method="simple", size=100), target="this_pool"), NONE)
    assert {entry.pool for entry in found} == {600}


def test_a_declared_discordance_takes_the_place_of_the_usual_ones(protocol: Callable[..., Protocol]) -> None:
    declared = {"pairs": (Comparison("first − second", 0.05, "exact", discordance=0.27),)}
    found = rankable_gaps(protocol(), declared)
    assert [(entry.discordance, entry.discordance_declared) for entry in found] == [(0.27, True)]


def test_what_is_ranked_is_far_from_detected(protocol: Callable[..., Protocol]) -> None:
    found = next(entry for entry in rankable_gaps(protocol(), NONE) if entry.discordance == 0.2)
    detected = PlannedTest("exact", 0.025).detectable(600, 0.2).difference
    assert found.gap is not None
    assert detected is not None
    assert detected > 3 * found.gap


def test_what_is_detected_stands_beside_what_is_ranked_also_where_no_analysis_compares_models(protocol: Callable[..., Protocol]) -> None:
    found = detectable_gaps(protocol(), NONE)
    assert [(gap.analysis, gap.comparison, gap.alpha, gap.test, gap.discordance) for gap in found] == [
        (None, "one pair of models", 0.05, "exact", discordance) for discordance in (0.1, 0.2, 0.3)
    ]
    assert found[1].difference == PlannedTest("exact", 0.025).detectable(600, 0.2).difference
    assert detectable_gaps(protocol(groups=Groups(subject="clusters")), NONE) == ()


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"groups": Groups(subject="clusters")}, CLUSTERED),
        ({"sample": SampleStratified(method="stratified", by="subject", size=100, allocation="equal")}, WEIGHTED),
        ({"sample": SampleIds(method="ids", ids=("art-0001", "law-0002"))}, NAMED),
    ],
)
def test_where_nothing_follows_the_reason_is_given(protocol: Callable[..., Protocol], fields: dict[str, object], reason: str) -> None:
    found = rankable_gaps(protocol(**fields), NONE)
    assert [(entry.gap, entry.undefined) for entry in found] == [(None, reason)]


def test_a_study_of_one_model_ranks_nothing(protocol: Callable[..., Protocol]) -> None:
    planned = protocol()
    assert rankable_gaps(planned.model_copy(update={"models": planned.models[:1]}), NONE) == ()
