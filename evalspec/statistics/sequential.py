"""What does it cost to look at a comparison more than once, and how can one look often and still keep alpha?

Assumption: independent questions that arrive in looks; the statistic at the looks is normal with independent increments. Every
run of a gate on the same questions counts as a look.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from scipy.special import betaln, ndtr, ndtri

from evalspec.statistics.arguments import FloatArray, bisect, require_count, require_fraction
from evalspec.statistics.differences import PairedCounts
from evalspec.statistics.quadrature import gauss_legendre

Spending = Literal["obrien_fleming", "pocock"]


def type_1_inflation(looks: int, *, alpha: float = 0.05) -> float:
    """Probability of at least one false rejection when each of equally spaced looks is tested at ``alpha``, two-sided.

    Raises
    ------
    ValueError
        When there is no look or alpha is impossible.

    References
    ----------
    Armitage, McPherson and Rowe (1969), J. R. Stat. Soc. A 132, 235-244, doi:10.2307/2343787.

    Examples
    --------
    >>> round(type_1_inflation(5), 3)
    0.142
    """
    count = require_count("looks", looks, minimum=1)
    z = float(-ndtri(require_fraction("alpha", alpha) / 2.0))
    walk = _Walk()
    return sum(walk.step((look + 1) / count, z) for look in range(count))


def spending_boundaries(fractions: Sequence[float], *, alpha: float = 0.05, spending: Spending = "obrien_fleming") -> tuple[float, ...]:
    """Critical values of |z| at planned looks that spend a two-sided alpha by Lan and DeMets's functions.

    Parameters
    ----------
    fractions
        Share of all planned questions at each look, rising, the last at most 1.
    alpha
        Two-sided level for all looks together.
    spending
        "obrien_fleming" spends almost nothing early; "pocock" spends evenly.

    Raises
    ------
    ValueError
        When the fractions do not rise within (0, 1], or alpha is impossible.

    References
    ----------
    Lan and DeMets (1983), Biometrika 70, 659-663, doi:10.1093/biomet/70.3.659.

    Examples
    --------
    >>> [round(z, 3) for z in spending_boundaries([0.2, 0.4, 0.6, 0.8, 1.0])]
    [4.877, 3.357, 2.68, 2.29, 2.031]
    """
    times = [0.0, *fractions]
    if len(times) < 2 or times[-1] > 1.0 or not all(late > early for early, late in pairwise(times)):
        raise ValueError(f"fractions must rise within (0, 1]; got {list(fractions)}")
    require_fraction("alpha", alpha)
    walk, boundaries, spent = _Walk(), [], 0.0
    for time in times[1:]:
        allowed = _spent(time, alpha, spending)
        boundary = walk.boundary(time, allowed - spent)
        walk.step(time, boundary)
        boundaries.append(boundary)
        spent = allowed
    return tuple(boundaries)


@dataclass(frozen=True, slots=True)
class LookPlan:
    """Looks planned at so many questions each, rising; the last is the end."""

    questions: tuple[int, ...]
    spending: Spending = "obrien_fleming"

    def __post_init__(self) -> None:
        if not self.questions or not all(late > early for early, late in pairwise((0, *self.questions))):
            raise ValueError(f"the questions of the looks must rise from at least 1; got {list(self.questions)}")

    @property
    def fractions(self) -> tuple[float, ...]:
        """Share of all planned questions at each look."""
        return tuple(questions / self.questions[-1] for questions in self.questions)


def nominal_alpha(plan: LookPlan, look: int, *, alpha: float = 0.025) -> float:
    """One-sided level at which one look of a plan is tested, so that all looks together err with probability ``alpha``.

    It uses that the statistics of the looks are normal and correlated, as approximate tests do.

    Parameters
    ----------
    plan
        The looks.
    look
        Which one, from 1.
    alpha
        One-sided level of all looks together.

    Raises
    ------
    ValueError
        When the plan has no such look, or alpha is impossible.

    References
    ----------
    Lan and DeMets (1983), as `spending_boundaries`, whose upper boundary this is, at twice the level.

    Examples
    --------
    >>> [round(nominal_alpha(LookPlan((500, 1000)), look), 5) for look in (1, 2)]
    [0.00153, 0.0245]
    """
    _require_look(plan, look)
    boundaries = spending_boundaries(plan.fractions[:look], alpha=2.0 * alpha, spending=plan.spending)
    return float(ndtr(-boundaries[look - 1]))


def spent_alpha(plan: LookPlan, look: int, *, alpha: float = 0.025) -> float:
    """What one look may spend of a one-sided alpha: tests at these levels keep it by the union bound, whatever they are.

    Raises
    ------
    ValueError
        As `nominal_alpha`.

    References
    ----------
    Lan and DeMets (1983), as `spending_boundaries`.

    Examples
    --------
    >>> [round(spent_alpha(LookPlan((500, 1000)), look), 5) for look in (1, 2)]
    [0.00153, 0.02347]
    """
    _require_look(plan, look)
    times = (0.0, *plan.fractions)
    before, now = (_spent(time, 2.0 * alpha, plan.spending) if time else 0.0 for time in (times[look - 1], times[look]))
    return (now - before) / 2.0


def _require_look(plan: LookPlan, look: int) -> None:
    if not 1 <= look <= len(plan.questions):
        raise ValueError(f"the plan has {len(plan.questions)} look(s); got look {look}")


def _spent(time: float, alpha: float, spending: Spending) -> float:
    if spending == "pocock":
        return alpha * math.log1p((math.e - 1.0) * time)
    return 4.0 * float(ndtr(ndtri(alpha / 4.0) / math.sqrt(time)))


class _Walk:
    """Density of a Brownian motion at the last look, on the paths that no look has stopped (Armitage et al. 1969)."""

    def __init__(self) -> None:
        self.time = 0.0
        self.places: FloatArray = np.zeros(1)
        self.masses: FloatArray = np.ones(1)

    def exit(self, time: float, boundary: float) -> float:
        """Probability of first crossing at ``time`` when |z| is compared with ``boundary`` there."""
        reach, spread = boundary * math.sqrt(time), math.sqrt(time - self.time)
        outside = ndtr((self.places - reach) / spread) + ndtr((-self.places - reach) / spread)
        return float(self.masses @ outside)

    def boundary(self, time: float, probability: float) -> float:
        """Boundary that is first crossed at ``time`` with this probability."""
        return bisect(lambda z: self.exit(time, z) - probability, 0.0, 40.0)

    def step(self, time: float, boundary: float) -> float:
        """Go on to ``time``, stop the paths outside the boundary, and give their probability."""
        stopped = self.exit(time, boundary)
        reach, spread = boundary * math.sqrt(time), math.sqrt(time - self.time)
        rule = gauss_legendre(-reach, reach, count=256)
        places = rule.points
        distance = (places[:, None] - self.places[None, :]) / spread
        density = np.exp(-0.5 * distance**2) @ self.masses / (spread * math.sqrt(2.0 * math.pi))
        self.time, self.places, self.masses = time, places, rule.weights * density
        return stopped


def log_e_value(counts: PairedCounts) -> float:
    """Natural logarithm of a mixture e-value against H0: a discordant question is either model's with probability 1/2.

    The mixture is Jeffreys' Beta(1/2, 1/2). Under H0 an e-value reaches 1 / alpha with probability at most alpha, however often
    one looks; so stopping at 1 / alpha keeps alpha.

    References
    ----------
    Grünwald, de Heide and Koolen (2024), J. R. Stat. Soc. B 86, 1091-1128, doi:10.1093/jrsssb/qkae011, arXiv:1906.07801.

    Examples
    --------
    >>> round(log_e_value(PairedCounts(100, 40, 10, 50)), 3)
    7.449
    """
    b, c = counts.only_first, counts.only_second
    return float(counts.discordant * math.log(2.0) + betaln(b + 0.5, c + 0.5) - betaln(0.5, 0.5))


def e_value(counts: PairedCounts) -> float:
    """The e-value itself, held at the largest double where it is larger. See `log_e_value`.

    References
    ----------
    As `log_e_value`.

    Examples
    --------
    >>> round(e_value(PairedCounts(1217, 219, 182, 382)), 2)
    0.22
    """
    logarithm = log_e_value(counts)
    return math.exp(logarithm) if logarithm < math.log(sys.float_info.max) else sys.float_info.max
