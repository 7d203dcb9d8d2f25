"""A section claims of a test what that test asks and keeps: no more of its null hypothesis, its direction, its level or its interval."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import ArrayLike

from evalspec.analyses.intervals import ANALYSIS as INTERVALS
from evalspec.analyses.mcnemar import ANALYSIS as MCNEMAR
from evalspec.analyses.power import ANALYSIS as POWER
from evalspec.artifacts.protocol import Pool
from evalspec.artifacts.scores import Score

from .tables import rendered, responses_of
from .test_sections import MARGIN, SHAPES, section

WRONG_WAY = "that bound does not speak of models that differ and are separated the wrong way round"
SPREAD = "A small one does not say that the means differ"


def discordant(first: int, second: int, alike: int, *, models: int = 2) -> ArrayLike:
    """Scores of models of which the first alone is right on some questions, and all others on some more."""
    ahead = [1] * first + [0] * second + [1] * alike
    return np.array([ahead, *[[0] * first + [1] * (second + alike)] * (models - 1)])


def told_apart(scores: ArrayLike, **options: object) -> str:
    return rendered(MCNEMAR, responses_of(scores), {"kind": "mcnemar", "family": "all_pairs", "method": "score", **options})


def test_reshuffled_labels_of_differences_are_not_said_to_ask_about_their_means_alone() -> None:
    pair = section("subgroups", SHAPES["plain"], model="model-0", baseline="model-1")
    assert "do the differences of the two models have one distribution in all subjects? If they have, it does not matter" in pair
    assert f"{SPREAD}: subjects in which the two models part more often or by more can bring it about, too." in pair
    single = section("subgroups", SHAPES["plain"], model="model-0")
    assert "do subjects differ at all in how often the model is right? If they do not, it does not matter" in single
    assert SPREAD not in single
    repeated = section("subgroups", SHAPES["repeats"], model="model-0")
    assert "do the scores of the model have one distribution in all subjects?" in repeated
    assert f"{SPREAD}: subjects in which scores spread more can bring it about, too." in repeated


@pytest.mark.parametrize(("kind", "options"), [("mcnemar", {"family": "all_pairs"}), ("subgroups", {"model": "model-0", "baseline": "model-1"})])
def test_a_bound_on_false_separations_is_not_said_to_cover_their_direction(kind: str, options: dict[str, object]) -> None:
    assert WRONG_WAY in section(kind, SHAPES["plain"], **options)
    assert WRONG_WAY not in section(kind, SHAPES["plain"], **options, correction="none")
    assert "found the wrong way round" in section("subgroups", SHAPES["plain"], model="model-0")


@pytest.mark.parametrize(
    ("scores", "options", "why"),
    [
        (discordant(20, 8, 72, models=3), {}, "the interval is for its comparison alone, and the adjusted p-value allows for all 3 of the family"),
        (discordant(11, 3, 86, models=3), {}, "interval and test are made by different methods and part near the border"),
        (discordant(16, 7, 77), {"level": 0.9}, "the interval is at 90 % and the test asks for a p-value of at most 0.05"),
        (discordant(20, 6, 74), {"level": 0.999}, "the interval is at 99.9 % and the test asks for a p-value of at most 0.05"),
    ],
    ids=["family", "method", "lower level", "higher level"],
)
def test_the_reason_why_interval_and_test_part_is_the_one_that_made_them_part(scores: ArrayLike, options: dict[str, object], why: str) -> None:
    text = told_apart(scores, **options)
    assert f"; {why}. The test decides." in text.replace(" .", ".")


def test_a_test_for_a_part_of_a_pool_claims_its_level_for_a_simple_random_part_alone() -> None:
    one = replace(responses_of(discordant(20, 8, 72)).benchmarks[0], sample="simple", pool=Pool(size=300))
    pooled = replace(responses_of(discordant(20, 8, 72)), benchmarks=(one,))
    text = rendered(MCNEMAR, pooled, {"kind": "mcnemar", "family": "all_pairs", "method": "exact"})
    assert "so that its level holds for every pool of which a simple random part was asked" in text
    assert "Fay and Lumbard's interval, which goes with McNemar's exact test and passes over the pool" in text
    assert "passes over the pool" not in told_apart(discordant(20, 8, 72), method="exact")


def test_the_p_value_of_a_planned_look_says_what_it_is_held_against() -> None:
    asked = len(SHAPES["plain"].benchmarks[0].questions)
    looks = section("noninferiority", SHAPES["plain"], **MARGIN, method="score", looks={"at": [asked, 2 * asked], "this": 1})
    assert "p is of this look alone and is held against its level, 0.00153 , not against alpha." in looks
    assert "of this look alone" not in section("noninferiority", SHAPES["plain"], **MARGIN, method="score")


def test_a_range_of_detectable_differences_says_where_its_lower_end_has_none() -> None:
    told = "none is found with that power, since none can be larger than the discordance"
    few, many = ({"first": share, "second": share, "alike": 100 - 2 * share} for share in (5, 20))
    begins = f"Where a range begins at the detectable difference itself, the discordance may be so low that {told}"
    assert begins in rendered(POWER, responses_of(discordant(**few)), {"kind": "power"})
    assert told not in rendered(POWER, responses_of(discordant(**many)), {"kind": "power"})


def test_student_s_interval_of_a_mean_is_called_approximate() -> None:
    for shape in ("repeats", "few clusters"):
        graded = replace(SHAPES[shape], benchmarks=tuple(replace(one, scores=one.scores * 0.9) for one in SHAPES[shape].benchmarks))
        text = section("intervals", graded)
        assert "interval of the mean" in text
        assert "It keeps its level approximately." in text


def test_an_exact_interval_that_passes_over_subjects_says_so_beside_a_standard_error_that_counts_them() -> None:
    told = "The exact interval passes over subjects"
    scores = np.repeat([[1.0, 0.0, 1.0, 0.0]], [45, 5, 20, 30], axis=1)
    subjects = ("law",) * 50 + ("logic",) * 50
    options = {"kind": "intervals", "method": "clopper_pearson"}
    assert told in rendered(INTERVALS, responses_of(scores, subjects=subjects, strata=True), options)
    assert told not in rendered(INTERVALS, responses_of(scores, subjects=subjects), options)
    assert told not in rendered(INTERVALS, responses_of(scores, subjects=subjects, strata=True), options | {"method": "wilson"})


def test_questions_and_not_answers_are_counted_where_every_one_is_right() -> None:
    repeated = responses_of(np.ones((1, 40)))
    entry = replace(
        repeated.benchmarks[0], scores=np.ones((1, 40, 4)), reasons=np.zeros((1, 40, 4), np.int8), choices=np.full((1, 40, 4), -1, np.int16)
    )
    text = rendered(INTERVALS, replace(repeated, benchmarks=(entry,)), {"kind": "intervals"})
    assert "m0, b: 40 of 40 questions are answered correctly" in text.replace(" ,", ",")
    toxic = Score(unit="share of toxic sentences", polarity="lower_is_better")
    scored = replace(repeated, benchmarks=(replace(repeated.benchmarks[0], score=toxic),))
    assert "40 of 40 scores are 1" in rendered(INTERVALS, scored, {"kind": "intervals"})
