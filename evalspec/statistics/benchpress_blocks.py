"""Along how many directions do scores vary, where no cell is missing?

The benchmarks that most models have, with the models that have all of them, make a complete block; its singular values are those of no model of
missing cells. Null hypothesis of the test: the scores of each benchmark fall on the models in any order, whatever their scores on the others. Few
benchmarks have few directions to begin with, so a share of variance alone says little; beside it stands what it is under that hypothesis.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalspec.statistics.arguments import FloatArray, IntArray, require_count

ROUNDING = 1e-12
"""Shares nearer than this are equal."""


@dataclass(frozen=True, slots=True)
class Block:
    """A complete block: its models and benchmarks, by row and column of the table."""

    models: IntArray
    benchmarks: IntArray


@dataclass(frozen=True, slots=True)
class Directions:
    """How much of a block's variance its first directions hold, and how much they hold by chance.

    ``shares`` are cumulative, of scores as they are; ``standardised`` the same with every benchmark at spread 1. ``chance`` is the mean share that
    two directions of standardised scores hold when each benchmark's scores are shuffled, ``p_value`` how often they hold as much as observed.
    """

    shares: tuple[float, ...]
    standardised: tuple[float, ...]
    chance: float
    p_value: float


def complete_block(scores: FloatArray, benchmarks: int) -> Block:
    """Return the block of the benchmarks that most models have, the first of equals, and of the models that have all of them.

    Raises
    ------
    ValueError
        When fewer than three models have all of them, or there are not that many benchmarks.

    References
    ----------
    Zeng and Papailiopoulos (2026), arXiv:2606.24020.

    Examples
    --------
    >>> table = np.array([[1.0, 2.0, np.nan], [3.0, 4.0, 5.0], [6.0, 8.0, np.nan]])
    >>> complete_block(table, 2).models.tolist()
    [0, 1, 2]
    """
    if not 2 <= require_count("benchmarks", benchmarks) <= scores.shape[1]:
        raise ValueError(f"a block has 2 to {scores.shape[1]} benchmarks; got {benchmarks}")
    known = ~np.isnan(scores)
    chosen = np.argsort(-known.sum(axis=0), kind="stable")[:benchmarks]
    models = np.flatnonzero(known[:, chosen].all(axis=1))
    if len(models) < 3:
        raise ValueError(f"{len(models)} models have all of the {benchmarks} benchmarks that most models have; a block needs three")
    return Block(models, chosen)


def directions(scores: FloatArray, block: Block, *, draws: int, rng: np.random.Generator) -> Directions:
    """Return the shares of a block's variance along its first directions, and hold two of them against shuffled benchmarks.

    Raises
    ------
    ValueError
        When no benchmark of the block varies.

    References
    ----------
    Zeng and Papailiopoulos (2026), arXiv:2606.24020 (the shares); Buja and Eyuboglu (1992), Multivar. Behav. Res. 27, 509-540 (the shuffling);
    Phipson and Smyth (2010), Stat. Appl. Genet. Mol. Biol. 9, 39 (the p-value, which is never 0).

    Examples
    --------
    >>> table = np.outer(np.arange(6.0), [1.0, 2.0, 3.0])
    >>> found = directions(table, complete_block(table, 3), draws=99, rng=np.random.default_rng(1))
    >>> round(found.shares[0], 6), found.p_value < 0.1
    (1.0, True)
    """
    cells = scores[np.ix_(block.models, block.benchmarks)]
    centred = cells - cells.mean(axis=0)
    spread = centred.std(axis=0)
    varying = centred[:, spread > 0] / spread[spread > 0]
    if varying.shape[1] == 0:
        raise ValueError("no benchmark of the block varies")
    observed = _shares(varying)
    shuffled = rng.permuted(np.tile(varying, (require_count("draws", draws, minimum=1), 1, 1)), axis=1)
    chance = _shares(shuffled)[:, :2].max(axis=1)
    as_much = int(np.count_nonzero(chance >= observed[:2].max() - ROUNDING))
    return Directions(tuple(_shares(centred).tolist()), tuple(observed.tolist()), float(chance.mean()), (as_much + 1) / (draws + 1))


def _shares(tables: FloatArray) -> FloatArray:
    """Return cumulative shares of variance along the directions of centred tables, (..., min(N, D))."""
    squared = np.linalg.svd(tables, compute_uv=False) ** 2
    return np.asarray(np.cumsum(squared, axis=-1) / squared.sum(axis=-1, keepdims=True))
