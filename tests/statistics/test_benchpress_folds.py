"""Hidden scores: the published folds and errors (arXiv:2606.24020, recomputed independently), and what an audit must reach on them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evalspec.statistics.benchpress import AUDIT_SEEDS, PUBLISHED_SEEDS, Method, Standard
from evalspec.statistics.benchpress_folds import Fold, HeldOut, hold_out, holdout_folds, small_folds, strengths, summarise

from .benchpress_matrix import Published, made_up, made_up_tops, read_published


@pytest.fixture(scope="module")
def published(shared: Path) -> Published:
    return read_published(shared)


@pytest.fixture(scope="module")
def folds(published: Published) -> list[Fold]:
    return list(holdout_folds(~np.isnan(published.scores), range(42, 52)))


@pytest.fixture(scope="module")
def compat(published: Published, folds: list[Fold]) -> HeldOut:
    return hold_out(published.scores, Method(PUBLISHED_SEEDS), folds)


def test_the_published_folds_come_out_cell_by_cell(folds: list[Fold], shared: Path) -> None:
    reference = json.loads((shared / "reference" / "benchpress.json").read_text(encoding="utf-8"))["B_fold_seed42_fold0"]
    assert folds[0].models.tolist() == reference["mask_rows"]
    assert folds[0].benchmarks.tolist() == reference["mask_cols"]
    assert [len(fold.models) for fold in folds[:3]] == [843, 843, 918]


def test_the_published_errors_come_out_to_the_printed_digits(compat: HeldOut) -> None:
    found = summarise(compat.error, compat.actual)
    assert (found.n, found.unpredicted) == (26_040, 0)
    assert found.median == pytest.approx(4.5981, abs=5e-5)
    assert found.median_relative == pytest.approx(0.07759, abs=5e-6)
    assert (found.within_3, found.within_5) == pytest.approx((0.3664, 0.5277), abs=5e-5)
    by_fold = [compat.kept(compat.fold == fold) for fold in range(30)]
    assert float(np.median([np.median(part.error) for part in by_fold])) == pytest.approx(4.6289, abs=5e-5)


def test_percentages_alone_have_the_tail_that_was_found_independently(compat: HeldOut, published: Published) -> None:
    bounded = np.nanmax(published.scores, axis=0)[compat.benchmarks] <= 101
    found = summarise(compat.error[bounded], compat.actual[bounded])
    assert (found.median, found.mean, found.root_mean_square, found.ninth_decile) == pytest.approx((4.39, 7.21, 11.36, 17.0), abs=0.05)


def test_both_baselines_err_as_found_independently(compat: HeldOut) -> None:
    two_way = summarise(np.abs(compat.additive - compat.actual), compat.actual)
    assert (two_way.median, two_way.median_relative) == pytest.approx((5.17, 0.0862), abs=(0.005))
    median = summarise(np.abs(compat.median - compat.actual), compat.actual)
    assert (median.median, median.median_relative) == pytest.approx((9.65, 0.153), abs=0.005)


@pytest.mark.slow
def test_a_hundred_starts_are_better_than_ten_and_reach_what_an_audit_must(published: Published, folds: list[Fold]) -> None:
    held = hold_out(published.scores, Method(AUDIT_SEEDS), folds)
    found = summarise(held.error, held.actual)
    assert found.median <= 4.50
    assert found.median == pytest.approx(4.465, abs=5e-4)
    assert found.median_relative <= 0.0760
    assert found.median_relative == pytest.approx(0.0755, abs=5e-5)
    assert found.mean < 52.0


def test_small_folds_hide_every_known_cell_once_and_few_at_a_time() -> None:
    known = ~np.isnan(made_up(models=30))
    folds = small_folds(known, 20, np.random.default_rng(2))
    count = np.zeros(known.shape, dtype=int)
    for fold in folds:
        np.add.at(count, (fold.models, fold.benchmarks), 1)
        assert len(np.unique(fold.models)) == len(fold.models)  # with fewer than twenty scores, a model hides at most one of them at a time
    assert np.array_equal(count, known.astype(int))


def test_what_was_hidden_moves_no_prediction_of_itself() -> None:
    scores, tops = made_up(), made_up_tops()
    fold = Fold(np.array([0, 3]), np.array([2, 2]))
    changed = scores.copy()
    changed[[0, 3], [2, 2]] = [1.0, 99.0]
    method = Method(PUBLISHED_SEEDS, tops)
    assert np.array_equal(hold_out(scores, method, [fold]).predicted, hold_out(changed, method, [fold]).predicted)


def test_hidden_cells_of_a_column_without_others_are_counted_and_left_out() -> None:
    scores = made_up()
    scores[1:, 7] = np.nan
    scores[0, 7] = 50.0
    held = hold_out(scores, Method(PUBLISHED_SEEDS, made_up_tops()), [Fold(np.array([0, 1]), np.array([7, 0]))])
    found = summarise(held.error, held.actual)
    assert (found.n, found.unpredicted) == (1, 1)
    with pytest.raises(ValueError, match="no hidden cell could be predicted"):
        summarise(np.array([np.nan]), np.array([1.0]))


def test_relative_errors_are_of_the_score_whatever_unit_the_errors_are_in() -> None:
    actual = np.array([50.0, 80.0, 0.0])
    points = summarise(np.array([1.0, 2.0, 3.0]), actual, unit=np.array([5.0, 4.0, 1.0]))
    assert points.median_relative == pytest.approx(0.1)
    assert points.median == 2.0


def test_strength_is_the_mean_standardised_score_of_what_is_known() -> None:
    scores, tops = made_up(), made_up_tops()
    standard = Standard.of(scores, tops)
    assert strengths(scores, standard) == pytest.approx(np.nanmean(standard.standardised(scores), axis=1))
