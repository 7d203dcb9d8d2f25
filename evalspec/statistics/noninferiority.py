"""Is a candidate no worse than a baseline, or as good as equal to it, up to a margin named beforehand?

Assumption: both answered the same questions, which are independent draws. The candidate is the first model. "Not significantly
different" never passes here: too few questions cannot clear a margin.
"""

from __future__ import annotations

from dataclasses import dataclass

from evalspec.statistics.arguments import require_fraction
from evalspec.statistics.differences import PairedCounts, paired_difference, tango_statistic
from evalspec.statistics.one_sided import above
from evalspec.statistics.proportions import Interval


@dataclass(frozen=True, slots=True)
class NonInferiority:
    """A one-sided score test against a margin; ``lower_bound`` lies above ``-margin`` exactly when ``passed``."""

    difference: float
    statistic: float
    p_value: float
    lower_bound: float
    passed: bool


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Two one-sided score tests; ``interval``, of level 1 - 2 alpha, lies inside the margins exactly when ``passed``."""

    difference: float
    p_value: float
    interval: Interval
    passed: bool


def noninferiority(counts: PairedCounts, margin: float, *, alpha: float = 0.025) -> NonInferiority:
    """Score test of H0: the candidate is worse by ``margin`` or more.

    Parameters
    ----------
    counts
        The paired 2x2 table, candidate first.
    margin
        Largest acceptable loss of accuracy, as a proportion in (0, 1).
    alpha
        One-sided level.

    Raises
    ------
    ValueError
        For an impossible margin or level.

    References
    ----------
    Tango (1998), Stat. Med. 17, 891-908. Nam (1997), Biometrics 53, 1422-1430, doi:10.2307/2533508.
    Liu, Hsueh, Hsieh and Chen (2002), Stat. Med. 21, 231-245, doi:10.1002/sim.1012.

    Examples
    --------
    >>> noninferiority(PairedCounts(1217, 182, 219, 382), 0.05).passed
    True
    >>> noninferiority(PairedCounts(30, 0, 0, 10), 0.05).passed
    False
    """
    require_fraction("margin", margin)
    test = above(counts, -margin, alpha=alpha)
    return NonInferiority(paired_difference(counts), tango_statistic(counts, -margin), test.p_value, test.bound, test.passed)


def equivalence(counts: PairedCounts, margin: float, *, alpha: float = 0.05) -> Equivalence:
    """Two one-sided score tests of H0: the models differ by ``margin`` or more, in either direction.

    Parameters
    ----------
    counts, margin, alpha
        As `noninferiority`; the p-value is the larger of the two one-sided ones.

    Raises
    ------
    ValueError
        For an impossible margin or level.

    References
    ----------
    Schuirmann (1987), J. Pharmacokinet. Biopharm. 15, 657-680, doi:10.1007/BF01068419. Liu et al. (2002), as `noninferiority`.

    Examples
    --------
    >>> equivalence(PairedCounts(1217, 200, 201, 382), 0.05).passed
    True
    """
    forward = noninferiority(counts, margin, alpha=alpha)
    backward = noninferiority(counts.swapped(), margin, alpha=alpha)
    interval = Interval(forward.lower_bound, -backward.lower_bound)
    p_value = max(forward.p_value, backward.p_value)
    return Equivalence(forward.difference, p_value, interval, forward.passed and backward.passed)
