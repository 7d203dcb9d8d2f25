"""Which arguments can a statistic use, and what does it say about the others?"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

ROUNDING = 1e-7
"""The largest standard error that is taken for none: what rounding makes of scores without a spread."""


def require_fraction(name: str, value: float) -> float:
    """Give ``value`` back when it lies strictly between 0 and 1.

    Raises
    ------
    ValueError
        When it does not, NaN included.

    Examples
    --------
    >>> require_fraction("level", 0.95)
    0.95
    """
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1; got {value!r}")
    return float(value)


def require_one_sided(alpha: float) -> float:
    """Give a one-sided level back when it lies strictly between 0 and 0.5.

    Raises
    ------
    ValueError
        When it does not, NaN included.

    Examples
    --------
    >>> require_one_sided(0.025)
    0.025
    """
    if not 0.0 < alpha < 0.5:
        raise ValueError(f"alpha must lie strictly between 0 and 0.5; got {alpha!r}")
    return float(alpha)


def require_count(name: str, value: int, *, minimum: int = 0) -> int:
    """Give ``value`` back as ``int`` when it is a whole number of at least ``minimum``.

    Raises
    ------
    ValueError
        When it is fractional, boolean, not a number, or too small.

    Examples
    --------
    >>> require_count("trials", 10, minimum=1)
    10
    """
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole:
        raise ValueError(f"{name} must be a whole number; got {value!r}")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}; got {value}")
    return int(value)


def require_counts(name: str, values: ArrayLike) -> IntArray:
    """Give whole non-negative numbers of any shape back as ``int64``.

    Raises
    ------
    ValueError
        When a value is negative or has a fraction, or is not a number.

    Examples
    --------
    >>> require_counts("only_first", [3, 0])
    array([3, 0])
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be whole numbers; got an array of type {array.dtype}")
    if array.size and array.min() < 0:
        raise ValueError(f"{name} must not be negative; got {array.min()}")
    return array.astype(np.int64)


def require_scores(name: str, values: ArrayLike, *, minimum: int = 1) -> FloatArray:
    """Give a one-dimensional array of finite scores back as ``float64``.

    Raises
    ------
    ValueError
        When the array is not one-dimensional, shorter than ``minimum``, or holds a missing or infinite score.

    Examples
    --------
    >>> require_scores("scores", [1, 0, 0.5])
    array([1. , 0. , 0.5])
    """
    array = as_floats(name, values)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional; got shape {array.shape}")
    if array.size < minimum:
        raise ValueError(f"{name} needs at least {minimum} value(s); got {array.size}")
    return array


def require_binary(name: str, values: ArrayLike) -> NDArray[np.bool_]:
    """Give 0/1 scores of any shape back as booleans.

    Raises
    ------
    ValueError
        When a score is missing or is neither 0 nor 1.

    Examples
    --------
    >>> require_binary("first", [1, 0])
    array([ True, False])
    """
    if isinstance(values, np.ndarray) and values.dtype == np.bool_:
        # Nothing to check, and large matrices keep their one byte per score.
        return values
    array = as_floats(name, values)
    wrong = (array != 0.0) & (array != 1.0)
    if wrong.any():
        raise ValueError(f"{name} must hold only 0 and 1; got {array[wrong][0]!r}, and {int(wrong.sum())} such value(s)")
    return np.asarray(array == 1.0)


def as_floats(name: str, values: ArrayLike) -> FloatArray:
    """Give finite numbers of any shape back as ``float64``.

    Raises
    ------
    ValueError
        When a value is not a number, missing or infinite.

    Examples
    --------
    >>> as_floats("scores", [[1, 0]])
    array([[1., 0.]])
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers without gaps: {error}") from error
    missing = int(array.size - np.isfinite(array).sum())
    if missing:
        raise ValueError(f"{name} must be finite; got {missing} missing or infinite value(s) of {array.size}")
    return array


def beyond_rounding(standard_error: float) -> float:
    """Return the standard error of a mean of scores within 1 of 0; 0 where it is no more than rounding makes of scores without a spread.

    Scores that ought to be equal part by up to 6e-8 where they are kept in single precision.

    Examples
    --------
    >>> beyond_rounding(2e-17), beyond_rounding(0.01)
    (0.0, 0.01)
    """
    return standard_error if standard_error > ROUNDING else 0.0


def two_sided_z(level: float) -> float:
    """Standard normal quantile that a two-sided interval of this confidence level reaches out to.

    Raises
    ------
    ValueError
        When the level is not strictly between 0 and 1.

    Examples
    --------
    >>> round(two_sided_z(0.95), 6)
    1.959964
    """
    return float(-ndtri((1.0 - require_fraction("level", level)) / 2.0))


def two_sided_t(level: float, degrees_of_freedom: float) -> float:
    """Student quantile that a two-sided interval of this confidence level reaches out to.

    Raises
    ------
    ValueError
        When the level is not strictly between 0 and 1, or the degrees of freedom are not positive and finite.

    Examples
    --------
    >>> round(two_sided_t(0.95, 9), 4)
    2.2622
    """
    if not 0.0 < degrees_of_freedom < math.inf:
        raise ValueError(f"degrees_of_freedom must be positive and finite; got {degrees_of_freedom!r}")
    return float(-stdtrit(degrees_of_freedom, (1.0 - require_fraction("level", level)) / 2.0))


def bisect(function: Callable[[float], float], low: float, high: float, *, tolerance: float = 0.0) -> float:
    """Halve [low, high] around the sign change of ``function`` until it is this narrow, or doubles part no further.

    The caller vouches that ``function`` has opposite signs at the two ends.

    Examples
    --------
    >>> round(bisect(lambda x: x * x - 2.0, 0.0, 2.0), 9)
    1.414213562
    """
    negative_at_low = function(low) < 0.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high) or high - low <= tolerance:
            break
        if (function(middle) < 0.0) == negative_at_low:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
