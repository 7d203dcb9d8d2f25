"""What do answers look like whose subjects are known?  Four subjects; groups of five variants of one question, three of which share the answer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

VARIANTS, SUBJECTS, CATEGORIES = 5, 4, 32


def subjects_of(questions: int) -> NDArray[np.int64]:
    """Return the subject of each question, as a number."""
    return np.arange(questions) // VARIANTS % SUBJECTS


def distributions(questions: int, *, signal: float, rng: np.random.Generator, noise: float = 0.5) -> NDArray[np.float64]:
    """Return probabilities of 32 categories; `signal` is how strongly a subject shows in them, beside the answer and noise."""
    group, variant = np.arange(questions) // VARIANTS, np.arange(questions) % VARIANTS
    topics = rng.standard_normal((SUBJECTS, CATEGORIES))
    answers = rng.standard_normal((int(group.max()) + 1, CATEGORIES))[group]
    false = rng.standard_normal((questions, CATEGORIES))
    logits = signal * topics[subjects_of(questions)] + np.where(variant[:, None] < 3, answers, false)
    logits += noise * rng.standard_normal(logits.shape)
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def letters(right: NDArray[np.bool_], key: NDArray[np.int64], rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the chosen letters and the log-probabilities of four letters, of a model that is right where `right` says so."""
    wrong = (key + rng.integers(1, 4, key.size)) % 4
    chosen = np.where(right, key, wrong)
    logits = 0.1 * rng.random((key.size, 4))
    logits[np.arange(key.size), chosen] += 1.0 + 3.0 * rng.random(key.size)
    return chosen, logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
