"""Do two models differ on the same questions when questions come in clusters?

Assumption: clusters are independent draws. Null hypothesis: within a cluster either model is as likely to win a discordant
question. Large-sample tests; below 30 clusters prefer flipping whole clusters (`cluster_sign_flip`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalspec.statistics.arguments import FloatArray, IntArray, require_binary, require_scores
from evalspec.statistics.groups import group
from evalspec.statistics.p_values import ChiSquare, chi_square
from evalspec.statistics.permutations import MonteCarloP, sign_flip


@dataclass(frozen=True, slots=True)
class _ClusterSums:
    sums: FloatArray
    sizes: IntArray


def durkalski(first: ArrayLike, second: ArrayLike, clusters: Iterable[Hashable]) -> ChiSquare:
    """Durkalski's test: every cluster counts by its rate of wins minus losses, whatever its size.

    Parameters
    ----------
    first, second
        0/1 scores of shape (Q,).
    clusters
        One label per question.

    Returns
    -------
    ChiSquare
        Statistic 0 and p-value 1 when no cluster favours a model. With clusters of one question it is McNemar's chi-square.

    Raises
    ------
    ValueError
        With fewer than two clusters, a missing label, or a score that is neither 0 nor 1.

    References
    ----------
    Durkalski, Palesch, Lipsitz and Rust (2003), Stat. Med. 22, 2417-2428, doi:10.1002/sim.1438.

    Examples
    --------
    >>> durkalski([1, 1, 1, 0], [0, 0, 0, 1], [1, 2, 3, 4]).statistic
    1.0
    """
    grouped = _sums(first, second, clusters)
    rates = grouped.sums / grouped.sizes
    return chi_square(float(rates.sum() ** 2), float(rates @ rates))


def obuchowski(first: ArrayLike, second: ArrayLike, clusters: Iterable[Hashable]) -> ChiSquare:
    """Obuchowski's test: every question counts alike, and variance is taken between clusters.

    Raises
    ------
    ValueError
        As `durkalski`.

    References
    ----------
    Obuchowski (1998), Stat. Med. 17, 1495-1507, doi:10.1002/(SICI)1097-0258(19980715)17:13<1495::AID-SIM863>3.0.CO;2-I, in the
    form of Yang, Sun and Hardin (2010), Biom. J. 52, 638-652, doi:10.1002/bimj.201000035.

    Examples
    --------
    >>> obuchowski([1, 1, 1, 0], [0, 0, 0, 1], [1, 2, 3, 4]).statistic
    0.75
    """
    sums = _sums(first, second, clusters).sums
    return chi_square(float(sums.sum() ** 2) * (sums.size - 1) / sums.size, float(sums @ sums))


def cluster_sign_flip(differences: ArrayLike, clusters: Iterable[Hashable], *, draws: int, rng: np.random.Generator) -> MonteCarloP:
    """Monte Carlo test that flips the sign of whole clusters; assumes that cluster sums are symmetric about 0 under H0.

    Parameters
    ----------
    differences
        First minus second, shape (Q,), scores of any kind.
    clusters
        One label per question.
    draws, rng
        Number of random flips, and where they come from.

    Raises
    ------
    ValueError
        With a missing label or score, or without a draw.

    References
    ----------
    Phipson and Smyth (2010), Stat. Appl. Genet. Mol. Biol. 9, 39, doi:10.2202/1544-6115.1585.

    Examples
    --------
    >>> cluster_sign_flip([1, 1, -1, -1], ["a", "a", "b", "b"], draws=99, rng=np.random.default_rng(1)).p_value
    1.0
    """
    values = require_scores("differences", differences)
    return sign_flip(group(clusters, values.size).totals(values), draws=draws, rng=rng)


def _sums(first: ArrayLike, second: ArrayLike, clusters: Iterable[Hashable]) -> _ClusterSums:
    a, b = require_binary("first", first), require_binary("second", second)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"first and second must be one-dimensional and of one length; got {a.shape} and {b.shape}")
    groups = group(clusters, a.size)
    if len(groups.names) < 2:
        raise ValueError(f"needs at least 2 clusters; got {len(groups.names)}")
    return _ClusterSums(groups.totals(a.astype(np.float64) - b), groups.sizes)
