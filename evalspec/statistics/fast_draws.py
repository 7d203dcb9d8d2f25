"""How are many samples with replacement drawn from few response patterns, in time that soon stops growing with their size?

Each sample of n questions from N is exactly multinomial. The heaviest pattern is never drawn: it takes what the others leave. Patterns
that few of a sample's questions show are drawn question by question. The others begin with Poisson counts, which are independent of each
other and so come from small tables: given their total they are multinomial, and keeping each sample with the probability that turns its
Poisson total into the binomial one leaves samples of exactly n questions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlog1py, xlogy

from evalspec.statistics.arguments import FloatArray, IntArray
from evalspec.statistics.packed_scores import PackedScores, Totals, Urn, uniform_numbers
from evalspec.statistics.tabled_counts import CountLaws, TabledCounts

_COUNTED_FROM = 2.5
"""Patterns that a sample is expected to show at least so often are counted; drawing their questions singly would take longer."""

_FEWEST_COUNTED = 40.0
"""Nothing is counted unless that spares a sample so many single questions."""

_FEWEST_KEPT = 0.2
"""Nothing is counted where a smaller share of the samples would be kept."""

_LARGEST_MEAN = 100_000.0
"""Counts of larger means would need long tables, mostly remainder."""

_SINGLES_PER_PATTERN = 32
"""Single questions that take as long as one binomial count."""

_MOST_BITS = 16
_LARGEST_FILLING = 1 / 16
"""Most of the heaviest pattern's questions that may be drawn singly, only to fill up a power of two."""

_NUMBERS_AT_ONCE = 1 << 19
"""Random numbers that are drawn together: calls cost little, and memory stays bounded."""


def draw_with_replacement(urn: Urn, size: int, rows: int, rng: np.random.Generator) -> Totals:
    """Sum the scores of ``size`` questions drawn with replacement, for ``rows`` samples: shape (M, rows).

    References
    ----------
    Johnson, Kotz and Balakrishnan (1997), Discrete Multivariate Distributions, chapter 35 (Poisson counts given their total).
    Marsaglia (1963), Commun. ACM 6, 37-38 (tables of discrete distributions).

    Examples
    --------
    >>> urn = Urn(np.array([[1, 0], [1, 1]]), np.array([3, 2]))
    >>> draw_with_replacement(urn, 7, 3, np.random.default_rng(1))[0].tolist()
    [7, 7, 7]
    """
    totals: Totals = np.zeros((urn.patterns.shape[1], rows), dtype=urn.total_type(size))
    often = _counted(urn, size)
    if not often.any() and size > _SINGLES_PER_PATTERN * urn.counts.size:
        _add_binomial_counts(urn, size, totals, rng)
        return totals
    classes = _Classes.of(urn, size, often)
    if often.any():
        drawn, rare = _add_poisson_counts(classes, size, totals, rng)
    else:
        drawn = rare = _binomial(size, classes.share, rows, rng)
    if classes.heaviest.any():
        totals += np.multiply.outer(classes.heaviest, size - drawn)
    if classes.rare.counts.size:
        _add_singles(classes.rare, rare, totals, rng)
    return totals


def _counted(urn: Urn, size: int) -> NDArray[np.bool_]:
    """Mark the patterns that are worth counting, (P,)."""
    heaviest = int(np.argmax(urn.counts))
    means = urn.counts * (size / urn.questions)
    often = means >= _COUNTED_FROM
    often[heaviest] = False
    kept = (int(urn.counts[heaviest]) / urn.questions) ** 0.5
    worth = kept >= _FEWEST_KEPT and means[often].sum() >= _FEWEST_COUNTED and means[often].max() <= _LARGEST_MEAN
    return often if worth else np.zeros_like(often)


@dataclass(frozen=True, slots=True)
class _Classes:
    """The patterns of an urn: the ``heaviest`` (M,), those that come ``often`` (P, M), and ``rare`` ones; with their means in a sample.

    ``share`` is the part of all questions that is not left to the heaviest.
    """

    heaviest: IntArray
    often: IntArray
    often_means: FloatArray
    rare: Urn
    rare_mean: float
    share: float

    @classmethod
    def of(cls, urn: Urn, size: int, often: NDArray[np.bool_]) -> _Classes:
        """Sort the patterns of an urn when some of them are counted."""
        place = int(np.argmax(urn.counts))
        heaviest = np.arange(urn.counts.size) == place
        others = urn.among(~often & ~heaviest)
        rare, filling = _filled_up(others, urn.among(heaviest))
        per_question = size / urn.questions
        means = np.asarray(urn.counts[often] * per_question, dtype=np.float64)
        left = (int(urn.counts[place]) - filling) / urn.questions
        return cls(urn.patterns[place], urn.patterns[often], means, rare, (others.questions + filling) * per_question, 1.0 - left)


def _filled_up(rare: Urn, heaviest: Urn) -> tuple[Urn, float]:
    """Fill copies of rare questions up to a power of two, which random bits reach evenly, with a little of the heaviest pattern.

    Return the urn, and how many questions of the heaviest pattern it has taken.
    """
    questions = rare.questions
    for bits in range((questions - 1).bit_length(), _MOST_BITS + 1) if questions else ():
        copies, blank = divmod(1 << bits, questions)
        if blank <= _LARGEST_FILLING * copies * heaviest.questions:
            return Urn(np.vstack([rare.patterns, heaviest.patterns]), np.append(rare.counts * copies, blank)), blank / copies
    return rare, 0.0


def _binomial(size: int, share: float, rows: int, rng: np.random.Generator) -> IntArray:
    supply = TabledCounts(CountLaws.binomial(size, share), np.zeros(1, dtype=np.int64), rng)
    return np.concatenate([supply.next(min(supply.most, rows - start))[0].astype(np.int64) for start in range(0, rows, supply.most)])


def _add_poisson_counts(classes: _Classes, size: int, totals: Totals, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw Poisson counts of patterns and of all rare questions together, keep each sample with its probability, and add up the patterns.

    Return how many questions of each sample are not left to the heaviest pattern, and how many of these are rare, (R,) each.
    """
    rows = totals.shape[1]
    patterns = np.vstack([classes.often, np.zeros_like(classes.heaviest)])
    kind = np.float32 if size * max(1, int(patterns.max())) < 1 << 24 else np.float64  # whole numbers that add up exactly
    weights = np.vstack([patterns.T, np.ones(len(patterns))]).astype(kind)
    means, law = np.unique(np.append(classes.often_means, classes.rare_mean), return_inverse=True)
    supply, accept = TabledCounts(CountLaws.poisson(means), law, rng), _Acceptance(size, classes.share)
    drawn, rare = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64)
    done = 0
    while done < rows:
        counts = supply.next(min(supply.most, int(1.05 * (rows - done) / accept.rate) + 64))
        sums = weights @ counts.astype(kind, copy=False)
        kept = np.flatnonzero(accept(sums[-1], rng))[: rows - done]
        new, taken = slice(done, done + kept.size), sums.take(kept, axis=1)
        totals[:, new], drawn[new], rare[new] = taken[:-1], taken[-1], counts[-1].take(kept)
        done += kept.size
    return drawn, rare


class _Acceptance:
    """With which probability a Poisson total is kept, so that kept totals are binomial of the same mean; ``rate`` is how many are."""

    def __init__(self, size: int, share: float) -> None:
        mean = size * share
        reach = 12.0 * mean**0.5 + 30.0  # beyond it doubles see no probability
        first = max(0, int(mean - reach))
        total = np.arange(first, min(size, int(mean + reach)) + 1, dtype=np.float64)
        # log of the binomial over the Poisson probability, but for what does not depend on the total
        logs = -gammaln(size - total + 1.0) + xlog1py(size - total, -share) - total * np.log(size)
        probability = np.exp(logs - logs.max())
        poisson = np.exp(xlogy(total, mean) - mean - gammaln(total + 1.0))
        self.rate = float(poisson @ probability)
        self._before = first - 1
        self._probability = np.concatenate([[0.0], probability, [0.0]])

    def __call__(self, totals: FloatArray | NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.bool_]:
        """Decide on each total, shape (R,)."""
        place = totals.astype(np.intp)
        place -= self._before
        return np.asarray(rng.random(totals.size) < self._probability.take(place, mode="clip"))


def _add_singles(urn: Urn, taken: IntArray, totals: Totals, rng: np.random.Generator) -> None:
    """Add single questions of an urn to all samples, as many to each as ``taken``, (R,), says."""
    packed = PackedScores.of(urn)
    step = max(1, _NUMBERS_AT_ONCE // max(1, min(packed.most, int(taken.max()))))
    for start in range(0, taken.size, step):
        left = taken[start : start + step]
        while left.any():
            now = np.minimum(left, packed.most)
            places = uniform_numbers(len(packed.words), int(now.sum()), rng)
            packed.add(places.astype(np.int32), now, totals[:, start : start + step])
            left = left - now


def _add_binomial_counts(urn: Urn, size: int, totals: Totals, rng: np.random.Generator) -> None:
    """Add up counts of all patterns that are drawn one after the other, each binomial given those before it."""
    step = max(1, _NUMBERS_AT_ONCE // urn.counts.size)
    for start in range(0, totals.shape[1], step):
        part = totals[:, start : start + step]
        counts = rng.multinomial(size, urn.counts / urn.questions, size=part.shape[1])
        part[:] = np.rint(urn.patterns.T.astype(np.float64) @ counts.T)
