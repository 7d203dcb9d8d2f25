"""How alike are the answer distributions that a model gives to different questions?

The symmetric Kullback-Leibler divergence of all pairs of questions is one matrix product, and the similarity exp(-tau/2 J) of a block of
pairs is made again whenever it is needed: nothing of the size of all pairs is kept for many questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalspec.statistics.arguments import FloatArray, as_floats
from evalspec.statistics.eigenvectors import Floats

CLAMP = 1e-6
TILE = 1536
MOST_KEPT = 1 << 25
"""Similarities that are kept between products instead of being made again: 134 MB."""

ROUNDING = 1e-4
MOST_IN_ONE_ROW = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Similarity:
    """Similarities of N questions, as factors of their divergences: ``J = level_i + level_j - <left_i, right_j>``.

    ``left`` and ``right`` are of shape (N, 2 C M) for M models with C answers, ``level`` is of shape (N,); ``scale`` is tau / 2. ``kept`` is the
    whole matrix where that is small.
    """

    left: Floats
    right: Floats
    level: Floats
    scale: float
    kept: Floats | None = None

    @property
    def questions(self) -> int:
        """Number of questions."""
        return int(self.level.size)

    def times(self, matrix: Floats) -> Floats:
        """Return the matrix of similarities times ``matrix``, shape (N, r)."""
        if self.kept is not None:
            return np.asarray(self.kept @ matrix)
        product = np.zeros((self.questions, matrix.shape[1]), dtype=np.float32)
        for rows, columns, tile in self._tiles():
            product[rows] += tile @ matrix[columns]
            if rows != columns:
                product[columns] += tile.T @ matrix[rows]
        return product

    def columns(self, chosen: NDArray[np.intp]) -> Floats:
        """Return the similarities of all questions to some, shape (N, len(chosen))."""
        if self.kept is not None:
            return self.kept[:, chosen]
        block = self.left @ self.right[chosen].T
        return self._similar(block, self.level, self.level[chosen])

    def divergences_to(self, indicator: Floats) -> FloatArray:
        """Return the divergences of every question summed over each group, shape (N, r); column r of ``indicator`` marks its group with 1."""
        marked = indicator.astype(np.float64)
        own, sums = self.level.astype(np.float64), self.right.astype(np.float64).T @ marked
        return np.asarray(own[:, None] * marked.sum(axis=0) + own @ marked - self.left.astype(np.float64) @ sums)

    def among(self, chosen: NDArray[np.intp]) -> Similarity:
        """Return the similarities of some of the questions to each other."""
        part = Similarity(self.left[chosen], self.right[chosen], self.level[chosen], self.scale)
        return part.keeping()

    def keeping(self) -> Similarity:
        """Return the same similarities with the whole matrix kept, where that is small."""
        if self.questions**2 > MOST_KEPT:
            return self
        whole = self._similar(self.left @ self.right.T, self.level, self.level)
        np.fill_diagonal(whole, 1.0)
        return Similarity(self.left, self.right, self.level, self.scale, whole)

    def _tiles(self) -> Iterator[tuple[slice, slice, Floats]]:
        """Yield the blocks on and above the diagonal; the others are their mirror images."""
        starts = range(0, self.questions, TILE)
        for first in starts:
            rows = slice(first, min(first + TILE, self.questions))
            for second in starts:
                if second >= first:
                    columns = slice(second, min(second + TILE, self.questions))
                    yield rows, columns, self._similar(self.left[rows] @ self.right[columns].T, self.level[rows], self.level[columns])

    def _similar(self, products: Floats, rows: Floats, columns: Floats) -> Floats:
        """Turn products into similarities in place; rounding can carry a divergence of 0 below it."""
        products -= rows[:, None]
        products -= columns
        np.minimum(products, 0.0, out=products)
        products *= np.float32(self.scale)
        return np.exp(products, out=products)


def answer_similarity(distributions: Sequence[ArrayLike], *, tau: float = 1.0, clamp: float = CLAMP) -> Similarity:
    """Similarity of questions by answer distributions: exp of minus tau/2 times the symmetric divergence, averaged over models.

    Parameters
    ----------
    distributions
        For each model an array of shape (N, C): the probabilities of C answers, which mean the same for every question. C may differ by model.
    tau
        How fast similarity falls with divergence.
    clamp
        The least probability before rows are scaled to sum to 1 again, so that no divergence is infinite.

    Raises
    ------
    ValueError
        For shapes that do not fit, probabilities that are negative or sum to 0, or a constant that is not positive.

    References
    ----------
    Uzunoglu, Li and Khashabi (2025), arXiv:2509.25671, as summarised by others; tau and clamp are our choice. Jeffreys (1946), Proc. R. Soc. A
    186, 453-461 (the symmetric divergence).

    Examples
    --------
    >>> alike = answer_similarity([[[0.5, 0.5], [0.5, 0.5], [0.9, 0.1]]])
    >>> alike.columns(np.array([0])).round(3).tolist()
    [[1.0], [1.0], [0.6439999938011169]]
    """
    if not distributions or not tau > 0.0 or not 0.0 < clamp < 1.0:
        raise ValueError(f"needs at least one model, and positive tau and clamp; got {len(distributions)} models, {tau!r} and {clamp!r}")
    tables = [_clamped(table, clamp) for table in distributions]
    if len({len(table) for table in tables}) > 1:
        raise ValueError(f"every model needs a row for every question; got {', '.join(str(len(table)) for table in tables)} rows")
    logs = [np.log(table) for table in tables]
    # Centring the logarithms moves no divergence and keeps the factors small, which is what single precision needs.
    centred = [log - log.mean(axis=1, keepdims=True) for log in logs]
    share = 1.0 / len(tables)
    level = share * np.sum([np.sum(table * log, axis=1) for table, log in zip(tables, centred, strict=True)], axis=0)
    left = np.concatenate([part for table, log in zip(tables, centred, strict=True) for part in (share * table, share * log)], axis=1)
    right = np.concatenate([part for table, log in zip(tables, centred, strict=True) for part in (log, table)], axis=1)
    return Similarity(left.astype(np.float32), right.astype(np.float32), level.astype(np.float32), tau / 2.0).keeping()


def require_distinct(distributions: Sequence[ArrayLike], *, at_least: int) -> None:
    """Refuse distributions of which too many are the same: what is not different cannot be told apart, and clusters would be arbitrary.

    Raises
    ------
    ValueError
        With fewer than ``at_least`` distinct rows (to four digits), or one row that holds more than half of the questions.

    Examples
    --------
    >>> require_distinct([[[0.5, 0.5], [0.9, 0.1]]], at_least=2)
    """
    tables = [as_floats("distributions", table) for table in distributions]
    rounded = np.rint(np.concatenate(tables, axis=1) / ROUNDING).astype(np.int32)
    _, counts = np.unique(np.ascontiguousarray(rounded).view([("", rounded.dtype)] * rounded.shape[1]).ravel(), return_counts=True)
    if counts.size < at_least:
        raise ValueError(f"only {counts.size} distributions are distinct, and {at_least} are needed")
    if counts.max() > MOST_IN_ONE_ROW * len(rounded):
        raise ValueError(f"{int(counts.max())} of {len(rounded)} questions share one distribution")


def _clamped(table: ArrayLike, clamp: float) -> FloatArray:
    values = as_floats("distributions", table)
    if values.ndim != 2 or values.shape[1] < 2:
        raise ValueError(f"distributions must be (questions, at least 2 answers); got shape {values.shape}")
    if values.min() < 0.0 or np.any(values.sum(axis=1) <= 0.0):
        raise ValueError("probabilities must not be negative, and each row needs one that is positive")
    raised = np.maximum(values / values.sum(axis=1, keepdims=True), clamp)
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))
