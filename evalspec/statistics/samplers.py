"""Which samplers are there, and what do scores estimated from their questions come to, trial by trial?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from evalspec.statistics.anchor_samplers import anchor_points
from evalspec.statistics.arguments import FloatArray, IntArray
from evalspec.statistics.diverse_samplers import diversity
from evalspec.statistics.item_response import item_response
from evalspec.statistics.mdad_trials import Trial
from evalspec.statistics.random_samplers import confidence_strata, stratified_equal, stratified_proportional, uniform
from evalspec.statistics.selections import Candidates, Choice, Sampler, Selection


@dataclass(frozen=True, slots=True)
class KnownSampler:
    """A sampler, and whether it looks at other models or needs strata."""

    prepare: Sampler
    looks: bool = False
    strata: bool = False


SAMPLERS: Mapping[str, KnownSampler] = MappingProxyType(
    {
        "uniform": KnownSampler(uniform),
        "stratified_equal": KnownSampler(stratified_equal, strata=True),
        "stratified_proportional": KnownSampler(stratified_proportional, strata=True),
        "confidence_strata": KnownSampler(confidence_strata, looks=True),
        "anchor_points": KnownSampler(anchor_points, looks=True),
        "item_response": KnownSampler(item_response, looks=True),
        "diversity": KnownSampler(diversity, looks=True),
    }
)
"""The samplers of this package, by name."""


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Scores of every model on every question, (M, N), the stratum of each question, and the probability of the right choice where it is known."""

    scores: FloatArray
    strata: IntArray
    confidence: FloatArray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class SampledScores:
    """Estimated scores of the models of every trial, (T, K); `undefined` is the reason where questions cannot be chosen at that size."""

    own: FloatArray | None
    published: FloatArray | None = None
    undefined: str | None = None


@dataclass(frozen=True, slots=True)
class Choices:
    """What a sampler chose in every trial, by the place of the size in ``sizes``; ``reasons`` names the sizes at which it could not choose."""

    sizes: tuple[int, ...]
    by_trial: tuple[Mapping[int, Choice], ...]
    reasons: Mapping[int, str]


def choose_questions(answers: Answers, trials: Sequence[Trial], sampler: KnownSampler, sizes: Sequence[int], rng: np.random.Generator) -> Choices:
    """Choose questions of each trial's seen half at every size, by what its source models made of them.

    References
    ----------
    Yauney, Warraich and Swayamdipta (2026), ICLR, arXiv:2510.08730.

    Examples
    --------
    >>> answers = Answers(np.array([[1.0, 1, 0, 0], [0.0, 0, 0, 0]]), np.zeros(4, dtype=int))
    >>> trial = Trial(np.array([0, 1]), np.array([], dtype=int), np.array([0, 2]), np.array([1, 3]))
    >>> choose_questions(answers, [trial], SAMPLERS["uniform"], [1], np.random.default_rng(1)).by_trial[0][0].own.questions.size
    1
    """
    by_trial: list[dict[int, Choice]] = []
    reasons: dict[int, str] = {}
    for trial in trials:
        choose = sampler.prepare(_candidates(answers, trial), rng)
        chosen: dict[int, Choice] = {}
        for place in sorted(set(range(len(sizes))) - set(reasons)):
            try:
                chosen[place] = choose(sizes[place])
            except ValueError as error:
                reasons[place] = str(error)
        by_trial.append(chosen)
    return Choices(tuple(sizes), tuple(by_trial), reasons)


def sampled_scores(answers: Answers, trials: Sequence[Trial], choices: Choices) -> tuple[SampledScores, ...]:
    """Estimate the scores of each trial's targets from the questions chosen, at every size.

    References
    ----------
    Yauney, Warraich and Swayamdipta (2026), ICLR, arXiv:2510.08730.

    Examples
    --------
    >>> answers = Answers(np.array([[1.0, 1, 0, 0], [0.0, 0, 0, 0]]), np.zeros(4, dtype=int))
    >>> trial = Trial(np.array([0, 1]), np.array([], dtype=int), np.array([0, 2]), np.array([1, 3]))
    >>> choices = choose_questions(answers, [trial], SAMPLERS["uniform"], [2], np.random.default_rng(1))
    >>> sampled_scores(answers, [trial], choices)[0].own.tolist()
    [[0.5, 0.0]]
    """
    found = np.full((2, len(choices.sizes), len(trials), trials[0].targets.size), np.nan)
    for number, (trial, chosen) in enumerate(zip(trials, choices.by_trial, strict=True)):
        for form, selections in enumerate(({place: one.own for place, one in chosen.items()}, _published(chosen))):
            for of_confidence in (False, True):
                part = {place: one for place, one in selections.items() if one.of_confidence == of_confidence}
                if part:
                    found[form, list(part), number] = _estimates(answers, trial, list(part.values()))
    own, published = found
    return tuple(
        SampledScores(None, undefined=choices.reasons[place])
        if place in choices.reasons
        else SampledScores(own[place], None if np.isnan(published[place]).any() else published[place])
        for place in range(len(choices.sizes))
    )


def _published(choices: Mapping[int, Choice]) -> dict[int, Selection]:
    return {place: choice.published for place, choice in choices.items() if choice.published is not None}


def _candidates(answers: Answers, trial: Trial) -> Candidates:
    def seen(values: FloatArray) -> FloatArray:
        return values[trial.sources[:, None], trial.seen]

    confidence = None if answers.confidence is None else seen(answers.confidence)
    strata = np.unique(answers.strata[trial.seen], return_inverse=True)[1].astype(np.int64)
    return Candidates(strata, seen(answers.scores), confidence)


def _estimates(answers: Answers, trial: Trial, selections: Sequence[Selection]) -> FloatArray:
    """Return the weighted sums of the targets' scores, (selections, K): one product for all selections of a trial."""
    confidence = answers.confidence if selections[0].of_confidence else None
    scores = (answers.scores if confidence is None else confidence)[trial.targets][:, trial.seen]
    weights = np.zeros((len(selections), trial.seen.size))
    for row, selection in zip(weights, selections, strict=True):
        row[selection.questions] = selection.weights
    return np.asarray(weights @ scores.T)
