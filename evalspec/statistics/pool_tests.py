"""Are two models equally accurate on a finite pool, given their answers to a random part of it?

Assumption: the questions asked are a simple random sample of the pool, without replacement. Null hypothesis: in the pool as many questions are
answered rightly by the first model alone as by the second alone.
"""

from __future__ import annotations

from functools import lru_cache

from evalspec.statistics.arguments import require_count
from evalspec.statistics.binomials import hypergeometric_cumulative, most_in_urn

MISSED = 1e-9
"""How likely the number of discordant questions of the pool lies above its upper limit; it is added to every p-value."""


def pool_mcnemar(only_first: int, only_second: int, *, questions: int, pool: int) -> float:
    """Exact two-sided p-value of McNemar's test on a random part of a finite pool.

    Were as many questions of the pool won by either model, K each, those won by the first among m discordant ones asked would be
    hypergeometric: m of 2K, K of them its own. The tails widen with K, so the upper limit of 2K decides: the largest number of discordant
    questions in the pool of which a sample would show m or fewer with a chance above `MISSED`, which the p-value then adds (Berger and Boos).
    Its size is at most the level for every pool; with nothing of the pool asked it is the exact binomial test.

    Parameters
    ----------
    only_first, only_second
        Numbers of questions asked that exactly one of the two answers rightly.
    questions, pool
        How many questions were asked, and how many there are.

    Raises
    ------
    ValueError
        For impossible counts.

    References
    ----------
    Berger and Boos (1994), J. Am. Stat. Assoc. 89, 1012-1016, doi:10.1080/01621459.1994.10476836. McNemar (1947), Psychometrika 12, 153-157.

    Examples
    --------
    >>> round(pool_mcnemar(219, 182, questions=2000, pool=14042), 4)
    0.0562
    """
    first, second = require_count("only_first", only_first), require_count("only_second", only_second)
    asked = require_count("questions", questions, minimum=max(1, first + second))
    if require_count("pool", pool) < asked:
        raise ValueError(f"questions must not exceed the pool; got {asked} of {pool}")
    return _two_sided(min(first, second), first + second, asked, pool)


@lru_cache(maxsize=1 << 16)
def _two_sided(fewer: int, discordant: int, questions: int, pool: int) -> float:
    if discordant == 0:
        return 1.0
    own = most_discordant(discordant, questions=questions, pool=pool) // 2
    return min(1.0, 2.0 * hypergeometric_cumulative(fewer, (own, own), discordant) + MISSED)


@lru_cache(maxsize=1 << 12)
def most_discordant(discordant: int, *, questions: int, pool: int) -> int:
    """Upper limit for the discordant questions of the pool, which lie above it with a chance of at most `MISSED`.

    Raises
    ------
    ValueError
        For impossible counts.

    References
    ----------
    Clopper and Pearson (1934), Biometrika 26, 404-413, here with hypergeometric tails.

    Examples
    --------
    >>> most_discordant(3, questions=10, pool=12)
    5
    """
    asked = require_count("questions", questions, minimum=require_count("discordant", discordant))
    return most_in_urn(discordant, drawn=asked, urn=require_count("pool", pool, minimum=asked), tail=MISSED)
