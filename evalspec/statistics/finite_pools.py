"""What changes when the questions asked are a large part of all that there are?

Assumption: questions were drawn from the pool without replacement, each set of them equally likely.
"""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from evalspec.statistics.arguments import require_count, require_fraction, require_scores
from evalspec.statistics.binomials import most_in_urn
from evalspec.statistics.proportions import Interval


def finite_correction(questions: int, pool: int) -> float:
    """Factor sqrt(1 - n / N) for a standard error when the target is this pool, not a population that it stands for.

    Raises
    ------
    ValueError
        When more questions were asked than the pool holds, or none.

    References
    ----------
    Cochran (1977), Sampling Techniques, 3rd ed., section 2.6.

    Examples
    --------
    >>> round(finite_correction(2000, 14042), 3)
    0.926
    """
    require_count("questions", questions, minimum=1)
    if require_count("pool", pool) < questions:
        raise ValueError(f"questions must not exceed the pool; got {questions} of {pool}")
    return math.sqrt(1.0 - questions / pool)


def pool_clopper_pearson(successes: int, *, questions: int, pool: int, level: float = 0.95) -> Interval:
    """Clopper and Pearson's exact interval of the share right in a pool, of which a simple random part was asked: covers at least ``level``.

    Parameters
    ----------
    successes, questions, pool
        Right answers, questions asked, and questions that there are.
    level
        Two-sided confidence level, in (0, 1).

    Returns
    -------
    Interval
        The shares of the pool that neither hypergeometric tail rejects at ``(1 - level) / 2``, and the share right of those asked, which is none of
        a pool's shares and may lie beside them; those that the answers allow, when all were asked.

    Raises
    ------
    ValueError
        For impossible counts or level.

    References
    ----------
    Clopper and Pearson (1934), Biometrika 26, 404-413, here with hypergeometric tails: Cochran (1977), Sampling Techniques, 3rd ed., section 3.6.

    Examples
    --------
    >>> interval = pool_clopper_pearson(40, questions=50, pool=100)
    >>> round(interval.low, 2), round(interval.high, 2)
    (0.71, 0.87)
    """
    asked = require_count("questions", questions, minimum=max(1, require_count("successes", successes)))
    if require_count("pool", pool) < asked:
        raise ValueError(f"questions must not exceed the pool; got {asked} of {pool}")
    tail = (1.0 - require_fraction("level", level)) / 2.0
    most_wrong, most_right = (most_in_urn(seen, drawn=asked, urn=pool, tail=tail) for seen in (asked - successes, successes))
    share = successes / asked
    return Interval(min(share, 1.0 - most_wrong / pool), max(share, most_right / pool))


def subsample_deviation(scores: ArrayLike, size: int) -> float:
    """Standard deviation of the mean of ``size`` scores drawn without replacement from these.

    At half of an even number of scores it is exactly their standard error by the central limit theorem.

    Raises
    ------
    ValueError
        With fewer than two scores, or a size outside 1 to their number.

    References
    ----------
    Cochran (1977), Sampling Techniques, 3rd ed., theorem 2.2.

    Examples
    --------
    >>> round(subsample_deviation([1, 1, 1, 0], 2), 4)
    0.25
    """
    values = require_scores("scores", scores, minimum=2)
    if require_count("size", size, minimum=1) > values.size:
        raise ValueError(f"size must not exceed the number of scores; got {size} of {values.size}")
    return float(values.std(ddof=1)) / math.sqrt(size) * finite_correction(size, values.size)
