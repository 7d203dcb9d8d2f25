"""Which questions stand for all, by how other models' answers to them go together?

Anchor points: questions whose answers correlate are taken to say the same, and one question, the medoid, stands for each group of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evalspec.statistics.arguments import FloatArray
from evalspec.statistics.clustering import medoids
from evalspec.statistics.selections import Candidates, Choice, Chooser, Selection

_UNIT = 1_000_000


def anchor_points(candidates: Candidates, rng: np.random.Generator) -> Chooser:
    """Choose medoids under one minus the correlation of two questions over other models; each counts by the share of questions nearest to it.

    The estimate adds up scores. The published one adds up the confidence of the judged model instead, which estimates its mean confidence and
    stops falling towards its score however many questions are asked.

    References
    ----------
    Vivek, Ethayarajh, Yang and Kiela (2024), EACL, 1576-1601, arXiv:2309.08638.

    Examples
    --------
    >>> trust = np.array([[1.0, 0.9, 0.1, 0.2], [0.0, 0.2, 0.9, 1.0], [0.5, 0.4, 0.6, 0.5]])
    >>> choice = anchor_points(Candidates(np.zeros(4, dtype=int), trust), np.random.default_rng(1))(2)
    >>> choice.own.weights.tolist(), len(set(choice.own.questions // 2))
    ([0.5, 0.5], 2)
    """
    distances = correlation_distances(candidates.trust)

    def choose(size: int) -> Choice:
        chosen = medoids(distances, size, rng)
        nearest = np.argmin(distances[:, chosen], axis=1)
        weights = np.bincount(nearest, minlength=size) / candidates.questions
        published = None if candidates.confidence is None else Selection(chosen, weights, of_confidence=True)
        return Choice(Selection(chosen, weights), published)

    return choose


def correlation_distances(values: FloatArray) -> NDArray[np.int32]:
    """Return one minus the correlation of every two columns, in millionths, (N, N); a column that never changes goes with no other.

    References
    ----------
    Pearson's product-moment correlation.

    Examples
    --------
    >>> correlation_distances(np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])).tolist()
    [[0, 2000000, 1000000], [2000000, 0, 1000000], [1000000, 1000000, 0]]
    """
    centred = values - values.mean(axis=0)
    lengths = np.sqrt(np.sum(centred**2, axis=0))
    scaled = np.divide(centred, lengths, out=np.zeros_like(centred), where=lengths > 1e-9)
    distances = np.rint((1.0 - scaled.T @ scaled) * _UNIT).astype(np.int32)
    np.fill_diagonal(distances, 0)
    return np.asarray(np.maximum(distances, 0), dtype=np.int32)
