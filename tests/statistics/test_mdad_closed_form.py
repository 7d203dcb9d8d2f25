from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

from evalspec.statistics.mdad_closed_form import PairSpread, rankable_gap


def simulated(gap: float, questions: int, pool: int, discordance: float, *, half: bool = False) -> float:
    """How often a sample without replacement from a pool with this gap and discordance ranks it the right way round, by drawing."""
    wins, losses = round(pool * (discordance + gap) / 2), round(pool * (discordance - gap) / 2)
    rng = np.random.default_rng(1)
    drawn = rng.multivariate_hypergeometric([wins, losses, pool - wins - losses], questions, size=100_000)
    lead = drawn[:, 0] - drawn[:, 1]
    return float(np.mean(lead > 0) + (0.5 * np.mean(lead == 0) if half else 0.0))


@pytest.mark.parametrize(("questions", "pool"), [(25, 1000), (100, 1000), (400, 1000), (100, 10_000)])
@pytest.mark.parametrize("ties", ["wrong", "half"])
def test_a_sample_ranks_the_gap_with_the_wanted_probability(questions: int, pool: int, ties: str) -> None:
    gap = rankable_gap(questions, pool, 0.36, ties=ties)
    assert gap is not None
    # Within a point: the pool's gap is a whole number of questions, and net wins of 25 questions are only nearly normal.
    assert simulated(gap, questions, pool, 0.36, half=ties == "half") == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize(("questions", "expected"), [(10, 21.5), (25, 11.8), (50, 7.4), (100, 4.2), (200, 1.4)])
def test_gpqa_gives_the_gaps_that_were_computed_for_it(shared: Path, questions: int, expected: float) -> None:
    """Computed apart, with a discordance read off another neighbourhood of pairs: they part most where gaps are large."""
    with gzip.open(shared / "data" / "gpqa_main_correct_420models.csv.gz", "rt", newline="") as stream:
        scores = np.array([row[2:] for row in csv.reader(stream)][1:], dtype=np.float64).T
    gap = rankable_gap(questions, 224, PairSpread.of(scores).near)
    assert gap is not None
    assert 100 * gap == pytest.approx(expected, abs=0.9 if questions == 10 else 0.2)


def test_a_half_that_is_asked_whole_ranks_every_gap_and_a_population_needs_more() -> None:
    assert rankable_gap(50, 50, 0.3) == 0.0
    within, beyond = rankable_gap(50, 100, 0.3), rankable_gap(50, None, 0.3)
    assert within is not None
    assert beyond is not None
    assert within < beyond
    assert beyond == pytest.approx(rankable_gap(50, 10**9, 0.3), abs=1e-6)


def test_ties_that_count_half_need_half_a_question_less() -> None:
    wrong, half = rankable_gap(20, None, 0.3), rankable_gap(20, None, 0.3, ties="half")
    assert wrong is not None
    assert half is not None
    assert 0.02 < wrong - half < 0.03


def test_where_no_gap_is_ranked_there_is_none() -> None:
    assert rankable_gap(1, None, 0.3) is None  # it would be over 50 points, and models that differ on 30% of questions are not so far apart
    assert rankable_gap(100, None, 0.3) is not None


def test_the_spread_of_pairs_is_that_of_their_rows() -> None:
    scores = (np.random.default_rng(2).random((5, 90)) < 0.6).astype(float)
    found = PairSpread.of(scores)
    rows = sorted((abs(scores[i].mean() - scores[j].mean()), np.mean(scores[i] != scores[j])) for i in range(5) for j in range(i + 1, 5))
    assert found.gaps == pytest.approx([row[0] for row in rows])
    assert sorted(found.discordances) == pytest.approx(sorted(row[1] for row in rows))
    assert found.near(0.1) == pytest.approx(np.mean([row[1] for row in rows]))
    assert found.share_below(found.gaps[4]) == pytest.approx(np.mean(found.gaps < found.gaps[4] - 1e-12))


@pytest.mark.parametrize(("arguments", "message"), [((0, 10, 0.3), "questions"), ((20, 10, 0.3), "pool")])
def test_impossible_numbers_are_refused(arguments: tuple[int, int, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rankable_gap(*arguments)
    with pytest.raises(ValueError, match="level"):
        rankable_gap(5, 10, 0.3, level=0.5)
