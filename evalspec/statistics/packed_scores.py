"""How are the scores of many models on single questions added up at once?  Several models side by side in one machine word."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from evalspec.statistics.arguments import IntArray

Totals = NDArray[np.int32 | np.int64]
"""Sums of whole scores, (M, R), in as few bytes as they need."""


@dataclass(frozen=True, slots=True)
class Urn:
    """Questions to draw from: patterns (P, M) of whole, non-negative scores, and how many questions show each (P,)."""

    patterns: IntArray
    counts: IntArray

    @property
    def questions(self) -> int:
        """Number of questions."""
        return int(self.counts.sum())

    def among(self, which: NDArray[np.bool_]) -> Urn:
        """Return the questions that show the patterns that ``which``, (P,), marks."""
        return Urn(self.patterns[which], self.counts[which])

    def total_type(self, size: int) -> type[np.int32 | np.int64]:
        """Return the smaller type that holds the totals of samples of this size."""
        return np.int32 if size * max(1, int(self.patterns.max())) < 1 << 31 else np.int64


@dataclass(frozen=True, slots=True)
class PackedScores:
    """Scores of every question, several models of ``lane`` bits each in a machine word: ``words`` (N, W); ``most`` sums cannot overflow."""

    words: NDArray[np.uint64]
    lane: int
    models: int
    most: int

    @classmethod
    def of(cls, urn: Urn) -> PackedScores:
        """Pack the scores of an urn."""
        largest = max(1, int(urn.patterns.max()))
        lane = next(bits for bits in (8, 16, 64) if (1 << bits) // largest > 10)
        models, in_word = urn.patterns.shape[1], 64 // lane
        padded = np.zeros((len(urn.patterns), -(-models // in_word) * in_word), dtype=f"u{lane // 8}")
        padded[:, :models] = urn.patterns
        return cls(np.repeat(padded.view(np.uint64), urn.counts, axis=0), lane, models, ((1 << lane) - 1) // largest)

    def add(self, places: NDArray[np.int32], taken: IntArray, totals: Totals) -> None:
        """Add scores to the totals of samples, (M, R), each of which takes as many of the places, in turn, as ``taken``, (R,), says."""
        bounds = np.zeros(taken.size + 1, dtype=np.int32)
        np.cumsum(taken, out=bounds[1:])
        ones = np.ones(places.size, dtype=np.uint64)
        sums = csr_array((ones, places, bounds), shape=(taken.size, len(self.words))) @ self.words
        apart = sums.view(f"u{self.lane // 8}")
        for model in range(self.models):
            totals[model] += apart[:, model].astype(totals.dtype)


def uniform_numbers(below: int, count: int, rng: np.random.Generator) -> NDArray[np.uint16 | np.uint32]:
    """Draw whole numbers below a limit of at most 2**32, each equally likely; fastest below a power of two.

    Examples
    --------
    >>> uniform_numbers(1, 3, np.random.default_rng(1))
    array([0, 0, 0], dtype=uint16)
    """
    kind = np.uint16 if below <= 1 << 16 else np.uint32
    times = (int(np.iinfo(kind).max) + 1) // below
    bits = _random_bits(rng, kind, count)
    largest = times * below - 1
    if largest < np.iinfo(kind).max:
        # Bits beyond the last whole multiple of the limit would favour some numbers.
        above = np.flatnonzero(bits > largest)
        while above.size:
            bits[above] = _random_bits(rng, kind, above.size)
            above = above[bits[above] > largest]
    return bits // kind(times) if times > 1 else bits


def _random_bits(rng: np.random.Generator, kind: type[np.uint16 | np.uint32], size: int) -> NDArray[np.uint16 | np.uint32]:
    words = rng.integers(0, 1 << 64, size=-(-size * np.iinfo(kind).bits // 64), dtype=np.uint64)
    return words.view(kind)[:size]
