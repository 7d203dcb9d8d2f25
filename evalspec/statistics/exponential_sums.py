"""How likely is a weighted sum of independent exponential variables to fall at or below zero?

Assumption: none; this is arithmetic. The variables have mean 1, and weights may have either sign. A uniform point of a simplex is such
variables divided by their sum, so that the same number says how likely a random average of fixed values is to fall at or below one of them.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalspec.statistics.arguments import FloatArray, require_scores

STEP = 0.125
"""Distance of the nodes along the path; half of it moves no logarithm of a chance by more than about 1e-12."""

BLOCK = 24
"""Nodes that are computed at once; beyond them terms fall at least as fast as exp(-2 u), along u."""

GROWTH = 1.5
"""How far a term may exceed an earlier one before the path is given up."""

TURN = 1.0
"""How far a term may turn from the one before, in radians, before nodes count as too far apart."""

PRECISION = 1e-12
"""Of an integral, as a share of the width of the peak."""

NO_DOUBT = -45.0
"""Logarithm of a chance that is nothing beside 1."""

HALVINGS = 4
"""How often the distance of the nodes along a bent path is halved before the path is given up."""

FINEST = 1e-4
"""Distance of the nodes below which none is tried."""

NEGLIGIBLE = 1e-17
"""Share of the width of the peak below which further terms are left out."""

NOTHING = 1e-90
"""Share of the largest weight up to which a weight counts as 0, so that cubes of them are still numbers."""


def log_chance_at_most_zero(weights: ArrayLike, counts: ArrayLike | None = None) -> float:
    """Natural logarithm of P(sum of w E <= 0), with E independent exponential variables of mean 1.

    The moment generating function is the product of 1 / (1 - z w), and the chance is an integral of it over z along a vertical line between
    its poles, bent here along the path of steepest descent. It goes through the saddle point, so that small chances are as accurate as large
    ones; with nodes spaced as a hyperbolic sine the trapezoid rule converges geometrically.

    Parameters
    ----------
    weights
        Shape (K,), finite.
    counts
        How many variables have each weight, shape (K,), none or more; by default one each.

    Returns
    -------
    float
        At most 0; -inf where every weight is positive.

    Raises
    ------
    ValueError
        When a weight is missing or infinite, there is none, or counts are not one for each.

    References
    ----------
    Daniels (1987), Int. Stat. Rev. 55, 37-48, doi:10.2307/1403269 (saddle points of tail probabilities). Trefethen and Weideman (2014), SIAM
    Rev. 56, 385-458, doi:10.1137/130932132 (the trapezoid rule).

    Examples
    --------
    >>> round(math.exp(log_chance_at_most_zero([1.0, -3.0])), 12)  # P(E1 <= 3 E2) = 3 / 4
    0.75
    """
    values = require_scores("weights", weights)
    numbers = np.ones(values.size) if counts is None else require_scores("counts", counts)
    if values.shape != numbers.shape:
        raise ValueError(f"needs one count per weight; got {numbers.size} for {values.size} weights")
    values, numbers = values[numbers > 0.0], numbers[numbers > 0.0]
    values = values / max(float(np.abs(values).max(initial=0.0)), sys.float_info.min)
    moving = np.abs(values) > NOTHING
    values, numbers = values[moving], numbers[moving]
    if not values.size or values.max() < 0.0:
        return 0.0
    if values.min() > 0.0:
        return -math.inf
    # Integrate the smaller tail: the sum at or below 0 where its mean lies above, else the opposite sum below 0.
    if float(numbers @ values) > 0.0:
        return min(0.0, _log_lower_tail(values, numbers))
    return math.log1p(-math.exp(min(_log_lower_tail(-values, numbers, least=NO_DOUBT), -1e-300)))


def _log_lower_tail(values: FloatArray, numbers: FloatArray, *, least: float = -math.inf) -> float:
    """Logarithm of P(sum <= 0), for a mean of at least 0: the path crosses between the first pole below 0 and 0 itself, a pole too.

    Below ``least`` only its order of magnitude.
    """
    saddle = _saddle(values, numbers)
    if saddle.log_size < least:
        return saddle.log_size
    # With z = point (1 - shift) every pole is a factor 1 / (1 + shift ratio); that of 0 has the ratio -1.
    ratios = np.append(values * saddle.point / (1.0 - saddle.point * values), -1.0)
    powers = np.append(numbers, 1.0)
    found = _bent(saddle, ratios, powers)
    if found is None:
        found = _straight(replace(saddle, bend=0.0), ratios, powers)
    return saddle.log_size + math.log(found / math.pi)


def _bent(saddle: _Saddle, ratios: FloatArray, powers: FloatArray) -> float | None:
    """Integrate along the bent path, by nodes as close as it takes; None where terms grow along it.

    Where one weight stands against very many, terms turn quickly along any path, and fall along the bent one alone.
    """
    for halved in range(HALVINGS + 1):
        found = _along(saddle, ratios, powers, STEP / 2.0**halved)
        if found is not None:
            return found
    return None


def _straight(saddle: _Saddle, ratios: FloatArray, powers: FloatArray) -> float:
    """Integrate along the vertical line, where the integrand cannot grow but may turn quickly: nodes are halved until that changes nothing.

    The bend that suits the peak leads astray where a few large weights make the peak and very many small ones the rest.
    """
    step, found, before = 0.5 * STEP, math.inf, 0.0
    while abs(found - before) > PRECISION * saddle.width and step > FINEST:
        before, step = found, 0.5 * step
        found = _along(saddle, ratios, powers, step) or 0.0
    return max(found, sys.float_info.min)


def _along(saddle: _Saddle, ratios: FloatArray, powers: FloatArray, step: float) -> float | None:
    """Return the integral along the path by the trapezoid rule, None where along a bent one terms grow or turn too far from node to node."""
    total, least, start = 0.5 * saddle.width, math.inf, 1
    while True:
        places = step * np.arange(start, start + BLOCK)
        shifts = saddle.width * (1j * np.sinh(places) + saddle.bend * (np.cosh(places) - 1.0))
        speeds = saddle.width * (1j * np.cosh(places) + saddle.bend * np.sinh(places))
        terms = speeds * np.exp(-_log_product(shifts, ratios, powers))
        sizes = np.abs(terms)
        falling = np.minimum.accumulate(np.append(least, sizes))
        turns = np.abs(np.angle(terms[1:] * terms[:-1].conj()))
        if saddle.bend and not (np.all(sizes <= GROWTH * falling[:-1]) and np.all(turns[sizes[1:] > PRECISION * saddle.width] < TURN)):
            return None
        total += float(np.sum(terms.imag))
        least, start = float(falling[-1]), start + BLOCK
        if sizes[-1] < NEGLIGIBLE * saddle.width:
            return total * step


def _log_product(shifts: NDArray[np.complex128], ratios: FloatArray, powers: FloatArray) -> NDArray[np.complex128]:
    """Return the sum of power log(1 + shift ratio), shape of shifts; in real parts, since the complex logarithm takes several times as long."""
    across, along = 1.0 + np.multiply.outer(shifts.real, ratios), np.multiply.outer(shifts.imag, ratios)
    angles = np.arctan2(along, across) @ powers
    across *= across
    along *= along
    across += along
    return np.asarray(0.5 * (np.log(across) @ powers) + 1j * angles)


@dataclass(frozen=True, slots=True)
class _Saddle:
    """Where the path crosses, below 0; the width of the peak there as a share of that, how the path bends, and the logarithm of the product."""

    point: float
    width: float
    bend: float
    log_size: float


def _saddle(values: FloatArray, numbers: FloatArray) -> _Saddle:
    """Minimise the convex -sum n log(1 - z w) - log(-z) over z between the first pole below 0 and 0, by Newton's method kept in bounds."""
    low, high = 1.0 / float(values.min()), 0.0
    point = 0.5 * low
    for _ in range(100):
        gains = values / (1.0 - point * values)
        slope, second = float(numbers @ gains) - 1.0 / point, float(numbers @ (gains * gains)) + 1.0 / point**2
        if abs(slope) < 1e-3 * math.sqrt(second):
            break
        low, high = (low, point) if slope > 0.0 else (point, high)
        step = slope / second
        point = point - step if low < point - step < high else 0.5 * (low + high)
    third = 2.0 * (float(numbers @ gains**3) - 1.0 / point**3)
    width = 1.0 / math.sqrt(second)
    return _Saddle(point, -width / point, third * width**3 / 3.0, -float(numbers @ np.log1p(-point * values)))
