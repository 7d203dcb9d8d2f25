"""Which are the leading eigenvectors of a symmetric matrix that is known by its products alone?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalspec.statistics.arguments import FloatArray

Floats = NDArray[np.float32]
"""Single precision, which is enough for blocks of vectors and twice as fast."""


@dataclass(frozen=True, slots=True, eq=False)
class Leading:
    """Eigenvalues in descending order, shape (r,), orthonormal vectors, shape (N, r), the length of each residual, and products taken."""

    values: FloatArray
    vectors: FloatArray
    residuals: FloatArray
    products: int


def leading_eigenvectors(product: Callable[[Floats], Floats], start: FloatArray, *, wanted: int, tolerance: float, most: int) -> Leading:
    """Leading eigenvectors of a symmetric matrix by block Krylov spaces with full orthogonalisation and Rayleigh and Ritz's method.

    Parameters
    ----------
    product
        Gives the matrix times a block of columns, shape (N, s).
    start
        Block that the space begins with, shape (N, s); the nearer to the wanted vectors, the fewer products.
    wanted
        How many vectors must have converged, at most s.
    tolerance
        Length of a residual, over the largest eigenvalue, at which a vector counts as converged.
    most
        Products after which the best vectors so far are given, converged or not.

    Raises
    ------
    ValueError
        When more vectors are wanted than the block has.

    References
    ----------
    Golub and Underwood (1977), in Mathematical Software III, 361-377. Musco and Musco (2015), NeurIPS 28, arXiv:1504.05477.

    Examples
    --------
    >>> matrix = np.diag([3.0, 2.0, 1.0, 0.5, 0.25, 0.1]).astype(np.float32)
    >>> start = np.random.default_rng(1).standard_normal((6, 2))
    >>> leading_eigenvectors(lambda block: matrix @ block, start, wanted=2, tolerance=1e-4, most=9).values.round(3).tolist()
    [3.0, 2.0]
    """
    if not 0 < wanted <= start.shape[1]:
        raise ValueError(f"between 1 and {start.shape[1]} vectors can be wanted from such a block; got {wanted}")
    basis, images = np.empty((len(start), 0)), np.empty((len(start), 0))
    block = _orthonormal(start.astype(np.float64), basis)
    for taken in range(1, most + 1):
        image = product(block.astype(np.float32)).astype(np.float64)
        basis, images = np.concatenate([basis, block], axis=1), np.concatenate([images, image], axis=1)
        found = _ritz(basis, images, start.shape[1], taken)
        block = _orthonormal(image, basis)
        if taken == most or found.residuals[:wanted].max() <= tolerance * found.values[0] or not block.shape[1]:
            break
    return found


def _ritz(basis: FloatArray, images: FloatArray, count: int, taken: int) -> Leading:
    projected = basis.T @ images
    values, coordinates = np.linalg.eigh((projected + projected.T) / 2.0)
    leading = coordinates[:, ::-1][:, :count]
    heights, vectors = values[::-1][:count], basis @ leading
    return Leading(heights, vectors, np.linalg.norm(images @ leading - vectors * heights, axis=0), taken)


def _orthonormal(block: FloatArray, basis: FloatArray) -> FloatArray:
    """Return an orthonormal basis of what the block adds to a basis; directions that rounding alone makes are dropped."""
    lengths = np.linalg.norm(block, axis=0)
    kept = block[:, lengths > 0.0] / lengths[lengths > 0.0]
    for _ in range(2):
        kept = kept - basis @ (basis.T @ kept)
    left, singular, _ = np.linalg.svd(kept, full_matrices=False)
    left = left[:, singular > 1e-5]
    return np.asarray(left - basis @ (basis.T @ left))
