"""How probable is it, after the scores, that one model is better than the other?

These are Bayesian statements: they hold under the stated prior, and are no p-values. Assumption: questions are independent draws.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betainc, betaincinv, betaln, xlog1py, xlogy

from evalspec.statistics.differences import PairedCounts
from evalspec.statistics.quadrature import gauss_legendre
from evalspec.statistics.unpaired import TwoSamples


def probability_better(counts: PairedCounts, *, prior: float = 1.0) -> float:
    """Posterior probability that the first model is better, both having answered the same questions.

    Parameters
    ----------
    counts
        The paired 2x2 table; under a Dirichlet prior only the discordant cells matter.
    prior
        Parameter of each discordant cell in the Dirichlet prior; 1 is uniform.

    Raises
    ------
    ValueError
        When the prior is not positive.

    References
    ----------
    Altham (1971), Biometrika 58, 561-576, doi:10.1093/biomet/58.3.561.

    Examples
    --------
    >>> round(probability_better(PairedCounts(1217, 219, 182, 382)), 3)
    0.968
    """
    _require_prior(prior)
    return float(betainc(counts.only_second + prior, counts.only_first + prior, 0.5))


def probability_better_independent(samples: TwoSamples, *, prior: float = 1.0) -> float:
    """Posterior probability that the first proportion is larger, from independent samples with Beta(prior, prior) priors.

    Raises
    ------
    ValueError
        When the prior is not positive.

    References
    ----------
    Altham (1969), J. R. Stat. Soc. B 31, 261-269, doi:10.1111/j.2517-6161.1969.tb00786.x.

    Examples
    --------
    >>> round(probability_better_independent(TwoSamples(1436, 2000, 1399, 2000)), 3)
    0.901
    """
    _require_prior(prior)
    a1, b1 = samples.first_successes + prior, samples.first_trials - samples.first_successes + prior
    a2, b2 = samples.second_successes + prior, samples.second_trials - samples.second_successes + prior
    if min(a1, b1) < 1.0:
        raise ValueError("a prior below 1 makes the density unbounded when a sample has no success or no failure")
    low, high = float(betaincinv(a1, b1, 1e-15)), 1.0 - float(betaincinv(b1, a1, 1e-15))
    rule = gauss_legendre(low, high)
    p = rule.points
    density = np.exp(xlogy(a1 - 1.0, p) + xlog1py(b1 - 1.0, -p) - betaln(a1, b1))
    return min(1.0, float(rule.weights @ (density * betainc(a2, b2, p))))


def _require_prior(prior: float) -> None:
    if not prior > 0.0:
        raise ValueError(f"prior must be positive; got {prior!r}")
