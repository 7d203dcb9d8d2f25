from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from evalspec.statistics.fast_draws import draw_with_replacement
from evalspec.statistics.packed_scores import PackedScores, Urn, uniform_numbers
from evalspec.statistics.rankings import RedrawPlan, ResponsePatterns
from evalspec.statistics.redrawn_totals import redrawn_totals
from evalspec.statistics.response_patterns import FINEST
from evalspec.statistics.tabled_counts import CountLaws, TabledCounts

ROWS = 40_000
# A right sampler fails one such test in ten thousand; seeds are fixed.
RARE = 1e-4


def eight_models() -> NDArray[np.float64]:
    reference = json.loads((Path(__file__).parent / "reference" / "statistics.json").read_text(encoding="utf-8"))
    counts = reference["fixtures"]["article_like_8x2000"]["pattern_counts"]
    return np.array([[float(mark) for mark in pattern] for pattern, count in sorted(counts.items()) for _ in range(count)]).T


def fit(observed: NDArray[np.int64], values: NDArray[np.int64], masses: NDArray[np.float64]) -> float:
    """P-value of observed whole numbers under a law, cells of small expectation taken together."""
    cumulated = np.cumsum(masses)
    edges = values[np.unique(np.searchsorted(cumulated, np.linspace(0.03, 0.97, 20)))]
    below = np.concatenate([[0.0], cumulated[np.searchsorted(values, edges)], [1.0]])
    counts = np.bincount(np.searchsorted(edges, observed), minlength=edges.size + 1)
    return float(stats.chisquare(counts, np.diff(below) * observed.size).pvalue)


def law_of_lead(scores: NDArray[np.float64], first: int, second: int, size: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Exact law of the lead of one model over another in a sample: the inverse Fourier transform of a trinomial's characteristic function."""
    ahead, behind = (np.mean(scores[one] > scores[other]) for one, other in ((first, second), (second, first)))
    angles = 2j * np.pi * np.arange(2 * size + 1) / (2 * size + 1)
    transform = (1.0 - ahead - behind + ahead * np.exp(angles) + behind * np.exp(-angles)) ** size
    return np.arange(-size, size + 1), np.real(np.fft.fftshift(np.fft.fft(transform))) / (2 * size + 1)


@pytest.mark.parametrize("size", [30, 200, 700, 5000])
def test_leads_follow_their_exact_law_whether_patterns_are_counted_or_drawn_singly(size: int) -> None:
    scores = eight_models()
    found = ResponsePatterns.from_scores(scores).among(range(8))
    totals = draw_with_replacement(Urn(found.patterns, found.counts), size, ROWS, np.random.default_rng(1)).astype(np.int64)
    for first, second in ((0, 1), (3, 4), (2, 7)):
        assert fit(totals[first] - totals[second], *law_of_lead(scores, first, second, size)) > RARE


def test_draws_that_continue_smaller_ones_follow_the_exact_law_too() -> None:
    scores = eight_models()
    plans = [RedrawPlan(size, ROWS) for size in (30, 100, 800)]
    among = [range(8), range(8), (0, 1, 3, 4)]
    drawn = next(redrawn_totals(ResponsePatterns.from_scores(scores), plans, np.random.default_rng(1), among=among))
    for size, models, part in zip((30, 100, 800), among, drawn, strict=True):
        totals = part.totals.astype(np.int64)
        assert totals.shape == (len(models), ROWS)
        for first, second in ((0, 1), (3, 4)):
            lead = totals[list(models).index(first)] - totals[list(models).index(second)]
            assert fit(lead, *law_of_lead(scores, first, second, size)) > RARE


def test_what_a_larger_draw_adds_has_nothing_to_do_with_the_smaller_one() -> None:
    drawn = next(
        redrawn_totals(ResponsePatterns.from_scores(eight_models()), [RedrawPlan(size, ROWS) for size in (100, 800)], np.random.default_rng(2))
    )
    small, large = (part.totals.astype(np.int64) for part in drawn)
    correlations = np.corrcoef(small, large - small)[:8, 8:]
    # 64 correlations with a standard error of 1 / sqrt(ROWS) each.
    assert np.abs(correlations).max() < 4.5 / np.sqrt(ROWS)


def test_a_model_that_the_smaller_draw_left_out_is_drawn_afresh() -> None:
    found = ResponsePatterns.from_scores(np.vstack([np.ones(50), np.arange(50) % 2]))
    small, large = next(redrawn_totals(found, [RedrawPlan(5, 20), RedrawPlan(12, 20)], np.random.default_rng(1), among=[(0,), (0, 1)]))
    assert small.totals.shape == (1, 20)
    assert np.all((large.totals[0] - large.totals[1] >= 0) & (large.totals[0] - large.totals[1] <= 12))


def test_draws_that_outgrow_the_numbers_of_the_smaller_ones_do_not_overflow() -> None:
    found = ResponsePatterns.from_scores([[1.0] * 7, [0.1234567] * 7])
    assert found.denominator == FINEST
    for part, size in zip(next(redrawn_totals(found, [RedrawPlan(1, 3), RedrawPlan(3, 3)], np.random.default_rng(1))), (1, 3), strict=True):
        assert part.totals[0].tolist() == [size * FINEST] * 3


def test_strata_whose_totals_outgrow_a_part_s_numbers_do_not_overflow() -> None:
    found = ResponsePatterns.from_scores(np.ones((1, 4)), strata=["a", "a", "b", "b"])
    drawn = next(redrawn_totals(found, [RedrawPlan(40_000, 2)], np.random.default_rng(1)))[0]
    assert drawn.totals.tolist() == [[40_000, 40_000]]


@pytest.mark.parametrize("size", [900, 3000])
def test_patterns_that_are_all_alike_follow_the_same_law_drawn_singly_and_by_binomial_counts(size: int) -> None:
    # Each of 64 patterns holds as many questions, so that hardly a sample of Poisson counts would be kept.
    urn = Urn(np.array([[int(mark) for mark in f"{number:06b}"] for number in range(64)]), np.full(64, 2))
    totals = draw_with_replacement(urn, size, ROWS, np.random.default_rng(1)).astype(np.int64)
    for model in totals:
        assert fit(model, np.arange(size + 1), stats.binom.pmf(np.arange(size + 1), size, 0.5)) > RARE
    assert np.cov(totals) == pytest.approx(size / 4 * np.eye(6), abs=6 * size / 4 * np.sqrt(2 / ROWS))


@pytest.mark.parametrize("mean", [0.2, 3.0, 150.0, 40_000.0])
def test_tabled_poisson_counts_follow_their_law(mean: float) -> None:
    supply = TabledCounts(CountLaws.poisson(np.array([1.0, mean])), np.array([1, 0]), np.random.default_rng(1))
    counts = np.concatenate([supply.next(20_000)[0].astype(np.int64) for _ in range(2)])
    values = np.arange(int(mean + 10 * mean**0.5) + 20)
    assert fit(counts, values, stats.poisson.pmf(values, mean)) > RARE


@pytest.mark.parametrize(("trials", "share"), [(1, 0.5), (30, 0.65), (5000, 0.01), (40, 0.0), (40, 1.0)])
def test_the_binomial_law_is_that_of_scipy(trials: int, share: float) -> None:
    law = CountLaws.binomial(trials, share)
    assert law.masses[0] == pytest.approx(stats.binom.pmf(law.values[0], trials, share), abs=1e-12)
    assert law.masses.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("below", [1, 2, 3, 1000, 4096, 65_536, 70_000, 1 << 20])
def test_uniform_numbers_reach_every_part_equally_often(below: int) -> None:
    numbers = uniform_numbers(below, 60_000, np.random.default_rng(1))
    assert numbers.max() < below
    parts = min(below, 50)
    edges = np.arange(parts + 1) * below // parts
    counts = np.histogram(numbers, bins=edges)[0] if parts > 1 else np.array([numbers.size])
    assert parts == 1 or stats.chisquare(counts, np.diff(edges) / below * numbers.size).pvalue > RARE


def test_lanes_are_emptied_before_they_overflow() -> None:
    packed = PackedScores.of(Urn(np.array([[25, 1]]), np.array([3])))
    assert packed.most * 25 <= 255
    totals = np.zeros((2, 2), dtype=np.int32)
    packed.add(np.zeros(12, dtype=np.int32), np.array([packed.most, 2]), totals)
    assert totals.tolist() == [[250, 50], [10, 2]]
