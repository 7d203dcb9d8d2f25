"""Does a paired difference clear its limit, whatever the missing answers would have been?

Assumption: both models were asked the same questions, which came about as the design says. Null hypothesis: the difference, first minus
second, is at most the limit; with two limits also that it is at least the opposite one. A missing answer is settled against the first model
where the lower bound is sought, and in its favour where the upper one is, so that the bounds hold either way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from evalspec.statistics.arguments import FloatArray
from evalspec.statistics.designs import Design
from evalspec.statistics.differences import PairedCounts
from evalspec.statistics.one_sided import LimitTest, OneSided, above, bounded_mean_above, mean_above

Outcome = Literal["shown", "open", "refuted"]


@dataclass(frozen=True, slots=True)
class SettledDifference:
    """A difference with one bound on either side, each of the test's one-sided level; counts stand for right and wrong answers alone.

    ``difference``, ``low``, ``p_value`` and ``counts`` settle missing answers against the first model, ``high`` in its favour. ``outcome`` is
    "refuted" where the bounds show that the difference does not clear the limit.
    """

    difference: float
    low: float
    high: float
    p_value: float
    outcome: Outcome
    method: str
    log10_e: float | None
    counts: PairedCounts | None
    clusters: int | None
    caution: str | None


def settled_difference(first: FloatArray, second: FloatArray, design: Design, test: LimitTest) -> SettledDifference:
    """Test a difference against its limit from both sides, missing answers settled against what is to be shown.

    Parameters
    ----------
    first, second
        Scores in [0, 1] of shape (Q, K), K repeats of each question; NaN where there is none.
    design
        Of the same questions; right and wrong answers are counted as independent draws unless they come in clusters.
    test
        The limit, the one-sided level, and the method; of fractional scores and clusters, ``score`` is Student's t test and ``exact`` Gaffke's.

    Raises
    ------
    ValueError
        With the reason, where scores are fractional or come in clusters and the method is ``e_value``, or nothing measures how sure the
        mean is.

    References
    ----------
    As `above`, `mean_above` and `bounded_mean_above`. Two one-sided tests: Schuirmann (1987), J. Pharmacokinet. Biopharm. 15, 657-680,
    doi:10.1007/BF01068419.

    Examples
    --------
    >>> first, second = np.ones((40, 1)), np.ones((40, 1))
    >>> first[0] = np.nan
    >>> found = settled_difference(first, second, Design(), LimitTest(-0.2))
    >>> found.difference, found.outcome
    (-0.025, 'shown')
    """
    worst, best = (_filled(first, second, value) for value in (0.0, 1.0))
    binary = bool(np.all((worst == 0.0) | (worst == 1.0))) and design.clusters is None
    if not binary and test.method == "e_value":
        raise ValueError(
            f"method {test.method} counts right and wrong answers of independent questions; these scores are fractional or come in clusters"
        )
    # The upper bound is the lower one of the comparison turned round.
    low, high = (_tested(scores, design, test, binary=binary) for scores in (worst, best[::-1]))
    e_values = [side.log10_e for side in ((low, high) if test.both else (low,)) if side.log10_e is not None]
    return SettledDifference(
        difference=low.difference,
        low=low.bound,
        high=-high.bound,
        p_value=max(low.p_value, high.p_value) if test.both else low.p_value,
        outcome=_outcome(low, high, test),
        method=low.method,
        log10_e=min(e_values, default=None),
        counts=PairedCounts.from_scores(*worst) if binary else None,
        clusters=low.clusters,
        caution=low.caution,
    )


def _filled(first: FloatArray, second: FloatArray, value: float) -> FloatArray:
    """Return the scores (2, Q), averaged over repeats, with missing answers given `value` for the first model and the opposite for the second."""
    filled = (np.where(np.isnan(scores), given, scores).mean(axis=1) for scores, given in ((first, value), (second, 1.0 - value)))
    return np.stack(list(filled))


def _tested(scores: FloatArray, design: Design, test: LimitTest, *, binary: bool) -> OneSided:
    if binary:
        return above(PairedCounts.from_scores(*scores), test.limit, alpha=test.alpha, method=test.method)
    test_mean = bounded_mean_above if test.method == "exact" else mean_above
    return test_mean(scores[0] - scores[1], design, test.limit, alpha=test.alpha)


def _outcome(low: OneSided, high: OneSided, test: LimitTest) -> Outcome:
    limit, upper = test.limit, -high.bound
    if low.bound > limit and (not test.both or upper < -limit):
        return "shown"
    return "refuted" if upper <= limit or (test.both and low.bound >= -limit) else "open"
