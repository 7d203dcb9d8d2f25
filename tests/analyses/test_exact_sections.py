"""A section says how well its bounds and tests keep their level: at every sample size, by a conjecture, by calculation alone, or approximately."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evalspec.testing import sample_responses

from .test_sections import COMPARED, SHAPES, section


def test_the_exact_mcnemar_test_of_superiority_leans_on_no_conjecture() -> None:
    alone = replace(SHAPES["plain"], benchmarks=SHAPES["plain"].benchmarks[:1])
    text = section("noninferiority", alone, **COMPARED, hypothesis="superiority", method="exact")
    assert "p is a bound on the chance of answers" in text
    assert "conjecture" not in text


def test_an_exact_interval_of_a_part_of_a_pool_says_that_it_is_exact() -> None:
    text = section("intervals", SHAPES["pool"], method="clopper_pearson")
    assert "Clopper-Pearson, exact for a part of a pool The exact interval for a simple random part of a finite pool" in text
    assert "approximately" not in text


def test_an_exact_interval_of_questions_that_weigh_differently_says_that_it_rests_on_calculation() -> None:
    text = section("intervals", SHAPES["weighted"], method="clopper_pearson")
    assert "bounds on both sides for a mean in which questions weigh differently" in text
    assert "here calculation alone supports that" in text
    independent = tuple(replace(entry, strata=False) for entry in sample_responses().benchmarks)
    assert "approximately" not in section("intervals", replace(sample_responses(), benchmarks=independent), method="clopper_pearson")
    assert "keeps its level approximately" in section("intervals", SHAPES["weighted"], method="wilson")


@pytest.mark.parametrize("shape", ["few clusters", "many clusters"])
def test_bounds_of_clusters_say_what_their_guarantee_is_and_what_they_take_for_granted(shape: str) -> None:
    text = section("intervals", SHAPES[shape], method="clopper_pearson")
    assert "Gaffke, clusters" in text
    assert "is a conjecture, which calculation supports and to which no counterexample is known" in text
    assert "their sizes say nothing about their scores" in text
    assert "independent questions that the clusters leave" not in text
    assert "keeps its level approximately" in section("intervals", SHAPES[shape], method="wilson")


def test_exact_bounds_of_averages_over_repeats_are_gaffke_s() -> None:
    unstratified = tuple(replace(entry, strata=False) for entry in SHAPES["repeats"].benchmarks)
    text = section("intervals", replace(SHAPES["repeats"], benchmarks=unstratified), method="clopper_pearson")
    assert "bounds on both sides, for scores that are not only right or wrong" in text
    margin = {"candidate": "model-0", "baseline": "model-1", "margin": 0.05, "method": "exact"}
    told = section("noninferiority", SHAPES["repeats"], **margin)
    assert "The bounds are Gaffke's for means of differences" in told
    assert "Fay and Lumbard" not in told
    assert "clusters are taken as independent draws" not in told
    assert "clusters are taken as independent draws" in section("noninferiority", SHAPES["few clusters"], **margin)
    assert "Gaffke" not in section("noninferiority", SHAPES["plain"], **margin)


def test_a_margin_says_what_its_level_rests_on_where_questions_come_in_clusters() -> None:
    asked = {"candidate": "model-0", "baseline": "model-1", "margin": 0.05}
    assert "The fewer the clusters, and the more they differ in size" in section("noninferiority", SHAPES["few clusters"], **asked)
    assert "The fewer the clusters" not in section("noninferiority", SHAPES["plain"], **asked)
