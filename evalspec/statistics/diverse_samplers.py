"""Which questions differ most from each other, by what other models made of them?

A projection determinantal point process: questions that lie close repel each other, and each question's own chance to be chosen is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement

import numpy as np
from numpy.polynomial import legendre

from evalspec.statistics.arguments import FloatArray, IntArray
from evalspec.statistics.selections import Candidates, Choice, Chooser, Selection, evenly

COMPONENTS = 4
OUTER_SHARE = 0.01
_REACH = 0.99
_INDEPENDENT = 1e-7
_HIGHEST = 60
_TRIED = 3


def diversity(candidates: Candidates, rng: np.random.Generator) -> Chooser:
    """Choose questions by a determinantal point process on orthogonal polynomials of their four principal components.

    The estimate divides each score by the question's chance to be chosen, weights scaled to sum to one; components beyond the middle 98 % are
    drawn in to it, so that every question has a chance. The published form drops those questions and takes the plain mean, although chances
    differ between questions.

    References
    ----------
    Bardenet, Ghosh and Lin (2021), NeurIPS 34, arXiv:2112.06007 (the process). Yauney, Warraich and Swayamdipta (2026), arXiv:2510.08730 (the
    published form).

    Examples
    --------
    >>> trust = np.random.default_rng(1).random((9, 40))
    >>> choice = diversity(Candidates(np.zeros(40, dtype=int), trust), np.random.default_rng(2))(6)
    >>> choice.own.questions.size, round(float(choice.own.weights.sum()), 9), choice.published.questions.size
    (6, 1.0, 6)
    """
    places = principal_components(candidates.trust.T, COMPONENTS)
    low, high = np.quantile(places, (OUTER_SHARE, 1.0 - OUTER_SHARE), axis=0)
    inside = np.flatnonzero(np.all((places >= low) & (places <= high), axis=1))

    def choose(size: int) -> Choice:
        chosen, chances = projection_process(np.clip(places, low, high), size, rng)
        inverse = 1.0 / chances[chosen]
        own = Selection(chosen, inverse / inverse.sum())
        if size > inside.size:
            return Choice(own)
        return Choice(own, evenly(inside[projection_process(places[inside], size, rng)[0]]))

    return choose


def principal_components(points: FloatArray, count: int) -> FloatArray:
    """Return the coordinates of points, (N, D), on their first principal components, (N, count or fewer).

    References
    ----------
    Jolliffe (2002), Principal Component Analysis, 2nd ed.

    Examples
    --------
    >>> np.abs(principal_components(np.array([[0.0, 0.0], [2.0, 0.0], [4.0, 0.0]]), 2)).round(6).tolist()
    [[2.0], [0.0], [2.0]]
    """
    centred = points - points.mean(axis=0)
    left, lengths, _ = np.linalg.svd(centred, full_matrices=False)
    kept = int(np.sum(lengths[:count] > 1e-9 * max(float(lengths[0]), 1e-300)))
    return np.asarray(left[:, :kept] * lengths[:kept])


def projection_process(points: FloatArray, size: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """Draw ``size`` points of a projection determinantal point process on polynomials; also give every point's chance to be drawn, (N,).

    The first ``size`` products of Legendre polynomials, by total degree, are made orthonormal over the points.

    Raises
    ------
    ValueError
        When the points do not carry as many independent polynomials.

    References
    ----------
    Hough, Krishnapur, Peres and Virag (2006), Probab. Surv. 3, 206-229, doi:10.1214/154957806000000078 (drawing). Bardenet, Ghosh and Lin (2021),
    NeurIPS 34, arXiv:2112.06007.

    Examples
    --------
    >>> chosen, chances = projection_process(np.linspace(-1, 1, 9)[:, None], 3, np.random.default_rng(1))
    >>> chosen.size, round(float(chances.sum()), 9)
    (3, 3.0)
    """
    basis = _orthonormal(_scaled(points), size)
    chances = np.sum(basis**2, axis=1)
    left, chosen = chances.copy(), np.empty(size, dtype=np.int64)
    directions = np.empty((size, len(points)))
    for step in range(size):
        total = np.cumsum(np.maximum(left, 0.0))
        place = int(np.searchsorted(total, rng.random() * total[-1], side="right"))
        chosen[step] = place
        direction = basis @ basis[place] - directions[:step].T @ directions[:step, place]
        directions[step] = direction / np.sqrt(left[place])
        left -= directions[step] ** 2
        left[chosen[: step + 1]] = 0.0
    return np.sort(chosen), chances


def _scaled(points: FloatArray) -> FloatArray:
    low, high = points.min(axis=0), points.max(axis=0)
    return np.asarray(_REACH * (2.0 * (points - low) / np.maximum(high - low, 1e-300) - 1.0))


def _orthonormal(points: FloatArray, size: int) -> FloatArray:
    """Return orthonormal columns, (N, size), that span the first independent polynomials."""
    basis = np.empty((len(points), size))
    found = 0
    for column in _polynomials(points):
        rest = column / np.linalg.norm(column)
        for _ in range(2):  # twice is enough
            rest = rest - basis[:, :found] @ (basis[:, :found].T @ rest)
        length = float(np.linalg.norm(rest))
        if length > _INDEPENDENT:
            basis[:, found] = rest / length
            found += 1
        if found == size:
            return basis
    raise ValueError(f"what other models made of the questions tells only {found} of them apart, fewer than the {size} asked for")


def _polynomials(points: FloatArray) -> Iterator[FloatArray]:
    """Yield the values of products of Legendre polynomials by total degree, until there are several times as many as points."""
    count, dimensions = 0, points.shape[1]
    powers = legendre.legvander(points, _HIGHEST)
    for degree in range(_HIGHEST + 1):
        for factors in combinations_with_replacement(range(dimensions), degree):
            times = np.bincount(np.array(factors, dtype=np.int64), minlength=dimensions)
            yield np.asarray(np.prod([np.ones(len(points)), *(powers[:, axis, power] for axis, power in enumerate(times))], axis=0))
            count += 1
        if count > _TRIED * len(points):
            return
