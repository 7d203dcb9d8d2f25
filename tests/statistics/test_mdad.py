from __future__ import annotations

import csv
import gzip
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import kendalltau

from evalspec.statistics.mdad import AgreementCurve, Bins, Reference, first_crossing, rising_crossing
from evalspec.statistics.mdad_trials import TrialPlan, draw_trials
from evalspec.statistics.samplers import SAMPLERS, Answers, choose_questions, sampled_scores

SIZES = (10, 25, 50, 100, 200)
SEEDS = 20


def curve(pairs: list[float], right: list[float]) -> AgreementCurve:
    return AgreementCurve(Bins().gaps(len(pairs)), np.array([pairs], dtype=float), np.array([right], dtype=float))


def looped(totals: NDArray[np.int64], units: int, estimates: NDArray[np.float64], ties: str) -> dict[int, list[float]]:
    """Pairs, and what they count, by bin of half a point: one pair after the other, as the definition has it."""
    found: dict[int, list[float]] = {}
    for full, sampled in zip(totals.tolist(), estimates.tolist(), strict=True):
        for first, second in combinations(range(len(full)), 2):
            gap, seen = full[first] - full[second], sampled[first] - sampled[second]
            tie = 0.5 if ties == "half" else 0.0
            counts = tie if abs(seen) < 1e-9 else 0.5 if gap == 0 else float((gap > 0) == (seen > 0))
            entry = found.setdefault(abs(gap) * 200 // units, [0, 0.0])
            entry[0] += 1
            entry[1] += counts
    return found


@pytest.mark.parametrize("ties", ["wrong", "half"])
@pytest.mark.parametrize("seed", range(5))
def test_the_curve_is_that_of_a_loop_over_pairs(seed: int, ties: str) -> None:
    rng = np.random.default_rng(seed)
    totals, estimates = rng.integers(0, 61, (4, 9)), rng.integers(0, 6, (4, 9)) / 5
    found = Reference(totals, 60).curve(estimates, ties)
    expected = looped(totals, 60, estimates, ties)
    held = np.flatnonzero(found.pairs.sum(axis=0))
    assert held.tolist() == sorted(expected)
    for place in held:
        assert [found.pairs[:, place].sum(), found.right[:, place].sum()] == expected[place]


@given(st.permutations(range(7)), st.integers(0, 50))
def test_the_order_in_which_models_stand_moves_nothing(order: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    totals, estimates = rng.integers(0, 21, (3, 7)), rng.integers(0, 4, (3, 7)) / 3
    straight, turned = Reference(totals, 20).curve(estimates), Reference(totals[:, order], 20).curve(estimates[:, order])
    assert np.array_equal(straight.pairs, turned.pairs)
    assert np.array_equal(straight.right, turned.right)


def test_published_ties_of_level_pairs_hang_on_their_order_and_ours_are_the_mean_of_both() -> None:
    reference = Reference(np.array([[5, 5]]), 10)
    published = [float(sampled > 0) for sampled in (0.1, -0.1)]
    assert reference.curve([[0.5, 0.4]]).agreement == reference.curve([[0.4, 0.5]]).agreement == np.mean(published)
    assert reference.curve([[0.5, 0.5]]).agreement == 0.0
    assert reference.curve([[0.5, 0.5]], "half").agreement == 0.5


@pytest.mark.parametrize("units", [200, 224, 1000, 6016])
def test_no_gap_slips_into_the_bin_below(units: int) -> None:
    gaps = np.arange(units + 1)
    places = Bins().places(gaps, units)
    assert np.all(places * units <= gaps * 200)
    assert np.all(gaps * 200 < (places + 1) * units)
    if units == 1000:
        assert places[[145, 285, 290, 565]].tolist() == [29, 57, 58, 113]  # where floors of floating-point numbers fall short


def test_centred_bins_lie_around_their_gap() -> None:
    centred = Bins(50, centred=True)
    assert centred.places(np.array([0, 2, 3, 7, 8]), 1000).tolist() == [0, 0, 1, 1, 2]
    assert centred.gaps(3).tolist() == [0.0, 0.005, 0.01]


def test_the_first_bin_decides_even_where_later_ones_fall_and_the_rising_fit_does_not_follow_it() -> None:
    bumpy = curve([50, 50, 50, 50], [20, 41, 30, 50])
    assert first_crossing(bumpy).gap == 0.005
    assert rising_crossing(bumpy).gap == 0.015
    assert (rising_crossing(bumpy).agreement, rising_crossing(bumpy).pairs) == (1.0, 50)


def test_too_few_pairs_do_not_decide() -> None:
    thin = curve([50, 3, 50], [20, 3, 45])
    assert first_crossing(thin).gap == 0.01
    assert first_crossing(thin, min_pairs=1).gap == 0.005
    assert rising_crossing(thin, min_pairs=54).gap is None
    # The fit reaches the level at the thin bin, and the bins beyond bear it out.
    assert rising_crossing(thin, min_pairs=53).gap == 0.005


def test_what_is_not_reached_is_none_and_no_number() -> None:
    low = curve([50, 50], [20, 30])
    assert first_crossing(low).gap is None
    assert rising_crossing(low).gap is None
    assert (first_crossing(low).agreement, first_crossing(low).pairs) == (None, 0)


def test_rank_correlation_is_scipy_s_tau_b() -> None:
    rng = np.random.default_rng(3)
    totals, estimates = rng.integers(0, 9, (6, 8)), rng.integers(0, 5, (6, 8)) / 4
    expected = np.mean([kendalltau(full, sampled).statistic for full, sampled in zip(totals, estimates, strict=True)])
    assert Reference(totals, 8).rank_correlation(estimates) == pytest.approx(expected, abs=1e-12)
    assert Reference(np.array([[1, 2]]), 8).rank_correlation([[0.5, 0.5]]) is None


@pytest.mark.parametrize("totals", [np.array([[1]]), np.array([[1, 9]]), np.array([[-1, 2]]), np.array([1, 2])])
def test_impossible_totals_are_refused(totals: NDArray[np.int64]) -> None:
    with pytest.raises(ValueError, match="totals"):
        Reference(totals, 8)


@pytest.fixture(scope="module")
def gpqa(shared: Path) -> NDArray[np.float64]:
    """420 models on GPQA main, the matrix of the method's authors (MIT, mpg05883/micro-benchmarking-reliability)."""
    with gzip.open(shared / "data" / "gpqa_main_correct_420models.csv.gz", "rt", newline="") as stream:
        rows = [row[2:] for row in csv.reader(stream)][1:]
    return np.array(rows, dtype=np.float64).T


@pytest.fixture(scope="module")
def published(gpqa: NDArray[np.float64]) -> dict[tuple[str, int], NDArray[np.float64]]:
    """MDAD as published, agreement and rank correlation of uniform samples: one row per seed; infinite where not reached."""
    answers = Answers(gpqa, np.zeros(gpqa.shape[1], dtype=np.int64))
    found: dict[tuple[str, int], list[list[float]]] = {}
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        trials = draw_trials(answers.strata, len(gpqa), TrialPlan(50, 50), rng)
        entries = sampled_scores(answers, trials, choose_questions(answers, trials, SAMPLERS["uniform"], SIZES, rng))
        for half in ("seen", "fresh"):
            totals = np.stack([gpqa[trial.targets][:, getattr(trial, half)].sum(axis=1) for trial in trials]).astype(np.int64)
            reference = Reference(totals, 224)
            for size, entry in zip(SIZES, entries, strict=True):
                of_size = reference.curve(entry.own)
                gap = first_crossing(of_size, min_pairs=1).gap
                row = [np.inf if gap is None else 100 * gap, of_size.agreement, reference.rank_correlation(entry.own)]
                found.setdefault((half, size), []).append(row)
    return {key: np.array(rows) for key, rows in found.items()}


@pytest.mark.parametrize(("size", "released", "tolerance"), [(25, 12.0, 1.5), (50, 7.5, 1.0), (100, 4.0, 0.5), (200, 1.5, 0.5)])
def test_the_seen_half_of_gpqa_gives_the_released_mdad(
    published: dict[tuple[str, int], NDArray[np.float64]], size: int, released: float, tolerance: float
) -> None:
    """Released by the method's authors, one run; tolerances from their seven runs that differ in nothing but chance."""
    assert np.median(published["seen", size][:, 0]) == pytest.approx(released, abs=tolerance)


def test_ten_questions_vary_from_run_to_run_as_the_released_runs_do(published: dict[tuple[str, int], NDArray[np.float64]]) -> None:
    gaps = published["seen", 10][:, 0]
    # Seven released runs gave 15.5 to 25.5, their median 19.
    assert np.median(gaps) == pytest.approx(19.0, rel=0.25)
    assert gaps.min() >= 13.0


@pytest.mark.parametrize(("size", "released"), [(10, 27.0), (25, 17.0), (50, 16.0), (100, 10.0), (200, 8.5)])
def test_the_fresh_half_of_gpqa_spans_the_released_mdad(published: dict[tuple[str, int], NDArray[np.float64]], size: int, released: float) -> None:
    gaps = published["fresh", size][:, 0]
    # Half a bin of slack; at 10 questions a bin beyond 22 points holds few pairs, and the largest gap seen is about as far as it goes.
    assert gaps.min() - 0.5 <= released <= (28.0 if size == 10 else gaps.max() + 0.5)


@pytest.mark.parametrize(
    ("size", "agreement", "tau"), [(10, 0.466, 0.168), (25, 0.596, 0.346), (50, 0.672, 0.456), (100, 0.777, 0.637), (200, 0.909, 0.883)]
)
def test_agreement_and_rank_correlation_are_within_what_seeds_span(
    published: dict[tuple[str, int], NDArray[np.float64]], size: int, agreement: float, tau: float
) -> None:
    rows = published["seen", size]
    for column, released in ((1, agreement), (2, tau)):
        if size == 10:
            # The released run is an outlier at this size, as its MDAD of 25.5 is among its own seven; within five standard deviations of ours.
            assert released == pytest.approx(rows[:, column].mean(), abs=5 * rows[:, column].std())
        else:
            assert rows[:, column].min() - 0.005 <= released <= rows[:, column].max() + 0.005
