"""What is redrawing compared with?  A published recipe: gather the drawn rows, average them, break ties by a tiny random number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

DRAWS = 2000


def first_share_by_gathering(correct: NDArray[np.float64], questions: int, rng: np.random.Generator, *, draws: int = DRAWS) -> float:
    """Return how often the first model comes first; `correct` is (Q, M)."""
    drawn = rng.integers(0, correct.shape[0], size=(draws, questions))
    scores = correct[drawn].mean(axis=1)
    scores += rng.random(scores.shape) * 1e-9
    return float((scores.argmax(axis=1) == 0).mean())
