"""How often would the better of two models come out ahead on a smaller, redrawn or split set of these questions?

Closed forms for two models; `evalspec.statistics.rankings` simulates more. Only the paired counts matter: the leader leads a
sample in which it wins more discordant questions; an even split counts one half.

Assumption: questions are independent draws, each sample of the size named equally likely.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from evalspec.statistics.arguments import FloatArray, IntArray, require_count
from evalspec.statistics.binomials import cumulative, log_choose, masses
from evalspec.statistics.differences import PairedCounts


@dataclass(frozen=True, slots=True)
class SplitHalves:
    """What choosing the winner on one half shows on the other.

    ``same_winner`` is the probability that both halves name the same model; ``lead_selected`` the expected lead on the half that
    chose the winner, ``lead_held_out`` that model's expected lead on the other half, both as proportions.
    """

    same_winner: float
    lead_selected: float
    lead_held_out: float


def ahead_with_replacement(counts: PairedCounts, questions: int) -> float:
    """Probability that the first model is ahead on ``questions`` drawn with replacement: a new sample from such a population.

    Raises
    ------
    ValueError
        When there is no question to draw.

    References
    ----------
    Bickel, Götze and van Zwet (1997), Stat. Sinica 7, 1-31 (drawing fewer than there are).

    Examples
    --------
    >>> round(ahead_with_replacement(PairedCounts(1217, 219, 182, 382), 500), 4)
    0.8223
    """
    n = require_count("questions", questions, minimum=1)
    if counts.discordant == 0:
        return 0.5
    m = np.arange(n + 1, dtype=np.int64)
    weights = masses(m, n, counts.discordance)
    losing = counts.only_second / counts.discordant
    # P(first wins more than half of m) + P(exactly half) / 2, by the two binomial tails on either side of the middle.
    fewer, at_most = (m + 1) // 2 - 1, m // 2
    ahead = 0.5 * (cumulative(fewer, m, losing) + cumulative(at_most, m, losing))
    return min(1.0, float(weights @ ahead))


def ahead_without_replacement(counts: PairedCounts, questions: int) -> float:
    """Probability that the first model is ahead on ``questions`` of these, drawn without replacement: a smaller version of this set.

    Raises
    ------
    ValueError
        When there are not that many questions.

    References
    ----------
    Politis and Romano (1994), Ann. Stat. 22, 2031-2050, doi:10.1214/aos/1176325770 (subsampling).

    Examples
    --------
    >>> ahead_without_replacement(PairedCounts(1217, 219, 182, 382), 2000)
    1.0
    """
    draws = _discordant_draws(counts, questions)
    return float(np.sum(draws.weights * (0.5 + 0.5 * np.sign(draws.lead))))


def split_halves(counts: PairedCounts, selected: int | None = None) -> SplitHalves:
    """Split these questions in two at random, choose the winner on the first part and look at its lead on the second.

    Parameters
    ----------
    counts
        The paired 2x2 table, at least two questions.
    selected
        Size of the part that chooses; half of the questions, rounded down, when ``None``.

    Raises
    ------
    ValueError
        When a part would be empty.

    References
    ----------
    Andrews, Kitagawa and McCloskey (2024), Q. J. Econ. 139, 305-358, doi:10.1093/qje/qjad043 (the winner's curse).

    Examples
    --------
    >>> halves = split_halves(PairedCounts(1217, 219, 182, 382))
    >>> round(halves.same_winner, 4), round(halves.lead_selected, 4), round(halves.lead_held_out, 4)
    (0.9353, 0.0188, 0.0159)
    """
    total = counts.questions
    size = total // 2 if selected is None else require_count("selected", selected)
    if not 0 < size < total:
        raise ValueError(f"both parts need at least 1 question; got {size} and {total - size}")
    draws = _discordant_draws(counts, size)
    rest = (counts.only_first - counts.only_second) - draws.lead
    agree = 0.5 + 0.5 * np.sign(draws.lead) * np.sign(rest)
    held_out = float(np.sum(draws.weights * np.sign(draws.lead) * rest)) / (total - size)
    return SplitHalves(float(np.sum(draws.weights * agree)), float(np.sum(draws.weights * np.abs(draws.lead))) / size, held_out)


def ahead_approximately(counts: PairedCounts, questions: int) -> float:
    """Normal approximation to `ahead_with_replacement`; 0.5 when the models never disagree.

    Raises
    ------
    ValueError
        When there is no question to draw.

    References
    ----------
    Bickel, Götze and van Zwet (1997), as `ahead_with_replacement`.

    Examples
    --------
    >>> round(ahead_approximately(PairedCounts(1217, 219, 182, 382), 500), 4)
    0.8224
    """
    n = require_count("questions", questions, minimum=1)
    difference = (counts.only_first - counts.only_second) / counts.questions
    variance = counts.discordance - difference * difference
    if variance <= 0.0:
        return 0.5 + 0.5 * float(np.sign(difference))
    return float(ndtr(difference * math.sqrt(n / variance)))


@dataclass(frozen=True, slots=True)
class _Draws:
    """Leads of the first model on a part of the questions and their probabilities."""

    lead: IntArray
    weights: FloatArray


def _discordant_draws(counts: PairedCounts, size: int) -> _Draws:
    """Multivariate hypergeometric: discordant questions in the part first, then the first model's among those."""
    total, m, b = counts.questions, counts.discordant, counts.only_first
    if not 1 <= require_count("questions", size) <= total:
        raise ValueError(f"questions must lie between 1 and {total}; got {size}")
    drawn = np.arange(max(0, size - (total - m)), min(m, size) + 1, dtype=np.int64)
    likelihoods = np.exp(log_choose(m, drawn) + log_choose(total - m, size - drawn) - log_choose(total, size))
    # Numbers of discordant questions without weight would only cost time.
    likely = likelihoods > 1e-16
    drawn, likelihoods = drawn[likely][:, None], likelihoods[likely][:, None]
    wins = np.arange(b + 1, dtype=np.int64)[None, :]
    possible = (wins <= drawn) & (drawn - wins <= m - b)
    logs = log_choose(b, wins) + log_choose(m - b, np.where(possible, drawn - wins, 0)) - log_choose(m, drawn)
    return _Draws(2 * wins - drawn, np.where(possible, likelihoods * np.exp(np.where(possible, logs, 0.0)), 0.0))
