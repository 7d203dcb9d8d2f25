"""Which models are judged, which may be looked at, and which questions are the reference, trial by trial?

Every trial draws its own models and halves the questions of every stratum anew: the seen half is the reference that a sample is taken from, the
fresh half stands for other questions like them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evalspec.statistics.arguments import IntArray, require_count


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """How many trials there are, and how many models each judges (``targets``) and may look at (``sources``), at most."""

    trials: int = 50
    targets: int = 50
    sources: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One draw: positions of models and of questions, each in ascending order."""

    targets: IntArray
    sources: IntArray
    seen: IntArray
    fresh: IntArray


def draw_trials(
    strata: IntArray, models: int, plan: TrialPlan, rng: np.random.Generator, *, judged: Sequence[int] | None = None
) -> tuple[Trial, ...]:
    """Draw targets and sources without replacement, and halve the questions of each stratum; an odd one goes to the fresh half.

    Parameters
    ----------
    strata
        Shape (N,): the stratum of each question, numbered from 0.
    models
        Number of models.
    plan
        How much is drawn. All models that may be targets are, where there are fewer than asked for.
    rng
        Where the draws come from.
    judged
        Positions of the models that may be targets; all by default.

    Raises
    ------
    ValueError
        With fewer than two targets, two questions of a stratum, or two sources where sources are asked for.

    References
    ----------
    Yauney, Warraich and Swayamdipta (2026), ICLR, arXiv:2510.08730.

    Examples
    --------
    >>> trial = draw_trials(np.zeros(9, dtype=int), 5, TrialPlan(1, 3, 9), np.random.default_rng(1))[0]
    >>> [trial.targets.size, trial.sources.size, trial.seen.size, trial.fresh.size]
    [3, 2, 4, 5]
    """
    require_count("trials", plan.trials, minimum=1)
    eligible = np.arange(models) if judged is None else np.unique(np.asarray(judged, dtype=np.int64))
    targets = min(plan.targets, eligible.size)
    if targets < 2:
        raise ValueError(f"needs at least 2 models to judge; got {targets}")
    if plan.sources and models - targets < 2:
        raise ValueError(f"needs at least 2 models beside those judged; got {models - targets}")
    members = [np.flatnonzero(strata == place) for place in range(int(strata.max()) + 1)]
    if min(part.size for part in members) < 2:
        raise ValueError("a half of the questions needs at least one question of every stratum")
    return tuple(_trial(members, models, (eligible, targets, plan.sources), rng) for _ in range(plan.trials))


def _trial(members: Sequence[IntArray], models: int, who: tuple[IntArray, int, int], rng: np.random.Generator) -> Trial:
    eligible, targets, sources = who
    chosen = rng.choice(eligible, targets, replace=False)
    others = np.setdiff1d(np.arange(models), chosen)
    looked_at = rng.choice(others, min(sources, others.size), replace=False)
    turned = [rng.permutation(part) for part in members]
    seen = np.concatenate([part[: part.size // 2] for part in turned])
    fresh = np.concatenate([part[part.size // 2 :] for part in turned])
    return Trial(np.sort(chosen), np.sort(looked_at), np.sort(seen), np.sort(fresh))
