"""How are the scores of many models on single questions added up at once?  Several models side by side in one machine word."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from evalspec.statistics.arguments import IntArray

Totals = NDArray[np.int16 | np.int32 | np.int64]
"""Sums of whole scores, (M, R), in as few bytes as they need."""

_FEWEST_SUMS = 10
"""Scores that a lane must be able to add up before it is emptied."""


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

    def total_type(self, size: int) -> type[np.int16 | np.int32 | np.int64]:
        """Return the smallest type that holds the totals of samples of this size."""
        largest = size * max(1, int(self.patterns.max()))
        return next(kind for kind in (np.int16, np.int32, np.int64) if largest <= np.iinfo(kind).max)


@dataclass(frozen=True, slots=True)
class PackedScores:
    """Scores of every question, those of several models in the lanes of a machine word: ``words`` (N, W); ``most`` sums cannot overflow."""

    words: NDArray[np.int64]
    lane: type[np.uint8 | np.uint16 | np.int64]
    models: int
    most: int

    @classmethod
    def of(cls, urn: Urn) -> PackedScores:
        """Pack the scores of an urn."""
        largest = max(1, int(urn.patterns.max()))
        lane = next(kind for kind in (np.uint8, np.uint16, np.int64) if np.iinfo(kind).max // largest >= _FEWEST_SUMS)
        models, in_word = urn.patterns.shape[1], 8 // np.dtype(lane).itemsize
        padded = np.zeros((len(urn.patterns), -(-models // in_word) * in_word), dtype=lane)
        padded[:, :models] = urn.patterns
        return cls(np.repeat(padded.view(np.int64), urn.counts, axis=0), lane, models, int(np.iinfo(lane).max) // largest)

    def add(self, places: NDArray[np.int32], taken: IntArray, totals: Totals) -> None:
        """Add scores to the totals of samples, (M, R), each of which takes as many of the places, in turn, as ``taken``, (R,), says."""
        bounds = np.zeros(taken.size + 1, dtype=np.int32)
        np.cumsum(taken, out=bounds[1:])
        drawn = csr_array((np.ones(places.size, dtype=np.int64), places, bounds), shape=(taken.size, len(self.words)))
        totals += (drawn @ self.words).view(self.lane)[:, : self.models].T


def uniform_numbers(below: int, count: int, rng: np.random.Generator) -> NDArray[np.unsignedinteger]:
    """Draw whole numbers below a limit of at most 2**32, each equally likely; fastest below a power of two.

    Examples
    --------
    >>> uniform_numbers(1, 3, np.random.default_rng(1))
    array([0, 0, 0], dtype=uint16)
    """
    kind = np.uint16 if below <= 1 << 16 else np.uint32
    most = int(np.iinfo(kind).max)
    times = min(most, (most + 1) // below)
    bits = _random_bits(rng, kind, count)
    if times * below <= most:
        # Bits beyond the last whole multiple of the limit would favour some numbers.
        above = np.flatnonzero(bits >= times * below)
        while above.size:
            bits[above] = _random_bits(rng, kind, above.size)
            above = above[bits[above] >= times * below]
    bits //= kind(times)
    return bits


def _random_bits(rng: np.random.Generator, kind: type[np.unsignedinteger], size: int) -> NDArray[np.unsignedinteger]:
    words = rng.integers(0, 1 << 64, size=-(-size * np.iinfo(kind).bits // 64), dtype=np.uint64)
    return words.view(kind)[:size]
