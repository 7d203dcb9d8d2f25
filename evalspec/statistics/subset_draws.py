"""How are many samples without replacement drawn: which totals do models have on smaller versions of a set of questions?

Every subset of the size asked for is equally likely, so counts of response patterns are multivariate hypergeometric. Where there are
few patterns, the count of each is drawn in turn; where there are many, the questions themselves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evalspec.statistics.packed_scores import PackedScores, Totals, Urn, uniform_numbers

_NUMBERS_AT_ONCE = 1 << 22


def draw_without_replacement(urn: Urn, size: int, rows: int, rng: np.random.Generator) -> Totals:
    """Sum the scores of ``size`` different questions, for ``rows`` samples: shape (M, rows).

    Raises
    ------
    ValueError
        When there are not that many questions.

    References
    ----------
    Johnson, Kotz and Balakrishnan (1997), Discrete Multivariate Distributions, chapter 39 (multivariate hypergeometric).

    Examples
    --------
    >>> draw_without_replacement(Urn(np.array([[1, 0], [1, 1]]), np.array([3, 2])), 5, 1, np.random.default_rng(1))
    array([[5],
           [2]])
    """
    total = urn.questions
    if not 0 <= size <= total:
        raise ValueError(f"size must lie between 0 and {total}; got {size}")
    if size > total // 2:
        # What is left out is the smaller subset.
        return np.asarray((urn.counts @ urn.patterns)[:, None] - draw_without_replacement(urn, total - size, rows, rng))
    by_question = size < urn.counts.size
    step = max(1, _NUMBERS_AT_ONCE // (size if by_question else urn.counts.size)) if size else rows
    parts = [min(step, rows - start) for start in range(0, rows, step)]
    if by_question:
        packed = PackedScores.of(urn)
        return np.concatenate([_summed(packed, _subsets(len(packed.words), size, part, rng)) for part in parts], axis=1)
    weights = urn.patterns.T.astype(np.float64)
    counts = (rng.multivariate_hypergeometric(urn.counts, size, size=part, method="marginals") for part in parts)
    return np.concatenate([np.rint(weights @ drawn.T.astype(np.float64)).astype(np.int64) for drawn in counts], axis=1)


def _subsets(total: int, size: int, rows: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Draw subsets of the places below ``total``, (rows, size): repeated places are drawn again until there are none.

    No place is treated unlike another, so that all subsets are equally likely.
    """
    places = uniform_numbers(total, rows * size, rng).astype(np.int32).reshape(rows, size)
    unsettled = np.arange(rows)
    while unsettled.size:
        part = np.sort(places[unsettled], axis=1)
        again = np.zeros(part.shape, dtype=np.bool_)
        again[:, 1:] = part[:, 1:] == part[:, :-1]
        part[again] = uniform_numbers(total, int(again.sum()), rng)
        places[unsettled] = part
        unsettled = unsettled[again.any(axis=1)]
    return places


def _summed(packed: PackedScores, places: NDArray[np.int32]) -> NDArray[np.int64]:
    """Add up the scores at the places of each row, (M, rows)."""
    totals = np.zeros((packed.models, len(places)), dtype=np.int64)
    for start in range(0, places.shape[1], packed.most):
        index = places[:, start : start + packed.most]
        packed.add(index.ravel(), np.full(len(index), index.shape[1]), totals)
    return totals
