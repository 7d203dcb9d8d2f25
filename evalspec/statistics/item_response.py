"""How do questions differ in what they ask for, and models in what they can, when each answer depends on both?

The two-parameter logistic model in several dimensions: the chance of a right answer is the logistic function of a . theta - b, with one ability
theta per model, and slopes a and a difficulty b per question. Assumption: answers are independent given these; abilities, slopes and difficulties
are normal around 0, which keeps the fit finite and is a choice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit

from evalspec.statistics.arguments import FloatArray, as_floats
from evalspec.statistics.clustering import nearest_members
from evalspec.statistics.selections import Candidates, Choice, Chooser, Selection

DIMENSIONS = 10
_SLOPE_SPREAD = 1.0
_DIFFICULTY_SPREAD = 3.0
_STEPS = 300
_ROUNDED = 3
"""Decimals of a question's coordinates: beyond them, machines need not agree on where the fit ended."""


@dataclass(frozen=True, slots=True, eq=False)
class ItemResponse:
    """A fitted model: abilities (S, D), slopes (N, D) and difficulties (N,)."""

    abilities: FloatArray
    slopes: FloatArray
    difficulties: FloatArray

    def chances(self) -> FloatArray:
        """Return the fitted chance of a right answer, (S, N)."""
        return np.asarray(expit(self.abilities @ self.slopes.T - self.difficulties))


def fit_item_response(correct: FloatArray, rng: np.random.Generator, *, dimensions: int = DIMENSIONS) -> ItemResponse:
    """Fit the model to scores of shape (S, N) by the most probable values under normal priors, from a random start.

    Raises
    ------
    ValueError
        When scores are missing or outside [0, 1].

    References
    ----------
    Reckase (2009), Multidimensional Item Response Theory. Liu and Nocedal (1989), Math. Program. 45, 503-528, doi:10.1007/BF01589116 (the search).

    Examples
    --------
    >>> correct = np.array([[1.0, 1, 1], [1.0, 1, 0], [1.0, 0, 0]])
    >>> fit_item_response(correct, np.random.default_rng(1), dimensions=1).difficulties.argsort().tolist()
    [0, 1, 2]
    """
    from scipy.optimize import minimize  # noqa: PLC0415 - costs more than all else that a study without this sampler imports

    scores = as_floats("correct", correct)
    if scores.ndim != 2 or scores.min() < 0.0 or scores.max() > 1.0:
        raise ValueError(f"correct must be (models, questions) of scores in [0, 1]; got shape {scores.shape}")
    models, questions = scores.shape
    objective = _Objective(scores, dimensions)
    start = np.concatenate([rng.normal(0.0, 0.1, dimensions * (models + questions)), np.zeros(questions)])
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS, "maxcor": 10, "ftol": 1e-10})
    return objective.parted(np.asarray(found.x))


class _Objective:
    """The negative log posterior and its gradient."""

    def __init__(self, scores: FloatArray, dimensions: int) -> None:
        self._scores = scores
        self._dimensions = dimensions

    def parted(self, values: FloatArray) -> ItemResponse:
        models, questions = self._scores.shape
        abilities, slopes, difficulties = np.split(values, [models * self._dimensions, (models + questions) * self._dimensions])
        return ItemResponse(abilities.reshape(models, -1), slopes.reshape(questions, -1), difficulties)

    def __call__(self, values: FloatArray) -> tuple[float, FloatArray]:
        model = self.parted(values)
        logits = model.abilities @ model.slopes.T - model.difficulties
        likelihood = float(np.sum(log_expit(logits)) - np.sum((1.0 - self._scores) * logits))
        missed = expit(logits) - self._scores
        prior = 0.5 * float(
            np.sum(model.abilities**2) + np.sum(model.slopes**2) / _SLOPE_SPREAD**2 + np.sum(model.difficulties**2) / _DIFFICULTY_SPREAD**2
        )
        gradient = (
            missed @ model.slopes + model.abilities,
            missed.T @ model.abilities + model.slopes / _SLOPE_SPREAD**2,
            -missed.sum(axis=0) + model.difficulties / _DIFFICULTY_SPREAD**2,
        )
        return prior - likelihood, np.concatenate([part.ravel() for part in gradient])


def item_response(candidates: Candidates, rng: np.random.Generator) -> Chooser:
    """Choose the questions nearest to the centres of clusters of like slopes and difficulty; each counts by the share of its cluster.

    References
    ----------
    Maia Polo, Weber, Choshen, Sun, Xu and Yurochkin (2024), ICML, arXiv:2402.14992 (tinyBenchmarks).

    Examples
    --------
    >>> correct = (np.random.default_rng(1).random((12, 30)) < np.linspace(0.1, 0.9, 30)).astype(float)
    >>> choice = item_response(Candidates(np.zeros(30, dtype=int), correct), np.random.default_rng(2))(4)
    >>> len(set(choice.own.questions.tolist())), round(float(choice.own.weights.sum()), 9)
    (4, 1.0)
    """
    fitted = fit_item_response(candidates.correct, rng)
    places = np.asarray(np.round(np.column_stack([fitted.slopes, fitted.difficulties]), _ROUNDED), dtype=np.float64)

    def choose(size: int) -> Choice:
        members, cluster = nearest_members(places, size, rng)
        return Choice(Selection(members, np.bincount(cluster, minlength=size) / candidates.questions))

    return choose
