"""Into which groups do similarities part questions, for every number of groups at once?

Spectral clustering by the symmetric normalised Laplacian without self-similarities. The leading eigenvectors for different numbers of
groups are nested, so they are computed once, from products with the similarities alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from evalspec.statistics.answer_similarity import Similarity
from evalspec.statistics.arguments import FloatArray, IntArray
from evalspec.statistics.eigenvectors import Floats, leading_eigenvectors
from evalspec.statistics.kmeans import in_order, kmeans

LANDMARKS = 500
SPARE = 4
TOLERANCE = 1e-4
MOST_PRODUCTS = 15
WHOLE = 1e-5
"""An eigenvalue this near to 1 stands for a part of the questions that is similar to no other part."""


@dataclass(frozen=True, slots=True, eq=False)
class SpectralCoordinates:
    """Eigenvalues of the normalised similarities in descending order and, per question, its coordinates, shape (N, r).

    ``parts`` is how many parts have no similarity with each other; 1 where all questions hang together. ``residual`` is the largest length of
    what eigenvectors miss.
    """

    values: FloatArray
    points: FloatArray
    vectors: FloatArray
    parts: int
    residual: float


def spectral_coordinates(similarity: Similarity, *, count: int, rng: np.random.Generator) -> SpectralCoordinates:
    """Leading ``count`` eigenvectors of ``D^-1/2 (S - I) D^-1/2``, and each divided by the square root of the degrees.

    Raises
    ------
    ValueError
        With fewer questions than coordinates, or where a question is similar to no other.

    References
    ----------
    Shi and Malik (2000), IEEE Trans. Pattern Anal. Mach. Intell. 22, 888-905. von Luxburg (2007), Stat. Comput. 17, 395-416. Fowlkes, Belongie,
    Chung and Malik (2004), IEEE Trans. Pattern Anal. Mach. Intell. 26, 214-225 (the start from landmarks).

    Examples
    --------
    >>> from evalspec.statistics.answer_similarity import answer_similarity
    >>> table = np.array([[0.8, 0.1, 0.1]] * 30 + [[0.1, 0.1, 0.8]] * 30)
    >>> spectral_coordinates(answer_similarity([table]), count=2, rng=np.random.default_rng(1)).parts
    1
    """
    questions = similarity.questions
    if questions < count + SPARE:
        raise ValueError(f"{count} coordinates need at least {count + SPARE} questions; got {questions}")
    degrees = similarity.times(np.ones((questions, 1), dtype=np.float32))[:, 0].astype(np.float64) - 1.0
    if degrees.min() <= questions * 1e-7:
        raise ValueError("a question is similar to no other, so similarities make no groups of it")
    scale = (1.0 / np.sqrt(degrees)).astype(np.float32)[:, None]

    def product(block: Floats) -> Floats:
        scaled = scale * block
        return np.asarray(scale * (similarity.times(scaled) - scaled))

    start = _start(similarity, scale, count + SPARE, rng)
    found = leading_eigenvectors(product, start, wanted=count, tolerance=TOLERANCE, most=MOST_PRODUCTS)
    vectors = found.vectors[:, :count]
    parts = int(np.count_nonzero(found.values > 1.0 - WHOLE))
    return SpectralCoordinates(found.values[:count], vectors / np.sqrt(degrees)[:, None], vectors, parts, float(found.residuals[:count].max()))


def spectral_groups(coordinates: SpectralCoordinates, numbers: Sequence[int], *, starts: int, rng: np.random.Generator) -> tuple[IntArray, ...]:
    """Groups by k-means of the first k coordinates, for each number k.

    Examples
    --------
    >>> from evalspec.statistics.answer_similarity import answer_similarity
    >>> table = np.array([[0.8, 0.1, 0.1]] * 30 + [[0.1, 0.1, 0.8]] * 30)
    >>> found = spectral_coordinates(answer_similarity([table]), count=2, rng=np.random.default_rng(1))
    >>> np.bincount(spectral_groups(found, [2], starts=3, rng=np.random.default_rng(1))[0])
    array([30, 30])
    """
    # One scale for all coordinates: their common size is what squared distances in single steps would otherwise vanish in.
    points = coordinates.points / np.abs(coordinates.points).max()
    return tuple(kmeans(points[:, :number], number, starts=starts, rng=rng).labels for number in numbers)


def qr_groups(coordinates: SpectralCoordinates, number: int) -> IntArray:
    """Groups read off the eigenvectors by a pivoted QR decomposition: no start, no chance.

    References
    ----------
    Damle, Minden and Ying (2019), Inf. Inference 8, 181-203, doi:10.1093/imaiai/iay008.

    Examples
    --------
    >>> from evalspec.statistics.answer_similarity import answer_similarity
    >>> table = np.array([[0.8, 0.1, 0.1]] * 30 + [[0.1, 0.1, 0.8]] * 30)
    >>> found = spectral_coordinates(answer_similarity([table]), count=2, rng=np.random.default_rng(1))
    >>> np.bincount(qr_groups(found, 2))
    array([30, 30])
    """
    vectors = coordinates.vectors[:, :number]
    _, _, pivots = qr(vectors.T, mode="economic", pivoting=True)
    left, _, right = np.linalg.svd(vectors[pivots[:number]].T)
    return in_order(np.abs(vectors @ (left @ right)).argmax(axis=1))


def _start(similarity: Similarity, scale: Floats, width: int, rng: np.random.Generator) -> FloatArray:
    """Return a block near the leading eigenvectors, from the similarities of all questions to a few landmarks (Nystrom)."""
    questions = similarity.questions
    chosen = np.sort(rng.permutation(questions)[: min(LANDMARKS, max(width, questions // 4))])
    columns = similarity.columns(chosen)
    heights, directions = np.linalg.eigh(columns[chosen].astype(np.float64))
    kept = heights > heights[-1] * 1e-6
    mapped = (scale * columns).astype(np.float64) @ (directions[:, kept] / np.sqrt(heights[kept]))
    block = mapped @ np.linalg.eigh(mapped.T @ mapped)[1][:, ::-1][:, :width]
    missing = width - block.shape[1]
    return np.concatenate([block, rng.standard_normal((questions, missing))], axis=1) if missing else block
