"""How do answer distributions over a large vocabulary, of which the most probable tokens are recorded, fit into few columns?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalspec.statistics.arguments import FloatArray, require_count


@dataclass(frozen=True, slots=True, eq=False)
class TokenTable:
    """Probabilities of some tokens in columns and of all others together in the last one, shape (N, V + 1).

    ``told_apart`` is the mean share of a distribution that does not stand in the last column.
    """

    probabilities: FloatArray
    told_apart: float


def most_probable(tokens: ArrayLike, probabilities: ArrayLike, *, most: int) -> TokenTable:
    """Tell the tokens apart that have the most probability over all questions, and put all others together.

    Merging tokens can only lower a divergence between two distributions, so questions look more alike than they are.

    Parameters
    ----------
    tokens
        Shape (N, K), token ids, negative where a row has fewer than K.
    probabilities
        Shape (N, K), of these tokens; what a row lacks to 1 belongs to tokens that were not recorded.
    most
        Tokens to tell apart, at most.

    Raises
    ------
    ValueError
        For shapes that do not fit, or a row without a token.

    References
    ----------
    Csiszar (1967), Stud. Sci. Math. Hung. 2, 299-318 (divergences of merged events).

    Examples
    --------
    >>> found = most_probable([[7, 3], [7, 9]], [[0.6, 0.3], [0.5, 0.1]], most=2)
    >>> found.probabilities.round(3).tolist(), round(found.told_apart, 3)
    ([[0.3, 0.6, 0.1], [0.0, 0.5, 0.5]], 0.7)
    """
    ids, shares = np.asarray(tokens), np.asarray(probabilities, dtype=np.float64)
    require_count("most", most, minimum=1)
    if ids.ndim != 2 or ids.shape != shares.shape:
        raise ValueError(f"tokens and probabilities must be (questions, tokens); got shapes {ids.shape} and {shares.shape}")
    known = ids >= 0
    if not known.any(axis=1).all():
        raise ValueError("every question needs a token")
    vocabulary, places = np.unique(ids[known], return_inverse=True)
    total = np.bincount(places, shares[known])
    # Tokens of equal probability in the order of their ids, so that nothing hangs on the order of questions.
    ranked = np.lexsort((vocabulary, -np.round(total, 9)))[:most]
    column = np.full(vocabulary.size, ranked.size)
    column[np.sort(ranked)] = np.arange(ranked.size)
    table = np.zeros((len(ids), ranked.size + 1))
    np.add.at(table, (np.nonzero(known)[0], column[places]), shares[known])
    apart = table[:, :-1].sum(axis=1)
    table[:, -1] = np.maximum(1.0 - apart, 0.0)
    return TokenTable(table, float(apart.mean()))
