"""How much nearer are questions to their own group than to the nearest other one?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evalspec.statistics.answer_similarity import Similarity
from evalspec.statistics.arguments import FloatArray, IntArray
from evalspec.statistics.eigenvectors import Floats


def mean_silhouette(sums: FloatArray, labels: IntArray) -> float:
    """Mean silhouette of all questions, from the distances of each question summed over every group.

    Parameters
    ----------
    sums
        Shape (N, k): the distances of a question to all questions of a group, itself included at distance 0.
    labels
        Shape (N,): groups numbered from 0 to k - 1, at least two of them.

    Returns
    -------
    float
        In [-1, 1]; a group of a single question adds 0.

    Raises
    ------
    ValueError
        With a single group, or an empty one.

    References
    ----------
    Rousseeuw (1987), J. Comput. Appl. Math. 20, 53-65, doi:10.1016/0377-0427(87)90125-7.

    Examples
    --------
    >>> distances = np.abs(np.subtract.outer([0.0, 0.1, 5.0, 5.2], [0.0, 0.1, 5.0, 5.2]))
    >>> labels = np.array([0, 0, 1, 1])
    >>> round(mean_silhouette(distances @ np.eye(2)[labels], labels), 4)
    0.9703
    """
    sizes = np.bincount(labels, minlength=sums.shape[1])
    if sums.shape[1] < 2 or sizes.min() == 0:
        raise ValueError(f"silhouettes need at least 2 groups, none of them empty; got sizes {sizes.tolist()}")
    rows = np.arange(labels.size)
    own = sums[rows, labels] / np.maximum(sizes[labels] - 1, 1)
    others = sums / sizes
    others[rows, labels] = np.inf
    nearest = others.min(axis=1)
    larger = np.maximum(own, nearest)
    values = np.divide(nearest - own, larger, out=np.zeros_like(larger), where=larger > 0)
    return float(np.where(sizes[labels] > 1, values, 0.0).mean())


def similarity_silhouettes(similarity: Similarity, labelings: Sequence[IntArray]) -> tuple[float, ...]:
    """Mean silhouettes by the distance 1 - similarity, of several groupings of the same questions, in one pass over all pairs.

    Examples
    --------
    >>> from evalspec.statistics.answer_similarity import answer_similarity
    >>> alike = answer_similarity([[[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8]]])
    >>> round(similarity_silhouettes(alike, [np.array([0, 0, 1, 1])])[0], 3)
    0.943
    """
    marked = [_indicator(labels) for labels in labelings]
    sums = similarity.times(np.concatenate(marked, axis=1))
    found, start = [], 0
    for labels, indicator in zip(labelings, marked, strict=True):
        width = indicator.shape[1]
        distances = indicator.sum(axis=0) - sums[:, start : start + width].astype(np.float64)
        found.append(mean_silhouette(distances, labels))
        start += width
    return tuple(found)


def divergence_silhouettes(similarity: Similarity, labelings: Sequence[IntArray]) -> tuple[float, ...]:
    """Mean silhouettes by the divergence itself, in closed form: sums over groups need no pairs.

    Examples
    --------
    >>> from evalspec.statistics.answer_similarity import answer_similarity
    >>> alike = answer_similarity([[[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8]]])
    >>> round(divergence_silhouettes(alike, [np.array([0, 0, 1, 1])])[0], 3)
    0.967
    """
    return tuple(mean_silhouette(np.maximum(similarity.divergences_to(_indicator(labels)), 0.0), labels) for labels in labelings)


def cosine_silhouettes(directions: FloatArray, labelings: Sequence[IntArray]) -> tuple[float, ...]:
    """Mean silhouettes by the cosine distance of unit vectors (or zeros), shape (N, d), of several groupings, in closed form.

    Examples
    --------
    >>> directions = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [-0.6, 0.8]])
    >>> round(cosine_silhouettes(directions, [np.array([0, 0, 1, 1])])[0], 3)
    0.78
    """
    found = []
    for labels in labelings:
        indicator = _indicator(labels).astype(np.float64)
        sums = indicator.sum(axis=0) - directions @ (directions.T @ indicator)
        # A question is at no distance from itself, also one without words, whose vector is 0.
        sums[np.arange(labels.size), labels] -= 1.0 - np.sum(directions**2, axis=1)
        found.append(mean_silhouette(np.maximum(sums, 0.0), labels))
    return tuple(found)


def _indicator(labels: IntArray) -> Floats:
    return np.asarray(labels[:, None] == np.arange(int(labels.max()) + 1), dtype=np.float32)
