"""How alike are texts in the words that they use?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from evalspec.statistics.arguments import FloatArray, IntArray, require_count
from evalspec.statistics.eigenvectors import Floats, leading_eigenvectors

_WORD = re.compile(r"\w\w+")
LEAST_TEXTS = 2
"""A word of a single text says nothing of how texts are alike."""

MOST_SHARE = 0.2
"""Nor does a word of more than a fifth of them."""

_SPARE, _TOLERANCE, _MOST_PRODUCTS = 10, 1e-3, 10


@dataclass(frozen=True, slots=True, eq=False)
class WordVectors:
    """Unit vectors of texts, shape (N, d), zeros for a text without a known word; and what names a group of texts by its words."""

    directions: FloatArray
    weights: csr_array
    words: tuple[str, ...]

    def telling_words(self, labels: IntArray, *, count: int) -> tuple[tuple[str, ...], ...]:
        """Return for each group the words with the largest mean weight in it less that in all texts."""
        overall = np.asarray(self.weights.mean(axis=0)).ravel()
        found = []
        for group in range(int(labels.max()) + 1):
            ahead = np.asarray(self.weights[np.flatnonzero(labels == group)].mean(axis=0)).ravel() - overall
            best = np.argsort(-ahead, kind="stable")[:count]
            found.append(tuple(self.words[place] for place in best if ahead[place] > 0.0))
        return tuple(found)


def word_vectors(texts: Sequence[str], *, dimensions: int, rng: np.random.Generator) -> WordVectors:
    """Vectors of texts by their words: TF-IDF and a truncated singular value decomposition (latent semantic analysis).

    Words are runs of letters and digits of at least two characters, in lower case, that stand in at least 2 and at most a fifth of the texts; a
    word's weight is 1 + the logarithm of its count, times ``1 + log((1 + N) / (1 + n))``.

    Parameters
    ----------
    texts
        N texts.
    dimensions
        Singular vectors to keep; fewer where there are fewer texts or words.
    rng
        Where the iteration starts.

    Raises
    ------
    ValueError
        When the texts share too few words, or there are too few of them.

    References
    ----------
    Deerwester et al. (1990), J. Am. Soc. Inf. Sci. 41, 391-407. Salton and Buckley (1988), Inf. Process. Manag. 24, 513-523.

    Examples
    --------
    >>> texts = ["a cell divides", "the cell wall", "a treaty was signed", "the treaty of peace"]
    >>> found = word_vectors(texts, dimensions=2, rng=np.random.default_rng(1)).directions
    >>> round(float(found[0] @ found[1]), 3), round(abs(float(found[0] @ found[3])), 3)
    (0.944, 0.135)
    """
    require_count("dimensions", dimensions, minimum=2)
    weights, words = _weights(texts)
    kept = min(dimensions, len(texts) - _SPARE, len(words) - 1) if len(texts) > 2 * _SPARE else min(dimensions, len(texts) - 1, len(words))
    if kept < 2:
        raise ValueError(f"{len(texts)} texts share {len(words)} words, which is too few for vectors")
    transposed = weights.T.tocsr()

    def product(block: Floats) -> Floats:
        return np.asarray(weights @ (transposed @ block), dtype=np.float32)

    known = np.diff(weights.indptr)[:, None] > 0
    start = np.where(known, rng.standard_normal((len(texts), min(kept + _SPARE, len(texts)))), 0.0)
    found = leading_eigenvectors(product, start, wanted=kept, tolerance=_TOLERANCE, most=_MOST_PRODUCTS)
    placed = found.vectors[:, :kept] * np.sqrt(np.maximum(found.values[:kept], 0.0))
    lengths = np.linalg.norm(placed, axis=1, keepdims=True)
    return WordVectors(np.divide(placed, lengths, out=np.zeros_like(placed), where=known & (lengths > 0.0)), weights, words)


def _weights(texts: Sequence[str]) -> tuple[csr_array, tuple[str, ...]]:
    """Return the TF-IDF rows of unit length, and the word of each column."""
    counted = [Counter(_WORD.findall(text.lower())) for text in texts]
    spread = Counter(word for counts in counted for word in counts)
    words = sorted(word for word, number in spread.items() if LEAST_TEXTS <= number <= max(LEAST_TEXTS, MOST_SHARE * len(texts)))
    place = {word: column for column, word in enumerate(words)}
    rarity = 1.0 + np.log((1.0 + len(texts)) / (1.0 + np.array([spread[word] for word in words])))
    rows = [[(place[word], 1.0 + np.log(count)) for word, count in sorted(counts.items()) if word in place] for counts in counted]
    ends = np.cumsum([0, *(len(row) for row in rows)])
    columns = np.array([column for row in rows for column, _ in row], dtype=np.int64)
    values = np.array([value for row in rows for _, value in row]) * rarity[columns] if columns.size else np.empty(0)
    squares = np.add.reduceat(np.append(values**2, 0.0), ends[:-1]) * (np.diff(ends) > 0) if len(texts) else np.empty(0)
    lengths = np.sqrt(np.repeat(np.where(squares > 0.0, squares, 1.0), np.diff(ends)))
    return csr_array((values / lengths, columns, ends), shape=(len(texts), len(words))), tuple(words)
