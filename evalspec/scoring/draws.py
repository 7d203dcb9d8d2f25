"""Which random numbers decide a generated text?  Those that belong to seed, model, question and repeat, whatever is computed beside it."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from evalspec.artifacts.base import canonical_json

UNUSED_BITS = 11
"""Of 64 random bits, those that a float64 between 0 and 1 has no place for."""


def uniforms(*, seed: int, weights: str, question: str, repeat: int, count: int) -> NDArray[np.float64]:
    """Return `count` numbers (count,) from 0 up to 1, from SHAKE-256 over what they belong to: the same with every library and on every machine.

    `weights` and `question` are SHA-256 digests. Numbers of a shorter text are the beginning of those of a longer one.
    """
    key = canonical_json(["sampled", seed, weights, question, repeat])
    bits = np.frombuffer(hashlib.shake_256(key).digest(8 * count), dtype="<u8")
    return (bits >> np.uint64(UNUSED_BITS)).astype(np.float64) * 2.0**-53
