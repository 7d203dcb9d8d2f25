from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evalspec.statistics.benchpress_blocks import complete_block, directions

from .benchpress_matrix import made_up, read_published


@pytest.mark.parametrize(
    ("benchmarks", "models", "shares", "standardised", "chance"),
    [
        (4, 42, (0.904, 0.976), 0.973, 0.61),
        (7, 11, (0.782, 0.912), 0.883, 0.58),
        (10, 7, (0.865, 0.950), 0.914, 0.62),
        (13, 6, (0.896, 0.959), 0.885, 0.63),
    ],
)
def test_the_published_shares_of_variance_come_out(
    shared: Path, benchmarks: int, models: int, shares: tuple[float, float], standardised: float, chance: float
) -> None:
    """Shares along two directions as printed in arXiv:2606.24020; those at spread 1 and by chance were found independently."""
    scores = read_published(shared).scores
    block = complete_block(scores, benchmarks)
    assert len(block.models) == models
    found = directions(scores, block, draws=500, rng=np.random.default_rng(1))
    assert found.shares[:2] == pytest.approx(shares, abs=6e-4)
    assert found.standardised[1] == pytest.approx(standardised, abs=6e-4)
    assert found.chance == pytest.approx(chance, abs=0.015)  # the mean of 500 shuffles; independently of other ones
    assert found.p_value == pytest.approx(1 / 501)


def test_unrelated_benchmarks_have_the_directions_that_chance_gives() -> None:
    rng = np.random.default_rng(7)
    p_values = []
    for _ in range(60):
        scores = rng.normal(size=(12, 6))
        p_values.append(directions(scores, complete_block(scores, 6), draws=99, rng=rng).p_value)
    # Uniform on 0.01 .. 1: mean 0.505, standard error 0.037.
    assert np.mean(p_values) == pytest.approx(0.505, abs=0.12)
    assert min(p_values) > 0


def test_a_block_is_complete_and_takes_the_first_of_equally_frequent_benchmarks() -> None:
    scores = made_up()
    block = complete_block(scores, 3)
    assert block.benchmarks.tolist() == [0, 1, 2]
    assert not np.isnan(scores[np.ix_(block.models, block.benchmarks)]).any()


def test_what_makes_no_block_is_refused_with_its_reason() -> None:
    scores = made_up()
    with pytest.raises(ValueError, match="a block has 2 to 9 benchmarks; got 10"):
        complete_block(scores, 10)
    scores[2:, 3] = np.nan
    with pytest.raises(ValueError, match="a block needs three"):
        complete_block(scores, 9)
    flat = np.ones((5, 3))
    with pytest.raises(ValueError, match="no benchmark of the block varies"):
        directions(flat, complete_block(flat, 3), draws=10, rng=np.random.default_rng(1))
