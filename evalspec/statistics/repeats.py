"""What do several answers to each question say about a model, and how many are worth drawing?

Assumption: the answers to one question are independent draws; questions are independent draws too. Average within questions
first: counting every answer as a question would make noise look like evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalspec.statistics.arguments import FloatArray, IntArray, as_floats, require_count, require_counts


@dataclass(frozen=True, slots=True)
class VarianceSplit:
    """Variance of expected scores between questions, and mean variance of one answer within a question."""

    between: float
    within: float


def question_means(scores: ArrayLike) -> FloatArray:
    """Average the answers to each question: (Q, K) to (Q,).

    Raises
    ------
    ValueError
        When the array is not two-dimensional, has no answer, or a score is missing.

    References
    ----------
    Miller (2024), arXiv:2411.00640, section 3.1.

    Examples
    --------
    >>> question_means([[1, 0], [1, 1]])
    array([0.5, 1. ])
    """
    return np.asarray(_answers(scores, 1).mean(axis=1))


def variance_split(scores: ArrayLike) -> VarianceSplit:
    """Split the variance of scores (Q, K) into between and within questions, both unbiased before ``between`` is cut at 0.

    Raises
    ------
    ValueError
        With fewer than two questions or two answers each, or a missing score.

    References
    ----------
    Miller (2024), arXiv:2411.00640, section 3.

    Examples
    --------
    >>> split = variance_split([[1, 0], [1, 1], [0, 0]])
    >>> round(split.between, 4), round(split.within, 4)
    (0.1667, 0.1667)
    """
    answers = _answers(scores, 2)
    if answers.shape[0] < 2:
        raise ValueError("needs at least 2 questions; got 1")
    within = float(answers.var(axis=1, ddof=1).mean())
    between = float(answers.mean(axis=1).var(ddof=1)) - within / answers.shape[1]
    return VarianceSplit(max(0.0, between), within)


def repeated_variance(split: VarianceSplit, repeats: float) -> float:
    """Variance of one question's mean over ``repeats`` answers; ``math.inf`` repeats leave the part between questions.

    Raises
    ------
    ValueError
        With fewer than one repeat.

    References
    ----------
    Miller (2024), arXiv:2411.00640, section 3.1.

    Examples
    --------
    >>> round(repeated_variance(VarianceSplit(1 / 12, 1 / 6), 4), 4)
    0.125
    """
    if not repeats >= 1.0:
        raise ValueError(f"repeats must be at least 1; got {repeats!r}")
    return split.between + split.within / repeats


def pass_at_k(samples: ArrayLike, correct: ArrayLike, k: int) -> FloatArray:
    """Probability that at least one of k answers, drawn without replacement from those at hand, is correct.

    Parameters
    ----------
    samples, correct
        Answers drawn and correct answers per question; they broadcast together.
    k
        At most the number of samples.

    Raises
    ------
    ValueError
        When ``k`` exceeds the samples of a question (then nothing unbiased exists), or counts are impossible.

    References
    ----------
    Chen et al. (2021), arXiv:2107.03374, equation 1.

    Examples
    --------
    >>> pass_at_k(5, [0, 2, 5], 3)
    array([0. , 0.9, 1. ])
    """
    n, c = _sample_counts(samples, correct)
    require_count("k", k, minimum=1)
    if n.size and k > n.min():
        raise ValueError(f"k must not exceed the number of samples; got k = {k} and {n.min()} sample(s)")
    missed = np.ones(n.shape)
    for drawn in range(k):
        missed *= np.maximum(n - c - drawn, 0) / (n - drawn)
    return np.asarray(1.0 - missed)


def best_of_k_with_replacement(samples: ArrayLike, correct: ArrayLike, k: int) -> FloatArray:
    """Probability of a correct answer among k drawn with replacement: biased low as an estimate of `pass_at_k`.

    Raises
    ------
    ValueError
        When counts are impossible or ``k`` is below 1.

    References
    ----------
    Chen et al. (2021), arXiv:2107.03374, appendix A (why not).

    Examples
    --------
    >>> best_of_k_with_replacement([4], [1], 4).round(4)
    array([0.6836])
    """
    n, c = _sample_counts(samples, correct)
    return np.asarray(1.0 - (1.0 - c / n) ** require_count("k", k, minimum=1))


def _sample_counts(samples: ArrayLike, correct: ArrayLike) -> tuple[IntArray, IntArray]:
    n, c = np.broadcast_arrays(require_counts("samples", samples), require_counts("correct", correct))
    if n.size and n.min() < 1:
        raise ValueError("samples must be at least 1; got 0")
    if np.any(c > n):
        raise ValueError("correct must not exceed samples")
    return n, c


def _answers(scores: ArrayLike, minimum: int) -> FloatArray:
    answers = as_floats("scores", scores)
    if answers.ndim != 2 or answers.shape[0] < 1 or answers.shape[1] < minimum:
        raise ValueError(f"scores must be (questions, answers) with at least {minimum} answer(s) each; got shape {answers.shape}")
    return answers
