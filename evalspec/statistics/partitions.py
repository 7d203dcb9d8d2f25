"""How far do two groupings of the same questions agree, and how stable is a grouping that was induced?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalspec.statistics.arguments import IntArray

LARGEST_HALF = 1000


@dataclass(frozen=True, slots=True, eq=False)
class SweptGroupings:
    """Groupings for several numbers of groups, and their mean silhouettes by the distance that chooses and, where there is one, by another."""

    numbers: tuple[int, ...]
    labels: tuple[IntArray, ...]
    silhouettes: tuple[float, ...]
    others: tuple[float, ...] = ()

    @property
    def best(self) -> int:
        """Position of the largest silhouette, the smallest number of groups where several are level."""
        return int(np.argmax(self.silhouettes))


Grouper = Callable[[NDArray[np.intp], int, np.random.Generator], IntArray]
"""Groups some of the questions anew into so many groups."""


@dataclass(frozen=True, slots=True)
class HalvesAgreement:
    """Adjusted Rand indices between a grouping and new ones of random halves of the questions."""

    mean: float
    least: float
    indices: tuple[float, ...]


def adjusted_rand(first: Sequence[object] | NDArray[np.generic], second: Sequence[object] | NDArray[np.generic]) -> float:
    """Adjusted Rand index: the share of pairs on which two groupings agree, 0 for chance and 1 for the same groups.

    Two groupings that each put all questions together, or all apart, agree fully.

    Raises
    ------
    ValueError
        When one has more labels than the other, or there is none.

    References
    ----------
    Hubert and Arabie (1985), J. Classif. 2, 193-218, doi:10.1007/BF01908075.

    Examples
    --------
    >>> adjusted_rand([0, 0, 1, 1], [5, 5, 3, 3]), round(adjusted_rand([0, 0, 1, 1], [0, 1, 0, 1]), 3)
    (1.0, -0.5)
    """
    (_, a), (_, b) = (np.unique(np.asarray(labels), return_inverse=True) for labels in (first, second))
    if a.shape != b.shape or not a.size:
        raise ValueError(f"two groupings of the same questions are needed; got {a.size} and {b.size} labels")
    table = np.bincount(a * (int(b.max()) + 1) + b).astype(np.float64)
    together, in_first, in_second = (float(np.sum(sizes * (sizes - 1.0))) for sizes in (table, np.bincount(a), np.bincount(b)))
    pairs = a.size * (a.size - 1.0)
    by_chance = in_first * in_second / pairs if pairs else 0.0
    largest = (in_first + in_second) / 2.0
    return 1.0 if largest == by_chance else (together - by_chance) / (largest - by_chance)


def agreement_of_halves(labels: IntArray, group: Grouper, *, halves: int, rng: np.random.Generator) -> HalvesAgreement:
    """Group random halves of the questions anew and compare: halves hold each question once, which a bootstrap would not.

    Halves hold at most 1,000 questions.

    References
    ----------
    Ben-Hur, Elisseeff and Guyon (2002), Pac. Symp. Biocomput. 7, 6-17.

    Examples
    --------
    >>> labels = np.repeat([0, 1], 50)
    >>> agreement_of_halves(labels, lambda chosen, number, rng: labels[chosen], halves=3, rng=np.random.default_rng(1)).least
    1.0
    """
    size = min(labels.size // 2, LARGEST_HALF)
    found = []
    for _ in range(halves):
        chosen = np.sort(rng.permutation(labels.size)[:size])
        found.append(adjusted_rand(group(chosen, int(labels.max()) + 1, rng), labels[chosen]))
    return HalvesAgreement(float(np.mean(found)), min(found), tuple(found))
