from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from evalspec.statistics.benchpress import PUBLISHED_SEEDS, Method
from evalspec.statistics.benchpress_folds import hold_out, holdout_folds
from evalspec.statistics.benchpress_ranking import Order, order_kept

from .benchpress_matrix import made_up, made_up_tops, read_published


def test_the_published_shares_of_pairs_in_order_come_out(shared: Path) -> None:
    """Published 83.8 and 92.1 % of pairs at margins 0 and 5, medians over benchmarks; the pairs with both hidden were found independently."""
    published = read_published(shared)
    held = hold_out(published.scores, Method(PUBLISHED_SEEDS), list(holdout_folds(~np.isnan(published.scores), range(42, 52))))
    found = {margin: order_kept(published.scores, held, np.full(133, margin)) for margin in (0.0, 1.0, 2.0, 5.0)}
    medians = [found[margin].any_hidden.median for margin in found]
    assert medians == pytest.approx([0.8383, 0.8628, 0.8795, 0.9205], abs=5e-5)
    assert found[5.0].any_hidden.pairs == 454_090
    assert (found[0.0].both_hidden.median, found[5.0].both_hidden.median) == pytest.approx((0.813, 0.879), abs=6e-4)
    assert (found[0.0].both_hidden.pooled, found[5.0].both_hidden.pooled) == pytest.approx((0.847, 0.904), abs=6e-4)


@pytest.mark.parametrize("margin", [0.0, 10.0])
def test_the_counts_are_those_of_a_loop_over_pairs(margin: float) -> None:
    scores = np.round(made_up())  # rounded, so that there are ties
    folds = list(holdout_folds(~np.isnan(scores), [42]))
    held = hold_out(scores, Method(PUBLISHED_SEEDS, made_up_tops()), folds)
    counts = np.zeros((2, 2, 9), dtype=int)
    for fold in range(3):
        part = held.kept(held.fold == fold)
        shown, hidden = scores.copy(), np.zeros(scores.shape, dtype=bool)
        shown[part.models, part.benchmarks], hidden[part.models, part.benchmarks] = part.predicted, True
        for benchmark in range(9):
            for one, other in combinations(np.flatnonzero(~np.isnan(scores[:, benchmark])), 2):
                gap = scores[one, benchmark] - scores[other, benchmark]
                marks = hidden[one, benchmark], hidden[other, benchmark]
                if gap == 0 or abs(gap) < margin or not any(marks):
                    continue
                right = (shown[one, benchmark] - shown[other, benchmark]) * gap > 0
                counts[0, :, benchmark] += [1, right]
                counts[1, :, benchmark] += [all(marks), all(marks) and right]
    found = order_kept(scores, held, np.full(9, margin))
    for order, (pairs, kept) in zip((found.any_hidden, found.both_hidden), counts, strict=True):
        present = pairs > 0
        assert order == Order(int(pairs.sum()), pytest.approx(kept.sum() / pairs.sum()), pytest.approx(np.median(kept[present] / pairs[present])))


def test_without_a_pair_no_share_is_claimed() -> None:
    scores = made_up()
    held = hold_out(scores, Method(PUBLISHED_SEEDS, made_up_tops()), list(holdout_folds(~np.isnan(scores), [42]))[:1])
    assert order_kept(scores, held, np.full(9, 1e9)).any_hidden == Order(0, None, None)
