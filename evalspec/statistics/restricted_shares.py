"""Which share of "only second" is the most likely one when the difference between two models is held at a value?

Assumption: questions are independent draws, so that the four paired counts are multinomial. The share s solves
2 s^2 + linear s + constant = 0, whose root has two forms: each loses digits where the other does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evalspec.statistics.arguments import FloatArray


@dataclass(frozen=True, slots=True)
class RestrictedShares:
    """Most likely shares, each of the shape of the arguments, and the linear terms and square roots of the quadratics that they solve."""

    share: FloatArray
    linear: FloatArray
    root: FloatArray


def restricted_only_second(only_first: float, only_second: float, difference: float) -> float:
    """Maximum-likelihood share of "only second" when the difference is held fixed.

    Parameters
    ----------
    only_first, only_second
        Shares of all questions.
    difference
        The value at which first minus second is held.

    References
    ----------
    Tango (1998), Stat. Med. 17, 891-908, section 2.

    Examples
    --------
    >>> round(restricted_only_second(0.1, 0.1, 0.0), 3)
    0.1
    """
    # In plain numbers: root finding asks for one at a time, which arrays would slow down twenty times.
    linear = (2.0 - only_first + only_second) * difference - only_first - only_second
    constant = -only_second * difference * (1.0 - difference)
    root = math.sqrt(max(linear * linear - 8.0 * constant, 0.0))
    return (root - linear) / 4.0 if linear <= 0.0 else -2.0 * constant / (root + linear)


def restricted_shares(only_first: FloatArray, only_second: FloatArray, difference: FloatArray | float) -> RestrictedShares:
    """`restricted_only_second` for arrays, which broadcast together.

    References
    ----------
    As `restricted_only_second`.

    Examples
    --------
    >>> restricted_shares(np.array([0.1, 0.2]), np.array([0.1, 0.0]), 0.0).share.round(3)
    array([0.1, 0.1])
    """
    linear = (2.0 - only_first + only_second) * difference - only_first - only_second
    constant = -only_second * difference * (1.0 - difference)
    root = np.sqrt(np.maximum(linear * linear - 8.0 * constant, 0.0))
    share = np.where(linear <= 0.0, (root - linear) / 4.0, -2.0 * constant / np.where(linear <= 0.0, 1.0, root + linear))
    return RestrictedShares(share, linear, root)
