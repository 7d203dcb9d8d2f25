"""How are the scores of many models on single questions added up at once?  Several models side by side in one machine word."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalspec.statistics.arguments import IntArray

Totals = NDArray[np.int32 | np.int64]
"""Sums of whole scores, (M, R), in as few bytes as they need."""

_STEPS_AT_ONCE = 255
_BITS_AT_ONCE = 1 << 15


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
        """Return the questions of the patterns that ``which``, (P,), marks."""
        return Urn(self.patterns[which], self.counts[which])

    def total_type(self, size: int) -> type[np.int32 | np.int64]:
        """Return the smaller type that holds the totals of samples of this size."""
        return np.int32 if size * max(1, int(self.patterns.max())) < 1 << 31 else np.int64


@dataclass(frozen=True, slots=True)
class PackedScores:
    """Scores of every question, several models of ``lane`` bits each in a machine word: ``words`` (W, N); ``most`` sums cannot overflow."""

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
        words = np.repeat(padded.view(np.uint64).T, urn.counts, axis=1)
        return cls(words, lane, models, min(_STEPS_AT_ONCE, ((1 << lane) - 1) // largest))

    def add_unpacked(self, sums: NDArray[np.uint64], totals: Totals) -> None:
        """Add sums (W, R) to the first R totals of each model, (M, R or more)."""
        in_word = 64 // self.lane
        for place, word in enumerate(sums):
            apart = word.view(f"u{self.lane // 8}").reshape(-1, in_word)
            for model in range(place * in_word, min(self.models, (place + 1) * in_word)):
                totals[model, : sums.shape[1]] += apart[:, model % in_word].astype(totals.dtype)


class UniformNumbers:
    """An endless supply of whole numbers below a limit, each equally likely; made in large batches, handed out in one reused buffer."""

    def __init__(self, below: int, most: int, rng: np.random.Generator) -> None:
        self._kind = np.uint16 if below <= 1 << 16 else np.uint32
        self._times = (int(np.iinfo(self._kind).max) + 1) // below
        self._largest = self._times * below - 1
        self._rng = rng
        self._left = np.empty(0, dtype=self._kind)
        self._handed = np.empty(most, dtype=np.intp)

    def next(self, count: int) -> NDArray[np.intp]:
        """Return ``count`` numbers, at most as many as agreed; the next call overwrites them."""
        if count > self._left.size:
            self._left = np.concatenate([self._left, self._drawn(max(count, _BITS_AT_ONCE))])
        handed = self._handed[:count]
        np.copyto(handed, self._left[:count], casting="unsafe")
        self._left = self._left[count:]
        return handed

    def _drawn(self, count: int) -> NDArray[np.unsignedinteger]:
        """Draw bits, again where they lie beyond the last whole multiple of the limit, and divide them down to numbers below it."""
        bits = random_bits(self._rng, self._kind, count)
        above = np.flatnonzero(bits > self._largest)
        while above.size:
            bits[above] = random_bits(self._rng, self._kind, above.size)
            above = above[bits[above] > self._largest]
        return np.floor_divide(bits, self._times, out=bits)


def random_bits(rng: np.random.Generator, kind: type[np.unsignedinteger], size: int) -> NDArray[np.unsignedinteger]:
    """Draw unsigned integers of a kind, all their bits random.

    Examples
    --------
    >>> random_bits(np.random.default_rng(1), np.uint16, 3).dtype
    dtype('uint16')
    """
    words = rng.integers(0, 1 << 64, size=-(-size * np.iinfo(kind).bits // 64), dtype=np.uint64)
    return words.view(kind)[:size]
