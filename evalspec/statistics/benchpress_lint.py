"""What looks wrong in a table of scores before anything is predicted from it?

Scales are declared, never told from the scores; scores that cannot be on the declared scale, and benchmarks from which nothing can be learned, are
errors. What only looks odd, and may be true, is a warning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from evalspec.statistics.arguments import FloatArray
from evalspec.statistics.benchpress import FLAT, PERCENT, logits

FEWEST = 3
"""With fewer known scores than this nothing is told about a benchmark."""

GAP = 30.0
"""Points without any score between two groups of scores, which then look like two scales or two polarities."""

LONE_GAP = 50.0
"""Points between a single score and all others."""

GROUP_SHARE = 0.15
TWIN_SHARE = 0.4
TWIN_CELLS = 5

Kind = Literal["outside", "fractions", "constant", "few", "two_groups", "lone", "twins"]
ERRORS: tuple[Kind, ...] = ("outside", "fractions", "constant")


@dataclass(frozen=True, slots=True)
class Flaw:
    """What looks wrong with a benchmark, by column; `number` and `count` say how much, `other` is its twin.

    ``outside``: ``count`` scores beyond the declared scale, the worst of them ``number``. ``fractions``: declared as percentages, and no score is
    above ``number``. ``constant``: all ``count`` scores are one after the logit's ends are cut, three
    at least where the scale ends. ``few``: ``count`` scores. ``two_groups``: a gap of
    ``number`` points, ``count`` scores below it. ``lone``: the score ``number`` stands far from all others. ``twins``: of ``count`` models that
    have both, the share ``number`` has the same score on ``other``.
    """

    kind: Kind
    benchmark: int
    number: float = 0.0
    count: int = 0
    other: int | None = None


def flaws(scores: FloatArray, tops: FloatArray) -> tuple[Flaw, ...]:
    """Return what looks wrong with each benchmark of a table, in the order of its columns, then twins.

    Parameters
    ----------
    scores
        The table (N, D), NaN where there is no score.
    tops
        Declared highest score of each benchmark, (D,), NaN where there is none.

    References
    ----------
    Rules of thumb of this project, tried on the table of Zeng and Papailiopoulos (2026), arXiv:2606.24020.

    Examples
    --------
    >>> [flaw.kind for flaw in flaws(np.array([[0.2], [0.3], [0.4]]), np.array([100.0]))]
    ['fractions', 'constant']
    """
    found = [flaw for column in range(scores.shape[1]) for flaw in _of_column(scores[:, column], float(tops[column]), column)]
    return (*found, *_twins(scores))


def looks_like_fraction(score: float, others: FloatArray) -> bool:
    """Return whether a percentage of at most 1 stands among others that are all above 1, which a fraction written as a percentage would.

    Examples
    --------
    >>> looks_like_fraction(0.7, np.array([60.0, 80.0])), looks_like_fraction(0.7, np.array([0.3, 80.0]))
    (True, False)
    """
    return bool(0.0 < score <= 1.0 and others.size and np.nanmin(others) > 1.0)


def _of_column(column: FloatArray, top: float, place: int) -> Iterator[Flaw]:
    known = np.sort(column[~np.isnan(column)])
    if len(known) < FEWEST:
        yield Flaw("few", place, count=len(known))
    if not known.size:
        return
    outside = known[((known < 0.0) | (known > top)) & ~np.isnan(top)]
    if outside.size:
        yield Flaw("outside", place, float(outside[np.argmax(np.abs(outside - top / 2))]), len(outside))
        return
    if top == PERCENT and 0.0 < known[-1] <= 1.0:
        yield Flaw("fractions", place, float(known[-1]))
    levels = logits(known, np.full(len(known), top))
    if (len(known) >= FEWEST or np.isnan(top)) and levels.std() < FLAT:
        yield Flaw("constant", place, float(known[0]), len(known))
    elif not np.isnan(top) and len(known) >= FEWEST:
        yield from _gaps(known * PERCENT / top, place)


def _gaps(known: FloatArray, place: int) -> Iterator[Flaw]:
    """Yield where scores in points fall into two groups, or one stands alone; ``known`` is sorted."""
    gaps = np.diff(known)
    widest = int(np.argmax(gaps))
    below, above = widest + 1, len(known) - widest - 1
    smaller = min(below, above)
    if gaps[widest] >= GAP and smaller >= 2 and smaller >= GROUP_SHARE * len(known):
        yield Flaw("two_groups", place, float(gaps[widest]), below)
    elif gaps[widest] >= LONE_GAP and smaller == 1:
        yield Flaw("lone", place, float(known[0] if below == 1 else known[-1]), 1)


def _twins(scores: FloatArray) -> Iterator[Flaw]:
    """Yield pairs of benchmarks with the same score of many models: what one hides, the other shows."""
    known = ~np.isnan(scores)
    for one, other in combinations(range(scores.shape[1]), 2):
        both = known[:, one] & known[:, other]
        cells = int(both.sum())
        if cells >= TWIN_CELLS:
            share = float(np.mean(scores[both, one] == scores[both, other]))
            if share >= TWIN_SHARE:
                yield Flaw("twins", one, share, cells, other)
