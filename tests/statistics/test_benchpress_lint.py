from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evalspec.statistics.benchpress import published_tops
from evalspec.statistics.benchpress_lint import ERRORS, flaws, looks_like_fraction

from .benchpress_matrix import made_up, made_up_tops, read_published

SOUND = made_up(models=60, missing=0.1)


def test_the_defects_of_the_published_matrix_are_found(shared: Path) -> None:
    """As described of it: edit distances read as percentages, mixed scales and polarities, the same benchmark twice; and two scores of 0."""
    published = read_published(shared)
    found = [(flaw.kind, published.columns[flaw.benchmark]) for flaw in flaws(published.scores, published_tops(published.scores))]
    assert {name for kind, name in found if kind in ERRORS} == {"omnidocbench"}
    assert {name for kind, name in found if kind == "two_groups"} == {
        "factscore", "longfact_concepts", "longfact_objects", "omnidocbench_1.5", "cnmo_2024",
    }  # fmt: skip
    assert {name for kind, name in found if kind == "lone"} == {"mathvista", "mmmu"}
    assert ("twins", "gpqa_diamond") in found


def test_a_sound_table_has_no_flaw() -> None:
    assert flaws(SOUND, made_up_tops()) == ()


def changed(column: int, scores: list[float]) -> list[tuple[str, float, int]]:
    table = SOUND.copy()
    table[:, column] = np.nan
    table[: len(scores), column] = scores
    return [(flaw.kind, flaw.number, flaw.count) for flaw in flaws(table, made_up_tops()) if flaw.benchmark == column]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([50.0, 60.0, 700.0, -3.0], [("outside", 700.0, 2)]),
        ([0.4, 0.5, 0.9], [("fractions", 0.9, 0)]),
        ([70.0, 70.0, 70.0], [("constant", 70.0, 3)]),
        ([99.6, 99.7, 99.9, 100.0], [("constant", 99.6, 4)]),
        ([55.0, 56.0], [("few", 0.0, 2)]),
        ([3.0, 5.0, 6.0, 90.0, 92.0], [("two_groups", 84.0, 3)]),
        ([0.0, 60.0, 70.0, 75.0, 80.0], [("lone", 0.0, 1)]),
        ([20.0, 25.0, 30.0, 99.0], [("lone", 99.0, 1)]),
        ([20.0, 45.0, 70.0, 95.0], []),
    ],
)
def test_each_flaw_is_told_with_its_number(scores: list[float], expected: list[tuple[str, float, int]]) -> None:
    assert changed(2, scores) == expected


def test_a_column_that_repeats_another_is_its_twin() -> None:
    table = made_up()
    table[:, 3] = table[:, 1]
    twins = [flaw for flaw in flaws(table, made_up_tops()) if flaw.kind == "twins"]
    assert [(flaw.benchmark, flaw.other, flaw.number) for flaw in twins] == [(1, 3, 1.0)]


def test_scales_without_an_end_are_never_outside_it() -> None:
    table = SOUND.copy()
    table[:, -1] = np.linspace(-500, 90_000, len(table))
    assert flaws(table, made_up_tops()) == ()


@pytest.mark.parametrize("scores", [[1200.0], [1200.0, 1200.0]])
def test_a_scale_without_an_end_has_no_unit_where_its_scores_are_one(scores: list[float]) -> None:
    table = SOUND.copy()
    table[:, -1] = np.nan
    table[: len(scores), -1] = scores
    found = [flaw for flaw in flaws(table, made_up_tops()) if flaw.kind == "constant"]
    assert [(flaw.benchmark, flaw.count) for flaw in found] == [(table.shape[1] - 1, len(scores))]


def test_a_fraction_among_percentages_looks_like_one() -> None:
    assert looks_like_fraction(0.7, np.array([55.0, np.nan, 80.0]))
    assert not looks_like_fraction(0.0, np.array([55.0]))
    assert not looks_like_fraction(1.5, np.array([55.0]))
    assert not looks_like_fraction(0.7, np.array([]))
